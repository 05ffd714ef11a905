//! What there is no room for is counted, and not kept.

use super::bindings::{Processor, job, set};
use super::jobs::event;
use super::*;
use crate::counting::job::Sets;
use protocol::job::count::{Schedule, When};
use protocol::job::limits::{MAX_BINDINGS, MAX_READINGS};
use protocol::record::CountResult;

/// A set of so many events that has the counters from marker 1 to marker 2, so many times.
fn bound(events: usize, times: usize) -> CountResult {
    let (at, until) = (Some(When::Marker(1)), Some(When::Marker(2)));
    let schedule = Schedule { at, until, wait: false };
    let mut one = set("s".into(), Some(0), schedule, false);
    one.requests = vec![event("0xc0.0x00:c=1:u"); events];
    let job = job(vec![one]);
    let (_, bench, driver, known) = machines().nth(3).unwrap();
    let sets = Sets::new(&job, &known, &[0]);
    let mut processor = Processor::new(&job, &sets, &driver, bench);
    processor.switch(Some(0));
    for _ in 0..times {
        processor.marker(1);
        processor.bench.run(Ring::User, 10);
        processor.marker(2);
    }
    processor.end(&job, sets)
}

#[test]
fn i6_bindings_beyond_the_room_are_counted() {
    let result = bound(1, MAX_BINDINGS + 3);
    assert_eq!((result.sets[0].bindings.len(), result.bindings_dropped), (MAX_BINDINGS, 3));
    assert!(result.sets[0].bindings.iter().all(|binding| binding.raw == [10]));
    // 5,000 figures are 125 times 40.
    let result = bound(40, 128);
    assert_eq!((result.sets[0].bindings.len(), result.bindings_dropped), (125, 3));
    assert!(result.sets[0].bindings.iter().all(|binding| binding.raw.len() == 40));
    let result = bound(1, 2);
    assert_eq!((result.sets[0].bindings.len(), result.bindings_dropped), (2, 0));
}

/// A set of the task that reads, and one that takes its counters by force from marker 1 to marker 2.
#[test]
fn i8_readings_beyond_the_room_are_counted() {
    let (at, until) = (Some(When::Marker(1)), Some(When::Marker(2)));
    let job = job(vec![
        set("own".into(), Some(1), Schedule { wait: true, ..Schedule::default() }, false),
        set("machine".into(), None, Schedule { at, until, wait: false }, true),
    ]);
    let (_, bench, driver, known) = machines().nth(3).unwrap();
    let sets = Sets::new(&job, &known, &[0]);
    let mut processor = Processor::new(&job, &sets, &driver, bench);
    processor.switch(Some(1));
    let read = |processor: &mut Processor| {
        processor.run.reads(1, 0, &mut processor.bench).unwrap();
    };
    // Each time one count of its own, and one that is told to be stale.
    for _ in 0..MAX_READINGS + 2 {
        read(&mut processor);
        processor.marker(1);
        read(&mut processor);
        processor.marker(2);
    }
    let result = processor.end(&job, sets);
    assert_eq!((result.readings.len(), result.stale.len()), (MAX_READINGS, MAX_READINGS));
    assert_eq!(result.readings_dropped, 4);
}
