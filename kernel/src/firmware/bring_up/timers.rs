//! The machine's timers against its TSC, whose rate the firmware found at the start.

use crate::firmware::probe::Machine;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arch::apic::{self, Register, Timer};
use arch::interrupts;
use arch::time::hpet::Hpet;
use arch::time::pit::{self, Countdown};
use arch::time::{PM_TIMER_HZ, rtc, tsc};
use arch::trap::TrapFrame;
use kernel::bring_up::{measure, rate};
use protocol::record::Measure;
use x86_64::instructions::interrupts::{disable, enable_and_hlt};

/// Windows, and how long each is: the power management timer resolves a ten-thousandth of it.
const WINDOWS: usize = 4;
const WINDOW_US: u64 = 3_000;
/// LVT entry: masked. Divide configuration 0b1011: by 1 (SDM vol. 3, figure 10-10).
const MASKED: u32 = 1 << 16;
const DIVIDE_BY_1: u32 = 0b1011;

/// A counter that goes up.
struct Source {
    name: &'static str,
    told: u64,
    /// Counts beyond it begin again at 0.
    mask: u64,
    read: Box<dyn FnMut() -> u64>,
}

pub(super) fn measure_all(machine: &Machine, item: u32, report: &mut dyn FnMut(Measure)) {
    let hz = machine.clock.hz;
    let told = machine.clock.told_hz.unwrap_or(hz) as i64;
    report(Measure {
        told: Some(told),
        ..measure(item, "timer.tsc", "Hz", Vec::from([hz as i64]))
    });
    // SAFETY: the tables were read before; the HPET is nobody else's.
    let hpet = unsafe { machine.platform.hpet().and_then(|address| Hpet::start(address)) };
    for mut source in sources(machine, hpet.as_ref().map(|hpet| (hpet.told_hz(), hpet.mask()))) {
        let mut look = |hpet: &Option<Hpet>| {
            let before = tsc::now();
            let count = match (source.name, hpet) {
                ("timer.hpet", Some(hpet)) => hpet.count(),
                _ => (source.read)(),
            };
            (before + (tsc::now() - before) / 2, count)
        };
        let mut values = Vec::new();
        let mut last = look(&hpet);
        for _ in 0..WINDOWS {
            tsc::wait(machine.clock.ticks_of_us(WINDOW_US));
            let next = look(&hpet);
            let counts = next.1.wrapping_sub(last.1) & source.mask;
            values.push(rate(counts, next.0 - last.0, hz) as i64);
            last = next;
        }
        let told = Some(source.told as i64);
        report(Measure { told, ..measure(item, source.name, "Hz", values) });
    }
    if let Some(hpet) = hpet {
        hpet.stop();
    }
    apic::write(Register::TimerInitialCount, 0);
    if let Some(us) = second(machine) {
        let told = Some(1_000_000);
        report(Measure {
            told,
            ..measure(item, "timer.rtc", "us of the TSC in a second", Vec::from([us]))
        });
    }
}

/// The timers that there are; the HPET's reader is its owner.
fn sources(machine: &Machine, hpet: Option<(u64, u64)>) -> Vec<Source> {
    let mut list = Vec::new();
    if machine.apic_timer_hz > 0 {
        apic::write(Register::LvtTimer, MASKED);
        apic::write(Register::TimerDivide, DIVIDE_BY_1);
        apic::write(Register::TimerInitialCount, u32::MAX);
        let read = || u64::from(u32::MAX - apic::read(Register::TimerCurrentCount));
        list.push(Source {
            name: "timer.apic",
            told: machine.apic_timer_hz,
            mask: u32::MAX.into(),
            read: Box::new(read),
        });
    }
    if let Some((told, mask)) = hpet {
        list.push(Source { name: "timer.hpet", told, mask, read: Box::new(|| 0) });
    }
    if let Some(timer) = machine.platform.pm_timer {
        let mask = timer.between(0, u32::MAX);
        let read = Box::new(move || timer.read().into());
        list.push(Source { name: "timer.acpi_pm", told: PM_TIMER_HZ, mask, read });
    }
    let mut pit = Countdown::start();
    let read = Box::new(move || pit.elapsed());
    list.push(Source { name: "timer.pit", told: pit::HZ, mask: 0xffff, read });
    list
}

/// The vector of the interrupts that wake; its handler only ends it.
const VECTOR: u8 = 0xe2;

fn on_wake(_: &mut TrapFrame) {
    apic::end_of_interrupt();
}

/// A second of the real-time clock in microseconds of the TSC. The processor is halted nearly all of the time.
fn second(machine: &Machine) -> Option<i64> {
    let us = |us: u64| machine.clock.ticks_of_us(us);
    rtc::seconds()?;
    interrupts::set_handler(VECTOR, Some(on_wake));
    // SAFETY: ring 0, APIC on, the handler is set, and nobody else uses the timer now.
    let timer = unsafe { Timer::new(&machine.clock, machine.apic_timer_hz, VECTOR) };
    let found = timer.and_then(|mut timer| {
        let mut halt = |ticks: u64| {
            timer.once(ticks);
            enable_and_hlt();
            disable();
        };
        // Halts until `from`, then in slices to the next second; a second look tells an update from a second.
        let mut edge = |from: u64, slice: u64| {
            while let left @ 1.. = from.saturating_sub(tsc::now()) {
                halt(left);
            }
            let (begin, limit) = (rtc::seconds()?, tsc::now() + us(1_500_000));
            while tsc::now() < limit {
                halt(slice);
                let now = tsc::now();
                if rtc::seconds()? != begin {
                    halt(us(3_000));
                    if rtc::seconds()? != begin {
                        return Some(now);
                    }
                }
            }
            None
        };
        let begun = edge(0, us(1_000))?;
        let first = edge(begun + us(980_000), us(20))?;
        let second = edge(first + us(980_000), us(20))?;
        timer.stop();
        Some(rate(second - first, machine.clock.hz, 1_000_000) as i64)
    });
    apic::write(Register::LvtTimer, MASKED);
    interrupts::set_handler(VECTOR, None);
    found
}
