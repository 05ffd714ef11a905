//! The certificate as a table, as test points and as rows.

use super::{Certificate, Finding};
use crate::primitives::style::{ERROR, GOOD, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use std::fmt::Write;

/// The certificate in one sentence.
#[must_use]
pub fn headline(certificate: &Certificate) -> &'static str {
    match certificate.honest {
        Some(true) => "this PMU is honest in everything that was checked",
        Some(false) => "this PMU LIES",
        None => "there is no PMU",
    }
}

/// The verdicts: a subject and its sentence each.
#[must_use]
pub fn verdicts(certificate: &Certificate) -> [(&'static str, &str); 3] {
    [
        ("for rr", &certificate.branches),
        ("for counting", &certificate.counting),
        ("for sampling", &certificate.sampling),
    ]
}

/// `item 3` or `start`.
#[must_use]
pub fn place(finding: &Finding) -> String {
    finding.shown.item.map_or_else(|| "start".to_string(), |item| format!("item {item}"))
}

/// The section of a table report; empty without a certificate.
#[must_use]
pub fn section(certificate: Option<&Certificate>, width: Width) -> String {
    let Some(certificate) = certificate else { return String::new() };
    let mut out = String::new();
    // Writing to a String does not fail, here and below.
    let _ = writeln!(out, "{}", paint(STRONG, "Is this PMU honest?"));
    if !certificate.findings.is_empty() {
        let mut table = empty();
        table.set_header(["", "what", "is", "shown by", "expected", "came"]);
        for one in &certificate.findings {
            let (class, shown) = (one.class.words(), &one.shown);
            let cells = [place(one), one.what.clone(), class, shown.ran.clone()];
            table.add_row(cells.into_iter().chain([shown.expected.clone(), shown.came.clone()]));
        }
        let _ = writeln!(out, "{}", fit(table, width));
    }
    for (subject, text) in verdicts(certificate) {
        let _ = writeln!(out, "{subject}: {text}");
    }
    let style = if certificate.honest == Some(true) { GOOD } else { ERROR };
    let _ = writeln!(out, "{}", paint(style, headline(certificate)));
    out
}
