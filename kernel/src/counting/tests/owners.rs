use super::*;
use crate::counting::owner::{Claim, Force, Owner, OwnerError, Right, Scope};
use arch::pmu::Missing;

const ASK: Force = Force::Ask;

fn acquired(owner: &mut Owner, scope: Scope, force: Force) -> Result<Claim, OwnerError> {
    owner.acquire(scope, None, Right::Any, force)
}

#[test]
fn i6_p5_the_system_and_the_tasks_exclude_each_other() {
    let mut owner = Owner::new(Ok(()), 4);
    let first = acquired(&mut owner, Scope::Task(0), ASK).unwrap();
    let second = acquired(&mut owner, Scope::Task(3), ASK).unwrap();
    assert_eq!(acquired(&mut owner, Scope::Task(3), ASK), Err(OwnerError::TaskCounted(3)));
    let busy = acquired(&mut owner, Scope::System, ASK).unwrap_err();
    assert!(busy.to_string().starts_with("busy: 2 tasks count"), "{busy}");
    owner.release(&first).unwrap();
    owner.release(&second).unwrap();
    assert_eq!(owner.release(&second), Err(OwnerError::Released));
    let system = acquired(&mut owner, Scope::System, ASK).unwrap();
    assert_eq!(acquired(&mut owner, Scope::Task(1), ASK), Err(OwnerError::SystemCounted));
    assert_eq!(acquired(&mut owner, Scope::System, ASK), Err(OwnerError::SystemCounted));
    owner.release(&system).unwrap();
    assert_eq!(owner.generation(), 0);
}

#[test]
fn i6_c10_acquisition_by_force_evicts_and_a_stale_reader_is_told() {
    let mut owner = Owner::new(Ok(()), 4);
    let first = acquired(&mut owner, Scope::Task(0), ASK).unwrap();
    let second = acquired(&mut owner, Scope::Task(1), ASK).unwrap();
    let system = acquired(&mut owner, Scope::System, Force::Evict).unwrap();
    assert_eq!((owner.generation(), system.generation), (1, 1));
    for stale in [first, second] {
        let error = owner.check(&stale).unwrap_err();
        assert_eq!(error, OwnerError::Stale { acquired: 0, evicted: 1 });
        assert!(
            error.to_string().contains("generation 0")
                && error.to_string().contains("generation 1")
        );
    }
    owner.check(&system).unwrap();
    // A task evicts the system in turn; nobody is in the way of the next one.
    let third = acquired(&mut owner, Scope::Task(2), Force::Evict).unwrap();
    assert_eq!(owner.check(&system), Err(OwnerError::Stale { acquired: 1, evicted: 2 }));
    acquired(&mut owner, Scope::Task(0), Force::Evict).unwrap();
    assert_eq!((owner.generation(), owner.check(&third)), (2, Ok(())));
    assert_eq!(owner.check(&first), Err(OwnerError::Stale { acquired: 0, evicted: 1 }));
}

#[test]
fn p5_c10_no_device_no_such_task_not_permitted() {
    let mut none = Owner::new(Err(Missing::NotAnnounced), 4);
    let error = acquired(&mut none, Scope::System, Force::Evict).unwrap_err();
    assert_eq!(error, OwnerError::NoDevice(Missing::NotAnnounced));
    assert!(error.to_string().starts_with("no such device: "), "{error}");
    let mut owner = Owner::new(Ok(()), 4);
    let error = acquired(&mut owner, Scope::Task(4), ASK).unwrap_err();
    assert_eq!(error, OwnerError::NoTask { task: 4, count: 4 });
    for (scope, force) in
        [(Scope::System, ASK), (Scope::Task(1), ASK), (Scope::Task(2), Force::Evict)]
    {
        let refused = owner.acquire(scope, Some(2), Right::Own, force).unwrap_err();
        assert!(matches!(refused, OwnerError::NotPermitted(_)), "{scope:?}: {refused}");
    }
    owner.acquire(Scope::Task(2), Some(2), Right::Own, ASK).unwrap();
}

#[test]
fn m15_what_a_task_holds_is_free_when_it_dies() {
    let mut owner = Owner::new(Ok(()), 4);
    let claim = acquired(&mut owner, Scope::Task(1), ASK).unwrap();
    owner.task_exits(1);
    assert_eq!(owner.check(&claim), Err(OwnerError::Released));
    acquired(&mut owner, Scope::System, ASK).unwrap();
}

proptest! {
    /// Whatever is asked in whatever order: never the system and a task at once, never one task twice, and whoever
    /// was let in is either in or told why not.
    #[test]
    fn i6_no_order_of_calls_lets_both_in(calls in prop::collection::vec((0u16..5, any::<bool>(), any::<bool>()), 1..60)) {
        let mut owner = Owner::new(Ok(()), 4);
        let mut held = Vec::new();
        for (which, force, release) in calls {
            let scope = if which == 4 { Scope::System } else { Scope::Task(which) };
            if release && !held.is_empty() {
                let claim = held.remove(usize::from(which) % held.len());
                let valid = owner.check(&claim).is_ok();
                prop_assert_eq!(owner.release(&claim).is_ok(), valid);
                continue;
            }
            if let Ok(claim) = acquired(&mut owner, scope, if force { Force::Evict } else { ASK }) {
                held.push(claim);
            }
            let inside: Vec<Scope> =
                held.iter().filter(|claim| owner.check(claim).is_ok()).map(Claim::scope).collect();
            prop_assert!(!inside.contains(&Scope::System) || inside.len() == 1);
            for task in 0..4 {
                prop_assert!(inside.iter().filter(|&&scope| scope == Scope::Task(task)).count() <= 1);
            }
            for claim in &held {
                prop_assert_ne!(owner.check(claim), Err(OwnerError::Released));
            }
        }
    }
}
