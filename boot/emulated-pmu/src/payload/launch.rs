//! Making a guest of the caller.

use super::code::CodeMap;
use super::counting::Counting;
use super::guest::{Guest, SCE};
use super::hpet::Alarm;
use super::icount;
use super::nested_guest::{self, VirtualSvm};
use super::plugin::Plugin;
use super::pm_timer::PmTimer;
use super::port::{cpuid, read_msr};
use super::processors::{arrival, guard};
use super::run;
use super::switch::Registers;
use super::timer::Timer;
use super::{
    acpi, breakpoint, clock, debug, lapic, processors, recorded, statistics, svm, tables,
    vector_registers,
};
use core::arch::asm;
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicBool, Ordering};
use emulated_pmu::debug_registers::DebugRegisters;
use emulated_pmu::extended_apic::ExtendedApic;
use emulated_pmu::options::{self, Clock, Options, Strings};
use emulated_pmu::vmcb::{Segment, Vmcb};
use emulated_pmu::x2apic::X2Apic;
use handover::{LAUNCH_VERSION, Launch, Refusal};
use iced_x86::InstructionInfoFactory;
use pmu_model::model::Vendor;
use pmu_model::uarch::{Core, Llc, Parameters, Prefetch};
use pmu_model::{Host, Model, Needs, Pmu, Recording, Timing};

static mut VMCB: MaybeUninit<Vmcb> = MaybeUninit::zeroed();
static mut GUEST: MaybeUninit<Guest> = MaybeUninit::uninit();
static mut LLC: Llc = Llc::new();
static mut CR3: u64 = 0;
/// Who is to count what cannot be told from QEMU's clock, and how long the plugin has code translated for it.
static COUNTER: spin::Once<(options::Counting, options::Keeping)> = spin::Once::new();
/// The parameters of caches, TLBs and predictor, if there are some.
static PARAMETERS: spin::Once<Parameters> = spin::Once::new();
/// The guest's time is its own.
static OWN_TIME: AtomicBool = AtomicBool::new(false);
/// What [`prepare`] returns from a copy that waits for its processor.
pub const PREPARED: i32 = -1;

/// Checks the machine and prepares the guest, which starts at `rip` with `rsp`. Returns 0, a refusal's number, or
/// [`PREPARED`].
pub extern "sysv64" fn prepare(launch: *const Launch, rip: u64, rsp: u64) -> u64 {
    // SAFETY: the loader passes a valid structure.
    let launch = unsafe { &*launch };
    if launch.version != LAUNCH_VERSION {
        return Refusal::Version as u64;
    }
    // SAFETY: as above.
    let line = unsafe { slice::from_raw_parts(launch.options, launch.options_len as usize) };
    processors::set(launch.startup, launch.processor);
    let waits = processors::are_shared() && launch.processor > 0;
    match checked(line, launch.processor, waits) {
        Ok((options, recording, shift, alarm)) => {
            acpi::hide_hpet(launch.rsdp);
            let pm_timer = acpi::pm_timer(launch.rsdp);
            // SAFETY: called once, before any guest runs.
            unsafe {
                build((options, recording, launch.processor), shift, (alarm, pm_timer), rip, rsp);
            };
            if processors::are_shared() {
                // SAFETY: as above.
                unsafe { guard::begin() };
            }
            if waits {
                arrival::wait();
                return i64::from(PREPARED) as u64;
            }
            // SAFETY: as above; the page is the loader's for this.
            unsafe { processors::let_in(CR3) };
            0
        }
        Err(refusal) => refusal as u64,
    }
}

