//! The guest's own local APIC, as far as a performance monitoring interrupt needs it: what LVTPC requests, its mask
//! bit, and the way in for a fixed vector.

use super::port::{read_msr, tsc, write_msr};
use emulated_pmu::ipi::{Command, Kind, Receiver};

/// IA32_APIC_BASE.
const APIC_BASE: u32 = 0x1b;
const ENABLE: u64 = 1 << 11;
const X2APIC: u64 = 1 << 10;
const PAGE: u64 = 0x000f_ffff_ffff_f000;
/// xAPIC offsets; the x2APIC's MSR is 0x800 plus a sixteenth.
const LVTPC: u64 = 0x340;
const ID: u64 = 0x20;
/// The lower half of the interrupt command register; the upper half is after it.
pub const COMMAND: u64 = 0x300;
pub const COMMAND_HIGH: u64 = 0x310;
/// The logical destination register, and its format.
pub const DESTINATION: u64 = 0xd0;
pub const DESTINATION_FORMAT: u64 = 0xe0;
const SPURIOUS: u64 = 0xf0;
const TIMER: u64 = 0x320;
const INITIAL: u64 = 0x380;
const CURRENT: u64 = 0x390;
const DIVIDE: u64 = 0x3e0;
/// LVT timer bits 18:17: 0 is one-shot mode, 1 periodic.
pub const PERIODIC: u32 = 0b01 << 17;
const DEADLINE: u32 = 0b10 << 17;
/// LVTPC bit 16.
const MASK: u32 = 1 << 16;
/// SVR bit 8.
const SOFTWARE_ENABLE: u32 = 1 << 8;
/// Interrupt command: destination shorthand "self", fixed, edge.
const TO_SELF: u32 = 0b01 << 18;

/// What LVTPC says is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// Nothing: masked, switched off, or a mode that does not fit.
    None,
    /// A fixed vector.
    Fixed(u8),
    /// A non-maskable interrupt.
    Nmi,
}

/// IA32_APIC_BASE, as the processor has it.
pub fn base() -> u64 {
    // SAFETY: every x86-64 processor has the register.
    unsafe { read_msr(APIC_BASE) }
}

fn read(base: u64, register: u64) -> u32 {
    // SAFETY: the APIC is on, in the mode that the base says; none of the registers changes by being read.
    unsafe {
        if base & X2APIC != 0 {
            read_msr(0x800 + (register as u32 >> 4)) as u32
        } else {
            ((base & PAGE | register) as *const u32).read_volatile()
        }
    }
}

fn write(base: u64, register: u64, value: u32) {
    // SAFETY: as above; the values are ones that the guest could have written.
    unsafe {
        if base & X2APIC != 0 {
            write_msr(0x800 + (register as u32 >> 4), u64::from(value));
        } else {
            ((base & PAGE | register) as *mut u32).write_volatile(value);
        }
    }
}

/// Whether there is a local APIC to work with.
pub fn is_usable() -> bool {
    base() & ENABLE != 0
}

/// The timer, as it is set.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// The register of its interrupt.
    pub lvt: u32,
    pub initial: u32,
    pub current: u32,
    /// It takes 2 to the power of this nanoseconds for a tick.
    pub shift: u32,
}

/// The timer, if it counts down for an interrupt.
pub fn timer() -> Option<Timer> {
    let base = base();
    if base & ENABLE == 0 {
        return None;
    }
    let lvt = read(base, TIMER);
    if lvt & (MASK | DEADLINE) != 0 {
        return None;
    }
    let divide = read(base, DIVIDE);
    // SDM vol. 3, figure 11-10: bits 3, 1 and 0; 111 divides by 1.
    let shift = ((divide & 0b11 | divide >> 1 & 0b100) + 1) & 7;
    Some(Timer { lvt, initial: read(base, INITIAL), current: read(base, CURRENT), shift })
}

/// The machine's time at which the timer rings, if it does.
pub fn rings_at() -> Option<u64> {
    let timer = timer().filter(|timer| timer.current > 0)?;
    Some(tsc() + (u64::from(timer.current) << timer.shift))
}

/// Starts the timer, or stops it with 0. A different `lvt` changes its mode first.
pub fn set_timer(timer: &Timer, lvt: u32, initial: u32) {
    let base = base();
    if base & ENABLE == 0 {
        return;
    }
    if lvt != timer.lvt {
        write(base, TIMER, lvt);
    }
    write(base, INITIAL, initial);
}

/// Whether `physical` is in the page of the xAPIC's registers, and they are in use.
pub fn is_in_page(physical: u64) -> bool {
    let base = base();
    base & (ENABLE | X2APIC) == ENABLE && physical & PAGE == base & PAGE
}

