//! From the MADT's list to processors that wait for work.

use super::arrival::{Arrival, Arrived};
use super::bring_up::{PATIENCE_MS, Signals, Silent, bring_up, init_us};
use super::processor::{add, note};
use super::{MAX_PROCESSORS, Processor, boot, trampoline, work};
use crate::apic;
use crate::cpu::{Identity, Topology, features, limit, native};
use crate::descriptors::{IST_STACKS, Tables};
use crate::interrupts;
use crate::msr;
use crate::power;
use crate::time::{Clock, tsc};
use crate::vectors::CALL_VECTOR;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};
use x86_64::VirtAddr;
use x86_64::instructions::tables::{lidt, sidt};
use x86_64::registers::control::{Cr0, Cr4};
use x86_64::registers::model_specific::Efer;
use x86_64::structures::DescriptorTablePointer;

/// Free memory that is needed below 1 MiB.
pub const LOW_BYTES: u64 = trampoline::PAGES * 4096;

/// The stacks of one processor: their ends.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    /// The one that it runs on.
    pub main: u64,
    /// For interrupts, as [`Tables::load`] wants them.
    pub interrupts: [VirtAddr; IST_STACKS],
}

/// What became of a processor: its number, or why it has none.
pub type Outcome = Result<usize, Silent>;

/// One that was called.
struct Called {
    apic_id: u32,
    processor: &'static Processor,
    tables: UnsafeCell<Tables>,
    arrival: Arrival,
}

/// Everything that an arriving processor needs. Lives for good, because one may come late.
struct Plan {
    called: Vec<Called>,
    stacks: Vec<Stacks>,
    idt: DescriptorTablePointer,
    cr0: u64,
    cr4: u64,
    efer: u64,
    pat: u64,
}

static PLAN: AtomicPtr<Plan> = AtomicPtr::new(core::ptr::null_mut());

/// Starts the processors with the given local APIC ids and leaves them waiting for work. Returns what became of each, in
/// the same order, which is that of their numbers too.
///
/// `low` is the address of [`LOW_BYTES`] below 1 MiB, in whole pages; `stacks` maps those of one more processor.
///
/// # Safety
/// Called once, on the boot processor, in ring 0 with interrupts off, tables, interrupt table and local APIC in
/// use. `low` must be free memory that nobody else gets; each call of `stacks` must give stacks that are mapped,
/// writable, and used for nothing else.
pub unsafe fn start(
    apic_ids: &[u32],
    low: Option<u64>,
    clock: &Clock,
    mut stacks: impl FnMut() -> Option<Stacks>,
) -> Vec<Outcome> {
    let Some(low) = low else { return apic_ids.iter().map(|_| Err(Silent::NoLowMemory)).collect() };
    let mut refused = Vec::new();
    let (mut called, mut all_stacks, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for &apic_id in apic_ids {
        let index = called.len() + 1;
        let refusal = if index == MAX_PROCESSORS { Some(Silent::TooMany) } else { None };
        let given = stacks().filter(|_| refusal.is_none());
        let Some(given) = given else {
            refused.push(Some(refusal.unwrap_or(Silent::NoMemory)));
            continue;
        };
        refused.push(None);
        ids.push(apic_id);
        all_stacks.push(given);
        called.push(Called {
            apic_id,
            // The number is settled when it is known who came.
            processor: boot(),
            tables: UnsafeCell::new(Tables::new()),
            arrival: Arrival::called(),
        });
    }
    for (one, index) in called.iter_mut().zip(1..) {
        let own = Box::leak(Box::new(Processor::new(index)));
        own.note_apic_id(one.apic_id);
        note(own);
        one.processor = own;
    }
    let plan: &'static Plan = Box::leak(Box::new(Plan::new(called, all_stacks)));
    PLAN.store(core::ptr::from_ref(plan).cast_mut(), Ordering::Release);
    let ends: Vec<u64> = plan.stacks.iter().map(|stacks| stacks.main).collect();
    interrupts::set_handler(CALL_VECTOR, Some(work::on_call));
    // SAFETY: the caller's promise.
    unsafe { trampoline::place(low, Vec::leak(ends)) };
    let mut wire = Wire { plan, clock, vector: (low >> 12) as u8 };
    let identity = Identity::read(&native());
    let init_us = init_us(&identity.vendor_text, identity.family);
    let mut answers = bring_up(&mut wire, &ids, init_us).into_iter().zip(&plan.called);
    refused
        .into_iter()
        .map(|refusal| match refusal {
            Some(reason) => Err(reason),
            None => {
                let (answer, called) = answers.next().expect("one for each that was called");
                admit(answer, called)
            }
        })
        .collect()
}

/// Takes the processor into use, or shuts the door on it.
fn admit(answer: Result<(), Silent>, called: &'static Called) -> Outcome {
    let arrived = called.arrival.close();
    answer?;
    match arrived {
        Arrived::Ready => {
            add(called.processor);
            Ok(called.processor.index())
        }
        Arrived::Broken => Err(Silent::Apic),
        Arrived::Late | Arrived::Absent => Err(Silent::NoAnswer(PATIENCE_MS)),
    }
}

impl Plan {
    /// With this processor's registers as the model.
    fn new(called: Vec<Called>, stacks: Vec<Stacks>) -> Self {
        Self {
            called,
            stacks,
            idt: sidt(),
            cr0: Cr0::read_raw(),
            cr4: Cr4::read_raw(),
            efer: Efer::read_raw(),
            // SAFETY: every x86-64 processor has the register.
            pat: unsafe { msr::read(msr::IA32_PAT) },
        }
    }
}

/// The machine.
struct Wire<'a> {
    plan: &'static Plan,
    clock: &'a Clock,
    /// Number of the page where the processors begin.
    vector: u8,
}

