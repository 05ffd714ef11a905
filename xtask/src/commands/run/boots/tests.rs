use super::*;
use crate::collect::Numbered;
use protocol::job::control::{Control, Ring};
use protocol::job::{Job, Processors, Setup, Snippet};
use std::borrow::Cow;

fn record(json: &str) -> Record {
    serde_json::from_str(json).expect("a record")
}

fn exact(item: u32, agrees: Option<bool>) -> Record {
    let verdict = match agrees {
        None => "none",
        Some(true) => "pass",
        Some(false) => "fail",
    };
    let compared = agrees.map_or(String::new(), |agrees| {
        format!(
            r#","comparisons":[{{"event":"instructions","exact":1.0,"pmu_min":1.0,"pmu_median":1.0,
               "pmu_max":1.0,"agrees":{agrees}}}]"#
        )
    });
    record(&format!(
        r#"{{"type":"exact","item":{item},"name":"e","per":1,"counts":[],"opcodes":[],"listing":[],"listed":0,
           "verdict":"{verdict}","tsc":[0,1]{compared}}}"#
    ))
}

fn report(records: Vec<Record>) -> Report {
    let numbered = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
    Report { records: numbered.collect(), ..Report::default() }
}

#[test]
fn x1_items_of_later_boots_are_counted_on_and_all_are_summed() {
    let mut whole = Whole::default();
    let progress = || record(r#"{"type":"progress","done":1,"total":5}"#);
    whole.take(report(vec![progress(), exact(0, None)]), 0);
    let lost = r#"{"type":"error","code":"snippet_lost","item":1,"text":"gone"}"#;
    whole.push(record(lost));
    let later = vec![progress(), exact(0, Some(true)), exact(1, Some(false)), exact(2, None)];
    whole.take(report(later), 2);
    whole.sum();
    let items: Vec<u32> = whole.report.exact().map(|exact| exact.item).collect();
    assert_eq!(items, [0, 2, 3, 4]);
    let sequence: Vec<u32> = whole.report.records.iter().map(|one| one.seq).collect();
    assert_eq!(sequence, (0..7).collect::<Vec<_>>(), "the later boot's progress is left out");
    let end = whole.report.end().expect("an end");
    assert_eq!((end.passed, end.failed, end.measured, end.records), (1, 2, 2, 7));
    assert_eq!(end.outcome, Outcome::Fail);
    assert_eq!(whole.report.items(), 5);
}

/// A boot as a test wants it: records, forged lines among them, and how the machine ended.
enum Said {
    Record(Record),
    /// With a right checksum and without the key.
    Forged(Record),
}
use Said::{Forged, Record as Real};

fn start() -> Said {
    Real(record(
        r#"{"type":"start","program":"barecount","version":"0","protocol":1,"image_base":"0x0","tsc":[0,1]}"#,
    ))
}

fn machine() -> Said {
    Real(record(
        r#"{"type":"machine","vendor":"v","brand":"b","family":6,"model":1,"stepping":0,
            "topology":{"apic_id":0,"threads_per_core":1,"threads_per_package":1},
            "tsc":{"hz":1,"source":"pit","invariant":false},"apic":{"mode":"xapic","timer_hz":1},
            "processors":[],"memory_bytes":1}"#,
    ))
}

fn result_named(item: u32, name: &str) -> Record {
    record(&format!(
        r#"{{"type":"result","item":{item},"name":"{name}","verdict":"none","per":1,"runs":1,"metrics":[],"tsc":[0,1]}}"#
    ))
}

fn result(item: u32, name: &str) -> Said {
    Real(result_named(item, name))
}

fn end(items: u32) -> Said {
    let records = items + 3;
    Real(end_of(records, "pass", items))
}

fn end_of(records: u32, outcome: &str, measured: u32) -> Record {
    record(&format!(
        r#"{{"type":"end","records":{records},"outcome":"{outcome}","passed":0,"failed":0,"measured":{measured},"on_end":"halt"}}"#
    ))
}

fn crash(item: u32) -> Said {
    Real(record(&format!(
        r#"{{"type":"crash","kind":"exception","text":"page fault","item":{item},"registers":{},"backtrace":[]}}"#,
        serde_json::to_string(&protocol::record::Registers::default()).unwrap()
    )))
}

