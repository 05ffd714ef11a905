//! Stolen time, the timer, and what transitions cost.

mod timer;
mod transitions;
mod window;

use super::bring_up::costs;
use super::probe::Machine;
use super::reset;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use arch::acpi::smi;
use arch::cpu::Hypervisor;
use arch::memory::cache;
use arch::memory::user::UserPages;
use arch::time::tsc;
use protocol::job::facts::Watch;
use protocol::record::{NoiseFacts, Times, TransitionCost};

/// Milliseconds that each processor is watched, if nobody says how many: the window of Linux's `hwlat` is as long. Where the clock
/// counts instructions a hundredth of it.
const WINDOW_MS: u32 = 1000;
const WINDOW_MS_COUNTED: u32 = 10;
/// How often each transition is made, the timer comes, and all caches are written back.
const RUNS: usize = 200;
const TIMER_RUNS: usize = 200;
const FLUSHES: usize = 8;
/// Bytes that are written before WBINVD writes them back.
const DIRTY: usize = 256 << 10;

/// Measures.
///
/// # Errors
/// System management interrupts are to be raised, and cannot be.
pub fn measure(
    watch: &Watch,
    machine: &Machine,
    counts_smis: bool,
    user: &UserPages,
) -> Result<NoiseFacts, String> {
    let clock = &machine.clock;
    let counted = machine.runs_in_turn();
    let ms = match (watch.ms, counted) {
        (0, false) => WINDOW_MS,
        (0, true) => WINDOW_MS_COUNTED,
        (ms, _) => ms,
    };
    let command = match watch.smis {
        0 => None,
        // In system management mode the hypervisor beneath would be left by what it intercepts.
        _ if machine.emulated.is_some() => {
            return Err("smis: the emulated PMU takes no system management interrupts".to_string());
        }
        smis => {
            let command = smi_command(machine).ok_or(
                "smis: no table of the machine names a port by which a system management interrupt is raised",
            )?;
            Some((smis, command))
        }
    };
    let threshold = u64::from(watch.threshold_ns) * clock.hz / 1_000_000_000;
    let plan = window::Plan {
        ticks: clock.ticks_of_us(u64::from(ms) * 1000),
        threshold,
        together: !counted,
        counts_smis,
        raised: command,
        hz: clock.hz,
    };
    let windows = window::all(&plan);
    let together = plan.together && windows.len() > 1;
    let mut reasons = Vec::new();
    let timer = timer::measure(clock, machine.apic_timer_hz, TIMER_RUNS);
    let timer = timer.map_err(|reason| reasons.push(reason)).ok();
    reset::reload(tsc::now(), clock.hz);
    Ok(NoiseFacts {
        tsc_hz: clock.hz,
        hypervisor: hypervisor(machine),
        threshold,
        together,
        raised: watch.smis,
        windows,
        timer,
        costs: transition_costs(machine, user),
        reasons,
    })
}

/// Whom an instruction that leaves the guest leads to. QEMU's translator executes all of them itself.
fn hypervisor(machine: &Machine) -> Option<String> {
    if machine.emulated.is_some() {
        return Some("the emulated PMU".to_string());
    }
    let beneath = machine.hypervisor.filter(|one| *one != Hypervisor::Tcg);
    beneath.map(|one| one.name().to_string())
}

/// The port and the value by which the machine's firmware is entered.
fn smi_command(machine: &Machine) -> Option<(u16, u8)> {
    let mut found = None;
    let look = |_: usize, table: &[u8]| {
        if table.starts_with(b"FACP") {
            found = smi::command(table);
        }
    };
    // SAFETY: the tables were read before; physical memory is mapped.
    unsafe { machine.platform.each_table(look) };
    found
}

fn transition_costs(machine: &Machine, user: &UserPages) -> Vec<TransitionCost> {
    let all = core::cell::RefCell::new(Vec::new());
    let note = |name: &str, mut values: Vec<u64>| {
        let ticks = Times::of(&mut values);
        all.borrow_mut().push(TransitionCost { name: name.to_string(), ticks });
    };
    let mut one = |name: &str, work: &mut dyn FnMut()| note(name, costs::runs(RUNS, work));
    let mut many = |name: &str, turns: u64, work: &mut dyn FnMut(u64)| {
        // Twice as many turns less as many, so that the way there and back is not in it.
        let once = |work: &mut dyn FnMut(u64), turns| {
            let begin = tsc::now();
            work(turns);
            tsc::now().wrapping_sub(begin)
        };
        let mut values = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let (few, more) = (once(work, turns), once(work, 2 * turns));
            values.push(more.saturating_sub(few) / turns);
        }
        note(name, values);
    };
    costs::each(machine, &mut one);
    transitions::each(user, &mut one, &mut many);
    let mut dirty = vec![0_u8; DIRTY];
    // SAFETY: ring 0; nothing is lost.
    let flush = || unsafe { cache::write_back_all() };
    flush();
    note("wbinvd", costs::runs(FLUSHES, &mut || flush()));
    let mut written = Vec::new();
    for turn in 0..FLUSHES {
        dirty.fill(turn as u8);
        core::hint::black_box(&mut dirty);
        written.extend(costs::runs(1, &mut || flush()));
    }
    note("wbinvd_256k_dirty", written);
    all.into_inner()
}
