//! What a job with branches or stacks asks of the processor, and what it cannot have.

use super::*;
use crate::sampling::branches::{apart, check, freeze};
use arch::pmu::{Capabilities, Freeze, LbrKind};
use protocol::job::sampling::CallGraph;

fn has(model: Model) -> Capabilities {
    Host::new(model).driver.capabilities().clone()
}

fn with(branches: bool, call_graph: Option<CallGraph>) -> Sampling<'static> {
    Sampling { branches, call_graph, ..item(&[event(RETIRED, 77)], 10) }
}

/// Stacks do not freeze: a call near the interrupt would be counted twice.
#[test]
fn s2_branches_freeze_with_the_counters_and_stacks_do_not() {
    assert_eq!(freeze(&with(true, None)), Freeze::COUNTERS.union(Freeze::LBR));
    assert_eq!(freeze(&with(false, Some(CallGraph::Lbr))), Freeze::COUNTERS);
}

#[test]
fn s2_records_of_several_tasks_are_kept_apart() {
    for (asked, of_two) in
        [((true, None), Some(0)), ((false, Some(CallGraph::Lbr)), Some(2)), ((false, None), None)]
    {
        let mut item = with(asked.0, asked.1);
        assert_eq!(apart(&item), None, "{asked:?}: one task has all of them");
        item.workload.tasks.extend_from_within(..);
        assert_eq!(apart(&item), of_two, "{asked:?}");
    }
}

/// The scheduler's calls would stand in the stack of a task of ring 0 that it interrupts.
#[test]
fn c7_s2_a_scheduled_task_has_stacks_in_ring_3_alone() {
    let check = |item: &Sampling| check(item, &has(Model::Skylake), &[]);
    let mut item = with(false, Some(CallGraph::Lbr));
    assert_eq!(check(&item), Ok(()), "without ticks");
    item.workload.tick_ns = 1000;
    assert!(check(&item).unwrap_err().contains("a task of ring 0 runs alone, without ticks"));
    item.workload.tasks[0].ring = TaskRing::User;
    assert_eq!(check(&item), Ok(()), "ring 3");
}

#[test]
fn c7_s2_branches_are_refused_by_what_the_processor_keeps_and_at_a_timer() {
    let check = |item: &Sampling, model| check(item, &has(model), &[]);
    let mut item = with(true, None);
    let single = check(&item, Model::Zen2).unwrap_err();
    assert!(single.contains("no stack of branch records, but a single one"), "{single}");
    let none = Capabilities { lbr: LbrKind::None, ..has(Model::Skylake) };
    let none = crate::sampling::branches::check(&item, &none, &[]).unwrap_err();
    assert!(none.contains("no stack of branch records, but none"), "{none}");
    assert_eq!(check(&item, Model::Skylake), Ok(()));
    item.interval_ns = 500;
    assert!(check(&item, Model::Skylake).is_err(), "a timer's interrupt is no counter's");
}

#[test]
fn s2_nothing_is_recorded_after_the_item() {
    for (model, switch) in [
        (Model::Skylake, arch::pmu::numbers::DEBUGCTL),
        (Model::SapphireRapids, arch::pmu::numbers::ARCH_LBR_CTL),
    ] {
        let mut host = Host::new(model);
        let (result, _) = run(&mut host, &with(true, None));
        assert!(result.branches.is_some(), "{model:?}");
        assert_eq!(host.pmu.read_msr(switch.0).expect("its switch") & 1, 0, "{model:?}");
    }
}
