use super::*;
use crate::hex::Hex;
use crate::job::OnEnd;
use crate::record::{End, Outcome, Progress, Start};
use alloc::vec;
use proptest::prelude::*;

fn report(records: u32) -> Vec<String> {
    (0..records).map(|seq| line::encode(seq, &nth(seq, records))).collect()
}

fn nth(seq: u32, records: u32) -> Record {
    if seq == 0 {
        return Record::Start(Start {
            program: "barecount".into(),
            version: "0".into(),
            protocol: 1,
            image_base: Hex(0x1000),
            tsc: [0, 1],
        });
    }
    if seq + 1 < records {
        return Record::Progress(Progress { done: seq, total: records, within: None });
    }
    Record::End(End {
        records,
        outcome: Outcome::Pass,
        passed: 0,
        failed: 0,
        measured: 0,
        on_end: OnEnd::Halt,
        heap: None,
        stack: None,
    })
}

fn read(text: &str) -> (Vec<u32>, Vec<Problem>, Vec<String>) {
    let mut reader = Reader::new();
    let mut events = reader.feed(text.as_bytes());
    events.extend(reader.finish());
    let (mut seqs, mut problems, mut foreign) = (vec![], vec![], vec![]);
    for event in events {
        match event {
            Event::Record { seq, .. } => seqs.push(seq),
            Event::Problem(problem) => problems.push(problem),
            Event::Foreign { text, .. } => foreign.push(text),
        }
    }
    (seqs, problems, foreign)
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| alloc::format!("{line}\r\n")).collect()
}

#[test]
fn a_good_report_has_no_problem() {
    assert_eq!(read(&joined(&report(5))), (vec![0, 1, 2, 3, 4], vec![], vec![]));
}

#[test]
fn a_lost_line_is_named() {
    let mut lines = report(6);
    lines.drain(2..4);
    let (seqs, problems, _) = read(&joined(&lines));
    assert_eq!(seqs, [0, 1, 4, 5]);
    assert_eq!(problems, [Problem::Lost(2..=3)]);
    assert_eq!(problems[0].to_string(), "records 2 to 3 are lost");
}

#[test]
fn a_doubled_line_is_named_and_given_once() {
    let mut lines = report(4);
    lines.insert(2, lines[1].clone());
    let (seqs, problems, _) = read(&joined(&lines));
    assert_eq!(seqs, [0, 1, 2, 3]);
    assert_eq!(problems, [Problem::Doubled { line: 3, seq: 1 }]);
}

#[test]
fn swapped_lines_are_named_and_nothing_counts_as_lost() {
    let mut lines = report(5);
    lines.swap(1, 2);
    let (seqs, problems, _) = read(&joined(&lines));
    assert_eq!(seqs, [0, 2, 1, 3, 4]);
    assert_eq!(problems, [Problem::Reordered { line: 3, seq: 1, after: 2 }]);
}

#[test]
fn a_damaged_line_is_named_and_its_number_counts_as_lost() {
    let mut lines = report(4);
    lines[2] = lines[2].replace("done", "dome");
    let (_, problems, _) = read(&joined(&lines));
    assert!(matches!(problems[0], Problem::Damaged { line: 3, .. }), "{problems:?}");
    assert_eq!(problems[1], Problem::Lost(2..=2));
}

#[test]
fn an_end_that_never_came_is_named() {
    let lines = report(4);
    let (_, problems, _) = read(&joined(&lines[..3]));
    assert_eq!(problems, [Problem::NoEnd { last: Some(2) }]);
    assert_eq!(read("").1, [Problem::NoEnd { last: None }]);
}

#[test]
fn a_last_line_without_line_end_is_read_and_a_half_one_is_damaged() {
    let text = joined(&report(3));
    assert_eq!(read(text.trim_end()).0, [0, 1, 2]);
    let (_, problems, _) = read(&text[..text.len() - 10]);
    assert!(matches!(problems[0], Problem::Damaged { line: 3, .. }));
    assert_eq!(problems[1], Problem::NoEnd { last: Some(1) });
}

#[test]
fn other_text_between_and_before_records_is_kept_apart() {
    let lines = report(2);
    let text =
        alloc::format!("SeaBIOS\r\n\r\nBooting from disk..{}\r\noops\n{}\r\n", lines[0], lines[1]);
    let (seqs, problems, foreign) = read(&text);
    assert_eq!(seqs, [0, 1]);
    assert_eq!(problems, []);
    assert_eq!(foreign, ["SeaBIOS", "Booting from disk..", "oops"]);
}

