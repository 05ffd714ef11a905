//! What the plugin keeps.

use crate::bound::Others;
use crate::cells::Cells;
use crate::facts::OFFSET;
use crate::qemu::{Id, api};
use crate::stop::Line;
use crate::translator::Translator;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// vCPUs that can be counted: messages name a processor by 8 bits.
pub const MAX_VCPUS: usize = 256;

/// Everything.
#[derive(Debug)]
pub struct State {
    /// The plugin, to QEMU.
    pub id: Id,
    cells: Mutex<Cells>,
    translator: Mutex<Translator>,
    line: Option<Mutex<Line>>,
    stoppers: Vec<Stopper>,
    /// Most occurrences of a block so far, but for branches: accesses, and their lines.
    most: [AtomicU32; 2],
    /// How often the mode has changed.
    modes: AtomicU64,
    /// Caches and TLBs are by parameters.
    shaped: AtomicBool,
}

/// What other vCPUs' threads know of a vCPU.
#[derive(Debug, Default)]
pub struct Stopper {
    /// It runs, and has limits.
    pub armed: AtomicBool,
    /// They are of more than branches.
    pub others: AtomicBool,
    /// NMIs that were sent to it.
    pub stopped: AtomicU64,
    /// The id of its local APIC, which QEMU's number need not be.
    pub apic_id: AtomicU8,
}

static STATE: OnceLock<State> = OnceLock::new();

/// The state, once the plugin is installed: QEMU calls nothing before.
#[inline]
pub fn state() -> &'static State {
    STATE.get().expect("the plugin was installed")
}

impl State {
    /// Makes the state. Once.
    pub fn set(id: Id, line: Option<Line>) {
        let state = Self {
            id,
            cells: Mutex::new(Cells::make()),
            translator: Mutex::new(Translator::empty()),
            line: line.map(Mutex::new),
            stoppers: (0..MAX_VCPUS).map(|_| Stopper::default()).collect(),
            most: Default::default(),
            modes: AtomicU64::new(0),
            shaped: AtomicBool::new(false),
        };
        STATE.set(state).expect("QEMU installs a plugin once");
    }

    /// The words.
    pub fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().expect("nobody panics with it")
    }

    /// What translation needs.
    pub fn translator(&self) -> MutexGuard<'_, Translator> {
        self.translator.lock().expect("nobody panics with it")
    }

    /// Whether the guest can be made to leave.
    pub fn stops(&self) -> bool {
        self.line.is_some()
    }

    /// How often the mode has changed: code that was executed meanwhile may not have told what it did to translations.
    pub fn modes(&self) -> u64 {
        self.modes.load(Ordering::Relaxed)
    }

    /// Whether caches and TLBs are by parameters, so that sizes of pages matter.
    pub fn is_shaped(&self) -> bool {
        self.shaped.load(Ordering::Relaxed)
    }

    /// Caches and TLBs are by parameters, or no longer.
    pub fn shape(&self, shaped: bool) {
        self.shaped.store(shaped, Ordering::Relaxed);
    }

    /// The mode has changed.
    pub fn next_mode(&self) {
        self.modes.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads 8 bytes of the guest's physical memory. `None` if there is no line for it.
    pub fn read(&self, physical: u64) -> Option<u64> {
        self.line.as_ref()?.lock().expect("nobody panics with it").read(physical)
    }

    /// What other threads know of a vCPU.
    pub fn stopper(&self, index: u32) -> &Stopper {
        &self.stoppers[index as usize]
    }

    /// Makes a vCPU leave the guest because of its limits. Once, until it is armed again.
    pub fn stop(&self, index: u32) {
        if self.stopper(index).armed.swap(false, Ordering::Relaxed) {
            self.leave(index);
        }
    }

    /// Makes a vCPU leave the guest, if there is a line.
    pub fn leave(&self, index: u32) {
        let stopper = self.stopper(index);
        let apic_id = stopper.apic_id.load(Ordering::Relaxed);
        if let Some(line) = &self.line
            && line.lock().expect("nobody panics with it").nmi(apic_id)
        {
            stopper.stopped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Most occurrences of a block so far.
    pub fn most(&self) -> Others {
        let [accesses, lines] = &self.most;
        let of = |most: &AtomicU32| most.load(Ordering::Relaxed);
        Others { accesses: of(accesses), lines: of(lines) }
    }

    /// A block may have more occurrences than any before: who relied on that leaves before it runs.
    pub fn raise(&self, block: Others) {
        let raises = |most: &AtomicU32, now: u32| most.fetch_max(now, Ordering::Relaxed) < now;
        let [accesses, lines] = &self.most;
        // Both, one after the other.
        if raises(accesses, block.accesses) | raises(lines, block.lines) {
            let relies = |stopper: &Stopper| stopper.others.load(Ordering::Relaxed);
            let all = self.stoppers.iter().enumerate().filter(|(_, it)| relies(it));
            all.for_each(|(index, _)| self.stop(index as u32));
        }
    }
}

/// The page of an address in QEMU's memory.
pub const fn page(host: u64) -> u64 {
    host & !OFFSET
}

/// Throws all translated code away: it is translated again, for the mode that holds then.
pub fn translate_anew() {
    // SAFETY: QEMU does it when no code runs, and then calls back.
    unsafe { (api().reset)(state().id, crate::install::ask) };
}
