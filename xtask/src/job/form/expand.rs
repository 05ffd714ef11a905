//! From forms in a job to the snippets that measure them.

use super::catalog::{self, Selection};
use super::chain::{self, Made};
use super::compatibility::bits_of;
use super::effects::{self, Effects};
use super::{Form, FormError, Wanted, apart, blocked, case};
use crate::job::assemble::{Failed, Message, Part, Source, Syntax, assemble};
use crate::job::errors::JobError;
use crate::job::expect::CriteriaFile;
use crate::job::file::{JobFile, Options, SnippetFile};
use protocol::bits::Bits;
use protocol::job::criteria::{Bounds, Expect};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Puts snippets in the place of forms.
///
/// # Errors
/// A form that the assembler refuses, or that cannot be measured by itself.
pub fn expand(file: &JobFile) -> Result<Cow<'_, JobFile>, JobError> {
    if file.snippets.iter().all(|snippet| snippet.wanted.is_none()) {
        return Ok(Cow::Borrowed(file));
    }
    let file = &in_own_code(file)?;
    let wanted = file.snippets.iter().filter_map(|snippet| snippet.wanted.as_ref());
    let forms = wanted.flat_map(|wanted| wanted.latency.iter().chain(&wanted.throughput));
    let forms: Vec<&Form> = forms.collect();
    let mut known = Known::default();
    known.learn(forms.into_iter().cloned()).map_err(|error| failed(file, error))?;
    let mut snippets: Vec<SnippetFile> = Vec::new();
    for snippet in &file.snippets {
        let ring_3 = snippet.options.machine.is_ring_3();
        let asked = snippet.wanted.iter().flat_map(|one| one.latency.iter().chain(&one.throughput));
        let mut without_rights = asked.filter(|form| ring_3 && known.0[*form].undone.is_some());
        if let Some(form) = without_rights.next() {
            return Err(failed(file, effects::refused(form, "it needs ring 0").into()));
        }
        match &snippet.wanted {
            None => snippets.push(snippet.clone()),
            Some(Wanted { catalog: Some(selection), .. }) => {
                let made = made_of_catalog(selection, snippet.options.bits, ring_3)
                    .map_err(|text| snippet.refused(&file.source, text))?;
                snippets.extend(made.into_iter().map(|made| put(snippet, made)));
            }
            Some(wanted) => {
                let made = known.made(wanted).map_err(|error| failed(file, error.into()))?;
                snippets.extend(made.into_iter().map(|made| put(snippet, made)));
            }
        }
    }
    add_ports(file, &mut snippets, &mut known).map_err(|trouble| failed(file, trouble))?;
    add_ways_back(&mut snippets, &mut known).map_err(|error| failed(file, error))?;
    while add_partners(&mut snippets, &mut known).map_err(|error| failed(file, error))? {}
    Ok(Cow::Owned(JobFile { snippets, ..file.clone() }))
}

/// The job with forms of 32-bit code where an item has `bits = 32`.
fn in_own_code(file: &JobFile) -> Result<JobFile, JobError> {
    let mut file = file.clone();
    let JobFile { source, snippets, .. } = &mut file;
    for snippet in snippets {
        let bits = snippet.options.bits;
        let Some(wanted) = &snippet.wanted else { continue };
        let own = |forms: &[Form]| -> Result<Vec<Form>, JobError> {
            let failed = |error| JobError::Forms(format!("{}: {error}", snippet.place(source)));
            forms.iter().map(|form| form.in_code_of(bits).map_err(failed)).collect()
        };
        let (latency, throughput) = (own(&wanted.latency)?, own(&wanted.throughput)?);
        let in_32_bit = bits == Bits::Compatibility
            || latency.iter().chain(&throughput).any(Form::is_compatibility);
        if wanted.ports && in_32_bit {
            return Err(snippet.refused(source, NO_PORTS.to_string()));
        }
        snippet.wanted = Some(Wanted { latency, throughput, ..wanted.clone() });
    }
    Ok(file)
}

