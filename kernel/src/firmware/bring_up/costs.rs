//! What single instructions cost in ticks of the TSC, between two readings of it.

use crate::firmware::probe::Machine;
use alloc::format;
use alloc::vec::Vec;
use arch::cpu;
use arch::pmu::driver::Layout;
use arch::pmu::{Counter, Registers as _};
use arch::time::tsc;
use kernel::bring_up::measure;
use protocol::record::Measure;

/// So often is each measured; the least is what it costs where nothing comes in between.
const RUNS: usize = 64;

pub(super) fn measure_all(machine: &Machine, item: u32, report: &mut dyn FnMut(Measure)) {
    each(machine, &mut |name, work| {
        let values = runs(RUNS, work).into_iter().map(|ticks| ticks as i64).collect();
        report(measure(item, &format!("cost.{name}"), "TSC ticks", values));
    });
}

/// Ticks of each of so many runs.
pub fn runs(count: usize, work: &mut dyn FnMut()) -> Vec<u64> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = tsc::now();
        work();
        values.push(tsc::now().wrapping_sub(begin));
    }
    values
}

/// Names each instruction, the first of which is none, and does it.
pub fn each(machine: &Machine, one: &mut dyn FnMut(&str, &mut dyn FnMut())) {
    one("nothing", &mut || {});
    one("cpuid", &mut cpu::serialise);
    let Ok(has) = &machine.announced else { return };
    // SAFETY: the firmware owns the PMU, and no counter has an interrupt.
    let mut registers = unsafe { arch::pmu::Machine::new() };
    let layout = Layout::of(has);
    let Some(first) = has.generals().next() else { return };
    let (counter, select) = (layout.counter(first), layout.select(first.index() as u8));
    one("rdpmc", &mut || {
        let _ = registers.rdpmc(Layout::rdpmc_index(first));
    });
    one("rdmsr", &mut || {
        let _ = registers.rdmsr(counter);
    });
    one("wrmsr_counter", &mut || {
        let _ = registers.wrmsr(counter, 0);
    });
    one("wrmsr_select", &mut || {
        let _ = registers.wrmsr(select, 0);
    });
    if let Some(global) = layout.global {
        one("wrmsr_global", &mut || {
            let _ = registers.wrmsr(global.control, 0);
        });
    }
    if has.has(Counter::Fixed(0)) {
        one("rdpmc_fixed", &mut || {
            let _ = registers.rdpmc(Layout::rdpmc_index(Counter::Fixed(0)));
        });
    }
}
