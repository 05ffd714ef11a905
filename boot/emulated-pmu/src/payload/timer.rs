//! The timer of the guest's local APIC, held back while the hypervisor works, so that it does not ring before the guest has
//! had the time that it was set for.
//!
//! While instructions are stepped the timer stands still, and an instruction that touches its registers finds it running.
//! Otherwise it is pushed back now and then, when the hypervisor has taken enough. A periodic timer is set for one interrupt
//! at a time from then on, in one-shot mode, and for the next one when that has come; device interrupts make the guest leave
//! meanwhile, so that this is noticed. A guest that reads the timer's registers back sees that.

use super::guest::Guest;
use super::port::tsc;
use super::{clock, lapic};
use iced_x86::{Code, Instruction, OpKind};

/// Instructions of the hypervisor's that are worth pushing the timer back for.
const WORTH: u64 = 4096;
/// Instructions of the hypervisor's between a look at the timer and one at the clock, at most.
const SLACK: u64 = 256;
/// Ticks that the timer takes beyond its initial count. SDM vol. 3, 11.5.4 has the interrupt at 0, QEMU one tick later.
const BEYOND: u64 = 1;
/// Bit 12 of the LVT timer register, whose delivery status QEMU never tells, and keeps as it is written: the guest's mode is
/// periodic.
const MADE_ONE_SHOT: u32 = 1 << 12;
/// Offsets of its registers in the xAPIC's page: LVT timer, initial count, current count, divide configuration.
const REGISTERS: [u64; 4] = [0x320, 0x380, 0x390, 0x3e0];
const PAGE: u64 = 4096;

/// When it is to ring.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// The guest's time.
    deadline: u64,
    /// From one interrupt to the next, if the guest has made it periodic.
    period: Option<u64>,
}

/// What the hypervisor has written to it.
#[derive(Clone, Copy, Debug)]
struct Armed {
    setting: Setting,
    lvt: u32,
    initial: u32,
    /// The machine's time then, and when it rings.
    at: u64,
    rings: u64,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// It stands still.
    held: Option<Setting>,
    armed: Option<Armed>,
    /// There is nothing to hold.
    idle: bool,
    /// How far the machine was ahead when it was looked at last.
    looked: u64,
}

impl Timer {
    /// Before an instruction is stepped: it stands still, or rings at once if its time has come.
    pub fn step(&mut self, shift: u8) {
        match self.held {
            Some(setting) if setting.deadline <= clock::now() => {
                self.release();
            }
            None if !self.idle && clock::is_own() => self.hold(shift),
            _ => {}
        }
    }

    /// Before the guest runs at full speed: it runs, as far after as the hypervisor has worked.
    pub fn run(&mut self, shift: u8) {
        self.release();
        let worth_it = clock::ahead().wrapping_sub(self.looked) > WORTH << shift;
        if clock::is_own() && (worth_it || self.has_rung()) {
            self.hold(shift);
            self.release();
            self.looked = clock::ahead();
        }
    }

    /// Whether device interrupts must be seen, as one of them may be that of a periodic timer.
    pub fn is_watched(&self) -> bool {
        self.armed.is_some_and(|armed| armed.setting.period.is_some())
    }

    /// Whether a periodic timer must be set for its next interrupt.
    fn has_rung(&self) -> bool {
        self.armed.is_some_and(|armed| armed.setting.period.is_some() && armed.rings <= tsc())
    }

    fn hold(&mut self, shift: u8) {
        let Some(timer) = lapic::timer() else {
            self.armed = None;
            self.idle = true;
            return;
        };
        let machine = tsc();
        let own = self.armed.filter(|armed| armed.is_still(&timer, machine, SLACK << shift));
        let setting = match own {
            Some(Armed { setting, rings, .. }) if rings > machine => Some(setting),
            Some(Armed { setting: Setting { deadline, period: Some(period) }, .. }) => {
                Some(Setting { deadline: deadline + period, period: Some(period) })
            }
            Some(_) => None,
            None => guests(&timer, machine),
        };
        match setting {
            Some(_) => lapic::set_timer(&timer, timer.lvt, 0),
            None => self.armed = None,
        }
        self.idle = setting.is_none();
        self.held = setting;
    }

    /// It runs again. The machine's time from which on it does, if it stood still.
    pub fn release(&mut self) -> Option<u64> {
        self.idle = false;
        let setting = self.held.take()?;
        let timer = lapic::timer()?;
        let left = setting.deadline.saturating_sub(clock::now()) >> timer.shift;
        let initial = left.saturating_sub(BEYOND).clamp(1, u64::from(u32::MAX)) as u32;
        let made = if setting.period.is_some() { MADE_ONE_SHOT } else { 0 };
        let lvt = timer.lvt & !(lapic::PERIODIC | MADE_ONE_SHOT) | made;
        let begun = tsc();
        lapic::set_timer(&timer, lvt, initial);
        let at = tsc();
        let rings = at + ((u64::from(initial) + BEYOND) << timer.shift);
        self.armed = Some(Armed { setting, lvt, initial, at, rings });
        Some(begun)
    }
}

/// What the guest has set it to. Until it left, its clock and the machine's ran together.
fn guests(timer: &lapic::Timer, machine: u64) -> Option<Setting> {
    let is_periodic = timer.lvt & (lapic::PERIODIC | MADE_ONE_SHOT) != 0;
    let ticks = |count: u32| (u64::from(count) + BEYOND) << timer.shift;
    let rings = machine + ticks(timer.current);
    let deadline = clock::now() + rings.saturating_sub(clock::left());
    let setting = Setting { deadline, period: is_periodic.then(|| ticks(timer.initial)) };
    (timer.current > 0).then_some(setting)
}

impl Armed {
    /// Whether `timer`, looked at at the machine's time `machine`, has not been set again since.
    fn is_still(&self, timer: &lapic::Timer, machine: u64, slack: u64) -> bool {
        let gone = machine.wrapping_sub(self.at) >> timer.shift;
        let expected = u64::from(self.initial).saturating_sub(gone);
        (self.lvt, self.initial) == (timer.lvt, timer.initial)
            && expected.abs_diff(timer.current.into()) <= (slack >> timer.shift) + 2
    }
}

/// Whether `instruction`, the guest's next one, touches the timer's registers.
pub fn is_touched(guest: &Guest, instruction: &Instruction) -> bool {
    if matches!(instruction.code(), Code::Rdmsr | Code::Wrmsr) {
        let number = guest.registers.rcx & 0xffff_ffff;
        return REGISTERS.iter().any(|register| number == 0x800 + (register >> 4));
    }
    let register = |name, _, _| Some(guest.register(name));
    (0..instruction.op_count())
        .filter(|operand| instruction.op_kind(*operand) == OpKind::Memory)
        .filter_map(|operand| instruction.virtual_address(operand, 0, register))
        .filter(|linear| REGISTERS.contains(&(linear % PAGE)))
        .any(|linear| guest.physical(linear).is_some_and(lapic::is_in_page))
}
