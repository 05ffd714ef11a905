//! Functions of compiled code in place of assembly: what a job says of them, and the programs that they are linked into.

use super::errors::{JobError, Place};
use super::file::{FileItem, JobFile};
use super::memory::{Area, MemoryFile, areas, resolve};
use super::workload::WorkloadFile;
use crate::program::call::{Calls, MAX_ARGUMENTS};
use crate::program::{self, Linked, ProgramError, Wanted};
use protocol::job::LoopCounter;
use protocol::job::limits::LimitError;
use protocol::job::workload::Workload;
use protocol::program::{Call, MAX_PROGRAMS, STACK_END};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A function, all decided.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FunctionFile {
    /// The files that have it and what it needs.
    pub files: Vec<PathBuf>,
    /// Its name.
    pub name: String,
    /// What it is given.
    pub arguments: Vec<Argument>,
    /// A function that runs before each run, with the same arguments.
    pub setup: Option<String>,
    /// A function that runs behind each run, with the same arguments.
    pub teardown: Option<String>,
}

/// An argument as it is written.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(
    untagged,
    expecting = "an integer, or a text as \"memory:list+64\" or \"0xffffffffffffffff\""
)]
pub enum Argument {
    /// A whole number; negative ones in two's complement.
    Number(i64),
    /// A place in a memory area, or a number that TOML has no room for.
    Text(String),
}

impl std::str::FromStr for Argument {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Text(text.to_string()), Self::Number))
    }
}

/// One file or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a file, or a list of files")]
pub(super) enum RawFiles {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// What a table says of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct RawFunction {
    pub(super) object: Option<RawFiles>,
    pub(super) function: Option<String>,
    pub(super) args: Option<Vec<Argument>>,
    pub(super) setup: Option<String>,
    pub(super) teardown: Option<String>,
}

impl RawFunction {
    /// Whether any of it is there.
    pub(super) fn is_there(&self) -> bool {
        self.object.is_some() || self.function.is_some() || !self.rest().is_empty()
    }

    fn rest(&self) -> Vec<&'static str> {
        let all = [
            ("args", self.args.is_some()),
            ("setup", self.setup.is_some()),
            ("teardown", self.teardown.is_some()),
        ];
        all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }

    /// The function, if there is one. Files stand beside the job, which is `source`.
    ///
    /// # Errors
    /// A key without the others that it needs.
    pub(super) fn decide(self, source: &str) -> Result<Option<FunctionFile>, String> {
        if let (None, Some(name)) = (&self.function, self.rest().first()) {
            return Err(format!("{name} needs function and object"));
        }
        let (name, object) = match (self.function, self.object) {
            (None, None) => return Ok(None),
            (Some(name), Some(object)) => (name, object),
            (Some(_), None) => {
                return Err("function needs object: the files that have it".to_string());
            }
            (None, Some(_)) => {
                return Err("object needs function: the one that is called".to_string());
            }
        };
        let files = match object {
            RawFiles::One(file) => vec![file],
            RawFiles::Several(files) => files,
        };
        if files.is_empty() {
            return Err("object is an empty list of files".to_string());
        }
        let folder = Path::new(source).parent().unwrap_or(Path::new(""));
        Ok(Some(FunctionFile {
            files: files.into_iter().map(|file| folder.join(file)).collect(),
            name,
            arguments: self.args.unwrap_or_default(),
            setup: self.setup,
            teardown: self.teardown,
        }))
    }
}

impl FunctionFile {
    /// A name for an item that has none.
    pub(super) fn item_name(&self) -> String {
        let one = |argument: &Argument| match argument {
            Argument::Number(number) => number.to_string(),
            Argument::Text(text) => text.clone(),
        };
        let arguments: Vec<String> = self.arguments.iter().map(one).collect();
        super::file::name_of(&format!("{}({})", self.name, arguments.join(", ")))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.setup).chain(&self.teardown)
    }

    /// The arguments as the function gets them.
    fn values(&self, memory: &[MemoryFile]) -> Result<Vec<u64>, String> {
        if self.arguments.len() > MAX_ARGUMENTS {
            let count = self.arguments.len();
            return Err(format!("there are {count} args; at most {MAX_ARGUMENTS} are passed"));
        }
        let areas = areas(memory)?;
        self.arguments.iter().map(|argument| value(argument, &areas)).collect()
    }
}

fn value(argument: &Argument, areas: &[Area]) -> Result<u64, String> {
    let text = match argument {
        Argument::Number(number) => return Ok(*number as u64),
        Argument::Text(text) => text,
    };
    if let Some(place) = resolve(areas, text) {
        return place.map_err(|wrong| format!("args: {wrong}"));
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.ok_or_else(|| {
        format!("args: `{text}` is neither a number of 64 bits nor a place in a memory area")
    })
}

/// An item that uses a function.
struct User<'a> {
    place: Place,
    item: &'a str,
    function: &'a FunctionFile,
}

fn users(file: &JobFile) -> Vec<User<'_>> {
    let snippets = file.snippets.iter().filter_map(|snippet| {
        let (place, item) = (snippet.place(&file.source), &*snippet.name);
        Some(User { place, item, function: snippet.function.as_ref()? })
    });
    let workloads = file.items().into_iter().filter_map(FileItem::workload);
    let tasks = workloads.flat_map(|workload| &workload.tasks).filter_map(|task| {
        Some(User {
            place: task.place.clone(),
            item: &task.name,
            function: task.function.as_ref()?,
        })
    });
    snippets.chain(tasks).collect()
}

/// The programs of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    pub(super) linked: Vec<Linked>,
    /// Positions in `linked`, by files.
    numbers: BTreeMap<Vec<PathBuf>, u16>,
}

