//! Stolen time on each processor.

use crate::firmware::cores::patience::Patience;
use crate::firmware::per_cpu::BOOT;
use crate::firmware::reset;
use alloc::vec::Vec;
use arch::msr::{self, Msr};
use arch::smp;
use arch::time::tsc;
use core::sync::atomic::{AtomicUsize, Ordering};
use facts::gaps::{Gaps, watch};
use protocol::record::NoiseWindow;
use spin::Mutex;
use x86_64::instructions::port::Port;

/// MSR_SMI_COUNT (SDM vol. 4, from Nehalem on).
const SMI_COUNT: Msr = Msr(0x34);

/// How processors are watched.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// For so many ticks each.
    pub ticks: u64,
    /// From so many ticks on time between two readings is stolen.
    pub threshold: u64,
    /// All at the same time, or one after the other.
    pub together: bool,
    /// Whether they count system management interrupts.
    pub counts_smis: bool,
    /// Of those, how many the first one raises, and how.
    pub raised: Option<(u32, (u16, u8))>,
    /// Ticks of the TSC in a second.
    pub hz: u64,
}

/// Watches each processor.
pub fn all(plan: &Plan) -> Vec<NoiseWindow> {
    let gaps: Vec<Mutex<Option<Gaps>>> =
        (0..smp::count()).map(|_| Mutex::new(Some(Gaps::new(plan.threshold)))).collect();
    let offsets = smp::offsets().expect(BOOT);
    let ready = AtomicUsize::new(0);
    let work = |place: usize| {
        let mut gaps = gaps[place].lock().take()?;
        if plan.together {
            // Those that do not come do not keep the others.
            ready.fetch_add(1, Ordering::AcqRel);
            let patience = Patience::new(plan.hz, false);
            patience.wait(|| ready.load(Ordering::Acquire) == smp::count());
        }
        let smis = smis(plan);
        match plan.raised.filter(|(count, _)| *count > 0 && place == 0) {
            None => watch(&mut gaps, plan.ticks, tsc::now),
            Some((count, command)) => raise(&mut gaps, plan.ticks, count, command),
        }
        let smis = smis_since(smis, plan);
        let mut window = gaps.finish();
        window.begin = window.begin.wrapping_add_signed(-offsets[place].ticks);
        Some(NoiseWindow { smis, ..window })
    };
    let mut windows = Vec::new();
    let mut take = |done: Vec<Option<Option<NoiseWindow>>>| {
        for (window, processor) in done.into_iter().zip(smp::in_use()) {
            let processor = processor.index() as u32;
            windows.extend(window.flatten().map(|window| NoiseWindow { processor, ..window }));
        }
        reset::reload(tsc::now(), plan.hz);
    };
    if plan.together {
        take(smp::on_some(|_| true, work).expect(BOOT));
    } else {
        for one in 0..smp::count() {
            take(smp::halting(|| smp::on_some(|place| place == one, work)).expect(BOOT));
        }
    }
    windows
}

fn smis(plan: &Plan) -> Option<u64> {
    // SAFETY: ring 0, interrupt table loaded; reading has no effect.
    plan.counts_smis.then(|| unsafe { msr::try_read(SMI_COUNT) }.ok()).flatten()
}

fn smis_since(before: Option<u64>, plan: &Plan) -> Option<u64> {
    before.zip(smis(plan)).map(|(before, now)| now.wrapping_sub(before) & u64::from(u32::MAX))
}

/// Watches while system management interrupts are raised, evenly over the time.
fn raise(gaps: &mut Gaps, ticks: u64, count: u32, (port, value): (u16, u8)) {
    let apart = ticks / (u64::from(count) + 1);
    let (mut left, mut next) = (count, tsc::now() + apart);
    let mut port = Port::<u8>::new(port);
    watch(gaps, ticks, || {
        if left > 0 && tsc::now() >= next {
            (left, next) = (left - 1, next + apart);
            // SAFETY: the FADT's command port, with a value that the table gives no meaning to: the machine's firmware is entered and
            // finds nothing to do.
            unsafe { port.write(value) };
        }
        tsc::now()
    });
}