/// Blocking instructions need registers of their own: `imul r32, r32` three, of which six are free.
const NO_PORTS: &str =
    "ports = true: 32-bit code has too few registers for instructions that keep ports busy";

/// Effects of forms.
#[derive(Default)]
struct Known(HashMap<Form, Effects>);

/// Why there is none: the assembler cannot be run, or a form is wrong.
enum Trouble {
    Tool(String),
    Forms(Vec<FormError>),
}

impl From<FormError> for Trouble {
    fn from(error: FormError) -> Self {
        Self::Forms(vec![error])
    }
}

/// The error with the place of the item that has the form.
fn failed(file: &JobFile, trouble: Trouble) -> JobError {
    let errors = match trouble {
        Trouble::Tool(reason) => return JobError::Assembler(reason),
        Trouble::Forms(errors) => errors,
    };
    let place = |error: &FormError| {
        let has = |snippet: &&SnippetFile| {
            let wanted = snippet.wanted.iter().flat_map(|w| w.latency.iter().chain(&w.throughput));
            wanted.into_iter().any(|form| error.form() == Some(&*form.to_string()))
        };
        file.snippets.iter().find(has).map(|snippet| snippet.place(&file.source))
    };
    let text = errors.iter().map(|error| match place(error) {
        Some(place) => format!("{place}: {error}"),
        None => format!("{}: {error}", file.source),
    });
    JobError::Forms(text.collect::<Vec<_>>().join("\n"))
}

impl FormError {
    /// The form that it is about.
    fn form(&self) -> Option<&str> {
        match self {
            Self::Empty => None,
            Self::Part { form, .. } | Self::Assembler { form, .. } | Self::Refused { form, .. } => {
                Some(form)
            }
        }
    }
}

impl Known {
    /// Assembles one instruction of each form, all at once.
    fn learn(&mut self, forms: impl Iterator<Item = Form>) -> Result<(), Trouble> {
        let mut seen = HashSet::new();
        let new = forms.filter(|form| !self.0.contains_key(form) && seen.insert(form.clone()));
        let new: Vec<Form> = new.collect();
        let probes = new.iter().map(effects::probe).collect::<Result<Vec<_>, _>>()?;
        let sources = new.iter().zip(&probes).map(|(form, (_, text))| Source {
            part: Part::Body,
            text,
            syntax: Syntax::Intel,
            bits: form.bits,
            symbols: &[],
        });
        let codes = assemble(&sources.collect::<Vec<_>>()).map_err(|failed| match failed {
            Failed::Tool(reason) => Trouble::Tool(reason),
            Failed::Messages(messages) => {
                let error = |Message { source, text, .. }: Message| FormError::Assembler {
                    form: new[source].to_string(),
                    tried: probes[source].1.clone(),
                    message: text,
                };
                Trouble::Forms(messages.into_iter().map(error).collect())
            }
        })?;
        for ((form, (registers, _)), code) in new.into_iter().zip(&probes).zip(codes) {
            let effects = Effects::of(&form, registers, &code)?;
            self.0.insert(form, effects);
        }
        Ok(())
    }

    /// All measurements that an item asks for.
    fn made(&self, wanted: &Wanted) -> Result<Vec<Made>, FormError> {
        let mut all = Vec::new();
        for form in &wanted.latency {
            let (made, missing): (Vec<_>, Vec<_>) =
                chain::latencies(form, &self.0[form]).into_iter().partition(Result::is_ok);
            if made.is_empty() && !wanted.lenient {
                let reason = match missing.into_iter().find_map(Result::err) {
                    Some(missing) => format!("from {}: {}", missing.pair, missing.reason),
                    None if self.0[form].hidden_memory => chain::HIDDEN.to_string(),
                    None => "it has no result that waits for a source".to_string(),
                };
                return Err(effects::refused(form, &reason));
            }
            for missing in missing.into_iter().filter_map(Result::err) {
                let (pair, reason) = (missing.pair, missing.reason);
                crate::output::say(&format!("note: no latency of {form} from {pair}: {reason}"));
            }
            all.extend(made.into_iter().filter_map(Result::ok));
        }
        for form in &wanted.throughput {
            all.push(apart::throughput(form, &self.0[form])?);
        }
        // A form's latency and throughput side by side.
        let position = |made: &Made| {
            let has = |form: &Form| form.to_string() == made.case.form;
            let place = |forms: &[Form]| forms.iter().position(has).unwrap_or(usize::MAX);
            place(&wanted.latency).min(place(&wanted.throughput))
        };
        all.sort_by_key(position);
        Ok(all)
    }
}

