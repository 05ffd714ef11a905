//! The machine as the job found it.

use crate::firmware::probe::Machine;
use arch::memory::Space;
use arch::state::{self, Baseline, Tables};

/// Registers, tables and code as they were before any foreign code ran, for what every item leaves behind.
///
/// The copy of the tables is that of what the firmware wants to be in force: [`refresh`](Found::refresh) has to be called after each
/// change of page tables, before the next foreign code runs.
pub struct Found {
    /// The registers as the job found them.
    baseline: Baseline,
    /// The tables in memory as they should be.
    tables: Tables,
    /// The sum over the firmware's code when the job began.
    image: u64,
    /// There is reason to look at it again.
    is_suspect: bool,
}

impl Found {
    /// Notes what is there.
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded; the tables are the firmware's, and no foreign code has run yet.
    pub unsafe fn take(space: &mut Space, machine: &Machine) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                tables: Tables::take(space),
                image: state::image::sum(),
                is_suspect: false,
                baseline: Baseline::take(machine.extended),
            }
        }
    }

    /// Copies the tables again if the firmware has changed them for the item that comes.
    pub fn refresh(&mut self, space: &mut Space) {
        // SAFETY: ring 0; what foreign code changed was put back after its item, and the next one has not run yet.
        unsafe { self.tables.refresh(space) };
    }

    /// Puts the tables back: before anything that may raise an exception.
    pub fn restore_tables(&self) {
        // SAFETY: ring 0; the tables are as they were copied but for what foreign code changed.
        unsafe { self.tables.restore() };
    }

    /// Puts the registers back, and notes whether something was put back that is reason to look at the code.
    pub fn restore_registers(&mut self) {
        // SAFETY: ring 0, interrupt table loaded, the processor of the job.
        unsafe { self.baseline.restore() };
        self.is_suspect |= state::is_broken();
    }

    /// Whether the firmware's code has changed, looked for if there is reason to or `at_end`.
    pub fn is_changed(&mut self, at_end: bool) -> bool {
        let look = core::mem::take(&mut self.is_suspect) || at_end;
        // SAFETY: the image is mapped as it was: page tables were put back.
        let sum = || unsafe { state::image::sum() };
        look && sum() != self.image
    }
}