/// A job of snippets, in ring 0 or 3.
fn job(names: &[&str], ring: Ring) -> Packed {
    let control = Control { ring, ..Control::default() };
    let snippet = |name: &&str| {
        Item::Snippet(Snippet {
            name: Cow::Owned((*name).to_string()),
            runs: 1,
            setup: Setup { control: control.clone(), ..Setup::default() },
            ..snippet_of_one_nop()
        })
    };
    Packed::of(Job {
        name: Cow::Borrowed("test"),
        baud: 115_200,
        on_end: OnEnd::Halt,
        exit_port: None,
        self_test: None,
        requires: Vec::new(),
        items: names.iter().map(snippet).collect(),
        criteria: vec![],
        memory: vec![],
    })
}

fn snippet_of_one_nop() -> Snippet<'static> {
    let file = crate::job::file::parse("[[snippet]]\nasm = \"nop\"", "test").expect("a job");
    let packed = crate::job::pack(&file, crate::job::Purpose::Qemu).expect("it packs");
    let Item::Snippet(snippet) = packed.job.items[0].clone() else { panic!("a snippet") };
    snippet
}

/// Runs `packed` on machines that say `boots`, one after the other. Returns what came out, and the names of each boot's
/// items.
fn scripted(
    packed: &Packed,
    reboots: u32,
    boots: Vec<(Vec<Said>, Ending)>,
) -> (Whole, Vec<Vec<String>>) {
    let boots = std::cell::RefCell::new(boots.into_iter());
    let given = std::cell::RefCell::new(Vec::new());
    let boot = |packed: &Packed| {
        let names = packed.job.items.iter().map(|item| item.name().to_string()).collect::<Vec<_>>();
        given.borrow_mut().push(names);
        let key = packed.key.expect("each boot has a key");
        let (said, ending) = boots.borrow_mut().next().expect("one more boot than planned");
        let mut collector = crate::collect::Collector::with_key(key);
        let mut seq = 0;
        for one in said {
            let line = match one {
                Real(record) => {
                    seq += 1;
                    protocol::line::encode_with(seq - 1, &record, Some(&key))
                }
                Forged(record) => protocol::line::encode(seq, &record),
            };
            collector.feed(format!("{line}\r\n").as_bytes());
        }
        Ok(Finished {
            collector,
            ending,
            said: String::new(),
            to_first_record: None,
            to_end_record: None,
            cpu_between_records: None,
        })
    };
    let whole = run(packed, reboots, boot).expect("it runs");
    assert!(boots.borrow_mut().next().is_none(), "a boot less than planned");
    (whole, given.into_inner())
}

/// Item, name, and the error's code or `ok`.
fn verdicts(whole: &Whole) -> Vec<(u32, String, String)> {
    let records = whole.report.records.iter();
    let of = |one: &Numbered| match &one.record {
        Record::Result(result) => Some((result.item, result.name.clone(), "ok".to_string())),
        Record::Error(error) => {
            let code = serde_json::to_value(error.code).unwrap();
            Some((error.item?, error.name.clone()?, code.as_str().unwrap().to_string()))
        }
        _ => None,
    };
    records.filter_map(of).collect()
}

fn plain(verdicts: &[(u32, &str, &str)]) -> Vec<(u32, String, String)> {
    verdicts.iter().map(|(item, name, what)| (*item, (*name).into(), (*what).into())).collect()
}

const GONE: Ending = Ending::Exited(Some(0));

#[test]
fn x1_a_crash_of_the_firmware_costs_its_item_and_the_others_run() {
    let packed = job(&["a", "b", "c"], Ring::Kernel);
    let crash_end = Real(end_of(5, "crash", 0));
    let boots = vec![
        (vec![start(), machine(), result(0, "a"), crash(1), crash_end], GONE),
        (vec![start(), machine(), crash(0), Real(end_of(4, "crash", 0))], GONE),
        (vec![start(), machine(), result(0, "c"), end(1)], GONE),
    ];
    let (whole, given) = scripted(&packed, 16, boots);
    let expected = [(0, "a", "ok"), (1, "b", "snippet_lost"), (2, "c", "ok")];
    assert_eq!(verdicts(&whole), plain(&expected));
    assert_eq!(given, [vec!["a", "b", "c"], vec!["b", "c"], vec!["c"]]);
    assert_eq!((whole.complaint.as_deref(), whole.notes.len()), (None, 0));
    assert_eq!(whole.report.exit_code(), 1);
    // What the firmware said of it is kept, once.
    let crash = whole.report.crash().unwrap();
    assert_eq!(crash.item, Some(1));
    assert!(whole.report.is_cost_of_item(crash));
    let error = whole.report.errors().next().unwrap();
    assert_eq!(error.text, "the firmware failed (page fault) in `b`");
}