/// All measurements of a part of the catalog. What cannot be measured is left out: `cargo xtask instructions` lists it.
fn made_of_catalog(selection: &Selection, bits: Bits, ring_3: bool) -> Result<Vec<Made>, String> {
    let mut entries = selection.of(catalog::in_code_of(bits))?;
    let needs_rights =
        |entry: &catalog::Entry| entry.effects().is_ok_and(|effects| effects.undone.is_some());
    entries.retain(|entry| !(ring_3 && needs_rights(entry)));
    Ok(entries.iter().flat_map(|entry| catalog::measure(entry).made).collect())
}

/// A snippet with the options of the item that asked for it.
fn put(item: &SnippetFile, made: Made) -> SnippetFile {
    // Figures are per execution of the body, and what is expected is per instruction.
    let copies = f64::from(made.case.copies());
    let mut criteria = item.criteria.clone();
    for Expect { bounds, .. } in &mut criteria.expect {
        let scaled = |bound: Option<f64>| bound.map(|bound| bound * copies);
        *bounds = Bounds { min: scaled(bounds.min), max: scaled(bounds.max) };
    }
    SnippetFile {
        criteria,
        options: Options { bits: bits_of(&made.case.form), ..item.options.clone() },
        name: made.case.to_string(),
        asm: made.body,
        init: made.init,
        wanted: None,
        function: None,
        ..item.clone()
    }
}

/// Items that show the ports of forms, and of those that keep ports busy, for which ports are asked. What cannot be made of a form is left
/// out: its ports are not told then.
fn add_ports(
    file: &JobFile,
    snippets: &mut Vec<SnippetFile>,
    known: &mut Known,
) -> Result<(), Trouble> {
    let asks = |snippet: &&SnippetFile| snippet.wanted.as_ref().is_some_and(|wanted| wanted.ports);
    let mut names = HashSet::new();
    for item in file.snippets.iter().filter(asks) {
        let Some(wanted) = &item.wanted else { continue };
        let text = [blocked::NOTHING].into_iter().chain(blocked::BLOCKERS);
        let others: Vec<Form> = text.map(str::parse).collect::<Result<_, _>>()?;
        known.learn(others.iter().cloned())?;
        let mut forms: Vec<(Form, Effects)> = Vec::new();
        let mut seen = HashSet::new();
        let mut add = |form: &Form, effects: &Effects| {
            if seen.insert(form.to_string()) {
                forms.push((form.clone(), effects.clone()));
            }
        };
        wanted.latency.iter().chain(&wanted.throughput).for_each(|form| add(form, &known.0[form]));
        if let Some(selection) = &wanted.catalog {
            for entry in selection.of(catalog::all()).map_err(Trouble::Tool)? {
                if let (Ok(effects), Ok(form)) = (entry.effects(), &entry.form) {
                    add(form, &effects);
                }
            }
        }
        others.iter().for_each(|form| add(form, &known.0[form]));
        for (form, effects) in &forms {
            let blockers = others[1..].iter().map(|blocker| (blocker, &known.0[blocker]));
            let behind = blockers.map(|blocker| blocked::behind((form, effects), blocker));
            let all = std::iter::once(blocked::alone(form, effects)).chain(behind);
            for made in all.filter_map(Result::ok) {
                if names.insert(made.case.to_string()) {
                    snippets.push(put_ports(item, made));
                }
            }
        }
        let paired: Vec<&Form> =
            others[1..].iter().filter(|form| blocked::is_paired(form)).collect();
        for (index, one) in paired.iter().enumerate() {
            let pairs = paired[index + 1..].iter().flat_map(|other| {
                let pair = [*one, *other].map(|form| (form, &known.0[form]));
                blocked::PAIRS.map(|counts| blocked::pair(pair[0], pair[1], counts))
            });
            for made in pairs.filter_map(Result::ok) {
                if names.insert(made.case.to_string()) {
                    snippets.push(put_ports(item, made));
                }
            }
        }
    }
    Ok(())
}

