//! From a job file to a packed job.
//!
//! [`mod@file`] reads the TOML, with line and column in every error; [`Overrides`] are what the command line
//! changes; [`form`] makes snippets of instruction forms; [`assemble`] turns text into machine code; `analyse` finds a register for the loop.

mod about;
mod analyse;
pub mod assemble;
mod bind;
pub mod count;
mod errors;
pub mod exact;
pub mod expect;
pub mod file;
pub mod forecast;
pub mod form;
pub mod function;
pub mod history;
pub mod machine;
pub mod memory;
pub mod metrics;
mod overrides;
mod place;
mod registered;
mod requires;
pub mod sample;
pub mod schema;
pub mod workload;

pub(crate) use about::digest;
pub use about::{About, AboutCode, AboutItem};
pub use errors::JobError;
pub use overrides::Overrides;

use crate::events::{Block, CpuName, EventText, check, user};
use crate::kinds;
use crate::metrics::Target;
use crate::metrics::request::Ask;
use crate::program::Linked;
use ::events::pack::PERFMON_LICENSE;
use assemble::{Part, Source};
use count::CountFile;
use exact::ExactOptions;
use expect::CriteriaFile;
use file::OnProcessors;
use function::Programs;
use history::HistoryOptions;
use iced_x86::Register;
use protocol::authentication::Key;
use protocol::bits::Bits;
use protocol::exact::EVENTS;
use protocol::job::{
    Conformance, Criteria, Exact, History, Item, Job, OnEnd, Processors, Setup, Snippet,
};
use protocol::limits;
use protocol::ramdisk::{self, RamdiskError, SectionKind};
use sample::TaskCode;
use std::borrow::Cow;
use std::path::Path;
use workload::RunFile;

/// The job that runs when none is named.
const TOUR: &str = include_str!("../../jobs/tour.toml");

/// Name of the item of a bring-up, and of the job that is nothing else.
const BRING_UP: &str = "bring-up";

/// I/O port of the exit device that `run` attaches: QEMU's documentation uses it.
pub const EXIT_PORT: u16 = 0xf4;

/// A job as the firmware wants it.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The job.
    pub job: Job<'static>,
    /// Its binary form.
    pub bytes: Vec<u8>,
    /// The event tables that go along.
    tables: Vec<u8>,
    /// Labels and bodies of each sampled task, by the item's index.
    pub sampled: Vec<(u32, Vec<TaskCode>)>,
    /// The key of the boot that it is packed for.
    pub key: Option<Key>,
    /// Processors that it needs.
    pub cpus: u32,
    /// MiB that it needs beyond what any job gets.
    pub mib: u32,
    /// Compiled code that goes along, by the number that items have of it.
    pub programs: Vec<Linked>,
    /// Metrics by the index of their item.
    pub metrics: Vec<(u32, Vec<Ask>)>,
    /// What goes into a report and not to the machine.
    known: about::Known,
}

impl Packed {
    /// The same job without its first `done` items, for a boot with this key.
    ///
    /// # Errors
    /// It cannot be packed.
    pub fn rest(&self, done: usize, key: Option<Key>) -> Result<Self, RamdiskError> {
        let mut job = self.job.clone();
        let done = done.min(job.items.len());
        job.items.drain(..done);
        requires::drop_first(&mut job, done as u32);
        job.criteria.drain(..done.min(job.criteria.len()));
        let bytes = bytes(&job, &self.tables, &self.programs, key.as_ref())?;
        let (tables, sampled) = (self.tables.clone(), self.sampled.clone());
        let (known, programs) = (about::Known::default(), self.programs.clone());
        Ok(Self {
            job,
            bytes,
            tables,
            sampled,
            cpus: self.cpus,
            mib: self.mib,
            key,
            programs,
            metrics: Vec::new(),
            known,
        })
    }

    /// MiB that its programs take in the machine: in the ramdisk, and a copy for each processor or task that runs one.
    #[must_use]
    pub fn program_mib(&self) -> u32 {
        let copies = |number: u16| {
            let of = |item: &Item| match item.part().workload() {
                Some(workload) => {
                    workload.tasks.iter().filter(|task| task.program == Some(number)).count() as u64
                }
                None => kinds::planned(item).copies(self.cpus).into(),
            };
            self.job.items.iter().map(of).max().unwrap_or(0) + 1
        };
        let one = |(number, program): (u16, &Linked)| {
            copies(number) * program.memory + program.bytes.len() as u64
        };
        let bytes: u64 = (0..).zip(&self.programs).map(one).sum();
        u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
    }

