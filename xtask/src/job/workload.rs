//! Workloads in a job: tasks with their code, and the timer that switches between them.

use super::affinity::{AffinityFile, RawAffinity};
use super::analyse::{loop_counter, uses_extended_state};
use super::assemble::{self, Code, Failed, Labels, Message, Part, Source, Syntax};
use super::errors::{JobError, Place, TaskError};
use super::file::{Lines, Text, lines};
use super::function::{Argument, FunctionFile, RawFiles, RawFunction};
use super::memory::{self, MemoryFile, Symbol};
use super::schema::{AffinityText, FilesText, RingText, Width};
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::limits::LimitError;
use protocol::workload::{self, Ring, Task, Workload};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// What [`super::file::FileItem`] asks of a kind whose file has `place`, `criteria` and `workload` as they are.
macro_rules! of_workload {
    () => {
        fn place(&self, _source: &str) -> $crate::job::errors::Place {
            self.place.clone()
        }

        fn criteria(&self) -> &$crate::job::expect::CriteriaFile {
            &self.criteria
        }

        fn criteria_mut(&mut self) -> &mut $crate::job::expect::CriteriaFile {
            &mut self.criteria
        }

        fn memory(&self) -> &[$crate::job::memory::MemoryFile] {
            &self.workload.memory
        }

        fn memory_mut(&mut self) -> &mut Vec<$crate::job::memory::MemoryFile> {
            &mut self.workload.memory
        }

        fn workload(&self) -> Option<&$crate::job::workload::WorkloadFile> {
            Some(&self.workload)
        }
    };
}
pub(super) use of_workload;

/// Time between two ticks if a job says nothing: 1 ms, as most systems have it.
pub const DEFAULT_TICK_NS: u64 = 1_000_000;
/// Time that a task may take if a job says nothing: 10 s.
pub const DEFAULT_LIMIT_US: u64 = 10_000_000;

/// A task.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Task")]
pub(super) struct RawTask {
    /// Its name.
    #[schemars(with = "String")]
    name: Spanned<String>,
    /// The body, which runs again and again.
    #[schemars(with = "Option<String>")]
    asm: Option<Spanned<String>>,
    #[schemars(with = "Option<FilesText>")]
    object: Option<RawFiles>,
    function: Option<String>,
    args: Option<Vec<Argument>>,
    setup: Option<String>,
    teardown: Option<String>,
    /// Code that runs once, before the body.
    #[schemars(with = "Option<String>")]
    init: Option<Spanned<String>>,
    syntax: Option<Syntax>,
    /// How often the body runs. Default: 0, until it exits by itself.
    #[serde(default)]
    turns: u64,
    /// 0 or 3. Default: 0.
    #[serde(default)]
    #[schemars(with = "Option<RingText>")]
    ring: RawRing,
    /// The task that starts it, and that exits after it.
    #[schemars(with = "Option<String>")]
    parent: Option<Spanned<String>>,
    /// Whether its parent may exit before it. Default: false.
    #[serde(default)]
    outlives: bool,
    /// The processor that it runs on. Default: the first.
    cpu: Option<u16>,
    /// The processors that it may run on, between which it then moves: `"any"`, or their numbers. It begins on the first.
    /// Default: those of its parent, or `cpu`.
    #[schemars(with = "Option<AffinityText>")]
    cpus: Option<Spanned<RawAffinity>>,
    /// The kind of core that it runs on, among whose processors `cpu` is then counted.
    core: Option<CoreKind>,
    /// Whether x87, SSE and AVX state is switched with it. Default: if its code uses it.
    extended: Option<bool>,
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
}

/// `ring = 0` or `ring = 3`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "u64")]
struct RawRing(Ring);

impl TryFrom<u64> for RawRing {
    type Error = String;

    fn try_from(ring: u64) -> Result<Self, String> {
        match ring {
            0 => Ok(Self(Ring::Kernel)),
            3 => Ok(Self(Ring::User)),
            _ => Err(format!("ring is {ring}; tasks run in ring 0 or in ring 3")),
        }
    }
}

