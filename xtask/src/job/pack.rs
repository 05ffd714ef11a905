//! A job file assembled and packed.

use super::assemble::{self, Part, Source};
use super::exact::ExactOptions;
use super::file::{self, OnProcessors};
use super::function::Programs;
use super::history::HistoryOptions;
use super::{
    BRING_UP, EXIT_PORT, JobError, Packed, Purpose, about, analyse, bytes, form, memory, place,
    requires,
};
use crate::events::Block;
use iced_x86::Register;
use protocol::bits::Bits;
use protocol::job::{
    Conformance, Criteria, Exact, History, Item, Job, OnEnd, Processors, Setup, Snippet, limits,
};
use std::borrow::Cow;

/// Assembles and packs a job file, with the project's event tables.
///
/// # Errors
/// As for [`super::load`].
pub fn pack(file: &file::JobFile, purpose: Purpose) -> Result<Packed, JobError> {
    pack_with(file, purpose, &Block::embedded())
}

pub(super) fn pack_with(
    file: &file::JobFile,
    purpose: Purpose,
    tables: &Block,
) -> Result<Packed, JobError> {
    let forms = file.snippets.iter().find(|one| one.wanted.is_some() && one.history.is_some());
    if let Some(snippet) = forms {
        let text = "a history is of one piece of code, and instruction forms stand for several";
        return Err(snippet.refused(&file.source, text.to_string()));
    }
    let cpus = file.needed_cpus();
    let file = &*form::expand(file)?;
    let criteria = criteria(file)?;
    let gathered = memory::gather(file)?;
    let symbols: Vec<_> =
        file.snippets.iter().map(|one| memory::symbols(&one.options.memory)).collect();
    let programs = Programs::of(file)?;
    let both = file.snippets.iter().zip(&symbols);
    let sources: Vec<Source> = both.flat_map(|(one, symbols)| sources(one, symbols)).collect();
    let codes =
        assemble::assemble(&sources).map_err(|errors| place::explain(errors, &sources, file))?;
    let items = file
        .snippets
        .iter()
        .zip(codes.as_chunks::<SOURCES>().0)
        .map(|(snippet, codes)| item(snippet, codes, &file.source, &programs));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let (behind, codes): (Vec<_>, Vec<_>) = file.pack_sections(&programs)?.into_iter().unzip();
    let suite = file.checks.as_ref().map(|checks| {
        let checks = checks.iter().cloned().map(Cow::Owned).collect();
        if file.brings_up {
            return Item::BringUp(Conformance { name: Cow::Borrowed(BRING_UP), checks });
        }
        Item::Conformance(Conformance { name: Cow::Owned(file.name.clone()), checks })
    });
    let items: Vec<Item> = suite.into_iter().chain(items).chain(behind).collect();
    let job = Job {
        name: Cow::Owned(file.name.clone()),
        baud: file.baud,
        on_end: if purpose == Purpose::Qemu { OnEnd::Halt } else { file.on_end },
        exit_port: (purpose == Purpose::Qemu).then_some(EXIT_PORT),
        self_test: file.self_test,
        requires: requires::of(&items),
        items,
        criteria,
        memory: gathered
            .read()
            .map_err(|error| JobError::Memory { file: file.source.clone(), error })?,
    };
    let first_snippet = usize::from(file.checks.is_some());
    for (snippet, item) in file.snippets.iter().zip(&job.items[first_snippet..]) {
        limits::check_item(item).map_err(|error| snippet.at(&file.source, &error))?;
    }
    let metrics = (first_snippet as u32..)
        .zip(file.items())
        .filter(|(_, item)| !item.asks().is_empty())
        .map(|(index, item)| (index, item.asks().to_vec()))
        .collect();
    let first_behind = job.items.len() - codes.len();
    let sampled = (first_behind as u32..).zip(codes);
    let sampled = sampled.filter_map(|(index, codes)| Some((index, codes?))).collect();
    limits::check_job(&job)
        .map_err(|error| JobError::Limit { file: file.source.clone(), error })?;
    let programs = programs.linked;
    let bytes = bytes(&job, tables.bytes(), &programs, None)
        .map_err(|error| JobError::Pack { file: file.source.clone(), error })?;
    let (tables, known) = (tables.bytes().to_vec(), about::Known::of(file));
    let mib = memory::needed_mib(&job.memory);
    Ok(Packed { job, bytes, tables, sampled, cpus, mib, key: None, programs, metrics, known })
}

