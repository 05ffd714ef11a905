//! Whether the guide's table of rows names tests that exist, and whether each row has its texts.
//!
//! A row is a line `| I3 | what it is | `test`, `other_test` |`: a letter and a number, and in the last cell each
//! test by the name of its function.

mod texts;

use std::collections::BTreeSet;
use std::path::Path;

/// The page with the table.
const PAGE: &str = "docs/guide/rows.md";
/// Folders without sources of ours.
const PASSED_OVER: [&str; 2] = ["target", ".git"];

/// Looks for each test of the table in the sources.
pub(super) fn check(root: &Path) -> Result<(), String> {
    let file = root.join(PAGE);
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut functions = BTreeSet::new();
    collect(root, &mut functions).map_err(|error| format!("{}: {error}", root.display()))?;
    let mut wrong = self::wrong(&text, &functions);
    wrong.extend(texts::wrong(&text));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Names of all functions in the Rust files below `folder`.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if !PASSED_OVER.iter().any(|passed| name == **passed) {
                collect(&path, functions)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path)?;
            let names = source.split("fn ").skip(1).map(name_at_start);
            functions.extend(names.map(str::to_string));
        }
    }
    Ok(())
}

fn name_at_start(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// A row's id and the tests of its last cell; `None`: the line is not a row.
fn row(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let (id, rest) = cells.split_once(" | ")?;
    let number = id.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (_, tests) = rest.rsplit_once(" | ")?;
    Some((id, tests.split('`').skip(1).step_by(2)))
}

/// What is wrong with the table: a test that does not exist or carries another row's name, a row twice, no table.
fn wrong(page: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (id, tests) in page.lines().filter_map(row) {
        if !seen.insert(id) {
            wrong.push(format!("row {id} is listed twice"));
        }
        for test in tests {
            if !functions.contains(test) {
                wrong.push(format!("row {id}: there is no test {test}"));
            }
            if !test.split('_').any(|part| part.eq_ignore_ascii_case(id)) {
                wrong.push(format!("row {id}: the name of {test} does not carry it"));
            }
        }
    }
    if seen.is_empty() {
        wrong.push(format!("{PAGE} has no table of rows"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_held_against_the_tests() {
        let functions = BTreeSet::from(["i3_overflow".to_string(), "t1_range".to_string()]);
        let of = |table: &str| wrong(table, &functions);
        assert!(of("| id | what | test |\n| I3 | overflow | `i3_overflow` |\n").is_empty());
        assert_eq!(of("text\n"), ["docs/guide/rows.md has no table of rows"]);
        assert_eq!(of("| I3 | x | `i3_gone` |\n"), ["row I3: there is no test i3_gone"]);
        let other = "row I3: the name of t1_range does not carry it";
        assert_eq!(of("| I3 | x | `i3_overflow`, `t1_range` |\n"), [other]);
        assert_eq!(of("| I3 | x | - |\n| I3 | y | - |\n"), ["row I3 is listed twice"]);
    }
}
