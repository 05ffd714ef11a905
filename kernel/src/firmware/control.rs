//! What a snippet asks of the machine: put in force before it, reported, taken back after it.

use super::memory::{memory_type, size};
use super::probe::Machine;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::apic;
use arch::cpu::{self, Vendor};
use arch::memory::areas::{Areas, Kind, Size};
use arch::memory::arena::{self, AREA_BYTES, AREAS};
use arch::memory::{Frames, Space, cache};
use arch::msr::{self, Msr};
use arch::pmu;
use arch::switches::{Clocks, Switches};
use core::arch::asm;
use core::ops::Range;
use kernel::snippet::Place;
use protocol::job::control::{Caches, Control, Interrupts, MemoryType, PageSize, Ring};
use protocol::job::limits::MAX_MSRS;
use protocol::record::Applied;
use raw_cpuid::CpuIdReader as _;

/// MSR_SMI_COUNT (SDM vol. 4, from Nehalem on).
const SMI_COUNT: Msr = Msr(0x34);
/// CPUID leaf 1 EDX: CLFLUSH.
const CLFLUSH: u32 = 1 << 19;

/// Where snippets run by default: see `arch::memory::arena`.
pub const PLACE: Place = Place {
    code: arena::CODE_AT,
    data: arena::DATA_AT,
    pointers: [
        arena::area_middle(0),
        arena::area_middle(1),
        arena::area_middle(2),
        arena::area_middle(3),
        arena::area_middle(4),
    ],
};

/// What is in force.
pub struct Controls {
    registers: pmu::Machine,
    switches: Switches,
    areas: Areas,
    pub frames: Frames,
    /// Where the snippet runs.
    pub place: Place,
    kind: Kind,
    /// Memory that the item has besides.
    pub requested: Vec<Range<u64>>,
    caches: Caches,
    flush_tlb: bool,
    /// Ring 3 may execute the code area.
    pub user: bool,
    /// Task priority while it runs.
    priority: u64,
    /// Counts system management interrupts, if the processor does.
    smi_count: Option<Msr>,
    smi_repeats: u32,
    /// Number of registers that are read around a run.
    msrs: usize,
    clocks: Option<Clocks>,
    /// The clocks are reported with these options: their positions among the applied ones.
    clocked: Vec<usize>,
}

/// A list of what was asked for.
struct List(Vec<Applied>);

impl List {
    fn add(&mut self, option: impl ToString, result: Result<String, String>) -> bool {
        let applied = result.is_ok();
        let note = result.unwrap_or_else(|reason| reason);
        self.0.push(Applied { option: option.to_string(), applied, note });
        applied
    }
}

impl Controls {
    /// Nothing is in force.
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded; as for `arch::pmu::Machine::new`.
    pub unsafe fn new(machine: &Machine, frames: Frames) -> Self {
        // SAFETY: the caller's promise; reading the count has no effect.
        let counts = || unsafe { msr::try_read(SMI_COUNT) }.is_ok();
        Self {
            // SAFETY: the caller's promise.
            registers: unsafe { pmu::Machine::new() },
            switches: Switches::default(),
            areas: Areas::default(),
            frames,
            place: PLACE,
            kind: Kind::ORDINARY,
            requested: Vec::new(),
            caches: Caches::Warm,
            flush_tlb: false,
            user: false,
            priority: 0,
            smi_count: Some(SMI_COUNT).filter(|_| machine.vendor == Vendor::Intel && counts()),
            smi_repeats: 0,
            msrs: 0,
            clocks: None,
            clocked: Vec::new(),
        }
    }

