//! SVM as the guest has it, and the guest's own guest: see [`emulated_pmu::nested`].
//!
//! While a nested guest runs, it is what the block and the registers hold; the guest's own state is kept in [`Inner`].
//! Everything else continues as ever: how the guest runs, who counts, what is stepped. Its way in is [`instructions`] and
//! [`entry`], its way out [`leave`]; what is merged into each entry and taken out after it is in [`merge`].
//!
//! SVM is offered where the plugin counts and the guest has one processor.

mod entry;
mod instructions;
pub mod leave;
mod maps;
pub mod merge;

use super::guest::{Guest, IF};
use super::processors;
use super::svm::SVME;
use emulated_pmu::control::Features;
use emulated_pmu::nested::pending::Pending;
use emulated_pmu::nested::{Control, State};
use emulated_pmu::walk::Paging;
use pmu_model::World;

pub use instructions::handle;
pub use maps::intercept_port;

/// VM_CR.LOCK: SVMDIS can no longer be changed.
const LOCK: u64 = 1 << 3;
/// VM_CR.SVMDIS: EFER.SVME cannot be set.
const DISABLE: u64 = 1 << 4;
/// VM_CR's other bits, of which nothing comes here: DPD, R_INIT, DIS_A20M.
const VM_CR_BITS: u64 = 0b111 | LOCK | DISABLE;

/// Whose the virtual interrupt of the last entry was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Irq {
    /// Nobody's, or that of the event that was to be delivered.
    #[default]
    Event,
    /// The hypervisor's, which waits for the guest to let interrupts in.
    Window,
    /// The guest's own, for its nested guest.
    Guests,
}

/// The guest's SVM.
#[derive(Debug)]
pub struct VirtualSvm {
    /// EFER.SVME, of whoever runs.
    pub enabled: bool,
    /// The global interrupt flag.
    pub gif: bool,
    /// VM_CR and VM_HSAVE_PA.
    vm_cr: u64,
    save_area: u64,
    /// The event that waits is one that the guest has injected into its own.
    injected: bool,
    /// How far after its instruction the nested guest stands while what it has injected is delivered.
    rewind: u64,
    irq: Irq,
    /// An instruction that QEMU takes for another one, which the guest intercepts, is let through.
    lets_through: bool,
    inner: Option<Inner>,
    features: Option<Features>,
}

/// A nested guest.
#[derive(Debug)]
struct Inner {
    /// The address of the guest's block for it.
    block: u64,
    control: Control,
    /// The guest's own registers, which stand after its VMRUN.
    host: State,
    /// Its EFER.SCE, which is not always the processor's.
    sce: bool,
    /// It handles an NMI.
    nmi_blocked: bool,
    /// The top of the nested page tables, as the processor walks them.
    tables: u64,
    /// Its PAT, if the nested guest has one of its own.
    pat: u64,
}

impl VirtualSvm {
    pub const fn new() -> Self {
        Self {
            enabled: false,
            gif: true,
            vm_cr: 0,
            save_area: 0,
            injected: false,
            rewind: 0,
            irq: Irq::Event,
            lets_through: false,
            inner: None,
            features: None,
        }
    }