    /// A job without tables, for tests.
    #[cfg(test)]
    pub(crate) fn of(job: Job<'static>) -> Self {
        let known = about::Known::default();
        let (bytes, tables, sampled) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            job,
            bytes,
            tables,
            sampled,
            cpus: 1,
            mib: 0,
            key: None,
            programs: Vec::new(),
            metrics: Vec::new(),
            known,
        }
    }
}

fn bytes(
    job: &Job,
    tables: &[u8],
    programs: &[Linked],
    key: Option<&Key>,
) -> Result<Vec<u8>, RamdiskError> {
    let licence = PERFMON_LICENSE.as_bytes();
    let mut sections = vec![(SectionKind::Licence, licence), (SectionKind::EventTables, tables)];
    sections.extend(programs.iter().map(|program| (SectionKind::Program, &program.bytes[..])));
    sections.extend(key.map(|key| (SectionKind::Key, &key.bytes()[..])));
    ramdisk::pack_with(job, &sections)
}

/// For whom a job is packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// QEMU, with the exit device.
    Qemu,
    /// A real machine.
    Stick,
}

/// Reads, checks, assembles and packs the job that the arguments ask for.
///
/// # Errors
/// Everything that is wrong with the file, the snippets or the overrides, with its place.
pub fn load(
    path: Option<&Path>,
    overrides: &Overrides,
    purpose: Purpose,
) -> Result<Packed, JobError> {
    load_for(path, overrides, purpose, (None, None), None)
}

/// The same for a machine of which something is known: its processor, whose events the user's files are taken to describe,
/// and how many processors it has, if that is not up to the job. `target`: the processor whose metrics can be asked for.
///
/// # Errors
/// As for [`load`]; or a task or a count is for a processor that the machine does not have; or a metric that the
/// processor does not have.
pub fn load_for(
    path: Option<&Path>,
    overrides: &Overrides,
    purpose: Purpose,
    (cpu, cpus): (Option<&CpuName>, Option<u32>),
    target: Option<&Target>,
) -> Result<Packed, JobError> {
    let registered = overrides.registered()?;
    let functions = if registered.is_some() { Vec::new() } else { overrides.functions()? };
    let mut file = match (path, &overrides.asm, overrides.forms(), &functions[..]) {
        (None, None, None, []) => match registered {
            Some(file) => file,
            None if overrides.honest => file::parse("name = \"honest\"", "--honest")?,
            None if overrides.bring_up => file::parse("kind = \"bring-up\"", BRING_UP)?,
            None => file::parse(TOUR, "the built-in tour")?,
        },
        _ if registered.is_some() => return Err(JobError::FileAndAsm),
        (Some(path), None, None, []) => file::read(path)?,
        (None, Some(asm), None, []) => overrides.one_liner(asm),
        (None, None, Some(wanted), []) => overrides.of_forms(wanted),
        (None, None, None, functions) => overrides.of_functions(functions),
        _ => return Err(JobError::FileAndAsm),
    };
    overrides.apply(&mut file)?;
    if overrides.bring_up {
        file.checks.get_or_insert_default();
        file.brings_up = true;
    }
    // The experiments are as they are, whatever the command line says of the job's own snippets.
    if overrides.honest && !file.is_honest() {
        if file.checks.is_some() {
            return Err(JobError::HonestSuite(file.source));
        }
        file.add_experiments()?;
    }
    if let Some(cpus) = cpus {
        if let Some(needed) = file.cpus.filter(|needed| *needed > cpus) {
            return Err(JobError::Cpus { file: file.source.clone(), needed, cpus });
        }
        file.runs.iter().try_for_each(|run| run.workload.check_cpus(cpus))?;
        file.counts.iter().try_for_each(|count| count.check_cpus(cpus))?;
    }
    let (tables, lines) = user::merged(&overrides.event_files, cpu)?;
    metrics::plan(&mut file, target, purpose, &tables)?;
    // The target has these tables and no others, so it would not know the name either.
    let unknown = |allowed| check::unknown(&tables, events(&file, allowed).into_iter());
    for line in lines.into_iter().chain(unknown(true).iter().map(|line| format!("warning: {line}")))
    {
        crate::output::say(&line);
    }
    match &unknown(false)[..] {
        [] => pack_with(&file, purpose, &tables),
        lines => Err(JobError::UnknownEvents { file: file.source, lines: lines.to_vec() }),
    }
}

