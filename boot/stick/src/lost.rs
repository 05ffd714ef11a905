//! The item in which a machine was reset, as a record after those that its firmware wrote.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::line::encode;
use protocol::record::{ErrorCode, ErrorRecord, Record};
use protocol::stream::{Event, Reader};

/// A report that was cut off in item `index`, with an error record of it; as it is if that item has its record already, or no item
/// was begun.
#[must_use]
pub fn with_lost_item(mut report: Vec<u8>, (index, name): (u32, String)) -> Vec<u8> {
    let mut reader = Reader::new();
    let (mut next, mut is_done) = (0, false);
    for event in reader.feed(&report) {
        if let Event::Record { seq, record } = event {
            next = seq + 1;
            let is_of_it = match &*record {
                Record::Error(error) => error.item == Some(index),
                Record::Suite(suite) => suite.item == index,
                other => other.restored().is_some_and(|(item, _, _)| item == index),
            };
            is_done |= is_of_it && record.ends_item();
        }
    }
    if is_done || next == 0 {
        return report;
    }
    let text = "the machine was reset while it ran".to_string();
    let error = ErrorRecord {
        code: ErrorCode::SnippetLost,
        item: Some(index),
        name: Some(name),
        text,
        fault: None,
        restored: Vec::new(),
        more: false,
    };
    // A line that was cut off in the middle.
    if !report.ends_with(b"\n") {
        report.extend_from_slice(b"\r\n");
    }
    report.extend_from_slice(encode(next, &Record::Error(error)).as_bytes());
    report.extend_from_slice(b"\r\n");
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::Progress;

    fn report(records: &[Record]) -> Vec<u8> {
        let line = |(seq, record): (u32, &Record)| encode(seq, record) + "\r\n";
        (0..).zip(records).map(line).collect::<String>().into_bytes()
    }

    fn records(report: &[u8]) -> Vec<Record> {
        let mut reader = Reader::new();
        let mut events = reader.feed(report);
        events.extend(reader.finish());
        events
            .into_iter()
            .filter_map(|event| match event {
                Event::Record { record, .. } => Some(*record),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn x1_the_item_in_which_the_machine_was_reset_has_a_record() {
        let progress = Record::Progress(Progress { done: 1, total: 3, within: None });
        let cut = report(core::slice::from_ref(&progress));
        let whole = with_lost_item(cut.clone(), (1, "hang".to_string()));
        let [_, Record::Error(error)] = &records(&whole)[..] else { panic!("{whole:?}") };
        assert_eq!((error.item, error.code), (Some(1), ErrorCode::SnippetLost));
        assert_eq!(error.name.as_deref(), Some("hang"));
        // A second time it stays as it is; so does one that has not begun.
        assert_eq!(with_lost_item(whole.clone(), (1, "hang".to_string())), whole);
        assert_eq!(with_lost_item(Vec::new(), (0, "x".to_string())), b"");
        let mut half = cut;
        half.extend_from_slice(b"{\"seq\":1,\"type\":\"pro");
        assert_eq!(records(&with_lost_item(half, (1, "hang".to_string()))).len(), 2);
    }
}
