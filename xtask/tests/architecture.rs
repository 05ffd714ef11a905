//! The pages on the architecture name files and functions: each exists.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 3] =
    ["docs/architecture.md", "docs/architecture/emulated-pmu.md", "docs/architecture/overflow.md"];

/// What a name in a page can be the definition of.
const DEFINITIONS: [&str; 6] = ["fn", "struct", "enum", "trait", "const", "macro_rules!"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").to_path_buf()
}

/// The texts between backquotes, each with what stands between it and the next.
fn code(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = page.split('`').collect();
    parts
        .get(1..)
        .unwrap_or_default()
        .chunks(2)
        .map(|two| (two[0], two.get(1).copied().unwrap_or("")))
        .collect()
}

fn is_path(text: &str) -> bool {
    text.contains('/') && !text.contains(' ')
}

fn defines(source: &str, name: &str) -> bool {
    DEFINITIONS.iter().any(|word| {
        let start = format!("{word} {name}");
        source.match_indices(&start).any(|(at, _)| {
            let next = source[at + start.len()..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

/// What is wrong with a page. Several names may share a file: `` `a` and `b` in `path` ``.
fn wrong(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut wrong, mut waiting) = (Vec::new(), Vec::new());
    for (text, behind) in code(page) {
        let behind = behind.split_whitespace().collect::<Vec<_>>().join(" ");
        if is_path(text) {
            let source = read(text);
            if source.is_none() {
                wrong.push(format!("`{text}` does not exist"));
            }
            for name in waiting.drain(..) {
                if !source.as_deref().is_some_and(|source| defines(source, name)) {
                    wrong.push(format!("`{text}` has no `{name}`"));
                }
            }
        } else if matches!(&*behind, "in" | "and" | "or") {
            waiting.push(text);
        } else {
            waiting.clear();
        }
    }
    wrong
}

#[test]
fn every_file_and_function_of_the_architecture_pages_exists() {
    let root = root();
    let read = |path: &str| {
        let path = root.join(path);
        if path.is_dir() { Some(String::new()) } else { fs::read_to_string(path).ok() }
    };
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let wrong = wrong(&text, read);
        assert!(wrong.is_empty(), "{page}:\n{}", wrong.join("\n"));
        let named = code(&text).into_iter().filter(|(text, _)| is_path(text)).count();
        assert!(named > 10, "{page} names {named} files: it is not read as it is written");
    }
}

#[test]
fn a_name_that_is_gone_is_noticed() {
    let read = |path: &str| (path == "a/b.rs").then(|| "pub fn one() {}\nstruct Two;".to_string());
    assert_eq!(wrong("`one` and `Two` in `a/b.rs`, then `a/b.rs`.", read), Vec::<String>::new());
    assert_eq!(wrong("`on` in\n  `a/b.rs`", read), ["`a/b.rs` has no `on`"]);
    assert_eq!(
        wrong("`one` in `a/c.rs`", read),
        ["`a/c.rs` does not exist", "`a/c.rs` has no `one`"]
    );
}

#[test]
fn the_rooms_link_to_their_pages() {
    for (file, page) in [
        ("kernel/src/lib.rs", PAGES[0]),
        ("kernel/protocol/src/lib.rs", PAGES[0]),
        ("xtask/src/lib.rs", PAGES[0]),
        ("boot/emulated-pmu/src/main.rs", PAGES[1]),
        ("boot/emulated-pmu/model/src/lib.rs", PAGES[1]),
        ("arch/src/pmu/pmi/mod.rs", PAGES[2]),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(page), "the module document of {file} does not name {page}");
    }
}
