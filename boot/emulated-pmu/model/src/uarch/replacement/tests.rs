use super::*;
use proptest::prelude::*;

/// A set of four ways that has seen tags, and what each access was.
fn run(policy: Policy, ways: usize, accesses: &[u64]) -> Vec<bool> {
    let (mut tags, mut state, mut dice) = (vec![0; ways], vec![0; ways], Dice::NEW);
    let mut set = Set { tags: &mut tags, state: &mut state };
    accesses.iter().map(|tag| set.touch(*tag, policy, &mut dice)).collect()
}

/// Whether the last access hits.
fn last(policy: Policy, accesses: &[u64]) -> bool {
    *run(policy, 4, accesses).last().unwrap()
}

#[test]
fn d1_policies_differ_as_the_literature_has_it() {
    use Policy::*;
    // The first line is used again, so that FIFO alone throws it out.
    let used = [1, 2, 3, 4, 1, 5, 1];
    assert_eq!([Lru, Fifo, TreePlru, Mru].map(|it| last(it, &used)), [true, false, true, true]);
    // The tree's points: after 1 2 3 4 the root points left, and within it at 1; 1 turns it to 3.
    let tree = [1, 2, 3, 4, 1, 5, 3];
    assert_eq!([Lru, TreePlru].map(|it| last(it, &tree)), [true, false]);
    // MRU: with 4 all are marked, so it alone stays marked; 1 is marked, and 2 is the first one that is not.
    assert!(!last(Mru, &[1, 2, 3, 4, 1, 5, 2]) && last(Mru, &[1, 2, 3, 4, 1, 5, 3]));
}

#[test]
fn d1_quad_age_lru_by_hand() {
    // Each line comes with age 1. When the fourth one comes, ages are 1, and grow by 2 (U0) to 3. A hit gives 1 (H11). The leftmost
    // line of age 3 makes room: the second.
    let policy = Policy::by_name("qlru_h11_m1_r0_u0").unwrap();
    assert!(!last(policy, &[1, 2, 3, 4, 1, 5, 2]));
    assert!(last(policy, &[1, 2, 3, 4, 1, 5, 1]));
    // From the right: the leftmost line of age 3 is then the one that came last.
    let policy = Policy::by_name("qlru_h11_m3_r2_u0").unwrap();
    assert!(!last(policy, &[1, 2, 3, 4, 5, 4]));
}

#[test]
fn every_name_and_number_leads_back() {
    for policy in Policy::all(4) {
        assert_eq!(Policy::by_name(&policy.to_string()), Some(policy));
        assert_eq!(Policy::by_number(policy.number()), Some(policy));
    }
    assert_eq!(Policy::all(4).count(), 165);
    for wrong in ["", "LRU", "qlru", "qlru_h33_m1_r0_u0", "qlru_h11_m1_r1_u0", "qlru_h11_m1_r0_u0x"]
    {
        assert_eq!(Policy::by_name(wrong), None, "{wrong}");
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(Policy::all(4).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn as_many_lines_as_ways_are_never_replaced(policy in policies(), order in prop::collection::vec(1u64..5, 0..80)) {
        let hits = run(policy, 4, &order);
        for (at, hit) in hits.iter().enumerate() {
            prop_assert_eq!(*hit, order[..at].contains(&order[at]));
        }
    }

    #[test]
    fn lru_is_a_list_in_order_of_use(order in prop::collection::vec(1u64..9, 0..80)) {
        let mut list: Vec<u64> = Vec::new();
        for (tag, hit) in order.iter().zip(run(Policy::Lru, 4, &order)) {
            prop_assert_eq!(list.contains(tag), hit);
            list.retain(|other| other != tag);
            list.insert(0, *tag);
            list.truncate(4);
        }
    }

    #[test]
    fn fifo_is_a_queue(order in prop::collection::vec(1u64..9, 0..80)) {
        let mut queue = std::collections::VecDeque::new();
        for (tag, hit) in order.iter().zip(run(Policy::Fifo, 4, &order)) {
            prop_assert_eq!(queue.contains(tag), hit);
            if !hit {
                queue.push_back(*tag);
            }
            if queue.len() > 4 {
                queue.pop_front();
            }
        }
    }

    #[test]
    fn one_more_line_than_ways_misses_in_each_round(policy in policies()) {
        let order: Vec<u64> = (0..50).map(|at| at % 5 + 1).collect();
        let hits = run(policy, 4, &order);
        prop_assert!(hits.chunks(5).all(|round| round.contains(&false)));
    }

    #[test]
    fn repeats_change_nothing_where_it_is_said(policy in policies(), order in prop::collection::vec(1u64..9, 1..40)) {
        if policy.forgets_repeats() {
            let doubled: Vec<u64> = order.iter().flat_map(|tag| [*tag, *tag]).collect();
            let first: Vec<bool> = run(policy, 4, &doubled).into_iter().step_by(2).collect();
            prop_assert_eq!(first, run(policy, 4, &order));
        }
    }
}