    /// Whether a nested guest runs.
    pub const fn runs_nested(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether interrupts that wait are taken from the controller at once, and come when the guest lets them in.
    pub const fn holds_interrupts(&self) -> bool {
        self.enabled || self.inner.is_some()
    }

    /// Whether interrupts of devices can be taken now: `own`, by IF and shadow of whoever runs.
    pub fn lets_interrupts_in(&self, own: bool) -> bool {
        self.gif
            && match &self.inner {
                Some(inner) if inner.control.masks_virtually() => inner.host.rflags & IF != 0,
                _ => own,
            }
    }

    /// The same of those that are delivered to whoever runs, and are not the guest's.
    pub fn delivers_interrupts(&self, own: bool) -> bool {
        let intercepted = self
            .inner
            .as_ref()
            .is_some_and(|inner| inner.control.wants(emulated_pmu::vmcb::exit::INTR));
        self.lets_interrupts_in(own) && !intercepted
    }

    /// The tables of the nested guest's nested paging: they have the form that the guest's own have.
    pub fn nested_paging(&self) -> Option<Paging> {
        let inner = self.inner.as_ref()?;
        nested_paging(&inner.control, &inner.host)
    }

    /// What was to be delivered is.
    pub const fn is_delivered(&mut self) {
        self.injected = false;
    }

    /// EFER.SVME as a guest reads it.
    pub const fn svme(&self) -> u64 {
        if self.enabled { SVME } else { 0 }
    }
}

fn nested_paging(control: &Control, host: &State) -> Option<Paging> {
    let cr3 = control.nested_cr3?;
    Some(Paging { cr0: host.cr0, cr3, cr4: host.cr4, efer: host.efer })
}

/// Offers it, if that can be.
pub fn offer(guest: &mut Guest) {
    if guest.plugin.is_some() && !processors::are_shared() {
        guest.counting.pmu().offer_svm();
    }
}

/// Whether a write of EFER may set SVME.
pub fn may_enable(guest: &mut Guest) -> bool {
    guest.counting.peek().offers_svm() && guest.svm.vm_cr & DISABLE == 0
}

/// Whoever runs has written EFER.SVME.
pub fn enable(guest: &mut Guest, enabled: bool) {
    if guest.svm.enabled == enabled {
        return;
    }
    guest.svm.enabled = enabled;
    if !guest.svm.runs_nested() {
        let world = if enabled { World::Host } else { World::Alone };
        guest.needs = guest.counting.pmu().enter_world(world);
    }
}

/// VM_CR.
pub fn read_vm_cr(guest: &mut Guest) -> Option<u64> {
    guest.counting.peek().offers_svm().then_some(guest.svm.vm_cr)
}

/// VM_HSAVE_PA.
pub fn read_save_area(guest: &mut Guest) -> Option<u64> {
    guest.counting.peek().offers_svm().then_some(guest.svm.save_area)
}

/// Whether a write of VM_CR is taken.
pub fn may_write_vm_cr(guest: &mut Guest, value: u64) -> bool {
    let svm = &guest.svm;
    value & !VM_CR_BITS == 0
        && !(svm.enabled && value & DISABLE != 0)
        && guest.counting.peek().offers_svm()
}

/// Writes VM_CR, whose lock holds itself and SVMDIS.
pub fn write_vm_cr(guest: &mut Guest, value: u64) {
    let held = if guest.svm.vm_cr & LOCK != 0 { LOCK | DISABLE } else { 0 };
    guest.svm.vm_cr = value & !held | guest.svm.vm_cr & held;
}

/// Whether a write of VM_HSAVE_PA is taken.
pub fn may_write_save_area(guest: &mut Guest, value: u64) -> bool {
    guest.counting.peek().offers_svm() && is_page(guest, value)
}

/// Writes VM_HSAVE_PA. Nothing is put there.
pub fn write_save_area(guest: &mut Guest, value: u64) {
    guest.svm.save_area = value;
}

/// Whether a page can be at this physical address.
fn is_page(guest: &mut Guest, address: u64) -> bool {
    let bits = features(guest).physical_bits;
    address & 0xfff == 0 && address >> bits == 0
}

/// What the guest's CPUID says of control registers and addresses.
fn features(guest: &mut Guest) -> Features {
    if let Some(features) = guest.svm.features {
        return features;
    }
    let features = super::exits::features(guest);
    guest.svm.features = Some(features);
    features
}

/// Before anything else is done for the guest: leaves the nested one, if something waits that ends it.
pub fn poll(guest: &mut Guest) {
    let Some(inner) = &guest.svm.inner else { return };
    let nmi = guest.nmi_pending && guest.svm.gif && !inner.nmi_blocked && guest.nmi_in() == 0;
    let own = guest.vmcb.rflags & IF != 0 && !guest.in_shadow();
    let pending = Pending {
        event: guest.event,
        injected: guest.svm.injected,
        nmi,
        interrupt: !guest.waiting.is_empty(),
        interruptible: guest.svm.lets_interrupts_in(own),
    };
    if let Some(due) = pending.exit(&inner.control) {
        leave::leave(guest, due.code, (due.info_1, 0), None);
    }
}

/// Whether what is to be delivered must be watched, because something else waits after it.
pub fn delivers_before_others(guest: &Guest) -> bool {
    guest.event.is_some()
        && guest.svm.inner.as_ref().is_some_and(|inner| {
            let irq = inner.control.int_control & emulated_pmu::vmcb::VIRTUAL_IRQ != 0;
            irq || !guest.waiting.is_empty() || guest.nmi_pending
        })
}
