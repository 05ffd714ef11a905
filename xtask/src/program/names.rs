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

/// A symbol with the name that was requested.
struct Found {
    name: String,
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

/// The symbol that stands for `asked` in the files that are to be linked.
///
/// # Errors
/// There is none, or not one that can be called.
pub(super) fn resolve(asked: &str, inputs: &[Input]) -> Result<String, ProgramError> {
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for input in inputs {
        for (_, bytes) in input.objects()? {
            let damaged = super::FileError::damaged(&input.path);
            let file = object::File::parse(bytes).map_err(damaged)?;
            look(asked, input, &file, &mut found, &mut all);
        }
    }
    let is_linked = inputs.iter().any(Input::is_linked);
    choose(asked, found, all, inputs, is_linked)
}

fn look(
    asked: &str,
    input: &Input,
    file: &object::File,
    found: &mut Vec<Found>,
    all: &mut Vec<String>,
) {
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else { continue };
        let SymbolSection::Section(section) = symbol.section() else { continue };
        let Some(what) = what(file, &symbol, section) else { continue };
        if name == asked || demangled(name) == asked {
            let (name, file) = (name.to_string(), input.path.clone());
            found.push(Found { name, file, local: symbol.is_local(), what });
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
) -> Result<String, ProgramError> {
    let name = asked.to_string();
    let functions: Vec<&Found> = found.iter().filter(|one| one.what == What::Function).collect();
    let global: Vec<&&Found> = functions.iter().filter(|one| !one.local).collect();
    if let [first, rest @ ..] = &global[..] {
        // Definitions that are one and the same for the linker have one name; two of a name in two objects it refuses itself.
        let others = rest.iter().filter(|one| one.name != first.name).count();
        return match others {
            0 => Ok(first.name.clone()),
            _ => Err(ProgramError::Ambiguous { name, count: global.len(), places: Vec::new() }),
        };
    }
    match (&functions[..], found.first()) {
        ([one], _) if is_linked => Ok(one.name.clone()),
        ([one, ..], _) if !is_linked => Err(ProgramError::Local { name, file: one.file.clone() }),
        ([_, _, ..], _) => {
            Err(ProgramError::Ambiguous { name, count: functions.len(), places: Vec::new() })
        }
        (_, Some(Found { what: What::Indirect, .. })) => Err(ProgramError::Indirect { name }),
        (_, Some(_)) => Err(ProgramError::Data { name }),
        (_, None) => {
            let files = inputs.iter().map(|input| input.path.clone()).collect();
            Err(ProgramError::NoFunction { near: near(&name, all), name, files })
        }
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
