//! What the plugin keeps.

use crate::cells::Cells;
use crate::facts::OFFSET;
use crate::limit::Bound;
use crate::opened::{Interned, Opened};
use crate::qemu::{Id, Names, api};
use crate::stop::Line;
use crate::vcpu::Vcpu;
use iced_x86::InstructionInfoFactory;
use plugin_channel::{Command, Mode};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    vcpus: Vec<OnceLock<Slot>>,
    stoppers: Vec<Stopper>,
    /// Handles of the registers.
    pub registers: OnceLock<Names>,
    /// Most occurrences of a block so far, but for branches.
    pub most: AtomicU64,
}

#[derive(Debug)]
struct Slot(UnsafeCell<Vcpu>);

// SAFETY: see `State::vcpu`.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// What other vCPUs' threads know of a vCPU.
#[derive(Debug, Default)]
pub struct Stopper {
    /// It runs, and has limits.
    pub armed: AtomicBool,
    /// They are of more than branches.
    pub others: AtomicBool,
    /// NMIs that were sent to it.
    pub stopped: AtomicU64,
}

/// What translation needs.
pub struct Translator {
    /// What code is translated for: all that the pages ask for.
    pub mode: Mode,
    /// What each page of calls asked for last.
    pub modes: HashMap<u64, Mode>,
    /// The hypervisors' memory, in QEMU's: by its physical start.
    pub regions: HashMap<u64, (u64, u64)>,
    /// The decoder's tables.
    pub factory: InstructionInfoFactory,
    /// What blocks leave open.
    pub opened: Interned<Opened>,
    /// What blocks can have.
    pub bounds: Interned<Bound>,
    /// Calls, by where they lie in QEMU's memory.
    pub calls: Interned<(u64, Command)>,
    /// Instructions whose accesses callbacks see.
    pub traced: crate::memory::Traced,
}

impl core::fmt::Debug for Translator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Translator").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Translator {
    fn new() -> Self {
        Self {
            mode: Mode::empty(),
            modes: HashMap::new(),
            regions: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            opened: Interned::default(),
            bounds: Interned::default(),
            calls: Interned::default(),
            traced: crate::memory::Traced::default(),
        }
    }

    /// Whether an address in QEMU's memory is the hypervisor's.
    pub fn is_own(&self, host: u64) -> bool {
        self.regions.values().any(|(start, end)| (*start..*end).contains(&host))
    }
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
            cells: Mutex::new(Cells::new()),
            translator: Mutex::new(Translator::new()),
            line: line.map(Mutex::new),
            vcpus: (0..MAX_VCPUS).map(|_| OnceLock::new()).collect(),
            stoppers: (0..MAX_VCPUS).map(|_| Stopper::default()).collect(),
            registers: OnceLock::new(),
            most: AtomicU64::new(0),
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

    /// What other threads know of a vCPU.
    pub fn stopper(&self, index: u32) -> &Stopper {
        &self.stoppers[index as usize]
    }

    /// Makes a vCPU leave the guest. Once, until it is armed again.
    pub fn stop(&self, index: u32) {
        let stopper = self.stopper(index);
        if !stopper.armed.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(line) = &self.line
            && line.lock().expect("nobody panics with it").nmi(index as u8)
        {
            stopper.stopped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A block may have more occurrences than any before: who relied on that leaves before it runs.
    pub fn raise(&self, most: u64) {
        if self.most.fetch_max(most, Ordering::Relaxed) < most {
            let relies = |stopper: &Stopper| stopper.others.load(Ordering::Relaxed);
            let all = self.stoppers.iter().enumerate().filter(|(_, it)| relies(it));
            all.for_each(|(index, _)| self.stop(index as u32));
        }
    }

    /// A vCPU was made.
    pub fn add(&self, index: u32) {
        let Some(slot) = self.vcpus.get(index as usize) else { return };
        self.registers.get_or_init(Names::ask);
        slot.get_or_init(|| Slot(UnsafeCell::new(Vcpu::new(index))));
        let cells = self.cells();
        for slot in self.vcpus.iter().filter_map(OnceLock::get) {
            // SAFETY: QEMU makes vCPUs while none runs.
            unsafe { &mut *slot.0.get() }.find_words(&cells);
        }
    }

    /// The vCPU that a callback runs on; `None` if there are too many to count.
    ///
    /// # Safety
    /// Only for QEMU's callbacks, with the number that they get, once in each.
    #[inline]
    pub unsafe fn vcpu(&self, index: u32) -> Option<&'static mut Vcpu> {
        let slot = STATE.get()?.vcpus.get(index as usize)?.get()?;
        // SAFETY: QEMU runs the callbacks of a vCPU on one thread, one after the other, and the slots stay.
        Some(unsafe { &mut *slot.0.get() })
    }

    /// The register of a name.
    pub fn register(&self, name: &str) -> Option<crate::qemu::Register> {
        self.registers.get().and_then(|names| names.find(name))
    }
}

/// The page of an address in QEMU's memory.
pub const fn page(host: u64) -> u64 {
    host & !OFFSET
}

/// Throws all translated code away: it is translated anew, for the mode that holds then.
pub fn translate_anew() {
    // SAFETY: QEMU does it when no code runs, and then calls back.
    unsafe { (api().reset)(state().id, crate::install::ask) };
}