#[test]
fn a_reset_machine_starts_a_new_report() {
    let text = joined(&report(5)[..3]) + &joined(&report(3));
    let (seqs, problems, _) = read(&text);
    assert_eq!(seqs, [0, 1, 2, 0, 1, 2]);
    assert_eq!(problems, [Problem::Restarted { line: 4, after: 2 }]);
}

#[test]
fn what_the_boot_before_lost_is_not_forgotten() {
    let lines = report(5);
    let before = [lines[0].clone(), lines[2].clone(), lines[4].clone()];
    let (seqs, problems, _) = read(&(joined(&before) + &joined(&report(3))));
    assert_eq!(seqs, [0, 2, 4, 0, 1, 2]);
    let restarted = Problem::Restarted { line: 4, after: 4 };
    assert_eq!(problems, [Problem::Lost(1..=1), Problem::Lost(3..=3), restarted]);
}

#[test]
fn a_wrong_count_and_records_after_the_end_are_named() {
    let mut lines = report(3);
    lines.push(line::encode(3, &nth(1, 3)));
    assert_eq!(read(&joined(&lines)).1, [Problem::AfterEnd { line: 4, seq: 3 }]);
    let lines = [report(1), vec![line::encode(1, &nth(8, 9))]].concat();
    assert_eq!(read(&joined(&lines)).1[0], Problem::Count { seq: 1, records: 9 });
}

#[test]
fn a_number_out_of_all_reason_costs_no_memory() {
    let lines = [line::encode(u32::MAX, &nth(1, 3))];
    let (seqs, problems, _) = read(&joined(&lines));
    assert!(seqs.is_empty());
    assert!(matches!(problems[0], Problem::Damaged { .. }));
}

#[test]
fn an_endless_line_is_cut() {
    let mut reader = Reader::new();
    let mut foreign = 0;
    for _ in 0..40 {
        foreign += reader.feed(&[b'x'; MAX_LINE_BYTES / 10]).len();
    }
    assert_eq!(foreign, 3);
}

proptest! {
    #[test]
    fn chunks_do_not_matter(cuts in prop::collection::vec(1usize..50, 0..60)) {
        let text = joined(&report(8));
        let (mut reader, mut events, mut rest) = (Reader::new(), vec![], text.as_bytes());
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            events.extend(reader.feed(now));
            rest = later;
        }
        events.extend(reader.feed(rest));
        events.extend(reader.finish());
        prop_assert_eq!(events, { let mut r = Reader::new(); r.feed(text.as_bytes()) });
    }

    /// Whatever subset arrives, in whatever order: each number is delivered or named as lost.
    #[test]
    fn every_number_is_accounted_for(order in prop::collection::vec(1u32..29, 0..60)) {
        let lines = report(30);
        let mut picked = vec![lines[0].clone()];
        picked.extend(order.iter().map(|&i| lines[i as usize].clone()));
        picked.push(lines[29].clone());
        let (mut seqs, problems, _) = read(&joined(&picked));
        for problem in problems {
            if let Problem::Lost(range) = problem {
                seqs.extend(range);
            }
        }
        seqs.sort_unstable();
        prop_assert_eq!(seqs, (0..30).collect::<Vec<u32>>());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut reader = Reader::new();
        reader.feed(&bytes);
        reader.finish();
    }
}

#[test]
fn x1_with_a_key_only_its_lines_are_records_and_the_rest_is_named() {
    let key = Key::new([9; 16]);
    let signed: Vec<String> =
        (0..3).map(|seq| line::encode_with(seq, &nth(seq, 3), Some(&key))).collect();
    let forged = line::encode(1, &nth(1, 3));
    let mut reader = Reader::with_key(key);
    let text = alloc::format!(
        "{}\r\n{forged}\r\n{}\r\n{}\r\n{}\r\n",
        signed[0],
        signed[1],
        signed[0],
        signed[2]
    );
    let mut events = reader.feed(text.as_bytes());
    assert!(reader.signed() && reader.ended());
    events.extend(reader.finish());
    let records = events.iter().filter(|event| matches!(event, Event::Record { .. })).count();
    let problems: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Problem(problem) => Some(problem),
            _ => None,
        })
        .collect();
    assert_eq!(records, 3);
    let expected = [
        Problem::Forged { line: 2, error: LineError::Unsigned },
        // An old start record is no restart.
        Problem::Doubled { line: 4, seq: 0 },
    ];
    assert_eq!(problems, expected);
}

