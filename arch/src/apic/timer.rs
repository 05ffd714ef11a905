//! The rate of the local APIC's timer.

use super::{Apic, LVT_MASK, Register};
use crate::time::{Clock, tsc};

/// Divide configuration 0b1011: divide by 1 (SDM vol. 3, figure 10-10).
const DIVIDE_BY_1: u32 = 0b1011;
/// How long the timer is watched.
const WATCH_US: u64 = 100;

/// Measures the timer against the TSC, with the timer's interrupt masked. In Hz before the divider; 0 if
/// it does not count.
pub fn timer_hz(apic: &mut Apic, clock: &Clock) -> u64 {
    let registers = &mut apic.registers;
    registers.write(Register::LvtTimer, LVT_MASK);
    registers.write(Register::TimerDivide, DIVIDE_BY_1);
    registers.write(Register::TimerInitialCount, u32::MAX);
    let (start, first) = (tsc::now(), registers.read(Register::TimerCurrentCount));
    tsc::wait(clock.ticks_of_us(WATCH_US));
    let (end, last) = (tsc::now(), registers.read(Register::TimerCurrentCount));
    registers.write(Register::TimerInitialCount, 0);
    let (counted, ticks) = (u128::from(first - last), u128::from(end - start));
    (counted * u128::from(clock.hz) / ticks) as u64
}
