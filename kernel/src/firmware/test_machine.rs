//! The processor as the conformance suite's bench.

use super::counting;
use alloc::string::{String, ToString};
use arch::interrupts;
use arch::memory::arena;
use arch::memory::user::UserPages;
use arch::msr::{Absent, Msr};
use arch::pmu::driver::Write;
use arch::pmu::pmi::{self, ControlBlock, Delivery, Sample};
use arch::pmu::workload::{self, Ring0Code, Ring3Code};
use arch::pmu::{Gate, Machine, Registers, rdpmc, window};
use arch::ring3;
use arch::time::tsc;
use arch::trap::{TrapFrame, exception};
use arch::vectors::USER_VECTOR;
use kernel::conformance::{TestMachine, Work};
use kernel::counting::Platform;
use raw_cpuid::CpuIdResult;

/// RFLAGS in ring 3: the bit that is always 1, and IF.
const FLAGS: u64 = 1 << 1;
const INTERRUPTS: u64 = 1 << 9;

static mut LOG: [Sample; 64] =
    [Sample { rip: 0, status: 0, tsc: 0, task: 0, cs: 0, retire_latency: 0 }; 64];

/// The bench.
pub struct Processor<'a> {
    registers: Machine,
    user: &'a UserPages,
    delivery: Option<Delivery>,
}

/// What [`entry_frame`] needs to know.
#[repr(C)]
struct EntryFrame {
    rip: u64,
    rsp: u64,
    rflags: u64,
}

impl<'a> Processor<'a> {
    /// The bench, with pages for ring 3 that hold [`workload::user_code`].
    ///
    /// # Safety
    /// As for [`Machine::new`]; the APIC has to be on.
    pub unsafe fn new(user: &'a UserPages) -> Self {
        // SAFETY: the caller's promise.
        Self { registers: unsafe { Machine::new() }, user, delivery: None }
    }

    fn flags(&self) -> u64 {
        if self.delivery == Some(Delivery::Fixed) { FLAGS | INTERRUPTS } else { FLAGS }
    }

    fn entry_frame(&self, piece: Ring3Code) -> EntryFrame {
        let rip = self.user.code() + piece.offset();
        EntryFrame { rip, rsp: self.user.stack(), rflags: self.flags() }
    }

    /// Runs a window with interrupts on if the PMI is to come as one.
    fn window(&self, gate: &Gate, code: u64, arguments: [u64; 2]) -> u64 {
        let fixed = self.delivery == Some(Delivery::Fixed);
        if fixed {
            x86_64::instructions::interrupts::enable();
        }
        // SAFETY: the gate's writes are the driver's, the code is a piece or `entry_frame`, with its arguments.
        let ticks = unsafe { window::run(gate, code, arguments) };
        if fixed {
            // A entry_frame in ring 3 comes back with interrupts off: let in what waits.
            x86_64::instructions::interrupts::enable();
            x86_64::instructions::nop();
            x86_64::instructions::nop();
            x86_64::instructions::interrupts::disable();
        }
        ticks
    }
}

/// A entry_frame in ring 3, as code inside a window.
extern "sysv64" fn entry_frame(turns: u64, entry_frame: *const EntryFrame) {
    // SAFETY: `TestMachine::run` passes a valid one, whose pages are mapped for ring 3.
    unsafe {
        let entry_frame = &*entry_frame;
        ring3::enter(entry_frame.rip, entry_frame.rsp, entry_frame.rflags, turns);
    }
}

/// The software interrupt of ring 3: nothing to do, and no EOI.
fn on_software_interrupt(_: &mut TrapFrame) {}

/// The load of [`Ring3Code::Faults`]: goes on after it.
fn on_page_fault(frame: &mut TrapFrame) {
    frame.rip += workload::fault_bytes();
}

impl Registers for Processor<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.registers.cpuid(leaf, subleaf)
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.registers.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.registers.wrmsr(msr, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.registers.rdpmc(index)
    }
}