#[test]
fn x1_without_the_key_signed_lines_are_read_and_that_is_said() {
    let key = Key::new([9; 16]);
    let mut reader = Reader::new();
    for seq in 0..3 {
        let line = line::encode_with(seq, &nth(seq, 3), Some(&key));
        let events = reader.feed(alloc::format!("{line}\r\n").as_bytes());
        assert!(matches!(events[..], [Event::Record { .. }]), "{events:?}");
    }
    assert!(reader.signed());
    assert_eq!(reader.finish(), []);
}

/// A number far beyond the last one is damage that the checksum did not show, and makes nothing lost.
#[test]
fn a_number_out_of_all_reason_is_damage() {
    let begun = |text: &str| {
        let mut reader = Reader::new();
        let count = reader.feed(text.as_bytes()).len();
        assert!(!reader.signed() && !reader.ended(), "{count} events");
        reader
    };
    let last = |reader: &mut Reader, seq: u32| {
        let line = line::encode(seq, &nth(1, 9));
        reader.feed(alloc::format!("{line}\n").as_bytes()).pop()
    };
    let taken = |event: &Option<Event>| matches!(event, Some(Event::Record { .. }));
    let mut reader = begun("");
    assert!(!taken(&last(&mut reader, MAX_GAP + 1)));
    assert!(taken(&last(&mut reader, MAX_GAP)), "the farthest that is believed");
    // The gap is counted from the record before, and all of them are bounded together.
    assert!(!taken(&last(&mut reader, MAX_GAP + 2)), "one more is missing than are remembered");
    assert!(taken(&last(&mut reader, MAX_GAP + 1)));
    assert!(taken(&last(&mut reader, 5)), "one that was missing");
    assert!(taken(&last(&mut reader, MAX_GAP + 3)), "another may be missing in its place");
    assert!(!taken(&last(&mut reader, MAX_GAP + 5)));
    assert_eq!(reader.missing.len(), MAX_GAP as usize);
    // There is no number behind the greatest.
    let mut reader = Reader { next: u32::MAX - 1, ..Reader::default() };
    assert!(taken(&last(&mut reader, u32::MAX - 1)));
    assert!(!taken(&last(&mut reader, u32::MAX)));
}

/// Lines are those of the input, over all boots; and codes of the boot before were codes.
#[test]
fn a_reset_machine_goes_on_in_the_same_input() {
    let key = Key::new([9; 16]);
    let signed = |seq| line::encode_with(seq, &nth(seq, 3), Some(&key));
    let mut reader = Reader::new();
    reader.feed(joined(&[signed(0), signed(1), signed(0)]).as_bytes());
    assert!(reader.signed(), "of the second start record");
    let events = reader.feed(joined(&[signed(1), signed(1)]).as_bytes());
    let doubled = Event::Problem(Problem::Doubled { line: 5, seq: 1 });
    assert_eq!(events.last(), Some(&doubled));
}

/// A start record that comes late is the one that was missing, and no second boot.
#[test]
fn a_late_start_record_is_no_restart() {
    let mut lines = report(4);
    lines.swap(0, 1);
    let (seqs, problems, _) = read(&joined(&lines));
    assert_eq!(seqs, [1, 0, 2, 3]);
    assert_eq!(problems, [Problem::Reordered { line: 2, seq: 0, after: 1 }]);
}

#[test]
fn defects_are_told_with_their_numbers() {
    let texts = |text: &str| read(text).1.iter().map(ToString::to_string).collect::<Vec<_>>();
    let none = texts("");
    assert!(none.len() == 1 && none[0].contains("record is none"), "{none:?}");
    let lines = report(4);
    let cut = texts(&joined(&[lines[0].clone(), lines[2].clone()]));
    assert_eq!(cut[0], "record 1 is lost");
    assert!(cut[1].contains('2') && !cut[1].contains("none"), "{cut:?}");
}

#[test]
fn a_line_as_long_as_may_be_is_not_cut() {
    let mut reader = Reader::new();
    assert_eq!(reader.feed(&[b'x'; MAX_LINE_BYTES]), []);
    assert_eq!(reader.feed(b"x").len(), 1);
}

/// 1 MiB, and as many missing numbers.
#[test]
fn lines_and_gaps_have_their_bounds() {
    assert_eq!((MAX_LINE_BYTES, MAX_GAP), (1_048_576, 1_048_576));
}
