//! One processor's guest runs at a time, because QEMU's clock counts the instructions of all.
//!
//! Whose turn it is is in [`Startup::turn`]. All others are halted, and an NMI wakes them ([`wake`]): when it is their
//! turn, or when nobody has anything to do and all wait for interrupts ([`Startup::asleep`]). A turn ends with the alarm
//! clock, with an interrupt that the guest sends to another processor, or when the guest halts. Who halts has a turn when another
//! one sends it an interrupt or its timer rings, and now and then to look for interrupts of devices, which a halted processor
//! does not take.
//!
//! Nothing but the processor whose turn it is may execute anything while its guest runs, so it begins with waiting until all
//! others are halted ([`wait_until_halted`]).

use super::{index, shared};
use crate::payload::guest::Guest;
use crate::payload::port::tsc;
use crate::payload::{clock, lapic, tables};
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use emulated_pmu::turns::{LOOKS, Next, Round, Status};
use handover::startup::{NOBODY, Startup};

/// Instructions of a turn while another guest runs, and while the others only look for interrupts.
const SHORT: u64 = 1 << 15;
const LONG: u64 = 1 << 17;
/// Instructions until a processor that waits for a write, with interrupts off, looks for it.
const DOZE: u64 = 1 << 24;
/// Instructions that are worth setting the alarm clock for.
const LEAST: u64 = 1 << 8;
/// PAUSE lets QEMU continue to the next processor: in so many rounds one comes from its last word to its HLT.
const ROUNDS: usize = 8;
/// Instructions in which a processor comes that was started.
const ARRIVAL: u64 = 1 << 24;

/// The guest's time at the end of the turn. In the machine's, which continues while the hypervisor works, a guest that is
/// stepped would come a few instructions further in each of its turns.
static END: AtomicU64 = AtomicU64::new(0);
/// The turn is to end before the guest runs on.
static ENDS: AtomicBool = AtomicBool::new(false);

fn status(shared: &Startup, index: usize) -> Status {
    Status::from_number(shared.processors[index].status.load(SeqCst))
}

fn set_status(shared: &Startup, index: usize, status: Status) {
    shared.processors[index].status.store(status as u64, SeqCst);
}

/// The first processor's copy: it is the only one, and it is its turn.
pub fn begin() {
    if let Some(shared) = shared() {
        set_status(shared, 0, Status::Runs);
        shared.turn.store(0, SeqCst);
    }
}

/// Nanoseconds until the turn ends, if there is anybody else.
pub fn left(guest: &Guest) -> Option<u64> {
    let shared = shared()?;
    let has_turns = |one| status(shared, one).has_turns() || status(shared, one) == Status::Dozes;
    let has_others = (0..shared.all().len()).any(|one| one != index() && has_turns(one));
    has_others.then(|| {
        (END.load(SeqCst) + patience(guest))
            .saturating_sub(clock::now())
            .max(LEAST << guest.calibration.shift)
    })
}

/// Whether another processor's guest runs, and would continue.
pub fn others_run() -> bool {
    let Some(shared) = shared() else { return false };
    (0..shared.all().len()).any(|one| one != index() && status(shared, one) == Status::Runs)
}

/// The guest waits for another processor: the turn ends. Seldom do halted ones look then, as such turns are short.
pub fn give_way() {
    const LOOK: u64 = 16;
    static TURNS: AtomicU64 = AtomicU64::new(0);
    if let Some(shared) = shared() {
        let looks = if TURNS.fetch_add(1, SeqCst).is_multiple_of(LOOK) { 0 } else { LOOKS };
        shared.looks.store(looks, SeqCst);
    }
    end();
}

/// The turn ends before the guest runs on.
pub fn end() {
    ENDS.store(true, SeqCst);
}

/// Before each guest run: lets others have their turn when this one is over.
pub fn take(guest: &mut Guest) {
    let Some(shared) = shared() else { return };
    let shift = guest.calibration.shift;
    if is_over(guest) {
        pass(shared, Status::Runs, guest);
        renew(shared, shift);
    }
    take_nmi(shared, guest);
    if shared.timer_ahead.load(SeqCst) != 0 {
        guest.pm_timer.start();
    }
}

/// Whether the turn is over. Handlers of NMIs are short, and systems measure how long they take: others wait for a while.
fn is_over(guest: &Guest) -> bool {
    let patience = patience(guest);
    clock::now() >= END.load(SeqCst) + patience || patience == 0 && ENDS.swap(false, SeqCst)
}