/// The events of all items that may leave events uncounted, or of all that may not.
fn events(file: &file::JobFile, allowed: bool) -> Vec<&EventText> {
    let is_meant = |criteria: &CriteriaFile| {
        criteria.allow_uncounted.unwrap_or(file.allow_uncounted) == allowed
    };
    let snippets = file.snippets.iter().filter(|snippet| is_meant(&snippet.criteria));
    let of_snippets = snippets.flat_map(|snippet| {
        // What stepping tells has names of its own.
        let stepped =
            |event: &&EventText| snippet.exact.is_some() && EVENTS.contains(&&*event.to_string());
        let events = snippet.options.events.iter().filter(move |event| !stepped(event));
        events.chain(snippet.history.iter().map(|history| &history.clock))
    });
    let counts = file.counts.iter().filter(|count| is_meant(&count.criteria));
    let samples = file.samples.iter().filter(|sample| is_meant(&sample.code.criteria));
    of_snippets
        .chain(counts.flat_map(CountFile::events))
        .chain(samples.flat_map(|sample| &sample.texts))
        .collect()
}

/// The tour's first item alone, for timing a whole run.
///
/// # Errors
/// As for [`load`]; the tour itself has none.
pub fn first_of_tour(purpose: Purpose) -> Result<Packed, JobError> {
    let mut file = file::parse(TOUR, "the built-in tour")?;
    file.snippets.truncate(1);
    pack(&file, purpose)
}

/// Assembles and packs a job file, with the project's event tables.
///
/// # Errors
/// As for [`load`].
pub fn pack(file: &file::JobFile, purpose: Purpose) -> Result<Packed, JobError> {
    pack_with(file, purpose, &Block::embedded())
}

fn pack_with(file: &file::JobFile, purpose: Purpose, tables: &Block) -> Result<Packed, JobError> {
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
    let runs = file.runs.iter().map(|run| {
        let mut tasks = run.item()?;
        programs.fill(&run.workload, &mut tasks.workload)?;
        let item = Item::Tasks(tasks);
        limits::check_item(&item).map_err(|error| run.at(&error))?;
        Ok(item)
    });
    let runs = runs.collect::<Result<Vec<_>, JobError>>()?;
    let counts = file.counts.iter().map(|count| {
        let mut counted = count.item()?;
        programs.fill(&count.workload, &mut counted.workload)?;
        let item = Item::Count(counted);
        limits::check_item(&item).map_err(|error| count.refused(error.to_string()))?;
        Ok(item)
    });
    let counts = counts.collect::<Result<Vec<_>, JobError>>()?;
    let (samples, codes): (Vec<_>, Vec<_>) = sample::pack(file, &programs)?.into_iter().unzip();
    let suite = file.checks.as_ref().map(|checks| {
        let checks = checks.iter().cloned().map(Cow::Owned).collect();
        if file.brings_up {
            return Item::BringUp(Conformance { name: Cow::Borrowed(BRING_UP), checks });
        }
        Item::Conformance(Conformance { name: Cow::Owned(file.name.clone()), checks })
    });
    let items = suite.into_iter().chain(items).chain(runs).chain(counts).chain(samples);
    let items: Vec<Item> = items.collect();
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
        .zip(&file.snippets)
        .filter(|(_, snippet)| !snippet.asks.is_empty())
        .map(|(index, snippet)| (index, snippet.asks.clone()))
        .collect();
    let first_sample = job.items.len() - file.samples.len();
    for (sample, item) in file.samples.iter().zip(&job.items[first_sample..]) {
        limits::check_item(item).map_err(|error| sample.code.at(&file.source, &error))?;
    }
    let sampled = (first_sample as u32..).zip(codes).collect();
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
    file.snippets.iter().try_for_each(|snippet| snippet.check_expected(&file.source))?;
    file.runs.iter().try_for_each(RunFile::check_expected)?;
    file.counts.iter().try_for_each(CountFile::check_expected)?;
    file.samples.iter().try_for_each(|sample| sample.check_expected(&file.source))?;
    let suite = file.checks.iter().map(|_| Criteria::default());
    let snippets = file.snippets.iter().map(|snippet| &snippet.criteria);
    let all = snippets
        .chain(file.runs.iter().map(|run| &run.criteria))
        .chain(file.counts.iter().map(|count| &count.criteria))
        .chain(file.samples.iter().map(|sample| &sample.code.criteria));
    let mut all: Vec<_> = suite.chain(all.map(|one| one.criteria(file.allow_uncounted))).collect();
    // Items beyond the end have the default, so most jobs carry none.
    let used = all.iter().rposition(|one| *one != Criteria::default()).map_or(0, |last| last + 1);
    all.truncate(used);
    Ok(all)
}

/// Texts of a snippet.
const SOURCES: usize = 4;

/// The texts of a snippet, in the order in which [`item`] expects their code.
fn sources<'a>(
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
        (None, Some(OnProcessors { cpu, interrupt_every })) => {
            Item::Processors(Processors { snippet, cpu, interrupt_every })
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

#[cfg(test)]
mod tests;