/// A task, all decided but its machine code.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// Its name.
    pub name: String,
    /// The body.
    pub asm: String,
    /// The code before it.
    pub init: String,
    /// Syntax of both.
    pub syntax: Syntax,
    /// Turns of the body.
    pub turns: u64,
    /// Where it runs.
    pub ring: Ring,
    /// Name of the task that starts it.
    pub parent: Option<String>,
    /// Whether it may go on when that has ended.
    pub outlives: bool,
    /// The processor that it runs on.
    pub cpu: Option<u16>,
    /// The processors that it may run on.
    pub(super) cpus: Option<AffinityFile>,
    /// The kind of core that it runs on.
    pub core: Option<CoreKind>,
    /// Whether it has extended state; `None`: its code tells.
    pub extended: Option<bool>,
    /// What its code is.
    pub bits: Bits,
    /// A function that it calls, in place of code of its own.
    pub function: Option<FunctionFile>,
    /// What is wrong with what it runs.
    wrong: Option<String>,
    /// Where it stands.
    pub(super) place: Place,
    /// Where its texts stand: init and body.
    texts: [Lines; 2],
}

/// A workload, all decided but its machine code.
#[derive(Clone, Debug)]
pub struct WorkloadFile {
    /// The tasks, parents before their children.
    pub tasks: Vec<TaskFile>,
    /// Nanoseconds between two ticks; 0: none.
    pub tick_ns: u64,
    /// Seed of the jitter.
    pub jitter: Option<u64>,
    /// Memory that all tasks see.
    pub memory: Vec<MemoryFile>,
}

/// A workload with its machine code.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The workload.
    pub workload: Workload<'static>,
    /// The labels of each task, counted from where it begins: `entry` in its record.
    pub symbols: Vec<Labels>,
}

/// What a machine with so many processors lacks for `cpu`.
pub(super) fn too_few(cpu: u16, cpus: u32) -> String {
    let has = if cpus == 1 { "one processor".to_string() } else { format!("{cpus} processors") };
    format!("the machine has {has}, numbered from 0: --cpus {} gives it enough", u32::from(cpu) + 1)
}

/// Where `span` begins.
pub(super) fn place(text: &Text, source: &str, span: &std::ops::Range<usize>) -> Place {
    let Lines { line, column, .. } = lines(text, span);
    Place { file: source.to_string(), position: Some((line, column)) }
}

impl TaskFile {
    fn decide(raw: Spanned<RawTask>, text: &Text, source: &str) -> Self {
        let place = place(text, source, &raw.span());
        let mut raw = raw.into_inner();
        let at = |code: &Option<Spanned<String>>| {
            code.as_ref().map_or(Lines::default(), |code| lines(text, &code.span()))
        };
        let texts = [at(&raw.init), at(&raw.asm)];
        let function = raw.function();
        let other_code = raw.init.is_some() || raw.syntax.is_some() || raw.bits.is_some();
        let wrong = match (raw.asm.is_some(), function.is_there()) {
            (true, true) => Some("a task has either asm or a function of object".to_string()),
            (false, false) => Some("missing field `asm` (or object and function)".to_string()),
            _ if raw.core.is_some() && raw.parent.is_some() => {
                Some("a task runs where its parent does: give core to the parent".to_string())
            }
            _ if raw.outlives && raw.parent.is_none() => {
                Some("outlives is for a task with a parent".to_string())
            }
            (_, true) if other_code => Some("a function has no init, syntax or bits".to_string()),
            _ => None,
        };
        let function = function.decide(source);
        let wrong = wrong.or_else(|| function.as_ref().err().cloned());
        Self {
            function: function.ok().flatten(),
            wrong,
            name: raw.name.into_inner(),
            asm: raw.asm.map(Spanned::into_inner).unwrap_or_default(),
            init: raw.init.map(Spanned::into_inner).unwrap_or_default(),
            syntax: raw.syntax.unwrap_or_default(),
            turns: raw.turns,
            ring: raw.ring.0,
            parent: raw.parent.map(Spanned::into_inner),
            outlives: raw.outlives,
            cpu: raw.cpu,
            cpus: raw.cpus.map(|cpus| AffinityFile {
                place: self::place(text, source, &cpus.span()),
                cpus: cpus.into_inner().0,
            }),
            core: raw.core,
            extended: raw.extended,
            bits: raw.bits.unwrap_or_default(),
            place,
            texts,
        }
    }

