//! What is charged to whoever ran, by the short way and by the longer one.

use super::*;
use crate::counting::charged::Charged;
use crate::counting::contexts::Contexts;
use crate::counting::owner::{Ask, Force, Owner, Right, Scope};

const TASKS: u16 = 3;

fn counts(set: &Set, each: &[Count]) -> Counts {
    let mut counts = Counts::new(set);
    counts.counts_mut().copy_from_slice(each);
    counts
}

/// So many events, counted all of the time.
const fn count(raw: u64, time: u64) -> Count {
    Count { raw, counted: time, enabled: time }
}

#[test]
fn i8_one_time_stands_for_all_only_as_long_as_all_are_the_same() {
    let set = Set::of_groups(&[[0, 1].map(|n| (Counter::General(n), INSTRUCTIONS)).to_vec()]);
    let mut charged = Charged::new(counts(&set, &[count(5, 7), count(6, 7)]));
    assert_eq!(charged.time(), Some(7));
    charged.pass(9);
    assert_eq!(charged.time(), Some(9));
    assert_eq!(charged.counts().counts(), [count(5, 9), count(6, 9)]);
    // Written out, they are not one time any more until they are taken from a read.
    assert_eq!(charged.time(), None);
    charged.up_to(&counts(&set, &[count(8, 10), count(9, 10)])).unwrap();
    assert_eq!(charged.time(), Some(10));
    // The first was charged when something was found to have overflowed.
    charged.part(1, [12, 10]);
    assert_eq!(charged.time(), None);
    assert_eq!(charged.counts().counts(), [count(8, 12), count(9, 10)]);
    // A request that waited for its turn has a time of its own.
    let waited = Count { raw: 1, counted: 3, enabled: 11 };
    charged.up_to(&counts(&set, &[count(8, 11), waited])).unwrap();
    assert_eq!(charged.time(), None);
    let other = Set::of_groups(&[vec![(Counter::General(0), INSTRUCTIONS)]]);
    assert!(charged.up_to(&Counts::new(&other)).is_err());
}

/// The short way is taken between two tasks of the set that has the counters, and says so where it is not enough: what each task
/// came to, its time included, is the same to the last digit.
#[test]
fn i8_a_switch_by_the_plan_charges_as_much_as_the_longer_way() {
    for (model, mut bench, driver, known) in machines() {
        let has_status = driver.layout().global.is_some();
        // Less than once round, which a processor without a status register would not see.
        let most = 3 << (driver.capabilities().general_bits - 2);
        let mut contexts = Contexts::new(Owner::new(Ok(()), TASKS), TASKS);
        let set = together(vec![instructions(); 2], &known);
        let ask = Ask { scope: Scope::System, right: Right::Any, force: Force::Ask };
        let claim = contexts.bind(set, Run::default(), driver, ask, &mut bench).unwrap();
        contexts.switched(None, Some(0), &mut bench).unwrap();
        let (mut running, mut truth, mut planned) = (0, [0; TASKS as usize], 0);
        // The fifth makes the counters wrap.
        for (turn, ran) in (1..).zip([10, 20, 30, most, most, 40, 50]) {
            bench.run(Ring::User, ran);
            truth[usize::from(running)] += ran;
            let wrapped = std::mem::take(&mut bench.found) != 0;
            if wrapped {
                contexts.interrupt(&mut bench).unwrap();
            }
            let to = turn % TASKS;
            if contexts.switched_planned(running, to, &mut bench) {
                planned += 1;
            } else {
                contexts.switched(Some(running), Some(to), &mut bench).unwrap();
            }
            assert_eq!(contexts.current(), Some(to));
            running = to;
        }
        for (task, truth) in (0..).zip(truth) {
            let own = contexts.task(&claim, task, &mut bench).unwrap();
            assert_eq!(own.counts(), [count(truth, truth); 2], "{model:?} {task}");
        }
        assert_eq!(contexts.switches(), 8, "{model:?}");
        assert_eq!(planned > 4, has_status, "{model:?}: {planned} of 7");
        // Nobody is counted: the longer way, which has nothing to do.
        contexts.unbind(&claim, &mut bench).unwrap();
        assert!(!contexts.switched_planned(running, 0, &mut bench));
    }
}
