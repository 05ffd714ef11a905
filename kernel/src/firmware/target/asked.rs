//! What the item asks of the machine.

use crate::firmware::control::Controls;
use crate::firmware::memory::Provided;
use crate::firmware::probe::Machine;
use crate::firmware::reset;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::memory::Space;
use arch::pmu::qualifiers::Qualifiers;
use kernel::snippet::emit;
use protocol::bits::Bits;
use protocol::job::Snippet;
use protocol::job::control::{DEFAULT_TIME_LIMIT_MS, Ring};
use protocol::job::limits::MAX_MSRS;
use protocol::record::Applied;

/// What the item that runs asks of the machine: put in force by [`apply`](Asked::apply) and [`Provided::provide`] before it runs.
///
/// Between two items nothing is in force: `restore` of the loop takes back controls and memory together, before the tables are
/// compared.
pub struct Asked {
    pub controls: Controls,
    /// Memory of its own.
    pub memory: Provided,
    /// Longest time of a run, in ticks of the TSC; 0: any.
    pub limit: u64,
    /// It is not the default.
    pub has_own_limit: bool,
    /// What its events are qualified by, if they are.
    pub qualifiers: Option<Qualifiers>,
    /// Why they were not in force in some run.
    pub unqualified: Option<String>,
    /// System management interrupts in runs that count.
    pub smis: u32,
    /// Runs that such an interrupt came into, and that were made again.
    pub smi_repeats: u32,
    /// How far the registers moved that are read around a run, as two's complement.
    moved: [u64; MAX_MSRS],
    /// Bits that were ever set in them.
    seen: [u64; MAX_MSRS],
    /// What the job calls them.
    msr_names: Vec<String>,
}

impl Asked {
    /// Nothing is.
    pub fn new(controls: Controls) -> Self {
        Self {
            controls,
            memory: Provided::default(),
            limit: 0,
            has_own_limit: false,
            qualifiers: None,
            unqualified: None,
            smis: 0,
            smi_repeats: 0,
            moved: [0; MAX_MSRS],
            seen: [0; MAX_MSRS],
            msr_names: Vec::new(),
        }
    }

    /// Notes how long a run of the snippet may take.
    pub fn limit(&mut self, snippet: &Snippet, machine: &Machine) {
        let ms = snippet.setup.control.time_limit_ms;
        self.limit = machine.clock.hz / 1000 * u64::from(ms);
        self.has_own_limit = ms != DEFAULT_TIME_LIMIT_MS;
        reset::limit(ms);
    }

    /// Puts in force what the snippet asks for, and returns what can be said of it.
    ///
    /// # Errors
    /// Why the snippet cannot run.
    pub fn apply(
        &mut self,
        snippet: &Snippet,
        machine: &Machine,
        space: &mut Space,
    ) -> Result<Vec<Applied>, String> {
        let control = &snippet.setup.control;
        self.msr_names = control.msrs.iter().map(|register| register.name.to_string()).collect();
        self.seen = [0; MAX_MSRS];
        let mut applied = self.controls.apply(control, space)?;
        if let (Err(reason), true) = (machine.watchdog, self.has_own_limit && self.limit > 0) {
            applied.push(Applied {
                option: format!("time-limit={}", control.time_limit_ms),
                applied: false,
                note: format!("nothing ends a run that does not end by itself: {reason}"),
            });
        }
        if snippet.setup.bits == Bits::Compatibility {
            let way = match control.ring {
                Ring::Kernel => "far jumps",
                Ring::User => "IRETQ and INT",
            };
            applied.push(Applied {
                option: "bits=32".to_string(),
                applied: true,
                note: format!("compatibility mode; {way}, the way in and out, cancel"),
            });
        }
        Ok(applied)
    }

    /// Notes what a run has left of the registers that are read around it.
    pub fn note(&mut self, data: &emit::Data) {
        let both = self.moved.iter_mut().zip(&mut self.seen).take(self.controls.msrs());
        for ((moved, seen), [before, behind]) in both.zip(&data.msrs) {
            *moved = behind.wrapping_sub(*before);
            *seen |= before | behind;
        }
    }

    /// How far those registers moved in the last run.
    pub fn msrs(&self) -> &[u64] {
        &self.moved[..self.controls.msrs()]
    }

    /// Completes what `apply` said, after the last run.
    pub fn finish(&mut self, controls: &mut Vec<Applied>) {
        self.controls.finish(controls);
        let silent = self.msr_names.iter().zip(self.seen).filter(|(_, seen)| *seen == 0);
        controls.extend(silent.map(|(name, _)| Applied {
            option: format!("msrs={name}"),
            applied: true,
            note: "it read 0 before and behind every run; QEMU's translator shows a register that it lacks so"
                .to_string(),
        }));
    }
}