/// What each item has to come to, in the order of the items.
fn criteria(file: &file::JobFile) -> Result<Vec<Criteria<'static>>, JobError> {
    file.items().into_iter().try_for_each(|item| item.check_expected(&file.source))?;
    let suite = file.checks.iter().map(|_| Criteria::default());
    let items = file.items().into_iter();
    let items = items.map(|item| item.criteria().criteria(file.allow_uncounted));
    let mut all: Vec<_> = suite.chain(items).collect();
    // Items beyond the end have the default, so most jobs carry none.
    let used = all.iter().rposition(|one| *one != Criteria::default()).map_or(0, |last| last + 1);
    all.truncate(used);
    Ok(all)
}

/// Texts of a snippet.
pub(super) const SOURCES: usize = 4;

/// The texts of a snippet, in the order in which [`item`] expects their code.
pub(super) fn sources<'a>(
    snippet: &'a file::SnippetFile,
    symbols: &'a [memory::Symbol],
) -> [Source<'a>; SOURCES] {
    let (syntax, bits) = (snippet.syntax, snippet.options.bits);
    let of = |part, text| Source { part, text, syntax, bits, symbols };
    [
        of(Part::OneTimeInit, snippet.one_time_init.as_str()),
        of(Part::Init, snippet.init.as_str()),
        of(Part::LateInit, snippet.late_init.as_str()),
        of(Part::Body, snippet.asm.as_str()),
    ]
}

fn item(
    file: &file::SnippetFile,
    codes: &[Vec<u8>; SOURCES],
    source: &str,
    programs: &Programs,
) -> Result<Item<'static>, JobError> {
    let snippet = snippet(file, codes, source, programs)?;
    if let Some(HistoryOptions { cycles, step, clock, end_to_end }) = &file.history {
        let other = match (&file.exact, file.processors) {
            (Some(_), _) => "exact mode steps, and history mode counts; give one of the two",
            (_, Some(_)) => "history mode is for one processor, [[processors]] runs on several",
            (None, None) => {
                let (clock, end_to_end) = (Cow::Owned(clock.to_string()), *end_to_end);
                let (cycles, step) = (*cycles, *step);
                return Ok(Item::History(History { snippet, clock, cycles, step, end_to_end }));
            }
        };
        return Err(file.refused(source, other.to_string()));
    }
    Ok(match (file.exact.clone(), file.processors) {
        (None, None) => Item::Snippet(snippet),
        (None, Some(OnProcessors { cpu, core, interrupt_every, contention })) => {
            Item::Processors(Processors { snippet, cpu, core, interrupt_every, contention })
        }
        (Some(ExactOptions { filter, verify, steps }), None) => {
            Item::Exact(Exact { snippet, filter, verify, steps })
        }
        (Some(_), Some(_)) => {
            let text = "exact mode steps on one processor, [[processors]] runs on several";
            return Err(file.refused(source, text.to_string()));
        }
    })
}

fn snippet(
    snippet: &file::SnippetFile,
    [once, init, late, body]: &[Vec<u8>; SOURCES],
    source: &str,
    programs: &Programs,
) -> Result<Snippet<'static>, JobError> {
    let function =
        snippet.function.as_ref().map(|function| programs.code(function, &snippet.options.memory));
    let function = function.transpose().map_err(|message| snippet.refused(source, message))?;
    let [mut once, mut init] = [once, init];
    if let Some(function) = &function {
        (once, init) = (&function.once, &function.init);
    }
    let around = &snippet.options.around;
    let bits = snippet.options.bits;
    let loop_counter = analyse::loop_counter(&[init, late, body], bits);
    if around.no_memory && bits == Bits::SixtyFour {
        let looping = (snippet.options.loop_count > 0).then_some(Register::R15);
        analyse::no_memory(init, late, body, looping)
            .map_err(|message| snippet.refused(source, message))?;
    }
    let control =
        snippet.options.machine.decide().map_err(|message| snippet.refused(source, message))?;
    let setup = Setup {
        one_time_init: Cow::Owned(once.clone()),
        late_init: Cow::Owned(late.clone()),
        initial_warmup: around.initial_warmup,
        alignment_offset: around.alignment_offset,
        no_memory: around.no_memory,
        drain_frontend: around.drain_frontend,
        control,
        bits,
        call: function.as_ref().map(|function| function.call.clone()),
        only: snippet.only(),
    };
    Ok(Snippet {
        name: Cow::Owned(snippet.name.clone()),
        init: Cow::Owned(init.clone()),
        body: Cow::Owned(body.clone()),
        unroll: snippet.options.unroll,
        loop_count: snippet.options.loop_count,
        loop_counter,
        // A compiler uses vector registers for anything.
        extended_state: function.is_some()
            || [once, init, late, body].iter().any(|c| analyse::uses_extended_state(c, bits)),
        warmup: snippet.options.warmup,
        runs: snippet.options.runs,
        difference: snippet.options.difference,
        values: snippet.options.values,
        events: snippet.options.events.iter().map(|text| Cow::Owned(text.to_string())).collect(),
        setup,
    })
}
