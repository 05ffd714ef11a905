//! Compiled code as a part of a job: linked to a fixed place, checked, and put into the form in which the firmware maps it.
//!
//! `input` states what the files are, `names` finds functions in them, `link` calls rust-lld, `image` makes segments of what
//! it made (or of an executable that was linked already), `reach` finds what must not be reached, [`call`] makes the code that
//! calls functions, [`places`] names addresses in a report, `cache` keeps what was linked for as long as nothing changes, and
//! `settled` makes it ready to be kept.

mod cache;
pub mod call;
mod error;
mod image;
mod indirect;
mod input;
mod link;
mod names;
pub mod places;
mod reach;
mod relocated;
mod runtime;

pub(crate) use names::named_at;

pub use error::{FileError, Missing, ProgramError, WrongFile};

pub(crate) use names::demangled;

use image::File;
use input::{Input, Kind};
use protocol::program::Head;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a program leaves a text before it gives up.
const MESSAGE: &str = "__barecount_message";

/// What is to be linked.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Wanted {
    /// Objects and libraries, or one executable.
    pub files: Vec<PathBuf>,
    /// The functions that are called, as the job names them.
    pub functions: Vec<String>,
    /// Sections that stay although nothing refers to them: C identifiers.
    pub sections: Vec<String>,
}

/// A program, ready to be packed.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The linked file, for names and lines.
    pub path: PathBuf,
    /// What is to be added to its addresses.
    pub bias: u64,
    /// Its binary form: [`protocol::program`].
    pub bytes: Vec<u8>,
    /// Addresses of the functions that were wanted, by the job's names.
    pub functions: BTreeMap<String, u64>,
    /// Functions that run before everything else, in order.
    pub constructors: Vec<u64>,
    /// Bytes that it takes in memory.
    pub memory: u64,
    /// Digest of what it was made of.
    pub key: u64,
}

impl Input {
    fn is_linked(&self) -> bool {
        matches!(self.kind, Kind::Fixed | Kind::Independent)
    }
}

/// Links what is wanted.
///
/// # Errors
/// What is wrong with the files or with what the functions need.
pub fn link(wanted: &Wanted) -> Result<Linked, ProgramError> {
    let inputs: Vec<Input> =
        wanted.files.iter().map(|file| Input::read(file)).collect::<Result<_, _>>()?;
    if let (Some(input), true) = (inputs.iter().find(|input| input.is_linked()), inputs.len() > 1) {
        return Err(FileError::new(&input.path, WrongFile::Whole).into());
    }
    let texts = wanted.functions.iter().chain(&wanted.sections).map(String::as_bytes);
    let counts = [wanted.functions.len(), wanted.files.len()].map(|count| count as u8);
    let key = cache::key(inputs.iter().flat_map(Input::contents).chain(texts).chain([&counts[..]]));
    let made = |to: &Path| -> Result<(), ProgramError> {
        match &inputs[..] {
            [input] if input.is_linked() => std::fs::write(to, &input.bytes)
                .map_err(|error| ProgramError::Tool(error.to_string()))?,
            _ => {
                let root = |name: &String| Ok(names::resolve(name, &inputs)?.name);
                let roots: Vec<String> =
                    wanted.functions.iter().map(root).collect::<Result<_, ProgramError>>()?;
                link::link(&inputs, &roots, &wanted.sections, &runtime::object()?, to)?;
            }
        }
        let path = inputs.first().map_or(to, |input| &input.path);
        look(to, path, wanted, (key, true))?;
        relocated::drop_relocations(to)
    };
    let path = cache::file(key, "elf", made)?;
    let own = inputs.first().map_or(&*path, |input| &input.path);
    let linked = look(&path, own, wanted, (key, false))?;
    Ok(Linked { path, ..linked })
}

/// Reads the linked file `path`, which is named `name` in messages. Of the pair, the first is its key, and the second says
/// that it has not been checked before.
fn look(
    path: &Path,
    name: &Path,
    wanted: &Wanted,
    (key, new): (u64, bool),
) -> Result<Linked, ProgramError> {
    let input = Input { path: name.to_path_buf(), ..Input::read(path)? };
    let linked = examine(input, wanted, (key, new))?;
    Ok(Linked { path: path.to_path_buf(), ..linked })
}

/// Reads a linked file out of `bytes`, whatever they are: for the fuzzer.
///
/// # Errors
/// What is wrong with them.
pub fn read(bytes: &[u8], wanted: &Wanted) -> Result<Linked, ProgramError> {
    let path = PathBuf::from("file");
    let kind = input::kind(bytes).map_err(|what| FileError::new(&path, what))?;
    let input = Input { path, bytes: bytes.to_vec(), kind, members: Vec::new() };
    input.objects()?;
    examine(input, wanted, (0, true))
}

fn examine(input: Input, wanted: &Wanted, (key, new): (u64, bool)) -> Result<Linked, ProgramError> {
    let inputs = [input];
    let name = &*inputs[0].path;
    let file = File::parse(name, &inputs[0].bytes)?;
    let mut functions = BTreeMap::new();
    for wanted in &wanted.functions {
        // By the symbol and not by its name: a local one of the same name is listed before it.
        let address = names::resolve(wanted, &inputs)?.address.wrapping_add(file.bias);
        functions.insert(wanted.clone(), address);
    }
    let image = file.image(file.address(MESSAGE))?;
    let mut constructors = file.words(".preinit_array", &image);
    constructors.extend(file.words(".init_array", &image));
    // Linkers mark the ends of the list with 0 or -1.
    constructors.retain(|&at| at != 0 && at != u64::MAX);
    if new {
        let entries: Vec<u64> = functions.values().chain(&constructors).copied().collect();
        reach::check(&file, name, &entries)?;
    }
    let head = Head { key, bias: file.bias, ..image.head };
    let bytes = protocol::program::pack(&head, &image.contents)?;
    let (bias, path) = (file.bias, name.to_path_buf());
    let memory = head.segments.iter().map(|segment| segment.memory).sum();
    Ok(Linked { path, bias, bytes, functions, constructors, memory, key })
}

impl File<'_> {
    /// The address that the global symbol will have.
    fn address(&self, name: &str) -> Option<u64> {
        use object::{Object, ObjectSymbol};
        let mut named = self.elf.symbols().filter(|symbol| {
            symbol.is_global()
                && !symbol.is_undefined()
                && symbol.name_bytes() == Ok(name.as_bytes())
        });
        named.next().map(|symbol| symbol.address().wrapping_add(self.bias))
    }
}

#[cfg(test)]
mod tests;