/// The page of the xAPIC's registers.
pub fn page() -> u64 {
    base() & PAGE
}

/// The upper half of the interrupt command register: where the next command goes.
pub fn destination() -> u32 {
    read(base(), COMMAND_HIGH)
}

/// Sends an NMI to the processor with this APIC id. The guest may be about to send something itself.
pub fn send_nmi(apic_id: u64) {
    const NMI: u32 = 0b100 << 8 | 1 << 14;
    let base = base();
    let destination = read(base, COMMAND_HIGH);
    write(base, COMMAND_HIGH, (apic_id as u32) << 24);
    write(base, COMMAND, NMI);
    write(base, COMMAND_HIGH, destination);
}

/// What the guest reads in a register of the xAPIC.
pub fn read_as_guest(register: u64) -> u32 {
    // SAFETY: the page of the registers, identity mapped; it is the guest's read.
    unsafe { ((page() | register) as *const u32).read_volatile() }
}

/// Writes what the guest writes to a register of the xAPIC.
pub fn write_as_guest(register: u64, value: u32) {
    // SAFETY: the page of the registers, identity mapped; it is the guest's write.
    unsafe { ((page() | register) as *mut u32).write_volatile(value) };
}

/// The lowest byte of this processor's id.
fn apic_id(base: u64) -> u8 {
    let register = read(base, ID);
    (if base & X2APIC != 0 { register } else { register >> 24 }) as u8
}

/// The upper half of the command register, with the destination's lowest byte in the highest one.
fn command_high(base: u64) -> u32 {
    if base & X2APIC == 0 {
        return read(base, COMMAND_HIGH);
    }
    // SAFETY: the APIC is in x2APIC mode, in which the register is one MSR; reading it changes nothing.
    let whole = unsafe { read_msr(0x800 + (COMMAND as u32 >> 4)) };
    ((whole >> 32) as u32) << 24
}

/// The lowest byte of this processor's id; 0 while the APIC is off.
pub fn own_id() -> u8 {
    let base = base();
    if base & ENABLE == 0 { 0 } else { apic_id(base) }
}

/// This processor, as commands name it. In x2APIC mode, whose logical ids are wider, a logical destination may be everybody's.
pub fn receiver() -> Receiver {
    let base = base();
    let id = u64::from(apic_id(base));
    if base & X2APIC != 0 {
        return Receiver { id, logical: u32::MAX, format: u32::MAX };
    }
    let [logical, format] = [DESTINATION, DESTINATION_FORMAT].map(|register| read(base, register));
    Receiver { id, logical, format }
}

/// Whether the last command was one that sends an NMI to this processor, and nobody has asked since.
pub fn take_sent_nmi() -> bool {
    /// Delivery mode 3, which is reserved (SDM vol. 3, 11.6.1): nothing is sent.
    const NOTHING: u32 = 0b011 << 8;
    const MODE: u32 = 0b111 << 8;
    let base = base();
    if base & ENABLE == 0 {
        return false;
    }
    let low = read(base, COMMAND);
    let own = receiver();
    let command = Command::new(low, command_high(base));
    let sent = command.kind() == Kind::Nmi && command.reaches(own, own.id);
    if sent {
        write(base, COMMAND, low & !MODE | NOTHING);
    }
    sent
}

/// Whether LVTPC lets anything come.
pub fn is_open() -> bool {
    read(base(), LVTPC) & MASK == 0
}

/// Takes the PMI to the APIC: what LVTPC says, and with `mask_on_delivery` its mask bit set, as Intel's does.
pub fn deliver(mask_on_delivery: bool) -> Delivery {
    let base = base();
    if base & ENABLE == 0 {
        return Delivery::None;
    }
    let lvt = read(base, LVTPC);
    let delivery = deliver_by(lvt);
    if mask_on_delivery && delivery != Delivery::None {
        write(base, LVTPC, lvt | MASK);
    }
    delivery
}

/// Delivers what an entry of the local vector table, or of its extension, says.
pub fn deliver_by(lvt: u32) -> Delivery {
    let base = base();
    if base & ENABLE == 0 || read(base, SPURIOUS) & SOFTWARE_ENABLE == 0 {
        return Delivery::None;
    }
    match (lvt & MASK, lvt >> 8 & 7) {
        (0, 0) => {
            // The vector has to become pending in the APIC itself, so that priority and EOI work as ever.
            write(base, COMMAND, TO_SELF | lvt & 0xff);
            Delivery::Fixed(lvt as u8)
        }
        (0, 4) => Delivery::Nmi,
        _ => Delivery::None,
    }
}
