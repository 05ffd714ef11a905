//! A model checker goes through what processors share: every order in which two or three of them can take their steps, and for
//! each load every value that the memory ordering allows it. What loom reports is a read that may be torn or old, a wake-up
//! that may be lost, or a wait without an end.
//!
//! The modules are those of `src/smp`, compiled with loom's types. An interrupt that wakes from HLT is a flag: one that comes before
//! the processor halts is not lost, as STI holds it back until HLT. What was written before it was sent is seen when it comes, as
//! the fences before an x2APIC's command have it (SDM vol. 3, 10.12.3).

mod sync {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };

    /// With the interface of `spin`'s.
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("nothing panics while it holds a lock")
        }
    }

    macro_rules! constructor {
        ($(#[$doc:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> Self $body:block) => {
            $(#[$doc])* $visibility fn $name($($argument: $type),*) -> Self $body
        };
    }
    pub(super) use constructor;
}

#[path = "../src/smp/arrival.rs"]
mod arrival;
#[path = "../src/smp/exchange.rs"]
mod exchange;
#[path = "../src/smp/handover.rs"]
mod handover;
#[path = "../src/smp/mailbox.rs"]
mod mailbox;
#[path = "../src/smp/rendezvous.rs"]
mod rendezvous;

use arrival::{Arrival, Arrived};
use exchange::Exchange;
use handover::Handover;
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::{Arc, Notify};
use loom::thread;
use mailbox::{Call, Mailbox};
use rendezvous::Rendezvous;
use sync::AtomicBool;

/// Goes through all orders in which processors are interrupted at most so often where they need not be.
fn check(preemptions: usize, orders: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(orders);
}

/// Memory without any protection: loom reports a use that another processor's may overlap.
struct Plain(UnsafeCell<u64>);

// SAFETY: loom checks each use.
unsafe impl Sync for Plain {}

impl Plain {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self, value: u64) {
        // SAFETY: loom reports uses at the same time.
        self.0.with_mut(|place| unsafe { *place += value });
    }

    fn get(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|place| unsafe { *place })
    }
}

/// What the boot processor and another one share.
struct Shared {
    mailbox: Mailbox,
    to_boot: Arc<Notify>,
    to_other: Notify,
    halts: AtomicBool,
    done: Plain,
}

impl Shared {
    fn new(halts: bool, to_boot: &Arc<Notify>) -> Arc<Self> {
        let (mailbox, halts) = (Mailbox::empty(), AtomicBool::new(halts));
        let (to_boot, to_other) = (Arc::clone(to_boot), Notify::new());
        Arc::new(Self { mailbox, to_boot, to_other, halts, done: Plain::new() })
    }

    /// Another processor: halts until there is work, so many times.
    fn park(shared: &Arc<Self>, calls: usize) -> thread::JoinHandle<()> {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let mut served = 0;
            while served < calls {
                match shared.mailbox.serve(&shared.halts, || shared.to_boot.notify()) {
                    true => served += 1,
                    false => shared.to_other.wait(),
                }
            }
        })
    }

    /// The boot processor posts a call.
    fn post(&self, call: &Call) {
        // SAFETY: each test waits for the call.
        unsafe { self.mailbox.put(call) };
        self.to_other.notify();
    }

    fn wait(&self, call: &Call) {
        call.wait(&self.halts, |call| {
            if !call.is_done() {
                self.to_boot.wait();
            }
        });
    }
}

fn work_is_done(halts: bool, calls: usize) {
    check(3, move || {
        let shared = Shared::new(halts, &Arc::new(Notify::new()));
        let other = Shared::park(&shared, calls);
        for number in 0..calls as u64 {
            let before = shared.done.get();
            let mut work = || shared.done.add(10);
            let call = Call::new(&mut work);
            shared.post(&call);
            shared.wait(&call);
            assert_eq!((before, shared.done.get()), (10 * number, 10 * number + 10));
        }
        other.join().unwrap();
    });
}

#[test]
fn i7_m10_work_is_done_once_and_seen_in_every_order() {
    work_is_done(false, 2);
}

#[test]
fn i7_m10_no_order_loses_the_wake_up_of_a_boot_processor_that_halts() {
    work_is_done(true, 2);
}