#[test]
fn x1_a_victim_runs_in_a_clean_boot_and_is_not_blamed() {
    let packed = job(&["hostile", "victim", "c"], Ring::Kernel);
    let boots = vec![
        (vec![start(), machine(), result(0, "hostile")], GONE),
        (vec![start(), machine(), result(0, "victim"), result(1, "c"), end(2)], GONE),
    ];
    let (whole, _) = scripted(&packed, 16, boots);
    let expected = [(0, "hostile", "ok"), (1, "victim", "ok"), (2, "c", "ok")];
    assert_eq!(verdicts(&whole), plain(&expected));
    assert_eq!((whole.report.exit_code(), whole.complaint.as_deref()), (0, None));
    let [note] = &whole.notes[..] else { panic!("{:?}", whole.notes) };
    assert!(note.contains("item 1 (victim)") && note.contains("item 0 (hostile)"), "{note}");
}

/// Code of ring 3 cannot have broken the machine for those after it.
#[test]
fn x1_behind_ring_3_the_lost_item_is_blamed_at_once() {
    let packed = job(&["a", "b", "c"], Ring::User);
    let boots = vec![
        (vec![start(), machine(), result(0, "a")], GONE),
        (vec![start(), machine(), result(0, "c"), end(1)], GONE),
    ];
    let (whole, given) = scripted(&packed, 16, boots);
    let expected = [(0, "a", "ok"), (1, "b", "snippet_lost"), (2, "c", "ok")];
    assert_eq!(verdicts(&whole), plain(&expected));
    assert_eq!(given[1], ["c"]);
}

#[test]
fn x1_forged_records_are_no_records_and_their_item_is_blamed() {
    let packed = job(&["forger", "b"], Ring::Kernel);
    let forged = vec![
        start(),
        machine(),
        Forged(result_named(0, "forger")),
        Forged(result_named(1, "b")),
        Forged(end_of(5, "pass", 2)),
    ];
    let boots = vec![(forged, GONE), (vec![start(), machine(), result(0, "b"), end(1)], GONE)];
    let (whole, _) = scripted(&packed, 16, boots);
    assert_eq!(verdicts(&whole), plain(&[(0, "forger", "forged"), (1, "b", "ok")]));
    assert_eq!(whole.report.exit_code(), 1);
    let text = &whole.report.errors().next().unwrap().text;
    assert!(
        text.contains("line 3 is forged: it carries no authentication code, and 2 more"),
        "{text}"
    );
}

/// Also with the right codes: the host has the job, and looks at order, names and number itself.
#[test]
fn x1_records_that_do_not_fit_the_job_are_not_taken() {
    let packed = job(&["a", "b"], Ring::Kernel);
    let wrong = [
        (vec![result(1, "b")], "record 2, of item 1 (`b`)"),
        (vec![result(0, "other")], "(`other`), is not the next one"),
        (vec![Real(exact(0, None))], "(`e`), is not the next one"),
        (vec![Real(end_of(3, "pass", 2))], "the end record arrived after 0 items"),
    ];
    for (records, text) in wrong {
        let first = [start(), machine()].into_iter().chain(records).collect();
        let boots = vec![(first, GONE), (vec![start(), machine(), result(0, "b"), end(1)], GONE)];
        let (whole, _) = scripted(&packed, 16, boots);
        let seen = verdicts(&whole);
        assert_eq!((seen.len(), &seen[1]), (2, &(1, "b".to_string(), "ok".to_string())));
        let error = whole.report.errors().next().unwrap();
        assert!(error.text.contains(text), "{text}: {}", error.text);
    }
    // One more than the job has.
    let more = vec![start(), machine(), result(0, "a"), result(1, "b"), result(2, "c"), end(3)];
    let (whole, _) = scripted(&packed, 16, vec![(more, GONE)]);
    assert!(whole.complaint.as_deref().unwrap().contains("all items were done"));
}

