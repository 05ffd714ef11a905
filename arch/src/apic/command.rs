//! Interrupts for other processors: SDM vol. 3, 10.6.1, and 10.12.9 for the x2APIC.

use super::{Mode, registers};
use thiserror::Error;

/// Delivery modes, bits 10:8.
const NMI: u32 = 0b100 << 8;
const INIT: u32 = 0b101 << 8;
const STARTUP: u32 = 0b110 << 8;
/// Bit 14: assert.
const ASSERT: u32 = 1 << 14;
/// The xAPIC's broadcast is 255.
const LAST_XAPIC_ID: u32 = 254;

/// The id does not fit the command, or the APIC is not in use.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[error("APIC id {0} cannot be addressed")]
pub struct OutOfReach(pub u32);

fn command(apic_id: u32, low: u32) -> Result<(), OutOfReach> {
    let mut registers = registers().ok_or(OutOfReach(apic_id))?;
    if registers.mode() == Mode::XApic && apic_id > LAST_XAPIC_ID {
        return Err(OutOfReach(apic_id));
    }
    registers.write_icr(apic_id, low);
    Ok(())
}

/// Sends a fixed interrupt. To an id that cannot be addressed nothing is sent; whoever took it into use has checked.
pub fn send(apic_id: u32, vector: u8) {
    let _ = command(apic_id, ASSERT | u32::from(vector));
}

/// Sends an NMI. As for [`send`].
pub fn send_nmi(apic_id: u32) {
    let _ = command(apic_id, NMI | ASSERT);
}

/// Resets a processor, which then waits for its startup interrupt.
///
/// # Errors
/// It cannot be addressed.
pub fn send_init(apic_id: u32) -> Result<(), OutOfReach> {
    command(apic_id, INIT | ASSERT)
}

/// Lets a processor that waits begin in real mode at page `page`, below 1 MiB. As for [`send`].
pub fn send_startup(apic_id: u32, page: u8) {
    let _ = command(apic_id, STARTUP | ASSERT | u32::from(page));
}
