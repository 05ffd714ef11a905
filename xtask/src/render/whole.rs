//! Whole reports, as they are shown: each file of this folder's `whole` holds records, and next to it stands what each form
//! makes of them. The texts were read when they were written; a change of one is a change of what users see.
//!
//! `BARECOUNT_WRITE=1 cargo nextest run -p xtask whole_reports` writes them again.

use super::render;
use crate::cli::Format;
use crate::collect::{Foreign, Numbered, Report};
use crate::context::Context;
use crate::primitives::table::Width;
use protocol::record::Record;
use protocol::stream::Problem;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A report, and how it came about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    records: Vec<Record>,
    #[serde(default)]
    context: Came,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Came {
    ticks: Option<u64>,
    columns: Option<u16>,
    items: Vec<String>,
    backtrace: Vec<String>,
    complaint: Option<String>,
    notes: Vec<String>,
    pmu_said: Vec<String>,
    disputes: Vec<String>,
    foreign: Vec<(u64, String)>,
    lost: Option<[u32; 2]>,
}

impl Case {
    fn split(self) -> (Report, Context) {
        let came = self.context;
        let records = (0..).zip(self.records).map(|(seq, record)| Numbered { seq, record });
        let foreign = came.foreign.into_iter().map(|(line, text)| Foreign { line, text });
        let report = Report {
            records: records.collect(),
            problems: came.lost.iter().map(|[from, to]| Problem::Lost(*from..=*to)).collect(),
            foreign: foreign.collect(),
            disputes: came.disputes,
            ..Report::default()
        };
        let context = Context {
            ticks_per_instruction: came.ticks,
            items: came.items,
            backtrace: came.backtrace,
            complaint: came.complaint,
            notes: came.notes,
            pmu_said: came.pmu_said,
            width: came.columns.map_or(Width::default(), Width::of),
            ..Context::default()
        };
        (report, context)
    }
}

fn shown(case: Case) -> String {
    let (report, context) = case.split();
    let text = |(name, format)| {
        let text = render(&report, &context, format);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
        format!("=== {name}\n{}\n", lines.join("\n"))
    };
    [("table", Format::Table), ("CSV", Format::Csv), ("TAP", Format::Tap)].map(text).concat()
}

#[test]
fn whole_reports_are_shown_as_they_were_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render/whole");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let case = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let (shown, read) = (shown(case), path.with_extension("txt"));
        if std::env::var_os("BARECOUNT_WRITE").is_some() {
            std::fs::write(&read, &shown).unwrap();
        }
        let expected = std::fs::read_to_string(&read).unwrap_or_default();
        for (number, (line, expected)) in (1..).zip(shown.lines().zip(expected.lines())) {
            if line != expected {
                wrong.push(format!("{}:{number}:\n  {expected}\n  {line}", read.display()));
            }
        }
        if shown.lines().count() != expected.lines().count() {
            wrong.push(format!("{}: other lines", read.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