    /// Puts in force what can be.
    ///
    /// # Errors
    /// A register that is to be read does not exist, or ring 3 cannot have memory: then the snippet cannot run.
    pub fn apply(&mut self, control: &Control, space: &mut Space) -> Result<Vec<Applied>, String> {
        for register in &control.msrs {
            // SAFETY: interrupt table loaded. Which registers are read is the job's business.
            if unsafe { msr::try_read(Msr(register.number)) }.is_err() {
                let (name, number) = (&register.name, register.number);
                return Err(format!("msrs: `{name}`: this processor has no MSR {number:#x}"));
            }
        }
        self.msrs = control.msrs.len();
        self.smi_repeats = control.smi_repeats;
        let mut list = List(Vec::new());
        self.clocked.clear();
        self.switch(control, &mut list);
        self.mapped(control, space, &mut list)?;
        self.before_runs(control, &mut list);
        self.clocks =
            (!self.clocked.is_empty()).then(|| Clocks::read(&mut self.registers)).flatten();
        Ok(list.0)
    }

    fn switch(&mut self, control: &Control, list: &mut List) {
        let registers = &mut self.registers;
        if control.prefetchers_off {
            list.add("prefetchers=off", self.switches.prefetchers_off(registers));
        }
        if control.turbo_off && list.add("turbo=off", self.switches.turbo_off(registers)) {
            self.clocked.push(list.0.len() - 1);
        }
        let mhz = control.frequency_mhz;
        if mhz > 0 && list.add(format!("frequency={mhz}"), self.switches.frequency(registers, mhz))
        {
            self.clocked.push(list.0.len() - 1);
        }
    }

    /// Pages and ring.
    fn mapped(
        &mut self,
        control: &Control,
        space: &mut Space,
        list: &mut List,
    ) -> Result<(), String> {
        let (size, memory) = (size(control.page_size), memory_type(control.memory_type));
        let pages = match control.page_size {
            PageSize::Small => "4k",
            PageSize::Large => "2m",
            PageSize::Giant => "1g",
        };
        let types = match control.memory_type {
            MemoryType::WriteBack => "wb",
            MemoryType::WriteThrough => "wt",
            MemoryType::Uncacheable => "uc",
            MemoryType::WriteCombining => "wc",
        };
        let user = control.ring == Ring::User;
        let mut kind = Kind { size, memory, user };
        let giant = cpu::features::has_giant_pages(&cpu::native());
        let mut paged = Ok("page tables of the five memory areas".to_string());
        if size == Size::Giant1G && !giant {
            paged = Err("the processor has no pages of 1 GiB".to_string());
        } else if kind != Kind::ORDINARY
            && let Err(error) = self.areas.map(space, &mut self.frames, kind)
        {
            paged = Err(error.to_string());
        }
        if paged.is_err() {
            kind.size = Size::Small4K;
        }
        if paged.is_err() && kind != Kind::ORDINARY {
            let mapped = self.areas.map(space, &mut self.frames, kind);
            mapped.map_err(|error| format!("no memory for the memory areas: {error}"))?;
        }
        if control.page_size != PageSize::Small {
            list.add(format!("page-size={pages}"), paged);
        }
        if control.memory_type != MemoryType::WriteBack {
            let entry = memory as u64;
            let note =
                format!("entry {entry} of the page attribute table, in the five memory areas");
            list.add(format!("memory-type={types}"), Ok(note));
        }
        if kind != Kind::ORDINARY {
            self.place.pointers = [0, 1, 2, 3, 4].map(|index| kind.area(index) + AREA_BYTES / 2);
        }
        (self.kind, self.user) = (kind, user);
        if user {
            let note = "init and body; IRETQ and INT, the way in and out, are in both code sizes and cancel";
            list.add("ring=3", Ok(note.to_string()));
        }
        Ok(())
    }

