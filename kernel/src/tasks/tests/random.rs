//! Any workload: no turn is lost, and no task runs after its end.

use super::made::{Habits, Made, Seen, TURN};
use super::*;
use std::collections::HashMap;

prop_compose! {
    /// A forest of tasks with their habits, and ticks.
    fn any_run()(
        raw in prop::collection::vec((0..60_u64, prop::option::of(any::<prop::sample::Index>()), 0..5_u64, prop::option::weighted(0.2, 0..60_u64)), 1..12),
        tick in prop_oneof![Just(0), 1..3_000_u64], jitter in prop::option::of(any::<u64>()),
    ) -> (Workload<'static>, Vec<Habits>) {
        let (mut tasks, mut habits) = (vec![], vec![]);
        for (index, (turns, parent, yields, fault)) in raw.into_iter().enumerate() {
            let parent = parent.filter(|_| index > 0).map(|parent| parent.index(index) as u16);
            tasks.push((turns, parent));
            habits.push(Habits { yields, fault, endless: false });
        }
        (workload(&tasks, tick, jitter.filter(|_| tick > 0)), habits)
    }
}

proptest! {
    #[test]
    fn t9_all_turns_are_run_and_each_task_is_seen_from_its_beginning_to_its_end((workload, habits) in any_run()) {
        let (summary, seen) = watched(&workload, 1_000_000, &habits);
        for ((result, task), habits) in summary.tasks.iter().zip(&workload.tasks).zip(&habits) {
            let faults = habits.fault.filter(|&at| at <= task.turns);
            prop_assert_eq!(result.end, if faults.is_some() { TaskEnd::Fault } else { TaskEnd::Exit });
            prop_assert_eq!(result.turns, faults.unwrap_or(task.turns));
            prop_assert_eq!(result.time, result.turns * TURN);
        }
        // One story without a gap: who is switched from is who was switched to.
        let (mut running, mut alive) = (None, HashMap::new());
        for (at, one) in seen.iter().enumerate() {
            match *one {
                Seen::Created(task, parent) => {
                    prop_assert_eq!(alive.insert(task, 0_u32), None);
                    prop_assert_eq!(workload.tasks[usize::from(task)].parent, parent);
                }
                Seen::Switched(from, to) => {
                    prop_assert_eq!(from, running);
                    prop_assert!(from != to && to.is_none_or(|task| alive.contains_key(&task)));
                    running = to;
                }
                Seen::Exited(task, parent) => {
                    prop_assert!(alive.remove(&task).is_some() && running.is_none(), "{at}");
                    prop_assert!(parent.is_none_or(|parent| alive.contains_key(&parent)));
                    let mut children = workload.tasks.iter().zip(0..).filter(|(one, _)| one.parent == Some(task));
                    prop_assert!(children.all(|(_, child)| !alive.contains_key(&child)));
                }
                Seen::Tick | Seen::Phase(_) => {}
            }
        }
        prop_assert!(running.is_none() && alive.is_empty());
        prop_assert_eq!(summary.ticks.count, seen.iter().filter(|&&one| one == Seen::Tick).count() as u64);
        prop_assert_eq!(summary.switches, 1 + summary.tasks.iter().map(|task| task.switches).sum::<u64>());
    }

    /// The quick ways at a yield and at a tick say the same as the long one, to the last tick and account.
    #[test]
    fn t9_the_quick_ways_tell_the_same_story(
        (workload, habits) in any_run(), limit_us in prop_oneof![Just(1_000_000), 1..20_u64],
    ) {
        let slow = Made { quick: false, ..Made::new(&habits) };
        prop_assert_eq!(watched(&workload, limit_us, &habits), watched_on(slow, &workload, limit_us));
    }

    /// Each tick lets the next one in the queue go on: a task waits for as many ticks as there are tasks at most.
    #[test]
    fn t9_no_task_starves((workload, habits) in any_run()) {
        let (_, seen) = watched(&workload, 1_000_000, &habits);
        let mut waiting: HashMap<u16, usize> = HashMap::new();
        for (at, one) in seen.iter().enumerate() {
            match *one {
                Seen::Created(task, _) => {
                    waiting.insert(task, 0);
                }
                Seen::Tick => {
                    for (task, ticks) in &mut waiting {
                        *ticks += 1;
                        prop_assert!(*ticks <= workload.tasks.len(), "task {task} waits for {ticks} ticks");
                    }
                }
                Seen::Switched(from, to) => {
                    // A switch to the kernel is the end of a task.
                    if let (Some(from), Some(_)) = (from, to) {
                        prop_assert_eq!(waiting.insert(from, 0), None);
                    }
                    if let Some(to) = to {
                        prop_assert!(waiting.remove(&to).is_some(), "{at}");
                    }
                }
                Seen::Exited(..) | Seen::Phase(_) => {}
            }
        }
        prop_assert!(waiting.is_empty());
    }
}
