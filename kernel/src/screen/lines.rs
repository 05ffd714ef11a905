//! An item as lines of the screen's table.

use super::grid::{cut, wrapped};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::digest::{Item, Standing};
use protocol::record::digest::Figure;

/// A line of the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Line {
    pub text: String,
    pub kind: Kind,
}

/// What a line is of, for its colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// An item, and its standing.
    Item(Standing),
    /// An event of it.
    Event,
    /// What it missed.
    Note,
}

/// Width of a value and of a spread, the blank before it included.
const VALUE: usize = 10;
const SPREAD: usize = 10;
/// Width of the word for the standing, the blank before it included.
const MARK: usize = 5;
/// Least width of the table.
pub(super) const LEAST: usize = 46;

/// What stands above the table.
pub(super) fn heading(width: usize) -> String {
    row("item: TSC ticks, events", "value", "spread", "", width)
}

/// The lines of an item.
pub(super) fn lines(item: &Item, width: usize) -> Vec<Line> {
    let mark = match item.standing {
        Standing::Measured => "",
        Standing::Passed => "pass",
        Standing::Missed => "MISS",
        Standing::Error => "FAIL",
        Standing::Skipped => "skip",
    };
    let name = if item.name.is_empty() { "(no name)" } else { &*item.name };
    let mut figures = item.figures.iter().peekable();
    // The TSC is what the heading says; another first figure needs its name.
    let is_time = |figure: &&Figure| figure.event == "tsc";
    let own = figures.next_if(|figure| is_time(figure) && name.chars().count() <= name_room(width));
    let (value, spread) = own.map_or_else(Default::default, texts);
    let first = row(name, &value, &spread, mark, width);
    let mut lines = Vec::from([Line { text: first, kind: Kind::Item(item.standing) }]);
    lines.extend(figures.map(|figure| {
        let (value, spread) = texts(figure);
        let event = format!("  {}", figure.event);
        Line { text: row(&event, &value, &spread, "", width), kind: Kind::Event }
    }));
    let note = item.note.iter().flat_map(|note| wrapped(note, width.saturating_sub(2), 2));
    lines.extend(note.map(|text| Line { text: format!("  {text}"), kind: Kind::Note }));
    lines
}

fn name_room(width: usize) -> usize {
    width.saturating_sub(VALUE + SPREAD + MARK)
}

/// A name may take what the figures leave.
fn row(name: &str, value: &str, spread: &str, mark: &str, width: usize) -> String {
    let tail = match value {
        "" => format!("{mark:>MARK$}"),
        _ => format!(" {value:>0$}{spread:>SPREAD$}{mark:>MARK$}", VALUE - 1),
    };
    let room = width.saturating_sub(tail.chars().count());
    let name = if name.chars().count() > room {
        // The end of what is too long is shown as cut.
        format!("{}~", cut(name, room.saturating_sub(1)))
    } else {
        name.to_string()
    };
    format!("{name:room$}{tail}")
}

fn texts(figure: &Figure) -> (String, String) {
    let value = figure.value.map_or_else(|| "none".to_string(), number);
    let spread = match figure.spread {
        None => String::new(),
        Some(0) => "all equal".to_string(),
        Some(spread) => number(spread.min(i64::MAX as u64) as i64),
    };
    (value, spread)
}

/// Thousandths as a decimal number. Of a large one the whole part is enough, and says as much.
pub(super) fn number(thousandths: i64) -> String {
    const LARGE: u64 = 100_000_000;
    let sign = if thousandths < 0 { "-" } else { "" };
    let value = thousandths.unsigned_abs();
    let (whole, rest) = (value / 1000, value % 1000);
    if rest == 0 || value >= LARGE {
        return format!("{sign}{whole}");
    }
    let text = format!("{sign}{whole}.{rest:03}");
    text.trim_end_matches('0').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, standing: Standing, note: Option<&str>) -> Item {
        let figure = |event: &str, value, spread| Figure {
            event: event.to_string(),
            value: Some(value),
            spread: Some(spread),
        };
        Item {
            index: 0,
            name: name.to_string(),
            standing,
            figures: vec![figure("tsc", 11_483, 750), figure("loads", 2000, 0)],
            note: note.map(ToString::to_string),
        }
    }

    fn texts(item: &Item, width: usize) -> Vec<String> {
        lines(item, width).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn an_item_is_a_line_for_each_figure_and_what_it_missed() {
        let missed = item("div", Standing::Missed, Some("tsc came to 11.483; expected at most 10"));
        assert_eq!(
            texts(&missed, 46),
            [
                "div                      11.483      0.75 MISS",
                "  loads                       2 all equal     ",
                "  tsc came to 11.483; expected at most 10",
            ]
        );
        assert_eq!(heading(46).len(), 46);
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own_and_shows_where_it_was_cut() {
        let long = item("thirty characters and one more", Standing::Passed, None);
        assert_eq!(
            texts(&long, 46),
            [
                "thirty characters and one more            pass",
                "  tsc                    11.483      0.75     ",
                "  loads                       2 all equal     ",
            ]
        );
        let lines = texts(&item(&"x".repeat(90), Standing::Measured, None), 46);
        assert_eq!(lines[0], format!("{}~     ", "x".repeat(40)));
        assert!(lines.iter().all(|line| line.chars().count() == 46), "{lines:?}");
    }

    #[test]
    fn numbers_have_up_to_three_digits_behind_the_point() {
        let all = [0, 5, -1500, 11_483, 100_000, 99_999_999, 123_456_789_012];
        let texts = all.map(number);
        assert_eq!(texts, ["0", "0.005", "-1.5", "11.483", "100", "99999.999", "123456789"]);
    }
}