/// What a turn may be longer.
fn patience(guest: &Guest) -> u64 {
    if guest.nmi_blocked { LONG << guest.calibration.shift } else { 0 }
}

/// Sets the end of the turn that begins.
fn renew(shared: &Startup, shift: u8) {
    let others = || (0..shared.all().len()).filter(|one| *one != index());
    let are = |wanted| others().any(|one| status(shared, one) == wanted);
    let instructions = match (are(Status::Runs), are(Status::Halted)) {
        (true, _) => SHORT,
        (_, true) => LONG,
        _ => DOZE,
    };
    END.store(clock::now() + (instructions << shift), SeqCst);
}

/// An NMI that another processor's guest has sent.
fn take_nmi(shared: &Startup, guest: &mut Guest) {
    if shared.processors[index()].nmi.swap(0, SeqCst) != 0 {
        guest.nmi_pending = true;
    }
}

/// The guest is halted, and has nothing to continue for: comes back when it may have.
pub fn halt(guest: &mut Guest, interruptible: bool) {
    let status = if interruptible { Status::Halted } else { Status::Stopped };
    idle(guest, interruptible, status, lapic::rings_at());
}

/// The guest waits for a write to memory, or an interrupt: comes back when another guest may have written.
pub fn doze(guest: &mut Guest, interruptible: bool) {
    // With interrupts on it is a system's idle loop, which other processors wake by the write alone.
    let (status, wait) = if interruptible { (Status::Halted, 0) } else { (Status::Dozes, DOZE) };
    idle(guest, interruptible, status, Some(clock::now() + (wait << guest.calibration.shift)));
}

/// `due`: when it is to have a turn, in the time of [`now_of`].
fn idle(guest: &mut Guest, interruptible: bool, status: Status, due: Option<u64>) {
    let Some(shared) = shared() else { return };
    // What came while others had their turn.
    tables::open(interruptible);
    take_nmi(shared, guest);
    if tables::has_vector() || guest.nmi_pending {
        return;
    }
    shared.processors[index()].due.store(due.unwrap_or(u64::MAX), SeqCst);
    pass(shared, status, guest);
    renew(shared, guest.calibration.shift);
    take_nmi(shared, guest);
}

/// Passes the turn on, and comes back when it is this processor's again, or still.
fn pass(shared: &Startup, own: Status, guest: &mut Guest) {
    let (mut statuses, mut called) = ([Status::Absent; handover::MAX_PROCESSORS], 0);
    let count = shared.all().len();
    set_status(shared, index(), own);
    for (one, place) in statuses.iter_mut().enumerate().take(count) {
        let processor = &shared.processors[one];
        let status = status(shared, one);
        let is_due = processor.due.load(SeqCst) <= now_of(status);
        *place = status.when_due(is_due);
        called |= u64::from(is_due || processor.called.load(SeqCst) != 0) << one;
    }
    let now = round(shared);
    let next = now.next(&statuses[..count], called);
    set_round(shared, now.with(next));
    match next {
        Next::Own => return,
        Next::Other(other) | Next::Look(other) => {
            leave(shared, guest);
            shared.turn.store(other as u64, SeqCst);
            wake(shared, other);
        }
        Next::Sleep => {
            leave(shared, guest);
            shared.slept.store(tsc(), SeqCst);
            shared.turn.store(NOBODY, SeqCst);
            shared.asleep.store(1, SeqCst);
            wake_halted(shared);
        }
    }
    wait(shared);
}

/// A timer rings by the machine's clock; who dozes looks again after so many instructions of the guest's.
fn now_of(status: Status) -> u64 {
    if status == Status::Dozes { clock::now() } else { tsc() }
}

fn round(shared: &Startup) -> Round {
    let [last, looker] = [&shared.last, &shared.looker].map(|one| one.load(SeqCst) as usize);
    Round { own: index(), last, looker, looks: shared.looks.load(SeqCst) }
}

fn set_round(shared: &Startup, round: Round) {
    shared.last.store(round.last as u64, SeqCst);
    shared.looker.store(round.looker as u64, SeqCst);
    shared.looks.store(round.looks, SeqCst);
}

/// The guest's time continues elsewhere. What its timer is set to is known by now and here alone.
fn leave(shared: &Startup, guest: &mut Guest) {
    guest.timer.step(guest.calibration.shift);
    guest.timer.release();
    shared.now.store(clock::now(), SeqCst);
}

