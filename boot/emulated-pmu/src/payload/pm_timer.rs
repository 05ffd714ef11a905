//! ACPI's power management timer, which operating systems hold the TSC against. From the first counting on its port is
//! intercepted and shows the guest's time; before, the machine's, as a firmware's delays read it all the time.

use super::guest::Guest;
use super::{clock, nested_guest, processors, retire, step};
use iced_x86::Register;

/// ACPI 6.5, 4.8.3.3: 3.579545 MHz.
const HERTZ: u128 = 3_579_545;
const NANOSECONDS: u128 = 1_000_000_000;
/// It has at least 24 bits, and 32 only if the tables say so, which QEMU's do not.
const MASK: u64 = 0xff_ffff;

/// The timer.
#[derive(Clone, Copy, Debug)]
pub struct PmTimer {
    port: Option<u16>,
    /// How far the machine's clock was ahead of the guest's when it began to show the guest's.
    ahead: Option<u64>,
}

impl PmTimer {
    /// At this port, if there is one.
    pub fn new(port: Option<u16>) -> Self {
        Self { port, ahead: None }
    }

    /// Shows the guest's time from now on.
    pub fn start(&mut self) {
        if let (Some(port), None, true) = (self.port, self.ahead, clock::is_own()) {
            self.ahead = Some(processors::agree_on_timer(clock::ahead()));
            nested_guest::intercept_port(port, true);
        }
    }

    fn value(&self) -> u64 {
        let nanoseconds = clock::now().wrapping_add(self.ahead.unwrap_or(0));
        (u128::from(nanoseconds) * HERTZ / NANOSECONDS) as u64 & MASK
    }
}

/// The guest uses a port that is intercepted. Exit information: AMD APM vol. 2, 15.10.2.
pub fn handle(guest: &mut Guest) {
    const IN: u64 = 1 << 0;
    const STRING: u64 = 1 << 2;
    let (access, next) = (guest.vmcb.exit_info_1, guest.vmcb.exit_info_2);
    let port = (access >> 16) as u16;
    let Some(first) = guest.pm_timer.port else { return };
    if access & (IN | STRING) != IN {
        // The timer ignores writes, and nobody reads it by INS.
        nested_guest::intercept_port(first, false);
        step::instruction(guest);
        nested_guest::intercept_port(first, true);
        return;
    }
    let value = guest.pm_timer.value() >> (8 * u32::from(port.wrapping_sub(first) & 3));
    let (keeps, mask) = match access >> 4 & 7 {
        1 => (!0xff, 0xff),
        2 => (!0xffff, 0xffff),
        _ => (0, 0xffff_ffff),
    };
    retire::plain(guest, None);
    let rax = guest.vmcb.rax & keeps | value & mask;
    guest.set_register(Register::RAX, rax);
    guest.skip(next.wrapping_sub(guest.vmcb.rip));
}