#[test]
fn x13_an_item_ends_with_the_result_of_the_last_kind_of_core() {
    let mut packed = job(&["a", "b"], Ring::Kernel);
    let Item::Snippet(snippet) = packed.job.items[0].clone() else { panic!("a snippet") };
    let on_all =
        Processors { snippet, cpu: None, core: None, interrupt_every: None, contention: None };
    packed.job.items[0] = Item::Processors(on_all);
    let of_kind = |core: &str, more: bool| {
        Real(record(&format!(
            r#"{{"type":"processors","item":0,"name":"a, {core} cores","core":"{core}","more":{more},"per":1,"runs":1,"processors":[],"sums":[],"start_skew":{{"min":0,"median":0,"max":0}},"snapshot":{{"deadline":0,"skew":0,"events":[]}},"tsc":[0,1]}}"#
        )))
    };
    let failed = Real(record(
        r#"{"type":"error","code":"unsupported","item":0,"name":"a","text":"on performance cores: why","more":true}"#,
    ));
    for first in [of_kind("performance", true), failed] {
        let end = Real(end_of(6, "pass", 3));
        let said =
            vec![start(), machine(), first, of_kind("efficient", false), result(1, "b"), end];
        let (whole, _) = scripted(&packed, 16, vec![(said, GONE)]);
        assert_eq!(whole.report.errors().filter(|one| one.code == ErrorCode::Forged).count(), 0);
        assert!(whole.complaint.is_none(), "{:?}", whole.complaint);
        assert_eq!((whole.report.processors().count() >= 1, whole.report.items()), (true, 2));
    }
    // Without the last kind the item is not done.
    let said = vec![start(), machine(), of_kind("performance", true), result(1, "b"), end(2)];
    let again = vec![start(), machine(), result(0, "b"), end(1)];
    let (whole, _) = scripted(&packed, 16, vec![(said, GONE), (again, GONE)]);
    let error = whole.report.errors().next().expect("an error");
    assert!(error.text.contains("is not the next one"), "{}", error.text);
}

#[test]
fn x1_when_the_boots_are_used_up_every_item_still_has_its_record() {
    let packed = job(&["a", "b", "c", "d"], Ring::User);
    let boots = vec![(vec![start(), machine(), result(0, "a")], GONE)];
    let (whole, _) = scripted(&packed, 0, boots);
    let lost = [(0, "a", "ok"), (1, "b", "snippet_lost"), (2, "c", "not_run"), (3, "d", "not_run")];
    assert_eq!(verdicts(&whole), plain(&lost));
    assert!(whole.complaint.unwrap().contains("after 0 reboots"));
    // Nor when the time is up.
    let timed_out = Ending::TimedOut(std::time::Duration::from_secs(60));
    let boots = vec![(vec![start(), machine(), result(0, "a")], timed_out)];
    let (whole, _) = scripted(&packed, 16, boots);
    assert_eq!(verdicts(&whole), plain(&lost));
    let error = whole.report.errors().last().unwrap();
    assert_eq!(error.text, "not run: the machine was stopped after 60 s");
}

/// The firmware says that it cannot continue; the rest runs in another boot, and nobody else is blamed.
#[test]
fn x1_behind_a_changed_firmware_the_rest_runs_in_another_boot() {
    let packed = job(&["a", "b"], Ring::Kernel);
    let error = |item: u32, name: &str, code: &str| {
        Real(record(&format!(
            r#"{{"type":"error","code":"{code}","item":{item},"name":"{name}","text":"t"}}"#
        )))
    };
    let first = vec![
        start(),
        machine(),
        error(0, "a", "firmware_changed"),
        error(1, "b", "not_run"),
        Real(end_of(5, "fail", 0)),
    ];
    let boots = vec![(first, GONE), (vec![start(), machine(), result(0, "b"), end(1)], GONE)];
    let (whole, _) = scripted(&packed, 16, boots);
    assert_eq!(verdicts(&whole), plain(&[(0, "a", "firmware_changed"), (1, "b", "ok")]));
    assert_eq!((whole.report.exit_code(), whole.notes.len()), (1, 0));
}
