use super::*;
use proptest::prelude::*;

fn table(rows: &[[&str; 4]]) -> Table {
    let mut table = empty();
    table.set_header(["", "snippet", "TSC ticks = instructions", "values"]);
    for row in rows {
        table.add_row(row);
    }
    table
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

const LONG: &str = "a long name of a snippet that says in many words what it is about, and why";

#[test]
fn a_table_fits_its_terminal_and_numbers_stay_whole() {
    let rows = [
        ["0", LONG, "18446744073709551615", "all equal"],
        ["1", "UNC_CHA_DISTRESS_ASSERTED.VERTICAL.AND.MORE", "~123.456", "10 distinct"],
    ];
    for columns in [60, 80, 100, 126, 200] {
        let text = fit(table(&rows), Width::of(columns));
        assert!(widest(&text) <= columns.into(), "{columns}:\n{text}");
        for number in ["18446744073709551615", "~123.456"] {
            assert!(text.contains(number), "{columns}:\n{text}");
        }
    }
    let text = fit(table(&rows), Width::default());
    assert!(text.contains(LONG), "{text}");
    assert_eq!(text.lines().count(), 2 + rows.len() + 1, "one line for each row:\n{text}");
    // No room for the numbers: wider than asked, and still whole.
    let numbers = [["1", "2", "18446744073709551615", "18446744073709551615"]];
    assert!(
        fit(table(&numbers), Width::of(1)).contains("18446744073709551615   18446744073709551615")
    );
}

/// A figure with a bound is a number as well.
#[test]
fn a_number_behind_any_mark_stays_whole() {
    for mark in ["-", "+", "~", "±", "≤", "≥"] {
        let number = format!("{mark}18446744073709551615");
        let text = fit(table(&[["1", LONG, &number, &number]]), Width::of(1));
        assert_eq!(text.matches(&number).count(), 2, "{text}");
    }
}

proptest! {
    #[test]
    fn no_cell_loses_a_letter(
        cells in prop::collection::vec("[a-z0-9 .]{0,40}", 4),
        columns in 0u16..200,
    ) {
        let row: [&str; 4] = [&cells[0], &cells[1], &cells[2], &cells[3]];
        let text = fit(table(&[row]), Width::of(columns));
        let letters = |text: &str| {
            let mut all: Vec<char> = text.chars().filter(char::is_ascii_alphanumeric).collect();
            all.sort_unstable();
            all
        };
        let head = "snippetTSCticksinstructionsvalues";
        prop_assert_eq!(letters(&text), letters(&(head.to_string() + &cells.concat())));
    }
}
