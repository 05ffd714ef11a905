//! Tests of digests and of their text.

use super::text::{MAX_PARTS, TextError, capacity, join, split};
use super::*;
use crate::checksum::crc32;
use crate::record::{
    Aggregates, ErrorCode, ErrorRecord, Metric, Miss, Record, Series, SnippetResult, Verdict,
};
use proptest::prelude::*;

fn result(verdict: Verdict, misses: Vec<Miss>) -> Record {
    let metric = |event: &str, min, median, max| Metric {
        event: event.to_string(),
        value: Aggregates { min, median, mean: median, max },
        deterministic: min == max,
        series: [Series::default(), Series::default()],
        counting: None,
    };
    Record::Result(SnippetResult {
        item: 3,
        name: "div".to_string(),
        verdict,
        misses,
        per: 1,
        runs: 10,
        metrics: vec![metric("tsc", 11.25, 11.4826, 12.0), metric("loads", 2.0, 2.0, 2.0)],
        uncounted: vec![],
        planning: 0,
        controls: vec![],
        restored: vec![],
        unwatched: 0,
        smis: 0,
        emulated: false,
        tsc: [0, 1],
    })
}

fn miss(value: Option<f64>, min: Option<f64>, max: Option<f64>) -> Miss {
    Miss { figure: "tsc".to_string(), min, max, value, reason: None }
}

#[test]
fn an_item_has_its_figures_in_thousandths_and_what_it_missed() {
    let missed = result(Verdict::Fail, vec![miss(Some(11.4826), None, Some(10.0))]);
    let item = item(&missed).unwrap();
    assert_eq!((item.index, &*item.name, item.standing), (3, "div", Standing::Missed));
    let figure = |event: &str, value, spread| Figure {
        event: event.to_string(),
        value: Some(value),
        spread: Some(spread),
    };
    assert_eq!(item.figures, [figure("tsc", 11483, 750), figure("loads", 2000, 0)]);
    assert_eq!(item.note.as_deref(), Some("tsc came to 11.4826; expected at most 10"));
}

#[test]
fn what_could_not_be_measured_is_an_error_and_what_could_not_be_run_is_skipped() {
    let error = |code| {
        Record::Error(ErrorRecord {
            code,
            item: Some(7),
            name: Some("x".to_string()),
            text: "why".to_string(),
            fault: None,
            restored: vec![],
        })
    };
    let standing = |code| item(&error(code)).unwrap().standing;
    assert_eq!(standing(ErrorCode::SnippetFault), Standing::Error);
    assert_eq!(standing(ErrorCode::Skipped), Standing::Skipped);
    assert!(item(&Record::End(End::without_items(Outcome::Pass))).is_none());
}

#[test]
fn the_excess_is_relative_to_the_bound_and_no_figure_exceeds_all() {
    let of = |misses| excess(&result(Verdict::Fail, misses));
    assert_eq!(of(vec![miss(Some(15.0), None, Some(10.0))]), 0.5);
    assert_eq!(of(vec![miss(Some(5.0), Some(20.0), None)]), 0.75);
    // The farthest of several counts; a bound of zero does not make it infinite.
    let several = vec![miss(Some(15.0), None, Some(10.0)), miss(Some(4.0), None, Some(0.0))];
    assert_eq!(of(several), 4.0);
    assert_eq!(of(vec![miss(None, None, Some(10.0))]), f64::INFINITY);
    assert_eq!(excess(&result(Verdict::Pass, vec![])), 0.0);
}

fn digest(items: usize) -> Digest {
    let item = |index: usize| Item {
        index: index as u32,
        name: format!("item number {index}"),
        standing: Standing::Measured,
        figures: vec![Figure {
            event: "tsc".to_string(),
            value: Some((index * index * 7919 % 100_003) as i64),
            spread: None,
        }],
        note: None,
    };
    let end = End { passed: 1, failed: 2, measured: 3, ..End::without_items(Outcome::Fail) };
    let items = (0..items).map(item).collect();
    Digest { items, ..Digest::new("job", &["a processor".to_string()], &end) }
}

#[test]
fn a_digest_comes_back_as_it_went() {
    let digest = digest(100);
    let packed = digest.pack();
    assert_eq!(Digest::unpack(&packed), Ok(digest.clone()));
    let plain = postcard::to_allocvec(&digest).unwrap().len();
    assert!(packed.len() * 2 < plain, "{} of {plain}", packed.len());
}

