//! Functions by their names: those of the symbol table, or as C++ and Rust write them.

use super::error::ProgramError;
use super::input::Input;
use object::{Object, ObjectSymbol, SymbolKind, SymbolSection, elf};
use std::borrow::Cow;
use std::path::PathBuf;

/// Most names that are suggested.
const SUGGESTED: usize = 3;
/// Less alike is not suggested: Jaro-Winkler, from 0 to 1.
const ALIKE: f64 = 0.8;

/// What stands between a name and an address of the file, where several symbols have the name: `hash@0x401136`.
const AT: &str = "@0x";

/// A symbol that can be called.
pub(super) struct Chosen {
    /// Its name in the symbol table.
    pub(super) name: String,
    /// Its address in the file: of a linked one, without what it will be moved by.
    pub(super) address: u64,
}

/// A symbol with the name that was requested.
struct Found {
    name: String,
    address: u64,
    file: PathBuf,
    local: bool,
    what: What,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    Function,
    Indirect,
    Data,
}

/// `name`, of which a linked file has several, as [`resolve`] takes it to mean the one at `address`.
pub fn named_at(name: &str, address: u64) -> String {
    format!("{name}{AT}{address:x}")
}

/// A name and the address that was given with it.
fn divided(asked: &str) -> (&str, Option<u64>) {
    let address = |(name, digits)| Some((name, u64::from_str_radix(digits, 16).ok()?));
    let divided = asked.rsplit_once(AT).and_then(address);
    divided.map_or((asked, None), |(name, address)| (name, Some(address)))
}

/// The symbol that stands for `asked` in the files that are to be linked. Of a linked file, `asked` may have an address.
///
/// # Errors
/// There is none, or not one that can be called.
pub(super) fn resolve(asked: &str, inputs: &[Input]) -> Result<Chosen, ProgramError> {
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for input in inputs {
        for (_, bytes) in input.objects()? {
            let damaged = super::FileError::damaged(&input.path);
            let file = object::File::parse(bytes).map_err(damaged)?;
            look(asked, input, &file, &mut found, &mut all);
        }
    }
    let is_linked = inputs.iter().any(Input::is_linked);
    let found = choose(asked, found, all, inputs, is_linked)?;
    Ok(Chosen { name: found.name, address: found.address })
}

fn look(
    asked: &str,
    input: &Input,
    file: &object::File,
    found: &mut Vec<Found>,
    all: &mut Vec<String>,
) {
    // Only a linked file's symbols have addresses.
    let (asked, address) = if input.is_linked() { divided(asked) } else { (asked, None) };
    for symbol in file.symbols() {
        if address.is_some_and(|address| address != symbol.address()) {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        let SymbolSection::Section(section) = symbol.section() else { continue };
        let Some(what) = what(file, &symbol, section) else { continue };
        if name == asked || demangled(name) == asked {
            let (name, file) = (name.to_string(), input.path.clone());
            let (address, local) = (symbol.address(), symbol.is_local());
            found.push(Found { name, address, file, local, what });
        } else if what == What::Function && !symbol.is_local() {
            all.push(demangled(name).into_owned());
        }
    }
}

fn what(
    file: &object::File,
    symbol: &object::Symbol,
    section: object::SectionIndex,
) -> Option<What> {
    use object::ObjectSection;
    let is_code = || {
        let section = file.section_by_index(section);
        section.is_ok_and(|section| section.kind() == object::SectionKind::Text)
    };
    if let object::SymbolFlags::Elf { st_info, .. } = symbol.flags()
        && st_info.st_type() == elf::STT_GNU_IFUNC
    {
        return Some(What::Indirect);
    }
    match symbol.kind() {
        SymbolKind::Text => Some(What::Function),
        SymbolKind::Data | SymbolKind::Tls => Some(What::Data),
        // Assemblers say of a label no more than where it is.
        SymbolKind::Label | SymbolKind::Unknown if is_code() => Some(What::Function),
        SymbolKind::Label | SymbolKind::Unknown => Some(What::Data),
        _ => None,
    }
}

fn choose(
    asked: &str,
    found: Vec<Found>,
    all: Vec<String>,
    inputs: &[Input],
    is_linked: bool,
) -> Result<Found, ProgramError> {
    let name = asked.to_string();
    let (functions, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| one.what == What::Function);
    let (mut local, global): (Vec<_>, Vec<_>) = functions.into_iter().partition(|one| one.local);
    let count = global.len();
    let mut global = global.into_iter();
    if let Some(first) = global.next() {
        // Definitions that are one and the same for the linker have one name; two of a name in two objects it refuses itself.
        return match global.all(|one| one.name == first.name) {
            true => Ok(first),
            false => Err(ProgramError::Ambiguous { name, count, places: Vec::new() }),
        };
    }
    if is_linked {
        // Two names of one address are one function.
        local.sort_by_key(|one| one.address);
        local.dedup_by_key(|one| one.address);
    }
    match (local.len(), others.first()) {
        (0, Some(Found { what: What::Indirect, .. })) => Err(ProgramError::Indirect { name }),
        (0, Some(_)) => Err(ProgramError::Data { name }),
        (0, None) => {
            let files = inputs.iter().map(|input| input.path.clone()).collect();
            Err(ProgramError::NoFunction { near: near(&name, all), name, files })
        }
        (1, _) if is_linked => Ok(local.remove(0)),
        (count, _) if is_linked => {
            let places = local.iter().map(|one| named_at(&one.name, one.address)).collect();
            Err(ProgramError::Ambiguous { name, count, places })
        }
        (1, _) => Err(ProgramError::Local { name, file: local.remove(0).file }),
        (count, _) => Err(ProgramError::Ambiguous { name, count, places: Vec::new() }),
    }
}

/// Names like `asked`, the likest first.
fn near(asked: &str, all: Vec<String>) -> Vec<String> {
    let alike = |name: String| (strsim::jaro_winkler(asked, &name), name);
    let mut alike: Vec<_> = all.into_iter().map(alike).filter(|one| one.0 >= ALIKE).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    alike.dedup();
    alike.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// A symbol's name as its language writes it.
pub(crate) fn demangled(name: &str) -> Cow<'_, str> {
    // Any short name is mangled C++ to the library: `h` is `unsigned char`.
    if name.starts_with("_Z") || name.starts_with("_R") {
        return addr2line::demangle_auto(Cow::Borrowed(name), None);
    }
    Cow::Borrowed(name)
}
