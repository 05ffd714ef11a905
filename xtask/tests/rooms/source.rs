//! A crate's modules, from its first file on.

use super::names::{Names, is_for_tests};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::Item;

/// A module's path from the crate's root, which has the empty one.
pub type Name = Vec<String>;

/// The names in a crate's modules, without those for tests.
pub struct Source {
    pub modules: BTreeMap<Name, Names>,
}

impl Source {
    /// Reads all files of the crate that begins with `file`.
    pub fn read(file: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut source = Self { modules: BTreeMap::new() };
        let folder = file.parent().expect("a file is in a folder");
        source.file(Name::new(), file, folder, read);
        source
    }

    /// A module that is a file, whose own modules are in `folder`.
    fn file(
        &mut self,
        name: Name,
        file: &Path,
        folder: &Path,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        let text = read(file).unwrap_or_else(|| panic!("{} cannot be read", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        if !is_for_tests(&parsed.attrs) {
            self.items(name, &parsed.items, folder, read);
        }
    }

    fn items(
        &mut self,
        name: Name,
        items: &[Item],
        folder: &Path,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            if is_for_tests(&module.attrs) {
                continue;
            }
            let own = module.ident.to_string();
            let inner: Name = name.iter().chain([&own]).cloned().collect();
            let below = folder.join(&own);
            match &module.content {
                Some((_, items)) => self.items(inner, items, &below, read),
                None => {
                    let files: [PathBuf; 2] = [below.with_extension("rs"), below.join("mod.rs")];
                    let file = files.iter().find(|file| read(file).is_some());
                    let file =
                        file.unwrap_or_else(|| panic!("{inner:?} has no file in {folder:?}"));
                    self.file(inner, file, &below, read);
                }
            }
        }
        // A module may be written twice, for two targets.
        self.modules.entry(name).or_default().add(items);
    }
}