/// Of the item's own wishes for figures none is for these.
fn put_ports(item: &SnippetFile, made: Made) -> SnippetFile {
    let mut snippet = put(item, made);
    snippet.criteria = CriteriaFile { allow_uncounted: Some(true), ..CriteriaFile::default() };
    // They are names, which are events as a text.
    snippet.options.events = blocked::EVENTS.iter().filter_map(|name| name.parse().ok()).collect();
    snippet.metrics = Vec::new();
    snippet
}

/// The instructions that lead back in the chains are measured too, each once, where they make a chain by themselves.
fn add_ways_back(snippets: &mut Vec<SnippetFile>, known: &mut Known) -> Result<(), Trouble> {
    let cases = |snippets: &[SnippetFile]| -> Vec<case::Case> {
        snippets.iter().filter_map(|snippet| snippet.name.parse().ok()).collect()
    };
    let mut needed: Vec<(String, usize)> = Vec::new();
    for (index, snippet) in snippets.iter().enumerate() {
        let Ok(case) = snippet.name.parse::<case::Case>() else { continue };
        let case::Kind::Latency { back, .. } = case.kind else { continue };
        for form in back {
            if !needed.iter().any(|(other, _)| *other == form) {
                needed.push((form, index));
            }
        }
    }
    let there = cases(snippets);
    needed
        .retain(|(form, _)| !there.iter().any(|case| case.form == *form && case.tells_way_back()));
    let forms = needed.iter().map(|(text, _)| text.parse()).collect::<Result<Vec<Form>, _>>()?;
    known.learn(forms.iter().cloned())?;
    for (form, (_, index)) in forms.iter().zip(&needed) {
        let all = chain::latencies(form, &known.0[form]).into_iter().filter_map(Result::ok);
        if let Some(made) = all.into_iter().find(|made| made.case.tells_way_back()) {
            let added = put(&snippets[*index], made);
            let allow_uncounted = added.criteria.allow_uncounted;
            let criteria = CriteriaFile { allow_uncounted, ..CriteriaFile::default() };
            snippets.push(SnippetFile { criteria, ..added });
        }
    }
    Ok(())
}

/// The throughput of forms beside which others were measured is measured too, each once. Such a form may have others
/// beside itself. Whether any was added.
fn add_partners(snippets: &mut Vec<SnippetFile>, known: &mut Known) -> Result<bool, Trouble> {
    let (mut there, mut needed) = (HashSet::new(), Vec::<(String, usize)>::new());
    for (index, snippet) in snippets.iter().enumerate() {
        let Ok(case) = snippet.name.parse::<case::Case>() else { continue };
        let case::Kind::Throughput { with, .. } = case.kind else { continue };
        there.insert(case.form);
        for form in with {
            if !needed.iter().any(|(other, _)| *other == form) {
                needed.push((form, index));
            }
        }
    }
    needed.retain(|(form, _)| !there.contains(form));
    let forms = needed.iter().map(|(text, _)| text.parse()).collect::<Result<Vec<Form>, _>>()?;
    known.learn(forms.iter().cloned())?;
    for (form, (_, index)) in forms.iter().zip(&needed) {
        let added = put(&snippets[*index], apart::throughput(form, &known.0[form])?);
        let allow_uncounted = added.criteria.allow_uncounted;
        let criteria = CriteriaFile { allow_uncounted, ..CriteriaFile::default() };
        snippets.push(SnippetFile { criteria, ..added });
    }
    Ok(!forms.is_empty())
}
