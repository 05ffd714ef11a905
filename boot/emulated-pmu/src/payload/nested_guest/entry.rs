//! VMRUN of the guest.

use super::{Inner, features, leave, maps, nested_paging};
use crate::payload::guest::{Guest, IF, RF, SCE};
use crate::payload::memory::read_physical;
use crate::payload::port::{read_msr, write_msr};
use crate::payload::{clock, events, retire};
use emulated_pmu::debug_registers::DebugRegisters;
use emulated_pmu::nested::paging::top_of_four;
use emulated_pmu::nested::{Control, State, checks};
use emulated_pmu::vmcb::{Event, SHADOW, Vmcb, exit};
use pmu_model::{Pmu, World};

pub(super) const PAT: u32 = 0x277;
/// #BP and #OF, whose injection returns after the instruction as that of INT n does (APM vol. 2, 15.20).
pub(super) const BREAKPOINT: u8 = 3;
pub(super) const OVERFLOW: u8 = 4;

/// A table in which nothing is mapped.
#[repr(C, align(4096))]
struct Table([u64; 512]);
static NO_TABLES: Table = Table([0; 512]);

/// VMRUN of `bytes` bytes, with the block at `address`, a page that there can be.
pub fn vmrun(guest: &mut Guest, address: u64, bytes: u64) {
    retire::plain(guest, None);
    let mut host = State::of(guest.vmcb);
    host.rip = host.rip.wrapping_add(bytes);
    host.rflags &= !RF;
    // SAFETY: memory that the guest has named for the processor to read and write; identity mapped.
    let block = unsafe { &mut *(address as *mut Vmcb) };
    let (control, state) = (Control::of(block), State::of(block));
    guest.vmcb.int_state &= !SHADOW;
    guest.after_ss = false;
    if let Err(refused) = checks::check(&control, &state, &features(guest)) {
        crate::payload::debug::line(format_args!("VMRUN refuses a block: {refused}"));
        block.exit_code = exit::ARCHITECTURAL_INVALID;
        (block.exit_info_1, block.exit_info_2, block.exit_int_info) = (0, 0, 0);
        (guest.vmcb.rip, guest.vmcb.rflags) = (host.rip, host.rflags);
        guest.svm.gif = false;
        return leave::step_behind_vmrun(guest, host.rflags);
    }
    let (msr, io) = maps::merged(address, block, &control);
    // SAFETY: every x86-64 processor has the register.
    let pat = unsafe { read_msr(PAT) };
    if control.nested_cr3.is_some() {
        // SAFETY: as above; illegal types are the guest's own matter, as QEMU's caches have none.
        unsafe { write_msr(PAT, block.pat) };
    }
    let nmi_blocked = core::mem::take(&mut guest.nmi_blocked);
    let tables = nested_paging(&control, &host)
        .and_then(|nested| top_of_four(&nested, read_physical))
        .unwrap_or(&raw const NO_TABLES as u64);
    let inner = Inner { block: address, control, host, sce: guest.sce, nmi_blocked, tables, pat };
    guest.svm.inner = Some(inner);
    guest.svm.gif = true;
    state.put(guest.vmcb);
    guest.sce = state.efer & SCE != 0;
    let vmcb = &mut guest.vmcb;
    (vmcb.msr_permissions, vmcb.io_permissions) = (msr, io);
    vmcb.int_state = block.int_state & SHADOW;
    vmcb.exit_int_info = 0;
    set_debug_registers(guest, state.dr6, state.dr7);
    clock::set_nested_offset(control.tsc_offset);
    guest.runs = Default::default();
    if let Some(plugin) = &mut guest.plugin {
        plugin.goes_elsewhere();
    }
    inject(guest, &control);
    guest.needs = guest.counting.pmu().enter_world(World::Guest);
    if guest.needs.branches() {
        let entry = Pmu::entry(guest.ring());
        let outcome = guest.counting.pmu().advance(&entry);
        events::deliver_pmi(guest, outcome);
    }
}

/// The event that the guest injects.
fn inject(guest: &mut Guest, control: &Control) {
    guest.event = Event::injected(control.event).ok().flatten();
    guest.svm.injected = guest.event.is_some();
    guest.svm.rewind = 0;
    let is_soft = match guest.event {
        Some(Event::SoftwareInterrupt { .. }) => true,
        Some(Event::Exception { vector, .. }) => matches!(vector, BREAKPOINT | OVERFLOW),
        _ => false,
    };
    if is_soft && control.next_rip != 0 {
        guest.svm.rewind = control.next_rip.wrapping_sub(guest.vmcb.rip);
        guest.vmcb.rip = control.next_rip;
        if matches!(guest.event, Some(Event::SoftwareInterrupt { .. })) {
            guest.software_interrupt_bytes = guest.svm.rewind;
        }
    }
}

/// DR6 and DR7; the addresses stay.
pub(super) fn set_debug_registers(guest: &mut Guest, dr6: u64, dr7: u64) {
    let addresses = core::array::from_fn(|number| guest.debug.read(number));
    guest.debug = DebugRegisters::new(addresses, dr6, dr7);
    (guest.happened, guest.held) = (0, 0);
}

/// Whether interrupts of devices come in while the nested guest runs although its own IF is clear.
pub(super) fn is_open_to_devices(inner: &Inner) -> bool {
    inner.control.masks_virtually() && inner.host.rflags & IF != 0
}
