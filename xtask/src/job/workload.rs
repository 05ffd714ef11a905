//! Workloads in a job: tasks with their code, and the timer that ticks meanwhile.

use super::analyse::{loop_counter, uses_extended_state};
use super::assemble::{self, Failed, Message, Part, Source, Syntax};
use super::errors::{AssemblyError, JobError, Place};
use super::file::{Lines, lines};
use protocol::job::LoopCounter;
use protocol::workload::{Ring, Task, Workload};
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// Time between two ticks if a job says nothing: 1 ms.
pub const DEFAULT_TICK_NS: u64 = 1_000_000;

/// A task as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawTask {
    name: Spanned<String>,
    asm: Spanned<String>,
    init: Option<Spanned<String>>,
    syntax: Option<Syntax>,
    #[serde(default)]
    turns: u64,
    #[serde(default)]
    ring: RawRing,
    parent: Option<Spanned<String>>,
    cpu: Option<u16>,
    extended: Option<bool>,
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
            _ => Err(format!("ring is {ring}; a task runs in ring 0 or in ring 3")),
        }
    }
}

/// A task, all decided but its machine code.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// Its name.
    pub name: String,
    /// Init code and body.
    texts: [String; 2],
    syntax: Syntax,
    turns: u64,
    ring: Ring,
    parent: Option<String>,
    cpu: Option<u16>,
    extended: Option<bool>,
    place: Place,
    /// Where the texts stand.
    spans: [Lines; 2],
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
}

/// A workload with its machine code.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The workload.
    pub workload: Workload<'static>,
}

impl WorkloadFile {
    /// Decides what the job leaves open.
    pub(super) fn decide(
        tasks: Vec<Spanned<RawTask>>,
        tick_ns: Option<u64>,
        jitter: Option<u64>,
        text: &str,
        source: &str,
    ) -> Self {
        let tasks = tasks.into_iter().map(|task| TaskFile::decide(task, text, source)).collect();
        Self { tasks, tick_ns: tick_ns.unwrap_or(DEFAULT_TICK_NS), jitter }
    }

    /// The tasks with their machine code.
    ///
    /// # Errors
    /// A text that the assembler refuses, or a parent that is not there.
    pub fn assemble(&self) -> Result<Assembled, JobError> {
        const PARTS: [Part; 2] = [Part::Init, Part::Body];
        let sources: Vec<Source> = self
            .tasks
            .iter()
            .flat_map(|task| {
                [0, 1].map(|part| Source {
                    part: PARTS[part],
                    text: &task.texts[part],
                    syntax: task.syntax,
                })
            })
            .collect();
        let codes = assemble::assemble(&sources).map_err(|failed| match failed {
            Failed::Tool(reason) => JobError::Assembler(reason),
            Failed::Messages(messages) => {
                JobError::Assembly(messages.into_iter().map(|one| self.explain(one)).collect())
            }
        })?;
        let tasks = self.tasks.iter().zip(codes.as_chunks::<2>().0).enumerate();
        let tasks = tasks.map(|(index, (task, codes))| self.task(index, task, codes));
        let tasks = tasks.collect::<Result<_, _>>()?;
        let workload = Workload { tasks, tick_ns: self.tick_ns, jitter: self.jitter };
        Ok(Assembled { workload })
    }

    fn task(
        &self,
        index: usize,
        task: &TaskFile,
        [init, body]: &[Vec<u8>; 2],
    ) -> Result<Task<'static>, JobError> {
        let parent = match &task.parent {
            None => None,
            Some(parent) => {
                let at = self.tasks[..index].iter().position(|other| other.name == *parent);
                let message = || format!("parent is `{parent}`, which is no task before this one");
                let at = at.ok_or_else(|| JobError::Snippet {
                    place: task.place.clone(),
                    snippet: task.name.clone(),
                    message: message(),
                })?;
                Some(at as u16)
            }
        };
        let memory = [init, body].iter().any(|code| loop_counter(code) == LoopCounter::Memory);
        Ok(Task {
            name: Cow::Owned(task.name.clone()),
            init: Cow::Owned(init.clone()),
            body: Cow::Owned(body.clone()),
            turns: task.turns,
            loop_counter: if memory { LoopCounter::Memory } else { LoopCounter::R15 },
            extended_state: task
                .extended
                .unwrap_or_else(|| [init, body].iter().any(|code| uses_extended_state(code))),
            ring: task.ring,
            parent,
            cpu: task.cpu,
        })
    }

    fn explain(&self, message: Message) -> AssemblyError {
        let (task, part) = (&self.tasks[message.source / 2], message.source % 2);
        let lines = task.spans[part];
        let position = task.place.position.map(|_| match lines.first_line {
            Some(first) if message.line > 0 => (first + message.line - 1, message.column),
            _ => (lines.line, lines.column),
        });
        let text = task.texts[part].lines().nth(message.line.wrapping_sub(1));
        AssemblyError {
            place: Place { file: task.place.file.clone(), position },
            snippet: task.name.clone(),
            part: ["init code", "body"][part],
            line: message.line,
            text: text.unwrap_or_default().to_string(),
            message: message.text,
        }
    }
}

impl TaskFile {
    fn decide(raw: Spanned<RawTask>, text: &str, source: &str) -> Self {
        let whole = lines(text, &raw.span());
        let place = Place { file: source.to_string(), position: Some((whole.line, whole.column)) };
        let raw = raw.into_inner();
        let init = raw.init.as_ref().map_or(Lines::default(), |init| lines(text, &init.span()));
        let spans = [init, lines(text, &raw.asm.span())];
        let init = raw.init.map(Spanned::into_inner).unwrap_or_default();
        Self {
            name: raw.name.into_inner(),
            texts: [init, raw.asm.into_inner()],
            syntax: raw.syntax.unwrap_or_default(),
            turns: raw.turns,
            ring: raw.ring.0,
            parent: raw.parent.map(Spanned::into_inner),
            cpu: raw.cpu,
            extended: raw.extended,
            place,
            spans,
        }
    }
}