#[test]
fn what_does_not_fit_is_counted_as_left_out() {
    let room = 300;
    let packed = digest(100).pack_what_fits(|packed| packed.len() <= room);
    assert!(packed.len() <= room && packed.len() > room / 2, "{}", packed.len());
    let read = Digest::unpack(&packed).unwrap();
    assert_eq!(read.items.len() + read.left_out as usize, 100);
    assert!(read.items.iter().zip(digest(100).items).all(|(one, other)| *one == other));
    // Even where nothing fits, there is an end.
    let none = digest(5).pack_what_fits(|_| false);
    assert_eq!(Digest::unpack(&none).unwrap().left_out, 5);
}

#[test]
fn other_versions_and_damage_are_named() {
    let mut packed = digest(1).pack();
    packed[0] = 9;
    assert_eq!(Digest::unpack(&packed), Err(DigestError::Version { found: 9 }));
    assert!(matches!(Digest::unpack(&[VERSION, 0xff]), Err(DigestError::Compression(_))));
    // A small picture must not become a large digest.
    let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; 2 * MAX_BYTES], 9);
    let bomb = [&[VERSION], &bomb[..]].concat();
    assert!(matches!(Digest::unpack(&bomb), Err(DigestError::Compression(_))));
}

#[test]
fn parts_come_together_in_any_order_lower_case_and_broken_into_lines() {
    let packed = digest(60).pack();
    let parts = split(&packed, 200).unwrap();
    assert!(parts.len() > 2 && parts.iter().all(|part| part.len() <= 200), "{parts:?}");
    let mut text = String::from("what my phone says: ");
    for part in parts.iter().rev().chain(&parts[..1]) {
        let (one, other) = part.split_at(part.len() / 2);
        text += &format!("{}\n  {other} and\n", one.to_lowercase());
    }
    assert_eq!(join(&text), Ok(packed));
}

#[test]
fn what_is_missing_mixed_or_damaged_is_said() {
    let (one, other) =
        (split(&digest(60).pack(), 200).unwrap(), split(&digest(61).pack(), 200).unwrap());
    let total = one.len();
    let missing = Err(TextError::Missing { missing: (2..=total).collect(), total });
    assert_eq!(join(&one[0]), missing);
    assert!(matches!(join(&(one[0].clone() + &other[1])), Err(TextError::Mixed(..))));
    assert_eq!(join("hello"), Err(TextError::Nothing));
    assert!(matches!(join("BC1:1/1:00000000:AA"), Err(TextError::Part(_))));
    assert!(matches!(join("BC1:0/1:00000000:AA."), Err(TextError::Part(_))));
    assert!(matches!(join("BC1:1/1:00000000:A1."), Err(TextError::Part(_))));
    assert!(matches!(join("BC1:1/1:00000000:AA."), Err(TextError::Checksum { .. })));
}

#[test]
fn what_takes_too_many_parts_is_refused() {
    let each = capacity(1, 100);
    assert_eq!(split(&vec![1; each * MAX_PARTS], 100).unwrap().len(), MAX_PARTS);
    assert!(split(&vec![1; each * MAX_PARTS + 1], 100).is_none());
    assert!(split(&[1], 5).is_none());
}

/// A checksum that ends like the mark is no second mark.
#[test]
fn a_digest_whose_checksum_ends_like_the_mark_comes_back() {
    let ends_so = |bytes: &[u8]| alloc::format!("{:08X}", crc32(bytes)).ends_with("BC1");
    let bytes = (0u32..1 << 20).map(u32::to_le_bytes).find(|bytes| ends_so(bytes)).unwrap();
    let parts = split(&bytes, 60).unwrap();
    assert!(parts[0].contains("BC1:") && parts[0].matches("BC1:").count() == 2, "{parts:?}");
    assert_eq!(join(&parts.concat()), Ok(bytes.to_vec()));
}

proptest! {
    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 1..2000), room in 60usize..900) {
        if let Some(parts) = split(&bytes, room) {
            prop_assert!(parts.iter().all(|part| part.len() <= room));
            prop_assert_eq!(join(&parts.concat()), Ok(bytes));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}", inner in "[0-9A-Z/:.]{0,60}") {
        let _ = join(&text);
        let _ = join(&format!("{text}BC1:{inner}."));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Digest::unpack(&bytes);
        let _ = Digest::unpack(&[&[VERSION], &bytes[..]].concat());
    }
}
