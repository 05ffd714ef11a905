//! What is planted where, and the copy with all of it.

use crate::build::{Built, build};
use crate::items;
use crate::mutant::Mutant;
use crate::rewrite::{Planted, Written, rewrite};
use crate::say;
use crate::sites::{self, Site, Sites};
use crate::text::Text;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The module with the switches.
const SWITCH: &str = include_str!("switch.rs.in");

/// All mutants, by what can be done with them.
pub struct Plan<'a> {
    /// The copy that is written to.
    pub copy: &'a Path,
    /// The packages whose tests they are tried on.
    pub packages: Vec<&'a str>,
    /// The packages' roots, as they were.
    roots: BTreeMap<String, String>,
    files: BTreeMap<&'a str, File<'a>>,
    /// Mutants that do not build, and why.
    pub unviable: BTreeMap<usize, String>,
    /// Mutants that cannot be switched.
    pub alone: BTreeMap<usize, String>,
    /// Names of `const fn`s that have to stay such.
    pub constant: HashSet<String>,
    /// One more than the greatest number.
    count: usize,
}

struct File<'a> {
    text: String,
    sites: Sites,
    planted: Vec<Planted<'a>>,
}

/// Files of the copy as they were written.
pub type Copy = HashMap<String, Written>;

impl<'a> Plan<'a> {
    /// Reads the files. What is `known` is not planted.
    pub fn new(mutants: &'a [Mutant], known: &HashSet<usize>, copy: &'a Path) -> Result<Self> {
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        let (mut alone, mut unviable) = (BTreeMap::new(), BTreeMap::new());
        let (mut packages, mut roots) = (Vec::new(), BTreeMap::new());
        let planted = mutants.iter().enumerate().filter(|(number, _)| !known.contains(number));
        for (number, mutant) in planted {
            let read = &mutant.read;
            if !packages.contains(&read.package.as_str()) {
                packages.push(&read.package);
                let source = read.file.find("src/").context("a file outside of src")?;
                let root = format!("{}src/lib.rs", &read.file[..source]);
                let text = fs::read_to_string(copy.join(&root)).context(root.clone())?;
                roots.insert(root, text);
            }
            if !files.contains_key(read.file.as_str()) {
                let path = copy.join(&read.file);
                let text =
                    fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
                let sites = sites::find(&Text::new(&text)).with_context(|| read.file.clone())?;
                files.insert(&read.file, File { text, sites, planted: Vec::new() });
            }
            let file = files.get_mut(read.file.as_str()).context("just put there")?;
            let span = Text::new(&file.text).listed(read.span);
            let site = file.sites.sites.get(&(read.genre, span.start)).cloned();
            let site = site.with_context(|| format!("no place for {}", read.name))?;
            match site {
                Site::Constant => drop(alone.insert(number, "constant".to_string())),
                Site::Alone => drop(alone.insert(number, "no switch".to_string())),
                // It yields `&mut`, and the rest `&`: not one iterator.
                Site::Iterator(_) if read.replacement.contains("Box::leak(") => {
                    drop(alone.insert(number, "another iterator".to_string()));
                }
                Site::Item(ref name) if items::is_named_below(&copy.join(&read.file), name) => {
                    drop(alone.insert(number, "constant".to_string()));
                }
                Site::Never => drop(unviable.insert(number, "beside a let".to_string())),
                _ => {}
            }
            file.planted.push(Planted { number, site, span, replacement: &read.replacement });
        }
        let (constant, count) = (HashSet::new(), mutants.len());
        Ok(Self { copy, packages, roots, files, unviable, alone, constant, count })
    }

    /// The numbers of those that are switched.
    pub fn numbers(&self) -> Vec<usize> {
        let planted = self.files.values().flat_map(|file| self.switched(file));
        planted.map(|planted| planted.number).collect()
    }

    /// The mutants of a file that are written.
    fn switched<'f>(&self, file: &'f File<'a>) -> Vec<Planted<'a>> {
        let out = |planted: &&Planted| {
            !self.unviable.contains_key(&planted.number)
                && !self.alone.contains_key(&planted.number)
        };
        file.planted.iter().filter(out).cloned().collect()
    }

    fn write(&self) -> Result<Copy> {
        let mut all = HashMap::new();
        for (&name, file) in &self.files {
            let planted = self.switched(file);
            let plain = file.sites.const_fns.iter().filter(|function| {
                let inside = |planted: &Planted| function.whole.contains(&planted.span.start);
                !self.constant.contains(&function.name) && planted.iter().any(inside)
            });
            let written =
                rewrite(&file.text, &planted, &plain.collect::<Vec<_>>(), &file.sites.items);
            if !self.roots.contains_key(name) {
                change(&self.copy.join(name), &written.text)?;
            }
            all.insert(name.to_string(), written);
        }
        let switch = SWITCH.replace("COUNT", &self.count.to_string());
        for (name, text) in &self.roots {
            let text = all.get(name).map_or(text, |written| &written.text);
            change(&self.copy.join(name), &(with_std(text) + &switch))?;
        }
        Ok(all)
    }

    /// Builds, leaving out what does not, until it does.
    pub fn build(&mut self) -> Result<Vec<(PathBuf, PathBuf)>> {
        loop {
            let written = self.write()?;
            let errors = match build(self.copy, &self.packages)? {
                Built::Programs(programs) => return Ok(programs),
                Built::Errors(errors) => errors,
            };
            let counts = |plan: &Self| (plan.unviable.len(), plan.alone.len(), plan.constant.len());
            let before = counts(self);
            for error in &errors {
                self.blame(error, &written);
            }
            let (unviable, alone, constant) = counts(self);
            say(&format!(
                "{} errors: {unviable} mutants do not build, {alone} need a build of their own; {constant} stay const fn",
                errors.len()
            ));
            if before == counts(self) {
                bail!("it does not build: {errors:#?}");
            }
        }
    }

    /// Puts the copy back as it was.
    pub fn restore(&self) -> Result<()> {
        let files = self.files.iter().map(|(&name, file)| (name, &file.text));
        let roots = self.roots.iter().map(|(name, text)| (name.as_str(), text));
        files.chain(roots).try_for_each(|(name, text)| change(&self.copy.join(name), text))
    }

    /// Writes one mutant alone, as cargo-mutants does, while `run` runs.
    pub fn with_one<T>(&self, mutant: &Mutant, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = &self.files[mutant.read.file.as_str()];
        let span = Text::new(&file.text).listed(mutant.read.span);
        let (before, behind) = (&file.text[..span.start], &file.text[span.end..]);
        let path = self.copy.join(&mutant.read.file);
        change(&path, &[before, &mutant.read.replacement, behind].concat())?;
        let answer = run();
        change(&path, &file.text)?;
        answer
    }
}

/// A crate with the standard library, since replacements name what it has in scope: `vec!`, `Box`. Each byte keeps its place.
fn with_std(text: &str) -> String {
    let bare = |line: &str| line.starts_with("#![") && line.trim_end().ends_with("no_std)]");
    let line =
        |line: &str| if bare(line) { " ".repeat(line.len() - 1) + "\n" } else { line.to_string() };
    text.split_inclusive('\n').map(line).collect()
}

/// Writes a file if it is another: its time is what cargo looks at.
fn change(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("{}", path.display()))
}
