//! What single instructions cost in ticks of the TSC, between two readings of it.

use crate::firmware::probe::Machine;
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
    let mut one = |name: &str, work: &mut dyn FnMut()| {
        let mut values = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let begin = tsc::now();
            work();
            values.push(tsc::now().wrapping_sub(begin) as i64);
        }
        report(measure(item, name, "TSC ticks", values));
    };
    one("cost.nothing", &mut || {});
    one("cost.cpuid", &mut cpu::serialise);
    let Ok(has) = &machine.announced else { return };
    // SAFETY: the firmware owns the PMU, and no counter has an interrupt.
    let mut registers = unsafe { arch::pmu::Machine::new() };
    let layout = Layout::of(has);
    let Some(first) = has.generals().next() else { return };
    let (counter, select) = (layout.counter(first), layout.select(first.index() as u8));
    one("cost.rdpmc", &mut || {
        let _ = registers.rdpmc(Layout::rdpmc_index(first));
    });
    one("cost.rdmsr", &mut || {
        let _ = registers.rdmsr(counter);
    });
    one("cost.wrmsr_counter", &mut || {
        let _ = registers.wrmsr(counter, 0);
    });
    one("cost.wrmsr_select", &mut || {
        let _ = registers.wrmsr(select, 0);
    });
    if let Some(global) = layout.global {
        one("cost.wrmsr_global", &mut || {
            let _ = registers.wrmsr(global.control, 0);
        });
    }
    if has.has(Counter::Fixed(0)) {
        one("cost.rdpmc_fixed", &mut || {
            let _ = registers.rdpmc(Layout::rdpmc_index(Counter::Fixed(0)));
        });
    }
}