impl Signals for Wire<'_> {
    fn init(&mut self, apic_id: u32) -> Result<(), Silent> {
        apic::send_init(apic_id).map_err(|_| Silent::OutOfReach(apic_id))
    }

    fn startup(&mut self, apic_id: u32) {
        apic::send_startup(apic_id, self.vector);
    }

    fn has_come(&mut self, apic_id: u32) -> bool {
        let mut called = self.plan.called.iter().filter(|called| called.apic_id == apic_id);
        called.all(|called| called.arrival.has_settled())
    }

    fn wait(&mut self, us: u64, until: &mut dyn FnMut(&mut Self) -> bool) {
        let (begin, ticks) = (tsc::now(), self.clock.ticks_of_us(us));
        while tsc::now().wrapping_sub(begin) < ticks && !until(self) {
            core::hint::spin_loop();
        }
    }
}

/// Where a processor continues, on the stack of its ticket. Nobody has told it which one it is.
pub(super) extern "sysv64" fn arrive(ticket: u32) -> ! {
    // SAFETY: stored, and leaked, before anybody was called.
    let plan = unsafe { &*PLAN.load(Ordering::Acquire) };
    let by_cpuid = Topology::read(&native()).apic_id;
    // SAFETY: the firmware's tables are in use, which map physical memory.
    let apic_id = unsafe { apic::found_id(by_cpuid) };
    let called = plan.called.iter().find(|called| called.apic_id == apic_id);
    let Some(called) = called.filter(|called| called.arrival.arrive()) else {
        power::stop();
    };
    let stacks = plan.stacks[ticket as usize].interrupts;
    // SAFETY: the tables are this processor's alone from its arrival on, and stay for good; so do the stacks. The
    // interrupt table is the boot processor's, whose registers all values are taken from.
    let apic = unsafe {
        (*called.tables.get()).load(stacks, called.processor);
        lidt(&plan.idt);
        // XCR0 as well: everything that CPUID names, as on the boot processor.
        limit::lift();
        features::enable(&Identity::read(&native()));
        Cr0::write_raw(plan.cr0);
        Cr4::write_raw(plan.cr4);
        Efer::write_raw(plan.efer);
        msr::write(msr::IA32_PAT, plan.pat);
        interrupts::enable_apic(apic::mode() == Some(apic::Mode::XApic))
    };
    if apic.is_err() {
        called.arrival.settle(false);
        power::stop();
    }
    called.arrival.settle(true);
    park(called.processor)
}

/// Halts until there is work.
fn park(processor: &'static Processor) -> ! {
    loop {
        x86_64::instructions::interrupts::disable();
        if !work::serve(processor) {
            // STI holds interrupts back until HLT: no wake-up gets lost in between.
            x86_64::instructions::interrupts::enable_and_hlt();
        }
    }
}

// SAFETY: the tables are touched by the one processor that `arrive` lets set itself up.
unsafe impl Sync for Called {}
