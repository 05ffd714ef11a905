//! A task, all decided but its machine code.

use super::keys::RawTask;
use super::place;
use crate::job::affinity::AffinityFile;
use crate::job::analyse::{loop_counter, uses_extended_state};
use crate::job::assemble::{Code, Message, Part, Syntax};
use crate::job::errors::{Place, TaskError};
use crate::job::file::{Lines, Text, lines};
use crate::job::function::FunctionFile;
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::job::workload::{Ring, Task};
use std::borrow::Cow;
use toml::Spanned;

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
    pub(in crate::job) cpus: Option<AffinityFile>,
    /// The kind of core that it runs on.
    pub core: Option<CoreKind>,
    /// Whether it has extended state; `None`: its code tells.
    pub extended: Option<bool>,
    /// What its code is.
    pub bits: Bits,
    /// A function that it calls, in place of code of its own.
    pub function: Option<FunctionFile>,
    /// What is wrong with what it runs.
    pub(super) wrong: Option<String>,
    /// Where it stands.
    pub(in crate::job) place: Place,
    /// Where its texts stand: init and body.
    pub(super) texts: [Lines; 2],
}

impl TaskFile {
    pub(super) fn decide(raw: Spanned<RawTask>, text: &Text, source: &str) -> Self {
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
    pub(super) fn named_cpus(&self) -> impl Iterator<Item = u16> {
        let several = self.cpus.iter().flat_map(AffinityFile::named);
        self.cpu.into_iter().chain(several.copied())
    }

    pub(in crate::job) fn error(&self, message: String) -> TaskError {
        TaskError { place: self.place.clone(), task: self.name.clone(), message }
    }

    /// The assembler's complaint about one of the two texts.
    pub(super) fn complaint(&self, message: &Message, part: Part) -> TaskError {
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

    pub(super) fn task(&self, parent: Option<u16>, init: &Code, body: &Code) -> Task<'static> {
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
    pub(in crate::job) fn calling(
        name: String,
        function: FunctionFile,
        turns: u64,
        place: Place,
    ) -> Self {
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