    fn before_runs(&mut self, control: &Control, list: &mut List) {
        self.flush_tlb = control.flush_tlb;
        if control.flush_tlb {
            list.add("tlb=flushed", Ok("CR4.PGE toggled before each run".to_string()));
        }
        self.caches = control.caches;
        match control.caches {
            Caches::Warm => {}
            Caches::ColdByWbinvd => {
                list.add("caches=cold", Ok("WBINVD before each run".to_string()));
            }
            Caches::ColdByClflush if cpu::native().cpuid1(1).edx & CLFLUSH == 0 => {
                self.caches = Caches::Warm;
                list.add("caches=cold", Err("the processor has no CLFLUSH".to_string()));
            }
            Caches::ColdByClflush => {
                let note = "CLFLUSH of memory areas and code before each run";
                list.add("caches=cold", Ok(note.to_string()));
            }
        }
        if control.interrupts == Interrupts::Apic {
            let note =
                "CR8 is 15, the local entries are masked but for the watchdog's NMI".to_string();
            let result = match apic::read(apic::Register::Version) {
                0 => Err("the local APIC is not in use".to_string()),
                _ => Ok(note),
            };
            self.priority = if list.add("interrupts=apic", result) { 15 } else { 0 };
        }
    }

    /// Whether [`Controls::before_run`] has nothing to do, and nothing is read around a run.
    pub fn is_bare(&self) -> bool {
        self.priority == 0
            && self.caches == Caches::Warm
            && !self.flush_tlb
            && self.msrs == 0
            && self.smi_count.is_none()
    }

    /// Directly before a run of the code at `code`.
    ///
    /// # Safety
    /// Ring 0; the code is mapped.
    pub unsafe fn before_run(&self, code: Range<u64>) {
        // SAFETY: the caller's promise; the areas are mapped.
        unsafe {
            if self.priority > 0 {
                asm!("mov cr8, {}", in(reg) self.priority, options(nostack, preserves_flags));
            }
            match self.caches {
                Caches::Warm => {}
                Caches::ColdByWbinvd => cache::write_back_all(),
                Caches::ColdByClflush => {
                    for index in 0..AREAS {
                        let middle = self.place.pointers[index as usize];
                        cache::flush(middle - AREA_BYTES / 2..middle + AREA_BYTES / 2);
                    }
                    self.requested.iter().cloned().for_each(|range| cache::flush(range));
                    cache::flush(code);
                }
            }
            if self.flush_tlb {
                cache::flush_tlb();
            }
        }
    }

    /// System management interrupts since reset; 0 if the processor does not tell.
    pub fn smi_count(&self) -> u64 {
        // SAFETY: the register was there when the job began.
        self.smi_count.map_or(0, |msr| unsafe { msr::read(msr) })
    }

    /// Whether the processor counts them.
    pub fn counts_smis(&self) -> bool {
        self.smi_count.is_some()
    }

    /// How often a run may be repeated.
    pub fn smi_repeats(&self) -> u32 {
        self.smi_repeats
    }

    /// How many registers are read around a run.
    pub fn msrs(&self) -> usize {
        self.msrs.min(MAX_MSRS)
    }

    /// Behind all runs: what the clocks did.
    pub fn finish(&mut self, list: &mut [Applied]) {
        let ratio = match self.clocks {
            None => "APERF and MPERF are not available".to_string(),
            Some(before) => {
                let now = Clocks::read(&mut self.registers);
                match now.and_then(|now| now.ratio_since(before)) {
                    Some(ratio) => format!("APERF/MPERF {ratio:.3}"),
                    None => "APERF and MPERF stood still".to_string(),
                }
            }
        };
        for &index in &self.clocked {
            if let Some(applied) = list.get_mut(index) {
                applied.note = format!("{}; {ratio}", applied.note);
            }
        }
    }

    /// Takes everything back.
    pub fn restore(&mut self) {
        self.switches.restore(&mut self.registers);
        (self.place, self.kind, self.user) = (PLACE, Kind::ORDINARY, false);
        (self.caches, self.flush_tlb) = (Caches::Warm, false);
        self.requested.clear();
        (self.msrs, self.smi_repeats) = (0, 0);
        self.clocks = None;
        if core::mem::take(&mut self.priority) > 0 {
            // SAFETY: back to what `Apic::enable` left.
            unsafe { asm!("mov cr8, {}", in(reg) 0u64, options(nostack, preserves_flags)) };
        }
    }
}