/// The code that stands around a function.
pub(super) struct Code {
    pub(super) once: Vec<u8>,
    pub(super) init: Vec<u8>,
    pub(super) call: Call<'static>,
}

impl Programs {
    /// Links what the items of `file` use: one program for each set of files.
    ///
    /// # Errors
    /// What is wrong with the files or what they need, with the first item that needs it.
    pub(super) fn of(file: &JobFile) -> Result<Self, JobError> {
        let users = users(file);
        let mut groups: BTreeMap<&[PathBuf], BTreeSet<&String>> = BTreeMap::new();
        for user in &users {
            groups.entry(&user.function.files).or_default().extend(user.function.names());
        }
        if groups.len() > MAX_PROGRAMS {
            let (value, max) = (groups.len() as u64, MAX_PROGRAMS as u64);
            let error = LimitError::Range { field: "the number of programs", value, min: 0, max };
            return Err(JobError::Limit { file: file.source.clone(), error });
        }
        let mut programs = Self::default();
        for (files, functions) in groups {
            let functions = functions.into_iter().cloned().collect();
            let wanted = Wanted { files: files.to_vec(), functions, sections: Vec::new() };
            let linked = program::link(&wanted).map_err(|error| blame(&users, files, error))?;
            programs.numbers.insert(files.to_vec(), programs.linked.len() as u16);
            programs.linked.push(linked);
        }
        Ok(programs)
    }

    /// Gives the tasks of `workload` that call functions their code: the constructors once, then in each turn the function, with
    /// what runs before and behind it.
    ///
    /// # Errors
    /// Arguments that cannot be passed.
    pub(super) fn fill(
        &self,
        file: &WorkloadFile,
        workload: &mut Workload,
    ) -> Result<(), JobError> {
        let mut errors = Vec::new();
        for (written, task) in file.tasks.iter().zip(&mut workload.tasks) {
            let Some(function) = &written.function else { continue };
            let values = match function.values(&file.memory) {
                Ok(values) => values,
                Err(message) => {
                    errors.push(written.error(message));
                    continue;
                }
            };
            let number = self.numbers[&function.files];
            let linked = &self.linked[usize::from(number)];
            let call = |calls: Calls, name: &String| calls.call(linked.functions[name], &values);
            let construct = |calls: Calls, at: &u64| calls.call(*at, &[0, 0, 0]);
            let init = linked.constructors.iter().fold(Calls::with_stack(STACK_END), construct);
            let order = function.setup.iter().chain([&function.name]).chain(&function.teardown);
            task.init = Cow::Owned(init.finish());
            task.body = Cow::Owned(order.fold(Calls::default(), call).finish());
            task.extended_state = written.extended.unwrap_or(true);
            // Functions keep R15.
            task.loop_counter = LoopCounter::R15;
            task.program = Some(number);
        }
        if errors.is_empty() { Ok(()) } else { Err(JobError::Tasks(errors)) }
    }

    /// The code around a function.
    ///
    /// # Errors
    /// An argument that cannot be passed.
    pub(super) fn code(
        &self,
        function: &FunctionFile,
        memory: &[MemoryFile],
    ) -> Result<Code, String> {
        let values = function.values(memory)?;
        let number = self.numbers[&function.files];
        let linked = &self.linked[usize::from(number)];
        let around = |name: &Option<String>, calls: Calls| match name {
            Some(name) => calls.call(linked.functions[name], &values),
            None => calls,
        };
        let init = around(&function.setup, Calls::with_whole_stack()).arguments(&values).finish();
        let teardown = match &function.teardown {
            None => Vec::new(),
            teardown => around(teardown, Calls::with_whole_stack()).finish(),
        };
        // Constructors are given what a C library gives: a number, and two lists (here empty).
        let construct = |calls: Calls, at: &u64| calls.call(*at, &[0, 0, 0]);
        let once = match &linked.constructors[..] {
            [] => Vec::new(),
            all => all.iter().fold(Calls::with_whole_stack(), construct).finish(),
        };
        let (function, teardown) = (linked.functions[&function.name], Cow::Owned(teardown));
        Ok(Code { once, init, call: Call { program: number, function, teardown } })
    }
}

/// The error, with the item that has it: of several items of one set of files the first that fails alone.
fn blame(users: &[User], files: &[PathBuf], error: ProgramError) -> JobError {
    let mut users = users.iter().filter(|user| user.function.files == files).peekable();
    let first = users.peek().map(|user| (user.place.clone(), user.item.to_string()));
    let alone = users.find_map(|user| {
        let functions = user.function.names().cloned().collect();
        let wanted = Wanted { files: files.to_vec(), functions, sections: Vec::new() };
        let error = program::link(&wanted).err()?;
        Some(((user.place.clone(), user.item.to_string()), error))
    });
    let ((place, item), error) =
        alone.unwrap_or_else(|| (first.expect("somebody uses them"), error));
    JobError::Program { place, item, error: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n5_an_argument_may_be_a_place_in_memory() {
        let memory = ["list=8K".parse().unwrap()];
        let values = |text: &str| {
            let arguments = vec![text.parse().unwrap()];
            FunctionFile { arguments, ..FunctionFile::default() }.values(&memory)
        };
        assert_eq!(values("memory:list+64"), Ok(vec![0x7020_0040]));
        assert_eq!(values("0x10"), Ok(vec![16]));
        for sign in ["0x+5", "0x-5"] {
            let wrong = values(sign).unwrap_err();
            assert!(wrong.contains(&format!("`{sign}` is neither a number")), "{wrong}");
        }
        let wrong = values("memory:none").unwrap_err();
        let text = "args: `memory:none`: there is no memory `none`; the item has list";
        assert_eq!(wrong, text);
    }
}
