//! A digest for people and for programs.

use crate::primitives::table::{Width, empty, fit};
use crate::primitives::{number, style};
use crate::text::{ascii_controls, printable};
use comfy_table::{Cell, CellAlignment};
use protocol::digest::{Digest, Standing};
use protocol::record::Outcome;
use protocol::record::digest::Figure;
use serde::Serialize;
use std::fmt::Write;
use style::{ERROR, FAINT, GOOD, STRONG, paint};

/// Version of the document. A change that an old reader would misread raises it.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Document<'a> {
    digest: u64,
    exit_code: u8,
    /// What the values are in.
    unit: &'static str,
    #[serde(flatten)]
    content: &'a Digest,
}

/// As one JSON document.
#[must_use]
pub fn json(digest: &Digest) -> String {
    let exit_code = digest.outcome.exit_code();
    let document = Document { digest: VERSION, exit_code, unit: "thousandths", content: digest };
    let mut text = serde_json::to_string_pretty(&document).expect("digests serialise");
    text.push('\n');
    ascii_controls(&text).into_owned()
}

/// As a table.
#[must_use]
pub fn table(digest: &Digest, width: Width) -> String {
    let mut out = String::new();
    for (index, line) in digest.machine.iter().enumerate() {
        let line = printable(line);
        let line = if index == 0 { paint(STRONG, &line) } else { line.into_owned() };
        // Writing to a String does not fail, here and below.
        let _ = writeln!(out, "{line}");
    }
    let (firmware, job) = (printable(&digest.firmware), printable(&digest.job));
    let about =
        format!("barecount {firmware}, job {job}: a digest, without single runs and counters");
    let _ = writeln!(out, "{}", paint(FAINT, &about));
    let _ = writeln!(out, "{}", fit(rows(digest), width));
    for item in digest.items.iter().filter(|item| item.note.is_some()) {
        let note = printable(item.note.as_deref().unwrap_or_default());
        let text = format!("item {} ({}): {note}", item.index, printable(&item.name));
        let style = if item.standing == Standing::Skipped { FAINT } else { ERROR };
        let _ = writeln!(out, "{}", paint(style, &text));
    }
    if digest.left_out > 0 {
        let _ = writeln!(out, "{} more items did not fit into the codes", digest.left_out);
    }
    let Digest { passed, failed, measured, .. } = digest;
    let (word, style) = match digest.outcome {
        Outcome::Pass => ("pass", GOOD),
        Outcome::Fail => ("fail", ERROR),
        Outcome::BadJob => ("no usable job", ERROR),
        Outcome::Crash => ("the firmware failed", ERROR),
        Outcome::Skip => ("nothing could be run", FAINT),
    };
    let counts = format!("{passed} passed, {failed} failed, {measured} measured");
    let _ = writeln!(out, "{}: {counts}", paint(style, word));
    out
}

fn rows(digest: &Digest) -> comfy_table::Table {
    let mut table = empty();
    table.set_header(["", "item", "value", "spread", "verdict"]);
    for item in &digest.items {
        let standing = match item.standing {
            Standing::Measured => "",
            Standing::Passed => "pass",
            Standing::Missed => "miss",
            Standing::Error => "error",
            Standing::Skipped => "skipped",
        };
        let mut figures = item.figures.iter().peekable();
        let own = figures.next_if(|figure| figure.event == "tsc");
        row(&mut table, &item.index.to_string(), &item.name, own, standing);
        for figure in figures {
            row(&mut table, "", &format!("  {}", figure.event), Some(figure), "");
        }
    }
    table
}

fn row(
    table: &mut comfy_table::Table,
    index: &str,
    name: &str,
    figure: Option<&Figure>,
    verdict: &str,
) {
    let value = figure.map_or(String::new(), |figure| {
        figure.value.map_or("none".to_string(), |value| number(value as f64 / 1000.0))
    });
    let spread = match figure.and_then(|figure| figure.spread) {
        None => String::new(),
        Some(0) => "all equal".to_string(),
        Some(spread) => number(spread as f64 / 1000.0),
    };
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let name = Cell::new(printable(name));
    table.add_row([
        right(index.to_string()),
        name,
        right(value),
        right(spread),
        Cell::new(verdict),
    ]);
}
