//! Tests of digests and of their text.

use super::text::{MAX_PARTS, TextError, capacity, join, split};
use super::*;
use crate::checksum::crc32;
use crate::record::digest::Figure;
use crate::record::{
    Aggregates, ErrorCode, ErrorRecord, Metric, Miss, Record, Series, SnippetResult, Suite, Verdict,
};
use proptest::prelude::*;

fn result(verdict: Verdict, misses: Vec<Miss>) -> Record {
    let metric = |event: &str, min, median, max| Metric {
        event: event.to_string(),
        value: Aggregates { min, median, mean: median, max },
        deterministic: min == max,
        series: [Series::default(), Series::default()],
        counting: None,
        energy: None,
        retired: None,
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

fn error(code: ErrorCode) -> Record {
    Record::Error(ErrorRecord {
        code,
        item: Some(7),
        name: Some("x".to_string()),
        text: "why".to_string(),
        fault: None,
        restored: vec![],
        more: false,
    })
}

#[test]
fn what_could_not_be_measured_is_an_error_and_what_could_not_be_run_is_skipped() {
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
    // Between both bounds nothing is missed, whatever the verdict says; outside of one it is.
    assert_eq!(of(vec![miss(Some(5.0), Some(5.0), Some(5.0))]), 0.0);
    assert_eq!(of(vec![miss(Some(30.0), Some(5.0), Some(20.0))]), 0.5);
    assert_eq!(of(vec![miss(Some(2.0), Some(4.0), Some(20.0))]), 0.5);
    assert_eq!(of(vec![miss(Some(-15.0), None, Some(-20.0))]), 0.25);
}

/// On the screen, what the processor lacks stays where it is, and a suite that failed is among the misses.
#[test]
fn what_was_skipped_exceeds_nothing_and_a_suite_exceeds_all_if_a_check_failed() {
    let suite = |passed, failed| {
        Record::Suite(Suite {
            item: 7,
            name: "x".to_string(),
            passed,
            failed,
            skipped: 1,
            known_errata: 0,
            known_behaviours: 0,
            emulated: false,
            reason: None,
            lacks: vec![],
        })
    };
    for (record, expected) in [
        (error(ErrorCode::SnippetFault), f64::INFINITY),
        (error(ErrorCode::Skipped), 0.0),
        (suite(9, 1), f64::INFINITY),
        (suite(9, 0), 0.0),
        (suite(0, 0), 0.0),
    ] {
        assert_eq!(excess(&record), expected, "{record:?}");
    }
}

#[test]
fn values_are_rounded_to_thousandths_as_far_as_these_fit() {
    use crate::record::digest::thousandths;
    for (value, expected) in [
        (0.0, Some(0)),
        (1.0, Some(1000)),
        (0.0004, Some(0)),
        (0.0005, Some(1)),
        (-0.0004, Some(0)),
        (-0.0005, Some(-1)),
        (-1.2346, Some(-1235)),
        (8.9e15, Some(8_900_000_000_000_000_000)),
        (9e15, None),
        (-9e15, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
    ] {
        assert_eq!(thousandths(value), expected, "{value}");
    }
}

/// What each kind of record says of its item: standing, figures and a note.
#[test]
fn items_of_every_kind_have_their_figures() {
    let head = r#""item":2,"name":"n","tsc":[0,1]"#;
    let metric = |median: f64| {
        let series = r#"[{"min":1,"max":1,"distinct":1},{"min":1,"max":1,"distinct":1}]"#;
        format!(
            r#"{{"event":"tsc","min":{median},"median":{median},"mean":{median},"max":{median},"deterministic":true,
               "series":{series}}}"#
        )
    };
    let (first, second) = (metric(4.0), metric(5.0));
    let value = r#"{"raw":7,"scaled":14,"counted":1,"enabled":2}"#;
    let event = format!(
        r#"{{"event":"loads","name":"L","counter":"c","group":0,"sum":{value},"cpus":[],"kernel":{value},"tasks":[]}}"#
    );
    let ticks = r#"{"count":9,"min":0,"median":0,"max":0}"#;
    let processor = |number: u32, metrics: &str| {
        format!(
            r#"{{"processor":{number},"apic_id":0,"tsc_offset":0,"tsc_offset_error":0,"metrics":[{metrics}],
               "snapshot_tsc":0,"snapshot":[]}}"#
        )
    };
    let (zero, one) = (processor(0, &format!("{first},{second}")), processor(1, &second));
    let skew = r#"{"min":0,"median":0,"max":0}"#;
    let counting = r#"{"name":"L","counter":"c","pass":0}"#;
    let cases = [
        (
            format!(
                r#"{{"type":"exact",{head},"verdict":"pass","per":1,"counts":[{{"event":"loads","value":2.5,"totals":[0,0]}}],
                   "opcodes":[],"listing":[],"listed":0}}"#
            ),
            Standing::Passed,
            vec![("loads", Some(2500), None)],
        ),
        (
            format!(
                r#"{{"type":"processors",{head},"per":1,"runs":1,"processors":[{zero},{one}],
                   "sums":[{{"event":"loads","value":3,"processors":2}}],"start_skew":{skew},
                   "snapshot":{{"deadline":0,"skew":0,"events":[]}}}}"#
            ),
            Standing::Measured,
            vec![
                ("tsc", Some(4000), Some(0)),
                ("tsc", Some(5000), Some(0)),
                ("loads, sum", Some(3000), None),
            ],
        ),
        (
            format!(
                r#"{{"type":"history",{head},"clock":"cycles","step":1,"runs":1,"per":1,"stopped_by":"freeze",
                   "passes":[],"series":[{{"event":"loads","counting":{counting},"front":0,"median":[1,2.5],
                   "min":[1,2],"max":[1,3],"each":[1,1]}}]}}"#
            ),
            Standing::Measured,
            vec![("loads", Some(2500), None)],
        ),
        (
            format!(
                r#"{{"type":"tasks",{head},"tasks":[{{"name":"t","entry":"0x0","end":"exit","turns":9,"switches":2,"time":5,
                   "value":"0x2a","memory_crc32":"0x0"}}],"switches":3,"ticks":{ticks},"interrupts":[],
                   "user_instructions":18}}"#
            ),
            Standing::Measured,
            vec![
                ("ticks", Some(9000), None),
                ("switches", Some(3000), None),
                ("instructions:u", Some(18_000), None),
            ],
        ),
        (
            format!(
                r#"{{"type":"count",{head},"tasks":[],"events":[{event}],"groups":1,"passes":0,"ticks":0,"switches":0}}"#
            ),
            Standing::Measured,
            vec![("loads", Some(14_000), None)],
        ),
        (
            format!(
                r#"{{"type":"sample",{head},"events":[{{"event":"cycles","period":10,"overflows":6,"samples":6,"dropped":0}}],
                   "tasks":[],"code":[],"on_full":"drop","delivery":"fixed","handling":"h","interrupts":0,"spurious":0,
                   "back_to_back":0,"ticks":0,"capability":{{"overflow_interrupt":true,"culprit":"c","freeze":"f",
                   "skid":"s","data_address":"d"}}}}"#
            ),
            Standing::Measured,
            vec![("cycles", Some(60_000), None)],
        ),
    ];
    for (json, standing, figures) in cases {
        let record: Record = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        let seen = item(&record).unwrap();
        assert_eq!((seen.index, &*seen.name, seen.standing), (2, "n", standing), "{json}");
        let own: Vec<_> =
            seen.figures.iter().map(|one| (&*one.event, one.value, one.spread)).collect();
        assert!(figures.iter().all(|one| own.contains(one)), "{json}: {own:?}");
        // Those of a task, a processor or a row are left out.
        let whole = |event: &str| !event.contains(", ") || event.ends_with(", sum");
        assert!(seen.figures.iter().all(|one| whole(&one.event)), "{seen:?}");
    }
    for (passed, failed, standing) in [
        (2, 0, Standing::Passed),
        (2, 1, Standing::Missed),
        (0, 1, Standing::Missed),
        (0, 0, Standing::Skipped),
    ] {
        let json = format!(
            r#"{{"type":"suite","item":2,"name":"n","passed":{passed},"failed":{failed},"skipped":0,"known_errata":0,
               "reason":"why","lacks":[]}}"#
        );
        let seen = item(&serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!((seen.standing, seen.note.as_deref()), (standing, Some("why")));
        let figures: Vec<_> = seen.figures.iter().map(|one| (&*one.event, one.value)).collect();
        let thousand = |count: i64| Some(1000 * count);
        assert_eq!(
            figures,
            [("checks passed", thousand(passed)), ("checks failed", thousand(failed))]
        );
    }
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
    // An eighth goes at a time: 100, 88, 77, 68, 60, 53, 47.
    let fifty = |packed: &[u8]| Digest::unpack(packed).unwrap().items.len() <= 50;
    let left = Digest::unpack(&digest(100).pack_what_fits(fifty)).unwrap();
    assert_eq!((left.items.len(), left.left_out), (47, 53));
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
    let missing = join(&one[0]).unwrap_err();
    assert_eq!(missing, TextError::Missing { missing: (2..=total).collect(), total });
    assert!(matches!(join(&(one[0].clone() + &other[1])), Err(TextError::Mixed(..))));
    let numbers: Vec<String> = (2..=total).map(|number| number.to_string()).collect();
    let all = format!("{} of {total} codes are missing: {}", total - 1, numbers.join(", "));
    assert_eq!(missing.to_string(), all);
    let said = |text: &str| join(text).unwrap_err().to_string();
    assert_eq!(said("BC1:1/2:00000000:AA."), "1 of 2 codes is missing: 2");
    // Of two runs: another checksum, or another number of parts.
    let first = "BC1:1/3:00000000:AA.";
    for second in ["BC1:2/3:00000001:AA.", "BC1:2/4:00000000:AA."] {
        assert!(matches!(join(&[first, second].concat()), Err(TextError::Mixed(..))), "{second}");
    }
    let last = |total: usize| join(&format!("BC1:1/{total}:00000000:AA."));
    assert!(matches!(last(MAX_PARTS), Err(TextError::Missing { .. })));
    assert_eq!(last(MAX_PARTS + 1), Err(TextError::Part("number that can be")));
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

/// 1 MiB.
#[test]
fn a_digest_has_its_bound() {
    assert_eq!(MAX_BYTES, 1_048_576);
}
