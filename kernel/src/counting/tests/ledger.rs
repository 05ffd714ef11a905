//! Who has the counters when sets come and go, whatever happens in whichever order.

use super::*;
use crate::counting::allocate::{Allocation, Evicted, SetRequest};
use crate::counting::ledger::Ledger;
use crate::counting::owner::{OwnerError, Scope};
use protocol::job::count::{Schedule, When};

const TASKS: u16 = 4;

fn set(places: &[(u16, Option<u16>)], at: Option<u32>, until: Option<u32>) -> SetRequest {
    let scope = |&(cpu, task): &(u16, Option<u16>)| (cpu, task.map_or(Scope::System, Scope::Task));
    let [at, until] = [at, until].map(|marker| marker.map(When::Marker));
    let schedule = Schedule { at, until, wait: false };
    let places = places.iter().map(scope).collect();
    SetRequest { places, schedule, ..SetRequest::default() }
}

fn forced(request: SetRequest) -> SetRequest {
    SetRequest { force: true, ..request }
}

fn waits(request: SetRequest) -> SetRequest {
    SetRequest { schedule: Schedule { wait: true, ..request.schedule }, ..request }
}

fn begun(requests: &[SetRequest]) -> Ledger {
    let mut ledger = Ledger::new(requests.to_vec(), TASKS);
    ledger.begin();
    ledger
}

fn reaches(ledger: &mut Ledger, marker: u32) -> bool {
    ledger.happens(|when| when == When::Marker(marker), None)
}

fn holds(ledger: &Ledger, number: usize) -> Vec<u16> {
    (0..8).filter(|&cpu| ledger.claims(number, cpu).next().is_some()).collect()
}

#[test]
fn i6_c10_who_was_evicted_and_waits_gets_the_counters_back() {
    let mut ledger = begun(&[
        waits(set(&[(0, Some(1))], None, None)),
        forced(set(&[(0, None)], Some(1), Some(2))),
        set(&[(0, Some(2))], Some(1), None),
    ]);
    assert_eq!(holds(&ledger, 0), [0]);
    assert_eq!(*ledger.allocation(1), Allocation::Awaited);
    assert!(reaches(&mut ledger, 1));
    assert_eq!((holds(&ledger, 0), holds(&ledger, 1)), (vec![], vec![0]));
    assert_eq!(
        *ledger.allocation(0),
        Allocation::Waits { cpu: 0, error: OwnerError::SystemCounted }
    );
    assert_eq!(ledger.evicted(0), Some(Evicted { by: 1, cpu: 0, acquired: 0, evicted: 1 }));
    // The third came after the second, and does not wait.
    assert!(matches!(ledger.allocation(2), Allocation::Refused { cpu: 0, .. }));
    assert!(!reaches(&mut ledger, 3), "nobody's");
    assert!(reaches(&mut ledger, 2));
    assert_eq!((holds(&ledger, 0), ledger.evicted(0)), (vec![0], None));
    assert_eq!(*ledger.allocation(1), Allocation::Released);
    assert_eq!(ledger.claims(0, 0).next().unwrap().generation, 1);
}

#[test]
fn i6_who_waits_longest_is_first_and_waits_on_for_all_its_processors() {
    let mut ledger = begun(&[
        set(&[(0, None)], None, Some(1)),
        set(&[(1, Some(0))], None, Some(2)),
        waits(set(&[(0, None), (1, None)], None, None)),
        waits(set(&[(0, Some(3))], None, Some(5))),
        waits(set(&[(1, None)], Some(1), None)),
    ]);
    assert!(reaches(&mut ledger, 1));
    // Processor 1 is not free, so the next one gets processor 0.
    assert_eq!((holds(&ledger, 2), holds(&ledger, 3)), (vec![], vec![0]));
    assert!(reaches(&mut ledger, 2));
    assert_eq!((holds(&ledger, 2), holds(&ledger, 4)), (vec![], vec![1]), "who can");
    let Allocation::Waits { cpu, .. } = ledger.allocation(2) else { panic!("{ledger:?}") };
    assert_eq!(*cpu, 0);
}

#[test]
fn i6_a_set_whose_time_ends_while_it_waits_gets_no_counters() {
    let mut ledger =
        begun(&[set(&[(0, None)], None, Some(2)), waits(set(&[(0, Some(1))], None, Some(1)))]);
    assert!(matches!(ledger.allocation(1), Allocation::Waits { .. }));
    assert!(reaches(&mut ledger, 1));
    assert_eq!(*ledger.allocation(1), Allocation::Released);
    assert!(reaches(&mut ledger, 2));
    assert_eq!((holds(&ledger, 0), holds(&ledger, 1)), (vec![], vec![]));
}