/// Two at once: each has a place of its own for what comes out, and the lock is for both.
#[test]
fn i7_m10_two_processors_work_at_once_in_every_order() {
    check(2, || {
        let to_boot = Arc::new(Notify::new());
        let both = [Shared::new(true, &to_boot), Shared::new(true, &to_boot)];
        let others: Vec<_> = both.iter().map(|shared| Shared::park(shared, 1)).collect();
        let sum = sync::Mutex::new(0);
        let mut works: Vec<_> = both
            .iter()
            .zip(1..)
            .map(|(shared, value)| {
                let sum = &sum;
                move || {
                    shared.done.add(value);
                    *sum.lock() += value;
                }
            })
            .collect();
        let calls: Vec<Call> = works.iter_mut().map(|work| Call::new(work)).collect();
        both.iter().zip(&calls).for_each(|(shared, call)| shared.post(call));
        both.iter().zip(&calls).for_each(|(shared, call)| shared.wait(call));
        drop(calls);
        assert_eq!((both[0].done.get(), both[1].done.get(), *sum.lock()), (1, 2, 3));
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// The boot processor halts or spins as the work wants it; another processor may still be on its way out of the work before.
#[test]
fn i7_m10_the_way_of_waiting_changes_between_two_calls() {
    check(3, || {
        let shared = Shared::new(false, &Arc::new(Notify::new()));
        let other = Shared::park(&shared, 2);
        for halts in [false, true] {
            shared.halts.store(halts, sync::Ordering::Relaxed);
            let mut work = || shared.done.add(1);
            let call = Call::new(&mut work);
            shared.post(&call);
            shared.wait(&call);
        }
        assert_eq!(shared.done.get(), 2);
        other.join().unwrap();
    });
}

/// A processor may come at any time, or twice; its tables are those of the one that was let in.
#[test]
fn i7_a_processor_that_is_taken_into_use_has_set_itself_up_in_every_order() {
    check(3, || {
        let shared = Arc::new((Arrival::called(), Plain::new()));
        let come = || {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let let_in = shared.0.arrive();
                if let_in {
                    shared.1.add(1);
                    shared.0.settle(true);
                }
                let_in
            })
        };
        let both = [come(), come()];
        let waited = shared.0.has_settled();
        let arrived = shared.0.close();
        if arrived == Arrived::Ready {
            assert_eq!(shared.1.get(), 1);
        }
        assert!(!waited || arrived == Arrived::Ready);
        let let_in = both.map(|one| one.join().unwrap()).into_iter().filter(|&one| one).count();
        assert_eq!(let_in, usize::from(arrived != Arrived::Absent), "{arrived:?}");
    });
}

/// One whose APIC is broken is never taken for one that waits.
#[test]
fn i7_a_broken_processor_is_told_from_a_late_one() {
    check(3, || {
        let arrival = Arc::new(Arrival::called());
        let other = Arc::clone(&arrival);
        let other = thread::spawn(move || other.arrive().then(|| other.settle(false)).is_some());
        let arrived = arrival.close();
        assert_ne!(arrived, Arrived::Ready);
        assert_eq!(other.join().unwrap(), arrived != Arrived::Absent);
        assert_eq!(arrival.has_settled(), arrived != Arrived::Absent);
    });
}

/// Two of them: with a third one, who would wait in the same way, the orders are too many.
#[test]
fn m10_nobody_passes_the_rendezvous_before_both_are_there() {
    check(3, || {
        let shared = Arc::new((Rendezvous::new(), [Plain::new(), Plain::new()]));
        let seen = |shared: &(Rendezvous, [Plain; 2])| shared.1.iter().map(Plain::get).sum::<u64>();
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            other.1[1].add(1);
            assert_eq!((other.0.meet(None), seen(&other)), (77, 2));
        });
        shared.1[0].add(1);
        let instant = shared.0.meet(Some((2, &|| 77)));
        assert_eq!((instant, seen(&shared), shared.0.deadline()), (77, 2, 77));
        other.join().unwrap();
    });
}

/// An answer that comes late, or is that of another question, would be another value; and what was written before it is seen.
#[test]
fn m10_each_answer_is_that_of_its_question() {
    check(3, || {
        let shared = Arc::new((Exchange::new(), Plain::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            for number in 0..3 {
                other.0.answer(number, || {
                    other.1.add(1);
                    100 + number
                });
            }
        });
        for number in 0..3 {
            assert_eq!(shared.0.ask(number).answer(), 100 + number);
            assert_eq!(shared.1.get(), number + 1);
        }
        other.join().unwrap();
    });
}

/// A processor leaves a task: it puts it into the queue, which has a lock, and only then keeps its registers. The other one, which has
/// found it in the queue, has it when it is told that nobody has, and sees the registers; or it is turned away.
#[test]
fn i8_t9_a_task_is_had_by_one_processor_that_sees_what_the_other_kept_in_every_order() {
    check(3, || {
        let shared = Arc::new((sync::Mutex::new(0_u32), Handover::new(), Plain::new()));
        let turns = |place: usize, shared: &(sync::Mutex<u32>, Handover, Plain)| {
            let mut had = 0;
            for _ in 0..2 {
                let mut waiting = shared.0.lock();
                // The queue has it or has it not, as the lock says; who takes it from there has to have it.
                if *waiting == 0 || !shared.1.is_free_for(place) || !shared.1.take(place) {
                    continue;
                }
                *waiting -= 1;
                drop(waiting);
                shared.2.add(1);
                // It leaves: queued before it is let go.
                *shared.0.lock() += 1;
                shared.2.add(10);
                shared.1.give_up();
                had += 1;
            }
            had
        };
        *shared.0.lock() = 1;
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || turns(1, &other));
        let had = turns(0, &shared) + other.join().unwrap();
        assert!(had >= 2, "who is turned away, is so as the other one has it: {had}");
        assert!(shared.1.take(2) && shared.2.get() == 11 * had);
    });
}

/// It has one processor, whoever asks, until that one gives it up.
#[test]
fn i8_what_one_processor_has_no_other_gets() {
    check(3, || {
        let shared = Arc::new((Handover::new(), Plain::new()));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let has = other.0.take(1);
            if has {
                assert!(other.0.take(1) && !other.0.take(0) && !other.0.is_free_for(0));
                other.1.add(1);
            }
            has
        });
        let has = shared.0.take(0);
        if has {
            shared.1.add(1);
        }
        assert!(has != other.join().unwrap());
        assert_eq!(shared.1.get(), 1);
    });
}
