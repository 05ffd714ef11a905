//! How long a processor that waits takes to answer.

use super::line::Line;
use super::patience::Patience;
use alloc::vec::Vec;
use arch::apic;
use arch::cpu;
use arch::interrupts;
use arch::time::tsc;
use arch::trap::TrapFrame;
use arch::vectors::CALL_VECTOR;
use core::arch::asm;
use core::hint::spin_loop;
use core::sync::atomic::Ordering;
use protocol::record::Waiting;
use raw_cpuid::CpuIdReader as _;
use x86_64::instructions::interrupts::{disable, enable, enable_and_hlt};

/// The interrupt that is answered. What comes late finds its handler still: it stays set.
const VECTOR: u8 = 0xe4;
/// Answers so far.
static ANSWERS: Line = Line::new();
/// Rounds that the other one is ready for.
static READY: Line = Line::new();
/// What MWAIT monitors: rounds that were begun.
static ASKED: Line = Line::new();
/// Nobody asks any more.
const OVER: u64 = u64::MAX;

fn on_ask(_: &mut TrapFrame) {
    ANSWERS.0.fetch_add(1, Ordering::Release);
    apic::end_of_interrupt();
}

/// CPUID leaf 1, ECX bit 3: MONITOR and MWAIT.
const MONITOR: u32 = 1 << 3;

/// Each way that this processor has, and whether it has more that would stop its TSC: see [`facts::cores::hints`].
pub fn ways(is_invariant: bool) -> (Vec<(Waiting, Option<u32>)>, bool) {
    let cpuid = cpu::native();
    let mut all = Vec::from([(Waiting::Runs, None), (Waiting::Hlt, None)]);
    let mut left_out = false;
    if cpuid.cpuid1(1).ecx & MONITOR != 0 {
        let states = if cpu::has_leaf(&cpuid, 5) { cpuid.cpuid1(5).edx } else { 0 };
        let hints;
        (hints, left_out) = facts::cores::hints(states, is_invariant);
        all.extend(hints.into_iter().map(|hint| (Waiting::Mwait, Some(hint))));
    }
    (all, left_out)
}

/// Before both sides begin.
pub fn prepare() {
    interrupts::set_handler(VECTOR, Some(on_ask));
    for line in [&ANSWERS, &READY, &ASKED] {
        line.0.store(0, Ordering::Release);
    }
}

/// The side that asks the processor with this APIC id, `settle` ticks after that is ready: ticks until the answer. Returns whether
/// all came.
pub fn ask(
    waiting: Waiting,
    apic_id: u32,
    samples: &mut [u64],
    settle: u64,
    patience: &Patience,
) -> bool {
    let one = |round: u64, sample: &mut u64| {
        if !patience.wait(|| READY.0.load(Ordering::Acquire) == round) {
            return false;
        }
        // It says that it is ready in front of the instruction by which it waits, and a state of sleep takes time to be reached.
        Patience::pass(settle);
        let begun = tsc::now();
        match waiting {
            Waiting::Mwait => ASKED.0.store(round, Ordering::Release),
            Waiting::Runs | Waiting::Hlt => apic::send(apic_id, VECTOR),
        }
        let came = patience.wait(|| ANSWERS.0.load(Ordering::Acquire) == round);
        *sample = tsc::now().wrapping_sub(begun);
        came
    };
    let all = samples.iter_mut().zip(1..).all(|(sample, round)| one(round, sample));
    if !all {
        // Who waits still is not left behind.
        ASKED.0.store(OVER, Ordering::Release);
        apic::send(apic_id, CALL_VECTOR);
    }
    all
}

/// The side that waits, so often.
pub fn answer(waiting: Waiting, hint: u32, rounds: u64) {
    let is_over = || ASKED.0.load(Ordering::Acquire) == OVER;
    for round in 1..=rounds {
        let is_answered = || ANSWERS.0.load(Ordering::Acquire) >= round;
        READY.0.store(round, Ordering::Release);
        match waiting {
            Waiting::Runs => {
                enable();
                while !is_answered() && !is_over() {
                    spin_loop();
                }
                disable();
            }
            Waiting::Hlt => {
                // STI holds interrupts back until HLT: one that comes after the look wakes.
                while !is_answered() && !is_over() {
                    enable_and_hlt();
                    disable();
                }
            }
            Waiting::Mwait => {
                enable();
                while ASKED.0.load(Ordering::Acquire) < round {
                    // A write after MONITOR lets MWAIT go on at once.
                    monitor(&ASKED);
                    if ASKED.0.load(Ordering::Acquire) < round {
                        mwait(hint);
                    }
                }
                disable();
                ANSWERS.0.store(round, Ordering::Release);
            }
        }
        if is_over() {
            return;
        }
    }
}

fn monitor(line: &Line) {
    // SAFETY: ring 0, and CPUID says that the instruction is there; no extensions or hints.
    unsafe {
        asm!("monitor", in("rax") line.0.as_ptr(), in("ecx") 0, in("edx") 0, options(nostack, preserves_flags));
    }
}

fn mwait(hint: u32) {
    // SAFETY: as above; interrupts wake as well.
    unsafe { asm!("mwait", in("eax") hint, in("ecx") 0, options(nostack, preserves_flags)) };
}
