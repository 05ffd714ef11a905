//! What the plugin keeps.

use crate::cells::Cells;
use crate::facts::OFFSET;
use crate::limit::{Bound, Others};
use crate::opened::{Interned, Opened};
use crate::qemu::{Id, Names, api};
use crate::registers::Handles;
use crate::stop::Line;
use crate::trace::{Begun, Deferred};
use crate::vcpu::Vcpu;
use core::ptr::null_mut;
use iced_x86::InstructionInfoFactory;
use plugin_channel::{Command, Mode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
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
    /// Handles of the registers.
    registers: OnceLock<Handles>,
    /// Most occurrences of a block so far, but for branches: accesses, and their lines.
    most: [AtomicU32; 2],
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
    /// Accesses of instructions that can still fail.
    pub deferred: Interned<Deferred>,
    /// Instructions whose accesses the registers tell.
    pub begun: Interned<Begun>,
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
            deferred: Interned::default(),
            begun: Interned::default(),
        }
    }

    /// Whether an address in QEMU's memory is the hypervisor's.
    pub fn is_own(&self, host: u64) -> bool {
        self.regions.values().any(|(start, end)| (*start..*end).contains(&host))
    }
}

static STATE: OnceLock<State> = OnceLock::new();

/// The vCPUs, once QEMU has made them: they stay. Apart from the rest, because the quick callbacks use nothing else.
static VCPUS: [AtomicPtr<Vcpu>; MAX_VCPUS] = [const { AtomicPtr::new(null_mut()) }; MAX_VCPUS];

/// The state, once the plugin is installed: QEMU calls nothing before.
#[inline]
pub fn state() -> &'static State {
    STATE.get().expect("the plugin was installed")
}

/// The one that is in its guest: one is at a time, and code outside the hypervisors is translated and executed by it
/// alone. QEMU's callbacks cannot tell: see [`crate::cells`].
static RUNNING: AtomicPtr<Vcpu> = AtomicPtr::new(null_mut());

/// A vCPU is in its guest.
static IN_GUEST: AtomicBool = AtomicBool::new(false);

/// The vCPU that is in its guest, for a callback of code that was translated there. To be asked once in each callback.
#[inline]
pub(crate) fn running() -> Option<&'static mut Vcpu> {
    let vcpu = RUNNING.load(Ordering::Relaxed);
    // SAFETY: with icount, QEMU runs all vCPUs on one thread, one callback after the other, and each asks once.
    unsafe { vcpu.as_mut() }
}

/// The vCPU that calls: the code of each hypervisor is translated and executed by one vCPU alone, so that QEMU's number is
/// right. `None` if there are too many to count. To be asked once in each callback.
pub(crate) fn calling(index: u32) -> Option<&'static mut Vcpu> {
    let vcpu = VCPUS.get(index as usize)?.load(Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { vcpu.as_mut() }
}

/// The vCPU goes into its guest.
pub(crate) fn runs(vcpu: &mut Vcpu) {
    RUNNING.store(vcpu, Ordering::Relaxed);
    IN_GUEST.store(true, Ordering::Relaxed);
}

/// It is back in its hypervisor.
pub(crate) fn is_back() {
    IN_GUEST.store(false, Ordering::Relaxed);
}

/// Whether what is translated now may be counted. With several vCPUs it is only where it is known which one translates: a
/// processor that is being started executes code outside all guests and hypervisors.
pub(crate) fn is_counted() -> bool {
    IN_GUEST.load(Ordering::Relaxed) || VCPUS[1].load(Ordering::Relaxed).is_null()
}

impl State {
    /// Makes the state. Once.
    pub fn set(id: Id, line: Option<Line>) {
        let state = Self {
            id,
            cells: Mutex::new(Cells::new()),
            translator: Mutex::new(Translator::new()),
            line: line.map(Mutex::new),
            stoppers: (0..MAX_VCPUS).map(|_| Stopper::default()).collect(),
            registers: OnceLock::new(),
            most: Default::default(),
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

    /// A vCPU was made.
    pub fn add(&self, index: u32) {
        let Some(slot) = VCPUS.get(index as usize) else { return };
        let names = self.registers.get_or_init(|| Handles::of(&Names::ask()));
        if slot.load(Ordering::Relaxed).is_null() {
            let vcpu = Vcpu::new(index, *names, self.cells().words());
            slot.store(Box::into_raw(Box::new(vcpu)), Ordering::Relaxed);
        }
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