/// What is to run, as what processor, on which clock.
type Checked = (Options, Option<&'static Recording>, u8, Alarm);

/// Without switching SVM on if this is not the processor that is to use it.
fn checked(line: &[u8], processor: u64, waits: bool) -> Result<Checked, Refusal> {
    let line = core::str::from_utf8(line).map_err(|_| Refusal::Options)?;
    let options = options::parse(line)?.ok_or(Refusal::Options)?;
    let recording = recorded::of(processor)?;
    svm::check()?;
    let shift = icount::shift()?;
    if options.shift.is_some_and(|said| said != shift) {
        return Err(Refusal::WrongShift);
    }
    if !lapic::is_usable() {
        return Err(Refusal::NoApic);
    }
    let own = || u64::from(cpuid(1, 0).ebx >> 24);
    let alarm = Alarm::find(processor, processors::own_apic_id().unwrap_or_else(own))?;
    if !waits {
        // SAFETY: the calibration changes only what it restores, apart from EFER.SVME and the save area.
        unsafe { svm::enable()? };
    }
    Ok((options, recording, shift, alarm))
}

/// # Safety
/// Called once, SVM on.
unsafe fn build(
    (options, recording, processor): (Options, Option<&'static Recording>, u64),
    shift: u8,
    (alarm, pm_timer): (Alarm, Option<u16>),
    rip: u64,
    rsp: u64,
) {
    OWN_TIME.store(options.clock == Clock::Guest, Ordering::Relaxed);
    COUNTER.call_once(|| (options.counting, options.modes));
    statistics::want(options.statistics);
    let mut timing = Timing::of_tsc(shift);
    if let Some(parameters) = options.parameters {
        PARAMETERS.call_once(|| parameters);
        timing = timing.with(&parameters);
    }
    let mut pmu = match recording {
        Some(recording) => Pmu::recorded(recording, host(), timing),
        None => Pmu::new(options.models.of(processor as usize), host(), timing),
    };
    if !vector_registers::has_avx() {
        pmu.withhold_upper_halves();
    }
    #[cfg(feature = "faults")]
    {
        pmu.set_mutation(options.fault);
        pmu.reset();
    }
    pmu.set_qualifiers(options.qualifiers);
    recorded::leave(&mut pmu, processor);
    let spec = pmu.spec();
    // SAFETY: the statics are touched here and by `go` alone, one after the other.
    unsafe {
        CR3 = tables::build();
        #[allow(static_mut_refs, reason = "the block must stay at its physical address")]
        let vmcb = VMCB.assume_init_mut();
        let (msr_permissions, io_permissions) = svm::permissions(&pmu, options.x2apic);
        vmcb.msr_permissions = msr_permissions;
        vmcb.io_permissions = io_permissions;
        capture(vmcb, rip, rsp);
        let masks_lvtpc = spec.intel().is_some();
        let llc = &raw mut LLC;
        let calibration = icount::Calibration { shift, ..Default::default() };
        let sce = vmcb.efer & SCE != 0;
        let debug = DebugRegisters::new(breakpoint::read(), vmcb.dr6, vmcb.dr7);
        #[allow(static_mut_refs, reason = "as above")]
        GUEST.write(Guest {
            vmcb,
            registers: Registers::default(),
            counting: Counting::new(pmu),
            needs: Needs::default(),
            plugin: None,
            core: Core::new(Prefetch::None),
            llc: &mut *llc,
            runs: Default::default(),
            string_touched: false,
            since_record: 0,
            factory: InstructionInfoFactory::new().into(),
            alarm,
            timer: Timer::default(),
            pm_timer: PmTimer::new(pm_timer),
            debug,
            happened: 0,
            held: 0,
            after_ss: false,
            lets_control_writes: false,
            calibration,
            sce,
            svm: VirtualSvm::new(),
            vendor: spec.identity.as_ref().map(|identity| identity.vendor),
            on_intel: is_on_intel(),
            event: None,
            waiting: Default::default(),
            leaves_for_interrupt: false,
            awaiting: 0,
            keeps_interrupts_out: false,
            software_interrupt_bytes: 0,
            code: CodeMap::new(options.strings != Strings::All),
            idle_stays: 0,
            returns: Default::default(),
            said: [0; 16],
            said_stepped: [0; 4],
            nmi_pending: false,
            nmi_blocked: false,
            nmi_begun: 0,
            nmi_not_before: 0,
            nmi_streak: 0,
            masks_lvtpc,
            extended_apic: ExtendedApic::RESET,
            x2apic: X2Apic::new(options.x2apic),
            stepped: 0,
        });
    }
}

/// Whether QEMU's own processor says that it is Intel's.
fn is_on_intel() -> bool {
    let leaf = cpuid(0, 0);
    let name = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    name.as_flattened() == Vendor::Intel.name().as_bytes()
}

/// What the model has to know of the machine.
fn host() -> Host {
    let highest_basic = cpuid(0, 0).eax;
    let leaf_7 = if highest_basic >= 7 { cpuid(7, 0).eax } else { 0 };
    // SAFETY: QEMU has both registers on every x86-64 processor; they are read only.
    let (misc_enable, hwcr) = unsafe { (read_msr(0x1a0), read_msr(0xc001_0015)) };
    Host {
        highest_basic,
        highest_extended: cpuid(0x8000_0000, 0).eax,
        highest_subleaf_7: leaf_7,
        misc_enable,
        hwcr,
    }
}

/// On the hypervisor's stack: calibrates, and runs the guest for good.
pub extern "sysv64" fn go() -> ! {
    // SAFETY: `prepare` filled the statics; nobody else uses them. This is our stack; interrupts are off.
    let guest = unsafe {
        load_tables();
        asm!("clgi", options(nostack));
        guest()
    };
    calibrate(guest);
    find_plugin(guest);
    greet(guest);
    start_clock();
    run::run(guest)
}

/// The guest that [`prepare`] has built.
///
/// # Safety
/// After that, and no other reference to it is in use.
pub unsafe fn guest() -> &'static mut Guest {
    #[allow(static_mut_refs, reason = "the guest stays in place")]
    // SAFETY: the caller's promise.
    unsafe {
        GUEST.assume_init_mut()
    }
}

/// Loads the hypervisor's tables.
///
/// # Safety
/// After [`prepare`], on the hypervisor's stack, with interrupts off.
pub unsafe fn load_tables() {
    // SAFETY: the caller's promise.
    unsafe { tables::load(CR3) };
}

/// The guest's time begins.
pub fn start_clock() {
    clock::start(OWN_TIME.load(Ordering::Relaxed));
}

/// Says that the guest begins.
pub fn greet(guest: &Guest) {
    debug::line(format_args!(
        "{:?}{}; {}; 2^{} ticks an instruction, {} of our own a stay, {} ns from the clock to the guest",
        guest.counting.model(),
        if guest.counting.is_recorded() { "; a recorded processor" } else { "" },
        match &guest.plugin {
            Some(Plugin { stops: true, .. }) => "counted by the plugin in QEMU",
            Some(_) => "counted by the plugin in QEMU, which cannot stop the guest at an overflow",
            None => "counted by stepping",
        },
        guest.calibration.shift,
        guest.calibration.overhead,
        guest.calibration.before_entry
    ));
    if guest.vendor.is_some_and(|vendor| (vendor == Vendor::Intel) != guest.on_intel) {
        debug::line(format_args!(
            "QEMU's processor is of another vendor: SYSCALL of compatibility mode, for one, is not that of the \
             model; give its -cpu vendor={}",
            guest.vendor.map_or("", Vendor::name)
        ));
    }
}

/// Looks for the plugin, if it is wanted.
pub fn find_plugin(guest: &mut Guest) {
    let (wanted, modes) = COUNTER.get().copied().unwrap_or_default();
    if wanted != options::Counting::Stepping {
        guest.plugin = Plugin::find(PARAMETERS.get(), modes);
    }
    if wanted == options::Counting::Plugin && guest.plugin.is_none() {
        debug::line(format_args!("no emulated PMU: the plugin is requested, but QEMU has none"));
        give_up(guest);
    }
    nested_guest::offer(guest);
}

/// A PMU that says nothing of itself.
fn no_pmu(guest: &Guest) -> Pmu {
    Pmu::new(Model::None, host(), Timing::of_tsc(guest.calibration.shift))
}

/// A failed calibration comes too late for a refusal: the guest then runs with a PMU that says nothing of itself.
fn calibrate(guest: &mut Guest) {
    static mut BLOCK: MaybeUninit<Vmcb> = MaybeUninit::zeroed();
    // SAFETY: a block of its own, used here only; SVM is on, GIF 0.
    let result = unsafe {
        #[allow(static_mut_refs, reason = "the block must stay at its physical address")]
        let block = BLOCK.assume_init_mut();
        block.msr_permissions = guest.vmcb.msr_permissions;
        block.io_permissions = guest.vmcb.io_permissions;
        icount::calibrate(block, &mut guest.alarm, guest.calibration.shift, CR3)
    };
    match result {
        Ok(calibration) => {
            arrival::publish(&calibration);
            guest.calibration = calibration;
        }
        Err(refusal) => {
            debug::line(format_args!("no emulated PMU: {refusal}"));
            give_up(guest);
        }
    }
}

/// From now on there is no PMU.
pub fn give_up(guest: &mut Guest) {
    let none = no_pmu(guest);
    svm::release(guest.counting.peek(), &none);
    guest.counting = Counting::new(none);
    guest.needs = guest.counting.peek().needs();
}

/// Puts the processor's state into the block: that of the loader, which becomes the guest's.
///
/// # Safety
/// Ring 0, 64-bit mode.
unsafe fn capture(vmcb: &mut Vmcb, rip: u64, rsp: u64) {
    let (cr0, cr3, cr4, dr6, dr7): (u64, u64, u64, u64, u64);
    let (mut gdtr, mut idtr) = ([0u8; 10], [0u8; 10]);
    let (cs, ss, ds, es): (u16, u16, u16, u16);
    // SAFETY: reads registers and stores two descriptor-table registers.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr3", "mov {}, cr4", out(reg) cr0, out(reg) cr3, out(reg) cr4);
        asm!("mov {}, dr6", "mov {}, dr7", out(reg) dr6, out(reg) dr7);
        asm!("sgdt [{}]", "sidt [{}]", in(reg) gdtr.as_mut_ptr(), in(reg) idtr.as_mut_ptr());
        asm!(
            "mov {:x}, cs", "mov {:x}, ss", "mov {:x}, ds", "mov {:x}, es",
            out(reg) cs, out(reg) ss, out(reg) ds, out(reg) es,
        );
    }
    let table = |bytes: [u8; 10]| Segment {
        limit: u32::from(u16::from_le_bytes([bytes[0], bytes[1]])),
        base: u64::from_le_bytes(bytes[2..].try_into().expect("8 bytes")),
        ..Segment::default()
    };
    (vmcb.gdtr, vmcb.idtr) = (table(gdtr), table(idtr));
    let base = vmcb.gdtr.base;
    vmcb.cs = segment(cs, base, 0xa9b);
    vmcb.ss = segment(ss, base, 0xc93);
    vmcb.ds = segment(ds, base, 0xc93);
    vmcb.es = segment(es, base, 0xc93);
    (vmcb.cr0, vmcb.cr3, vmcb.cr4, vmcb.dr6, vmcb.dr7) = (cr0, cr3, cr4, dr6, dr7);
    // SAFETY: both registers exist.
    unsafe {
        vmcb.efer = read_msr(svm::EFER);
        vmcb.pat = read_msr(0x277);
    }
    (vmcb.rip, vmcb.rsp, vmcb.rflags, vmcb.asid) = (rip, rsp, 2, 1);
}

/// A segment register with what its descriptor says; a null selector gets `attributes`.
fn segment(selector: u16, gdt: u64, attributes: u16) -> Segment {
    if selector & !7 == 0 {
        return Segment { selector, attributes, limit: u32::MAX, base: 0 };
    }
    // SAFETY: the loader's descriptor table, in which the selector lies.
    let descriptor = unsafe { ((gdt + u64::from(selector & !7)) as *const u64).read_unaligned() };
    let attributes = (descriptor >> 40 & 0xff | (descriptor >> 52 & 0xf) << 8) as u16;
    Segment { selector, attributes, limit: u32::MAX, base: 0 }
}
