//! Whether each row of a system of other processors says where it is here, and what x86 cannot give.
//!
//! Under a heading `### I3: what it is` there are a point `- **Forms:** …`, which names a kind of item, a command or the
//! library, and a point `- **Not on x86:** …`. One that says `nothing` goes on with the reason.

use std::collections::BTreeMap;

/// The systems that are no tools for x86 of today, and how many rows each has.
const SYSTEMS: [(char, usize); 5] = [('I', 11), ('P', 7), ('C', 10), ('M', 16), ('T', 9)];
/// What a form names: a kind of item, a command, an option, or who else has it.
const WHERE: [&str; 5] = ["[[", "cargo xtask", "every kind of item", "skipped", "library"];
const FORMS: &str = "- **Forms:** ";
const NOT_ON_X86: &str = "- **Not on x86:** ";
/// Shortest text that says something.
const LEAST: usize = 12;

/// The points of each row, by its id, each on one line.
fn points(page: &str) -> BTreeMap<&str, Vec<String>> {
    let (mut rows, mut row) = (BTreeMap::<&str, Vec<String>>::new(), None);
    for line in page.lines() {
        if line.starts_with('#') {
            let heading = line.strip_prefix("### ").and_then(|rest| rest.split_once(": "));
            row = heading.map(|(id, _)| rows.entry(id).or_default());
        } else if let Some(points) = &mut row {
            match (line.strip_prefix("  "), points.last_mut()) {
                (Some(rest), Some(point)) => *point = format!("{point} {rest}"),
                _ if line.starts_with("- ") => points.push(line.to_string()),
                _ => {}
            }
        }
    }
    rows
}

/// What is missing.
pub(super) fn wrong(page: &str) -> Vec<String> {
    let (rows, mut wrong) = (points(page), Vec::new());
    let all = SYSTEMS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")));
    for id in all {
        let Some(points) = rows.get(&*id) else {
            wrong.push(format!("row {id} has no heading with texts"));
            continue;
        };
        let of = |name: &str| -> Vec<&str> {
            points.iter().filter_map(|point| point.strip_prefix(name)).collect()
        };
        match of(FORMS)[..] {
            [forms] if WHERE.iter().any(|word| forms.contains(word)) => {}
            [_] => {
                wrong.push(format!("row {id}: its forms name no kind of item, command or library"));
            }
            ref other => wrong.push(format!("row {id} has {} texts of forms", other.len())),
        }
        match of(NOT_ON_X86)[..] {
            [text] => {
                let reason =
                    text.strip_prefix("nothing").map_or(Some(text), |rest| rest.strip_prefix(": "));
                if reason.is_none_or(|reason| reason.len() < LEAST) {
                    wrong.push(format!(
                        "row {id} does not say why x86 gives it all or what it cannot"
                    ));
                }
            }
            ref other => {
                wrong.push(format!("row {id} has {} texts of what x86 cannot give", other.len()));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with all rows as they should be.
    fn page() -> String {
        let rows =
            SYSTEMS.iter().flat_map(|(letter, count)| (1..=*count).map(move |n| (letter, n)));
        let row = |(letter, n)| {
            format!(
                "### {letter}{n}: x\n\n{FORMS}`[[count]]`\n  more\n{NOT_ON_X86}nothing: both keep\n  it in memory\n\n"
            )
        };
        rows.map(row).collect()
    }

    #[test]
    fn a_row_without_its_texts_is_named() {
        assert_eq!(wrong(&page()), [""; 0]);
        let of = |from: &str, to: &str| wrong(&page().replacen(from, to, 1));
        assert_eq!(of("### M16: x", "### M17: x"), ["row M16 has no heading with texts"]);
        assert_eq!(of(FORMS, "- "), ["row I1 has 0 texts of forms"]);
        assert_eq!(
            of("`[[count]]`", "somewhere"),
            ["row I1: its forms name no kind of item, command or library"]
        );
        assert_eq!(of(NOT_ON_X86, "- "), ["row I1 has 0 texts of what x86 cannot give"]);
        let unsaid = "row I1 does not say why x86 gives it all or what it cannot";
        for nothing in ["nothing", "nothing: no", "nothing is missing there, as said", "no"] {
            assert_eq!(of("nothing: both keep\n  it in memory", nothing), [unsaid]);
        }
        let twice = format!("{NOT_ON_X86}nothing: both keep\n{NOT_ON_X86}");
        assert_eq!(of(NOT_ON_X86, &twice), ["row I1 has 2 texts of what x86 cannot give"]);
    }
}
