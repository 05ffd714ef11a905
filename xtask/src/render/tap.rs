//! Test Anything Protocol, in what the grammars of versions 13 and 14 and the kernel's KTAP have in common.
//!
//! It says version 13, as a reader of that one refuses any later (Perl's TAP::Parser 3.44, which `prove` is made of), and
//! all others read it.
//! The plan comes first. A point has one YAML block at most, of block mappings and sequences alone, as Perl's TAP::Parser
//! reads no other. `#` is not a part of a description: TAP 14 would escape it, which KTAP does not know; a point whose
//! description differs from its name has the name in its block.

use crate::collect::Report;
use crate::context::Context;
use crate::honest::{Certificate, Finding, render as honest};
use crate::kinds::tasks::text::instruction;
use crate::primitives::point::{Data, Point, one_line};
use crate::{kinds, verdict as judged};
use protocol::record::{ErrorCode, Outcome, Record, Verdict};
use protocol::verdict;
use std::fmt::Write;

/// Renders it. Each item is a test point, each check of a suite too; a report that is not whole bails out.
#[must_use]
pub fn render(report: &Report, context: &Context) -> String {
    let mut points: Vec<Point> =
        report.records.iter().filter_map(|one| judged_point(&one.record)).collect();
    points.extend(Certificate::of(report).iter().flat_map(certified));
    let skipped = report.end().is_some_and(|end| end.outcome == Outcome::Skip);
    let skip = if skipped && points.is_empty() { " # SKIP nothing could run" } else { "" };
    let mut out = format!("TAP version 13\n1..{}{skip}\n", points.len());
    for (number, point) in (1u32..).zip(&points) {
        point.write(&mut out, number);
    }
    // A crash that cost an item is told there: it has its point.
    let crash = report.crash().filter(|crash| !report.is_cost_of_item(crash));
    let crash = crash.map(|crash| format!("the firmware failed: {}", crash.text));
    let problems = report.problems.iter().map(ToString::to_string).chain(report.disputes.clone());
    for reason in crash.into_iter().chain(problems).chain(context.complaint.clone()) {
        // Writing to a String does not fail.
        let _ = writeln!(out, "Bail out! {}", one_line(&reason));
    }
    out
}

/// A point for each finding of a certificate, and for the certificate, with its verdicts.
fn certified(certificate: &Certificate) -> Vec<Point> {
    let finding = |one: &Finding| {
        Point::new(&format!("certificate: {}", one.what), !one.class.lies())
            .text("is", &one.class.words())
            .text("shown_by", &format!("{}, {}", honest::place(one), one.shown.ran))
            .text("expected", &one.shown.expected)
            .text("came", &one.shown.came)
    };
    let mut points: Vec<Point> = certificate.findings.iter().map(finding).collect();
    let whole = Point::new("certificate", certificate.honest != Some(false));
    let whole = whole.text("branches", &certificate.branches);
    let whole =
        whole.text("counting", &certificate.counting).text("sampling", &certificate.sampling);
    let none = certificate.honest.is_none();
    points.push(if none { whole.skip("there is no PMU") } else { whole });
    points
}

/// The point of a record, as its verdict has it, with what it missed.
fn judged_point(record: &Record) -> Option<Point> {
    let mut point = point(record)?;
    if verdict::said(record).is_some_and(|(said, _)| said == Verdict::Fail) {
        point.fail();
    }
    for missed in judged::sentences(record) {
        point.push("missed", Data::new().text("what", &missed));
    }
    Some(point)
}

fn point(record: &Record) -> Option<Point> {
    Some(match record {
        Record::Check(check) => super::checks::point(check),
        Record::Suite(suite) => {
            let reason = suite.reason.as_ref()?;
            Point::new(&suite.name, true).skip(reason)
        }
        Record::Error(error) if error.code == ErrorCode::Skipped => {
            Point::new(error.name.as_deref().unwrap_or_default(), true).skip(&error.text)
        }
        Record::Error(error) => {
            let instruction = error.fault.as_ref().map(instruction);
            let text = format!("{}{}", error.text, instruction.unwrap_or_default());
            Point::new(error.name.as_deref().unwrap_or("the job"), false).text("message", &text)
        }
        _ => kinds::shown(record)?.tap(),
    })
}

#[cfg(test)]
mod tests;
