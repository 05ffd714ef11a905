//! PMIs: where each came, and what the counters had come to.

use crate::{apic, counting};
use alloc::vec::Vec;
use program_format::layout::vector;
use program_format::{Pmu, Write};
use spin::Mutex;

/// How many are acted upon. The counters are not armed again after the last, so that every program ends, however short
/// its periods are.
pub const MOST: usize = 24;

/// A PMI, or an NMI that the program sent itself.
pub struct Pmi {
    pub vector: u64,
    pub rip: u64,
    pub status: u64,
    pub counts: Vec<u64>,
}

struct State {
    pmu: Pmu,
    seen: Vec<Pmi>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Before a program: none yet.
pub fn reset(pmu: &Pmu) {
    // What the handler must not do is wait for memory.
    let seen = Vec::with_capacity(MOST);
    *STATE.lock() = Some(State { pmu: pmu.clone(), seen });
}

/// Those of the last program.
pub fn take() -> Vec<Pmi> {
    STATE.lock().as_mut().map(|state| core::mem::take(&mut state.seen)).unwrap_or_default()
}

/// What a handler does: stops, looks, acknowledges, arms again, and starts.
pub extern "sysv64" fn note(number: u64, rip: u64) {
    // An NMI within the handler of a PMI leaves everything to that.
    let Some(mut guard) = STATE.try_lock() else { return };
    let Some(state) = guard.as_mut().filter(|state| state.seen.len() < MOST) else {
        return acknowledge(number);
    };
    let pmu = &state.pmu;
    counting::each(&pmu.stop);
    let counts: Vec<u64> = pmu.counters.iter().map(|&register| counting::read(register)).collect();
    let mut status = 0;
    if let Some([register, clear]) = pmu.status {
        status = counting::read(register);
        counting::each(&[Write { register: clear.into(), value: status }]);
    }
    state.seen.push(Pmi { vector: number, rip, status, counts });
    for preset in &pmu.presets {
        if counting::read(preset.counter) & preset.bit == 0 && state.seen.len() < MOST {
            counting::each(&[preset.write]);
        }
    }
    apic::set_lvtpc(pmu.lvtpc);
    acknowledge(number);
    // A PMI of the write that stopped the counters comes after it.
    if counting::is_running() {
        counting::each(&pmu.start);
    }
}

fn acknowledge(number: u64) {
    if number == u64::from(vector::PMI) {
        apic::write(apic::EOI, 0);
    }
}
