//! What the guest says of each program, and what to say of two that say different things.

use super::draw::Drawn;
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter};
use std::fmt::Write;

/// What was seen of a program.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    pub counts: Vec<u64>,
    /// Everything else, by name.
    pub rest: Vec<(String, String)>,
    /// Lines after it.
    pub details: Vec<String>,
}

/// Reads the guest's lines.
pub fn read(text: &str) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("program ") {
            let mut words = rest.split(' ').skip(1);
            let mut report = Report::default();
            while let (Some(name), Some(value)) = (words.next(), words.next()) {
                match name {
                    "counts" => report.counts = value.split(',').flat_map(str::parse).collect(),
                    _ => report.rest.push((name.to_string(), value.to_string())),
                }
            }
            reports.push(report);
        } else if let Some(last) = reports.last_mut().filter(|_| !line.starts_with("end")) {
            last.details.push(line.to_string());
        }
    }
    reports
}

/// The first program of which two runs say different things, and what.
pub fn difference(programs: &[Drawn], one: &[Report], other: &[Report]) -> Option<(usize, String)> {
    let ours = |drawn: &Drawn, report: &Report| {
        let mut report = report.clone();
        if drawn.code.timer.is_some() {
            report.rest.retain(|(name, _)| name != "devices");
        }
        report
    };
    let all = programs.iter().zip(one.iter().zip(other));
    let differs = |(drawn, (one, other))| ours(drawn, one) != ours(drawn, other);
    let index = all.map(differs).position(|differs| differs)?;
    let (drawn, one, other) = (&programs[index], &one[index], &other[index]);
    let mut text = String::new();
    let counts = one.counts.iter().zip(&other.counts).zip(&drawn.counters);
    for ((one, other), name) in counts.filter(|((one, other), _)| one != other) {
        let _ = writeln!(text, "  counter {name}: {one}, {other}");
    }
    for ((name, one), (_, other)) in one.rest.iter().zip(&other.rest) {
        if one != other {
            let _ = writeln!(text, "  {name}: {one}, {other}");
        }
    }
    if one.details != other.details {
        for (one, other) in one.details.iter().zip(&other.details).filter(|(a, b)| a != b).take(8) {
            let _ = writeln!(text, "  {one}\n  {other}");
        }
        let (one, other) = (one.details.len(), other.details.len());
        if one != other {
            let _ = writeln!(text, "  {one} lines of detail, {other}");
        }
    }
    Some((index, text))
}

/// Every difference, a few lines each.
pub fn all_differences(programs: &[Drawn], one: &[Report], other: &[Report]) -> String {
    let mut text = String::new();
    for index in 0..programs.len() {
        let range = index..index + 1;
        let parts = (&programs[range.clone()], &one[range.clone()], &other[range]);
        if let Some((_, what)) = difference(parts.0, parts.1, parts.2) {
            let _ = write!(text, "program {}\n{what}", programs[index].number);
        }
    }
    text
}

/// Asserts that every program came to its end.
#[track_caller]
pub fn whole(programs: &[Drawn], reports: &[Report]) {
    for (drawn, report) in programs.iter().zip(reports) {
        let abandoned = report.details.iter().find(|line| line.starts_with("abandoned"));
        assert!(abandoned.is_none(), "{abandoned:?}\n{}", describe(drawn));
    }
}

/// A program for those who have to find out.
pub fn describe(drawn: &Drawn) -> String {
    let mut text =
        format!("program {}\ncounters {:?}\n{:?}\n", drawn.number, drawn.counters, drawn.plan);
    let _ = writeln!(text, "{:#?}", drawn.code.main);
    let assembled = &drawn.assembled;
    let entry = assembled.program.entry;
    let mut decoder = Decoder::with_ip(64, &assembled.code, assembled.start, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        let mark = if instruction.ip() == entry { " <- entry" } else { "" };
        let _ = writeln!(text, "{:x} {line}{mark}", instruction.ip());
    }
    text
}
