//! Which modules a module imports something of.

use super::names::Written;
use super::source::{Name, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Who imports something of whom.
pub type Imports = BTreeMap<Name, BTreeSet<Name>>;

/// The imports of a crate. Above and below a module there are none.
pub fn of(source: &Source) -> Imports {
    let of_module = |name: &Name| -> BTreeSet<Name> {
        let names = &source.modules[name];
        let imported = names.imported.iter().map(|(_, path)| path);
        let all = imported.chain(&names.whole).chain(&names.mentioned);
        all.filter_map(|path| module_of(source, name, path, &mut Vec::new()))
            .filter(|other| !name.starts_with(other) && !other.starts_with(name))
            .collect()
    };
    source.modules.keys().map(|name| (name.clone(), of_module(name))).collect()
}

/// The module that a path in the module `from` leads to, which may have the rest of it from elsewhere; `None` if it is none of this
/// crate's. Names in `asked` are not looked for again: `use one::one;` is of another crate.
fn module_of(
    source: &Source,
    from: &Name,
    path: &Written,
    asked: &mut Vec<String>,
) -> Option<Name> {
    let (first, rest) = path.split_first()?;
    let mut module = match &**first {
        "crate" => Name::new(),
        "self" => from.clone(),
        "super" => above(from)?,
        _ => below(source, from, first).or_else(|| imported(source, from, first, asked))?,
    };
    for name in rest {
        let next = if name == "super" { above(&module) } else { below(source, &module, name) };
        match next {
            Some(next) => module = next,
            None => break,
        }
    }
    Some(module)
}

fn above(module: &Name) -> Option<Name> {
    let (_, above) = module.split_last()?;
    Some(above.to_vec())
}

fn below(source: &Source, module: &Name, name: &String) -> Option<Name> {
    let below: Name = module.iter().chain([name]).cloned().collect();
    source.modules.contains_key(&below).then_some(below)
}

/// The module that a name leads to which is imported here.
fn imported(source: &Source, from: &Name, name: &String, asked: &mut Vec<String>) -> Option<Name> {
    if asked.contains(name) {
        return None;
    }
    asked.push(name.clone());
    let mut paths = source.modules[from].imported.iter().filter(|(own, _)| own == name);
    let found = paths.find_map(|(_, path)| module_of(source, from, path, asked));
    asked.pop();
    found
}
