//! From a job file to a packed job.
//!
//! [`mod@file`] reads the TOML, with line and column in every error; [`Overrides`] are what the command line
//! changes; [`form`] makes snippets of instruction forms; [`assemble`] turns text into machine code; `analyse` finds a register for the loop.

mod about;
mod affinity;
mod analyse;
pub mod assemble;
mod bind;
mod checks;
pub mod count;
pub(crate) mod errors;
pub mod exact;
pub mod expect;
pub mod facts;
pub mod file;
pub mod form;
pub mod function;
pub mod history;
pub mod machine;
pub mod memory;
pub mod metrics;
mod only;
mod overrides;
mod pack;
mod place;
mod registered;
mod requires;
pub(crate) mod run;
pub mod sample;
pub mod schema;
mod whole;
pub mod workload;

pub(crate) use about::digest;
pub use about::{About, AboutCode, AboutItem};
pub use errors::JobError;
use file::FileItem;
pub use overrides::Overrides;
pub use pack::pack;
use pack::{SOURCES, pack_with, sources};

use crate::events::{CpuName, EventText, check, user};
use crate::metrics::Target;
use crate::metrics::request::Ask;
use crate::program::Linked;
use ::events::pack::PERFMON_LICENSE;
use protocol::authentication::Key;
use protocol::job::Job;
use protocol::ramdisk::{self, RamdiskError, SectionKind};
use sample::TaskCode;
use std::path::Path;

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
            None if overrides.facts => file::parse(facts::JOB, "facts")?,
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
    if overrides.facts && file.fact_sheets.is_empty() {
        file.add_facts()?;
    }
    file.dropped().iter().for_each(|line| crate::output::say(line));
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
        file.items().into_iter().try_for_each(|item| item.check_cpus(cpus))?;
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
    let is_meant = |item: &&dyn FileItem| {
        item.criteria().allow_uncounted.unwrap_or(file.allow_uncounted) == allowed
    };
    file.items().into_iter().filter(is_meant).flat_map(|item| item.events()).collect()
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

#[cfg(test)]
mod tests;