impl TestMachine for Processor<'_> {
    fn run(&mut self, gate: &Gate, work: Work) -> u64 {
        match work {
            Work::Kernel { piece, turns } => {
                self.window(gate, piece.address(), [turns, arena::area(0)])
            }
            Work::Rewrite { turns, write } => {
                let write: *const Write = &raw const write;
                self.window(gate, Ring0Code::Rewrite.address(), [turns, write as u64])
            }
            Work::User { piece, turns } => {
                let place = self.entry_frame(piece);
                let place: *const EntryFrame = &raw const place;
                interrupts::set_handler(USER_VECTOR, Some(on_software_interrupt));
                if piece == Ring3Code::Faults {
                    interrupts::set_handler(exception::PAGE_FAULT.0, Some(on_page_fault));
                }
                let ticks =
                    self.window(gate, entry_frame as *const () as u64, [turns, place as u64]);
                interrupts::set_handler(USER_VECTOR, None);
                interrupts::set_handler(exception::PAGE_FAULT.0, None);
                ticks
            }
        }
    }

    fn deliver(&mut self, block: ControlBlock, delivery: Delivery) {
        self.delivery = Some(delivery);
        // SAFETY: the block is that of the driver's counters, its log is static.
        unsafe { pmi::install(&block, delivery) };
    }

    fn withdraw(&mut self) -> ControlBlock {
        self.delivery = None;
        // SAFETY: LVTPC is masked then, so the handler does not use the block any more.
        unsafe {
            pmi::uninstall();
            (*pmi::block()).clone()
        }
    }

    fn physical(&mut self, linear: u64) -> Option<u64> {
        // SAFETY: the kernel's own tables are in use, and nobody else changes them meanwhile.
        unsafe { arch::memory::physical(linear) }
    }

    fn has_extended_lvt(&mut self, entry: u8) -> bool {
        arch::apic::has_extended(entry)
    }

    fn log(&mut self) -> &'static mut [Sample] {
        let log = &raw mut LOG;
        // SAFETY: one check at a time uses the log, and the handler only while that check lets it.
        let log = unsafe { &mut *log };
        log.fill(Sample::default());
        log
    }

    fn rdpmc_in_ring_3(&mut self, index: u32, allowed: bool) -> Option<u64> {
        let entry_frame = self.entry_frame(Ring3Code::Rdpmc);
        // SAFETY: the pages are mapped for ring 3 and hold the piece; ring 0 raises no exception meanwhile.
        unsafe {
            let before = rdpmc::allow_above_ring_0(allowed);
            let value = ring3::try_enter(
                entry_frame.rip,
                entry_frame.rsp,
                entry_frame.rflags,
                u64::from(index),
            );
            rdpmc::allow_above_ring_0(before);
            value.ok()
        }
    }

    fn tsc(&mut self) -> u64 {
        tsc::now()
    }

    fn rdtsc_in_ring_3(&mut self, allowed: bool) -> Option<u64> {
        let entry_frame = self.entry_frame(Ring3Code::Rdtsc);
        // SAFETY: as for RDPMC.
        unsafe {
            let before = rdpmc::allow_tsc_above_ring_0(allowed);
            let value = ring3::try_enter(entry_frame.rip, entry_frame.rsp, entry_frame.rflags, 0);
            rdpmc::allow_tsc_above_ring_0(before);
            value.ok()
        }
    }

    fn on_platform(&mut self, work: &mut dyn FnMut(&mut dyn Platform)) -> bool {
        // SAFETY: as for the bench itself, whose promise was the same.
        let mut platform = unsafe { counting::Processor::open() };
        work(&mut platform);
        platform.close();
        true
    }

    fn take_stray(&mut self) -> Option<String> {
        interrupts::stray::take().map(|stray| stray.to_string())
    }

    fn counts_handlers(&self) -> bool {
        true
    }
}