    /// The processors that it names.
    fn named_cpus(&self) -> impl Iterator<Item = u16> {
        let several = self.cpus.iter().flat_map(AffinityFile::named);
        self.cpu.into_iter().chain(several.copied())
    }

    pub(super) fn error(&self, message: String) -> TaskError {
        TaskError { place: self.place.clone(), task: self.name.clone(), message }
    }

    /// The assembler's complaint about one of the two texts.
    fn complaint(&self, message: &Message, part: Part) -> TaskError {
        let (lines, text, what) = match part {
            Part::Init => (&self.texts[0], &self.init, "init code"),
            _ => (&self.texts[1], &self.asm, "body"),
        };
        let mut error = self.error(message.text.clone());
        if message.line > 0 {
            let line = text.lines().nth(message.line - 1).unwrap_or_default().trim();
            error.message += &format!("\n  in line {} of its {what}: {line}", message.line);
        }
        error.place.position = Some(match lines.first_line {
            Some(first) if message.line > 0 => (first + message.line - 1, message.column),
            _ => (lines.line, lines.column),
        });
        error
    }

    fn task(&self, parent: Option<u16>, init: &Code, body: &Code) -> Task<'static> {
        let codes = [&init.bytes[..], &body.bytes];
        let uses = || codes.iter().any(|code| uses_extended_state(code, self.bits));
        Task {
            name: Cow::Owned(self.name.clone()),
            init: Cow::Owned(init.bytes.clone()),
            body: Cow::Owned(body.bytes.clone()),
            turns: self.turns,
            loop_counter: loop_counter(&codes, self.bits),
            extended_state: self.extended.unwrap_or_else(uses),
            ring: self.ring,
            parent,
            outlives: self.outlives,
            cpu: self.cpu,
            cpus: self.cpus.as_ref().map(|one| one.cpus.clone()),
            core: self.core,
            bits: self.bits,
            program: None,
        }
    }

    /// One that calls `function` in ring 3, where it stands.
    pub(super) fn calling(name: String, function: FunctionFile, turns: u64, place: Place) -> Self {
        Self {
            name,
            asm: String::new(),
            init: String::new(),
            syntax: Syntax::default(),
            turns,
            ring: Ring::User,
            parent: None,
            outlives: false,
            cpu: None,
            cpus: None,
            core: None,
            extended: None,
            bits: Bits::default(),
            function: Some(function),
            wrong: None,
            place,
            texts: [Lines::default(), Lines::default()],
        }
    }
}

impl RawTask {
    /// Takes out what it says of a function.
    fn function(&mut self) -> RawFunction {
        RawFunction {
            object: self.object.take(),
            function: self.function.take(),
            args: self.args.take(),
            setup: self.setup.take(),
            teardown: self.teardown.take(),
        }
    }
}

impl WorkloadFile {
    /// Decides what is left open.
    pub(super) fn decide(
        tasks: Vec<Spanned<RawTask>>,
        tick_ns: Option<u64>,
        jitter: Option<u64>,
        text: &Text,
        source: &str,
    ) -> Self {
        let tasks = tasks.into_iter().map(|task| TaskFile::decide(task, text, source)).collect();
        let tick_ns = tick_ns.unwrap_or(DEFAULT_TICK_NS);
        Self { tasks, tick_ns, jitter, memory: Vec::new() }
    }

    /// The figures of how often each task moved, if some may.
    pub(super) fn figures_of_moves(&self) -> Vec<String> {
        // A child moves where its parent may.
        let may = self.tasks.iter().any(|task| task.cpus.is_some());
        let each = self.tasks.iter().filter(|_| may);
        each.map(|task| format!("moves, task {}", task.name)).collect()
    }

    /// The greatest number of a processor that a task is to run on.
    pub(super) fn greatest_cpu(&self) -> Option<u16> {
        let numbered = self.tasks.iter().filter(|task| task.core.is_none());
        numbered.flat_map(TaskFile::named_cpus).max()
    }

    /// Whether a machine with so many processors has all that tasks are to run on.
    ///
    /// # Errors
    /// Every task for which it has none.
    pub(super) fn check_cpus(&self, cpus: u32) -> Result<(), JobError> {
        let beyond = |task: &TaskFile| {
            let mut numbered = task.named_cpus().filter(|_| task.core.is_none());
            let cpu = numbered.find(|&cpu| u32::from(cpu) >= cpus)?;
            Some(task.error(format!("it is to run on processor {cpu}; {}", too_few(cpu, cpus))))
        };
        let errors: Vec<TaskError> = self.tasks.iter().filter_map(beyond).collect();
        if errors.is_empty() { Ok(()) } else { Err(JobError::Tasks(errors)) }
    }