#[test]
fn i6_a_marker_is_for_the_sets_of_the_processor_that_reached_it() {
    let mut ledger = begun(&[
        set(&[(0, None)], Some(1), None),
        set(&[(1, None)], Some(1), None),
        set(&[(0, None), (1, None)], None, Some(1)),
    ]);
    assert!(!ledger.happens(|when| when == When::Marker(1), Some(2)));
    assert!(ledger.happens(|when| when == When::Marker(1), Some(1)));
    // The third has both processors, and goes on.
    assert_eq!((holds(&ledger, 2), ledger.allocation(0)), (vec![0, 1], &Allocation::Awaited));
    assert!(matches!(ledger.allocation(1), Allocation::Refused { cpu: 1, .. }));
}

prop_compose! {
    fn any_request()(
        places in prop::collection::btree_map(0u16..3, prop::option::of(0u16..TASKS), 0..3),
        at in prop::option::of(0u32..4), until in prop::option::of(0u32..4), force: bool, wait: bool,
    ) -> SetRequest {
        let places: Vec<_> = places.into_iter().collect();
        let request = set(&places, at, until.filter(|_| at != until));
        let request = if wait { waits(request) } else { request };
        if force { forced(request) } else { request }
    }
}

/// What holds at any time.
fn check(requests: &[SetRequest], ledger: &Ledger) -> Result<(), TestCaseError> {
    let mut held: Vec<(u16, Scope)> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let own = holds(ledger, number);
        let counts = *ledger.allocation(number) == Allocation::Counts;
        prop_assert_eq!(own.len(), if counts { request.places.len() } else { 0 }, "all or none");
        for cpu in own {
            for claim in ledger.claims(number, cpu) {
                prop_assert_eq!(ledger.owner(cpu).unwrap().check(&claim), Ok(()));
                held.push((cpu, claim.scope()));
            }
        }
    }
    let hinders = |one: &(u16, Scope), other: &(u16, Scope)| {
        let both = matches!((one.1, other.1), (Scope::Task(a), Scope::Task(b)) if a != b);
        one.0 == other.0 && !both
    };
    for (at, one) in held.iter().enumerate() {
        prop_assert!(!held[..at].iter().any(|other| hinders(one, other)), "{:?}", held);
    }
    for (number, request) in requests.iter().enumerate() {
        if let Allocation::Waits { .. } = ledger.allocation(number) {
            prop_assert!(request.schedule.wait);
            let blocked = |place| held.iter().any(|other| hinders(place, other));
            prop_assert!(request.places.iter().any(blocked), "{} could have them", number);
        }
        if let Some(Evicted { by, acquired, evicted, .. }) = ledger.evicted(number) {
            prop_assert!(requests[by].force && acquired < evicted);
        }
    }
    Ok(())
}

proptest! {
    /// Those who count do not hinder each other, each has all of its processors or none, who waits cannot be served, a forced
    /// set gets what it asks for, and generations never fall.
    #[test]
    fn i6_c10_whatever_happens_those_who_count_do_not_hinder_each_other(
        requests in prop::collection::vec(any_request(), 1..8),
        markers in prop::collection::vec(0u32..4, 0..40),
    ) {
        let mut ledger = begun(&requests);
        check(&requests, &ledger)?;
        for marker in markers {
            let generation = |ledger: &Ledger| [0, 1, 2].map(|cpu| {
                ledger.owner(cpu).map_or(0, crate::counting::owner::Owner::generation)
            });
            let (before, held): (_, Vec<_>) =
                (generation(&ledger), (0..requests.len()).map(|number| holds(&ledger, number)).collect());
            reaches(&mut ledger, marker);
            check(&requests, &ledger)?;
            let after = generation(&ledger);
            prop_assert!(before.iter().zip(after).all(|(before, after)| *before <= after));
            let asks = |request: &SetRequest| request.schedule.at == Some(When::Marker(marker));
            // The last one that asks by force has it, unless it had it before and lost it to one that asked before it.
            if let Some(last) = requests.iter().rposition(|request| asks(request) && request.force)
                && held[last].is_empty()
            {
                prop_assert_eq!(ledger.allocation(last), &Allocation::Counts);
            }
            for (number, request) in requests.iter().enumerate() {
                if request.schedule.until == Some(When::Marker(marker)) && !request.schedule.wait {
                    prop_assert!(holds(&ledger, number).is_empty(), "{} was to end", number);
                }
            }
        }
    }
}

/// Who has the counters, or waits for them, has asked: its moment may come again.
#[test]
fn i6_a_moment_that_comes_again_changes_nothing_for_who_has_asked() {
    let mut ledger = begun(&[
        set(&[(0, Some(1))], Some(1), Some(9)),
        waits(set(&[(0, None)], Some(2), None)),
        waits(set(&[(0, Some(1))], Some(3), None)),
    ]);
    for marker in [1, 1, 2, 3, 2] {
        assert!(reaches(&mut ledger, marker));
        assert_eq!(*ledger.allocation(0), Allocation::Counts);
        assert_eq!((ledger.claims(0, 0).count(), holds(&ledger, 0)), (1, vec![0]));
    }
    assert!(reaches(&mut ledger, 9));
    assert_eq!([0, 1, 2].map(|number| holds(&ledger, number)), [vec![], vec![0], vec![]]);
}