/// Waits until it is this processor's turn.
pub fn wait(shared: &Startup) {
    let (own, bit) = (index(), 1 << index());
    while shared.turn.load(SeqCst) != own as u64 {
        let asleep = shared.asleep.load(SeqCst) != 0 && status(shared, own) == Status::Halted;
        if asleep {
            tables::sleep(true);
            if tables::has_vector() {
                rise(shared);
            }
        } else {
            shared.awake.fetch_and(!bit, SeqCst);
            tables::sleep(false);
            shared.awake.fetch_or(bit, SeqCst);
        }
    }
    tables::take_nmis();
    shared.processors[own].called.store(0, SeqCst);
    set_status(shared, own, Status::Runs);
    wait_until_halted(shared);
    if shared.timer_ahead.load(SeqCst) != 0 {
        clock::begin();
    }
    clock::take_over(shared.now.load(SeqCst));
}

/// An interrupt has come while all slept: whoever has the first one has the turn, and the others sleep no more.
fn rise(shared: &Startup) {
    set_status(shared, index(), Status::Runs);
    if shared.turn.compare_exchange(NOBODY, index() as u64, SeqCst, SeqCst).is_ok() {
        shared.asleep.store(0, SeqCst);
        shared.now.fetch_add(tsc() - shared.slept.load(SeqCst), SeqCst);
        wake_halted(shared);
    }
}

/// Wakes all other processors whose guests wait for interrupts.
fn wake_halted(shared: &Startup) {
    let others = (0..shared.all().len()).filter(|other| *other != index());
    others
        .filter(|other| status(shared, *other) == Status::Halted)
        .for_each(|other| wake(shared, other));
}

/// Wakes a processor that waits.
fn wake(shared: &Startup, other: usize) {
    shared.awake.fetch_or(1 << other, SeqCst);
    lapic::send_nmi(shared.processors[other].apic_id);
}

/// Waits until all others are halted.
fn wait_until_halted(shared: &Startup) {
    let others_are_awake = || shared.awake.load(SeqCst) & !(1 << index()) != 0;
    loop {
        while others_are_awake() {
            spin_loop();
        }
        (0..ROUNDS).for_each(|_| spin_loop());
        if !others_are_awake() {
            return;
        }
    }
}

/// The guest sends processor number `other` an interrupt: it has a turn soon.
pub fn call(other: usize) {
    if let Some(shared) = shared() {
        shared.processors[other].called.store(1, SeqCst);
        end();
    }
}

/// The guest sends INIT to processor number `other`.
pub fn reset(other: usize) {
    let Some(shared) = shared() else { return };
    set_status(shared, other, Status::Initial);
    shared.awake.fetch_and(!(1 << other), SeqCst);
}

/// The guest sends an NMI to processor number `other`.
pub fn send_nmi(other: usize) {
    let Some(shared) = shared() else { return };
    shared.processors[other].nmi.store(1, SeqCst);
    if matches!(status(shared, other), Status::Halted | Status::Stopped | Status::Dozes) {
        set_status(shared, other, Status::Runs);
    }
    end();
}

/// Whether processor number `other` waits to be started.
pub fn awaits_start(other: usize) -> bool {
    shared().is_some_and(|shared| status(shared, other) == Status::Initial)
}

/// Processor number `other` is about to be started: it runs until it has come into its copy.
pub fn expect(other: usize) {
    if let Some(shared) = shared() {
        shared.awake.fetch_or(1 << other, SeqCst);
    }
}

/// Waits for those that were started. They have their turn at once: that of a processor without others may be a long one.
pub fn welcome(shift: u8) {
    let Some(shared) = shared() else { return };
    let others = || shared.awake.load(SeqCst) & !(1 << index());
    let begun = tsc();
    while others() != 0 {
        spin_loop();
        if tsc() - begun > ARRIVAL << shift {
            // They never came: nobody waits for them any more.
            shared.awake.fetch_and(!others(), SeqCst);
        }
    }
    wait_until_halted(shared);
    end();
}

/// This processor has come into its copy, and waits for its first turn.
pub fn arrive() {
    let Some(shared) = shared() else { return };
    shared.processors[index()].nmi.store(0, SeqCst);
    set_status(shared, index(), Status::Runs);
    ENDS.store(false, SeqCst);
    END.store(0, SeqCst);
    wait(shared);
}
