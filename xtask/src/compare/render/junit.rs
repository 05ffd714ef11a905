//! JUnit's XML: a suite for each item, a case for each figure.

use super::{sentence, state_word, summary};
use crate::compare::judge::Outcome;
use crate::compare::{Comparison, ItemCompared, ItemState};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

/// Renders it.
pub(super) fn render(comparison: &Comparison) -> String {
    let mut report = Report::new("barecount compare");
    for item in &comparison.items {
        report.add_test_suite(suite(comparison, item));
    }
    let mut about = TestSuite::new("barecount compare");
    for one in &comparison.differences {
        about.add_property(Property::new(one.what, format!("{}, now {}", one.old, one.new)));
    }
    about.add_property(Property::new("summary", summary(comparison)));
    report.add_test_suite(about);
    let mut text = report.to_string().expect("text goes into memory");
    text.push('\n');
    text
}

fn suite(comparison: &Comparison, item: &ItemCompared) -> TestSuite {
    let mut suite = TestSuite::new(&*item.name);
    let place = |case: &mut TestCase| {
        case.set_classname(format!("{}.{}", item.kind, item.name));
        if let (Some(file), Some(line)) = (&comparison.file, item.line) {
            case.add_property(Property::new("file", &**file));
            case.add_property(Property::new("line", line.to_string()));
        }
    };
    if item.state != ItemState::Both {
        let mut status = match item.state {
            ItemState::Failed => TestCaseStatus::non_success(NonSuccessKind::Error),
            ItemState::Recovered => TestCaseStatus::success(),
            _ => TestCaseStatus::skipped(),
        };
        let text = match &item.notes[..] {
            [] => state_word(item.state).to_string(),
            notes => format!("{}: {}", state_word(item.state), notes.join("; ")),
        };
        if item.state != ItemState::Recovered {
            status.set_message(text);
        }
        let mut case = TestCase::new(&*item.name, status);
        place(&mut case);
        suite.add_test_case(case);
    }
    for figure in &item.figures {
        let mut status = match figure.compared.outcome {
            Outcome::Worse => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Outcome::Undecided | Outcome::NotCompared => TestCaseStatus::skipped(),
            _ => TestCaseStatus::success(),
        };
        if !matches!(status, TestCaseStatus::Success { .. }) {
            status.set_message(sentence(figure));
        }
        let mut case = TestCase::new(&*figure.name, status);
        case.set_system_out(sentence(figure));
        place(&mut case);
        suite.add_test_case(case);
    }
    suite
}