    /// Assembles the tasks, and finds their parents.
    ///
    /// # Errors
    /// Everything that is wrong with them, each named.
    pub fn assemble(&self) -> Result<Assembled, JobError> {
        let parents = self.parents()?;
        let symbols = memory::symbols(&self.memory);
        let sources: Vec<Source> =
            self.tasks.iter().flat_map(|task| sources(task, &symbols)).collect();
        let codes = assemble::assemble_with_labels(&sources).map_err(|failed| match failed {
            Failed::Tool(reason) => JobError::Assembler(reason),
            Failed::Messages(messages) => JobError::Tasks(
                messages
                    .iter()
                    .map(|message| {
                        let task = &self.tasks[message.source / 2];
                        task.complaint(message, sources[message.source].part)
                    })
                    .collect(),
            ),
        })?;
        let (codes, _) = codes.as_chunks::<2>();
        let tasks = self.tasks.iter().zip(parents).zip(codes);
        let tasks = tasks.map(|((task, parent), [init, body])| task.task(parent, init, body));
        let workload =
            Workload { tasks: tasks.collect(), tick_ns: self.tick_ns, jitter: self.jitter };
        workload::check(&workload)
            .map_err(|error| self.task_error(&error).unwrap_or(JobError::Workload(error)))?;
        Ok(Assembled { workload, symbols: codes.iter().map(labels).collect() })
    }

    /// The index of each task's parent.
    fn parents(&self) -> Result<Vec<Option<u16>>, JobError> {
        let (mut parents, mut errors) = (Vec::new(), Vec::new());
        for (index, task) in self.tasks.iter().enumerate() {
            let before = &self.tasks[..index];
            errors.extend(task.wrong.clone().map(|wrong| task.error(wrong)));
            if before.iter().any(|other| other.name == task.name) {
                errors.push(task.error("another task before it has the same name".to_string()));
            }
            let find = |name: &String| before.iter().position(|other| other.name == *name);
            let found = task.parent.as_ref().map(|name| (name, find(name)));
            parents.push(found.and_then(|(_, index)| u16::try_from(index?).ok()));
            if let Some((name, None)) = found {
                let reason = if self.tasks.iter().any(|other| other.name == *name) {
                    "does not stand before it"
                } else {
                    "does not exist"
                };
                errors.push(task.error(format!("its parent `{name}` {reason}")));
            }
        }
        if errors.is_empty() { Ok(parents) } else { Err(JobError::Tasks(errors)) }
    }

    /// The error with its place, if it is a task's.
    pub(super) fn task_error(&self, error: &LimitError) -> Option<JobError> {
        let LimitError::Task { index, error, .. } = error else { return None };
        let task = self.tasks.get(*index)?;
        let mut found = task.error(error.to_string());
        let of_cpus = match **error {
            LimitError::Affinity(_) => true,
            LimitError::Range { field, .. } => field.ends_with("cpus"),
            _ => false,
        };
        if let Some(AffinityFile { place, .. }) = task.cpus.as_ref().filter(|_| of_cpus) {
            found.place = place.clone();
        }
        Some(JobError::Tasks(vec![found]))
    }
}

/// The texts of a task.
fn sources<'a>(task: &'a TaskFile, symbols: &'a [Symbol]) -> [Source<'a>; 2] {
    let (syntax, bits) = (task.syntax, task.bits);
    let of = |part, text| Source { part, text, syntax, bits, symbols };
    [of(Part::Init, task.init.as_str()), of(Part::Body, task.asm.as_str())]
}

/// Labels of a task. The body follows its init code.
fn labels([init, body]: &[Code; 2]) -> Labels {
    let ahead = init.bytes.len() as u64;
    let behind = body.labels.iter().map(|(name, offset)| (name.clone(), ahead + offset));
    let mut all: Vec<_> = init.labels.iter().cloned().chain(behind).collect();
    all.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    all
}

#[cfg(test)]
mod tests;
