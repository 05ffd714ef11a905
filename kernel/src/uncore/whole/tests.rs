//! Items that run once on a machine of which only the numbers exist.

use super::*;
use crate::uncore::tests::{BUSY, Client, READS, REQUESTS, client};
use arch::pmu::energy::Shared;

const CLOCKS: &str = "uncore_clock/event=0xff,name=clocks/";

/// What an item with these texts counts in 50 ticks, with the names of what it does not count.
fn counted(client: &mut Client, texts: &[String]) -> (Vec<CountedUncore>, Vec<Uncounted>) {
    let texts: Vec<Cow<str>> = texts.iter().map(|text| text.as_str().into()).collect();
    let mut uncounted = Vec::new();
    let whole = begin(&texts, client, &mut uncounted);
    let counts = whole.map(|whole| whole.end(client, 50)).unwrap_or_default();
    (counts, uncounted)
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_string()).collect()
}

fn pairs(counts: &[CountedUncore]) -> Vec<(&str, u64)> {
    counts.iter().map(|one| (&*one.event, one.count)).collect()
}

#[test]
fn s3_an_item_that_runs_once_counts_from_its_beginning_to_its_end_and_gives_the_counters_back() {
    let mut client = client();
    let (counts, uncounted) = counted(&mut client, &texts(&[REQUESTS, CLOCKS, READS]));
    assert_eq!(uncounted, []);
    assert_eq!(pairs(&counts), [("requests", 0x81), ("clocks", 0xff), (READS, 0x80)]);
    let first = &counts[0];
    assert_eq!((first.ticks, first.units, first.reader, first.processors.len()), (50, 2, 0, 0));
    assert_eq!(first.name, "uncore_arb/config=0x181/");
    assert_eq!(first.counter, "counter 1 of the package's uncore_arb, MSR 0x3b0");
    assert_eq!(client.programmed, [vec![0x81, 0xff, 0x80], vec![]], "freed at the end");
    assert_eq!(client.intervals, [true, false], "begun and ended once");
}

#[test]
fn s3_what_does_not_fit_at_the_same_time_is_refused_where_there_are_no_passes() {
    let taken = |uncounted: &[Uncounted], event: &str| {
        let [one] = uncounted else { panic!("{uncounted:?}") };
        assert_eq!((&*one.event, &*one.reason), (event, NO_ROOM));
    };
    // Both are for the first counter alone.
    let mut one = client();
    let (counts, uncounted) = counted(&mut one, &texts(&[READS, BUSY, REQUESTS]));
    assert_eq!(pairs(&counts), [(READS, 0x80), ("requests", 0x81)]);
    taken(&uncounted, "busy");
    // A group that never fits takes what it can get, and one that does not fit any more takes nothing.
    let group = format!("{{{READS},{BUSY}}}");
    let (counts, uncounted) = counted(&mut client(), &[group]);
    assert_eq!(pairs(&counts), [(READS, 0x80)]);
    taken(&uncounted, "busy");
    let late = format!("{{{BUSY},{CLOCKS}}}");
    let (counts, uncounted) = counted(&mut client(), &[READS.to_string(), late]);
    assert_eq!(pairs(&counts), [(READS, 0x80)]);
    let names: Vec<&str> = uncounted.iter().map(|one| &*one.event).collect();
    assert_eq!(names, ["busy", "clocks"]);
    // Two groups share an event.
    let both = [format!("{{{REQUESTS},{READS}}}"), format!("{{{CLOCKS},{REQUESTS}}}")];
    let (counts, uncounted) = counted(&mut client(), &both);
    assert_eq!((counts.len(), uncounted.len()), (3, 0));
}

#[test]
fn s3_each_package_has_a_count_and_names_who_read_it() {
    let packages = [(0, vec![0, 1]), (4, vec![5])];
    let packages = packages.map(|(reader, processors)| Shared { reader, processors });
    let mut client = Client { packages: packages.to_vec(), ..client() };
    let (counts, _) = counted(&mut client, &texts(&[REQUESTS, READS]));
    let of =
        |one: &CountedUncore| (one.event.clone(), one.count, one.reader, one.processors.clone());
    let found: Vec<_> = counts.iter().map(of).collect();
    let [requests, reads] = ["requests", READS].map(ToString::to_string);
    let expected = [
        (requests.clone(), 0x81, 0, vec![0, 1]),
        (reads.clone(), 0x80, 0, vec![0, 1]),
        (requests, 0x1_0081, 4, vec![5]),
        (reads, 0x1_0080, 4, vec![5]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn s3_what_cannot_be_counted_of_a_whole_item_is_named_and_the_rest_is() {
    let mut refusing = Client { refuses: 0x80, ..client() };
    let asked = [
        READS,
        REQUESTS,
        "cycles",
        "uncore_cha/event=0x35/",
        "uncore_imc/event=4/",
        "uncore_mdf/event=4/",
    ];
    let (counts, uncounted) = counted(&mut refusing, &texts(&asked));
    assert_eq!(pairs(&counts), [("requests", 0x81)]);
    let reason = |event: &str| {
        let found = uncounted.iter().find(|one| one.event == event);
        found.map_or("", |one| &*one.reason)
    };
    assert!(reason(READS).contains("MSR 0x3b0 does not hold"), "{uncounted:?}");
    assert_eq!(reason("cycles"), "it is no event of the uncore");
    assert!(reason("uncore_cha/event=0x35/").contains("no such unit"), "{uncounted:?}");
    assert!(reason("uncore_imc/event=4/").contains("no such unit"), "{uncounted:?}");
    assert!(reason("uncore_mdf/event=4/").contains("counted are uncore_clock"), "{uncounted:?}");
    // Of nothing nothing is begun.
    for mut client in [client(), Client { is_there: false, ..client() }] {
        let asked = if client.is_there { texts(&[]) } else { texts(&[REQUESTS]) };
        let (counts, uncounted) = counted(&mut client, &asked);
        assert_eq!((counts.len(), uncounted.len()), (0, asked.len()));
        assert_eq!((client.intervals.len(), client.programmed.len()), (0, 0));
    }
}
