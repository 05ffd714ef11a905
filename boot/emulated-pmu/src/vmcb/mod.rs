//! The virtual machine control block: AMD APM vol. 2, appendix B.

pub mod event;
pub mod exit;
mod intercepts;

pub use event::Event;
pub use intercepts::Intercepts;

/// A segment register with its hidden part.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Segment {
    /// The selector.
    pub selector: u16,
    /// Bits 7:0: descriptor bits 47:40; 11:8: bits 55:52.
    pub attributes: u16,
    /// The limit, in bytes.
    pub limit: u32,
    /// The base.
    pub base: u64,
}

/// Interrupt control: the virtual task priority.
pub const VIRTUAL_PRIORITY: u64 = 0xff;
/// Interrupt control: a virtual interrupt waits.
pub const VIRTUAL_IRQ: u64 = 1 << 8;
/// Interrupt control: the virtual GIF.
pub const VIRTUAL_GIF: u64 = 1 << 9;
/// Interrupt control: the virtual interrupt's priority.
pub const IRQ_PRIORITY: u64 = 0xf << 16;
/// Interrupt control: it comes whatever the task priority is.
pub const IGNORE_PRIORITY: u64 = 1 << 20;
/// Interrupt control: the guest's IF and task priority are its own, and the host's hold for interrupts of devices.
pub const VIRTUAL_MASKING: u64 = 1 << 24;
/// Interrupt control: CLGI and STGI of the guest change its virtual GIF.
pub const VIRTUAL_GIF_ENABLE: u64 = 1 << 25;
/// Interrupt control: where the vector begins.
const VIRTUAL_VECTOR: u32 = 32;
/// Interrupt control: the vector.
pub const IRQ_VECTOR: u64 = 0xff << VIRTUAL_VECTOR;
/// Nested control: nested paging.
pub const NESTED_PAGING: u64 = 1 << 0;
/// Interrupt state: the interrupt shadow.
pub const SHADOW: u64 = 1 << 0;
/// Clean bits: the permission maps, and their addresses.
pub const CLEAN_MAPS: u32 = 1 << 1;

/// The block. Fields that are not used keep their place as padding.
#[derive(Clone, Debug)]
#[repr(C, align(4096))]
pub struct Vmcb {
    /// Intercepted accesses to control registers: reads by number, writes from bit 16 on.
    pub cr_intercepts: u32,
    /// The same of debug registers.
    pub dr_intercepts: u32,
    /// Intercepted exceptions, by vector.
    pub exceptions: u32,
    intercepts: [u32; 2],
    /// Intercept vector 5.
    pub more_intercepts: u32,
    _018: [u8; 0x28],
    /// Physical address of the I/O permission map.
    pub io_permissions: u64,
    /// Physical address of the MSR permission map.
    pub msr_permissions: u64,
    /// Added to the TSC.
    pub tsc_offset: u64,
    /// Whose translations.
    pub asid: u32,
    /// 1: flush everything at entry.
    pub tlb_control: u32,
    /// Virtual interrupts.
    pub int_control: u64,
    /// Bit 0: interrupt shadow.
    pub int_state: u64,
    /// Why the guest left: [`exit`].
    pub exit_code: u64,
    /// More about it.
    pub exit_info_1: u64,
    /// More about it.
    pub exit_info_2: u64,
    /// What was being delivered.
    pub exit_int_info: u64,
    /// Bit 0: nested paging.
    pub nested_control: u64,
    _098: [u8; 0x10],
    /// What is to be delivered: EVENTINJ.
    pub event: u64,
    /// The nested page tables.
    pub nested_cr3: u64,
    _0b8: [u8; 8],
    /// What has not changed since the last exit.
    pub clean: u32,
    _0c4: [u8; 4],
    /// Where the guest continues after the instruction that was intercepted.
    pub next_rip: u64,
    _0d0: [u8; 0x330],
    /// ES.
    pub es: Segment,
    /// CS.
    pub cs: Segment,
    /// SS.
    pub ss: Segment,
    /// DS.
    pub ds: Segment,
    _440: [Segment; 2],
    /// GDTR.
    pub gdtr: Segment,
    _470: Segment,
    /// IDTR.
    pub idtr: Segment,
    /// TR: of VMSAVE alone.
    pub task: Segment,
    _4a0: [u8; 0x2b],
    /// The ring.
    pub cpl: u8,
    _4cc: [u8; 4],
    /// EFER.
    pub efer: u64,
    _4d8: [u8; 0x70],
    /// CR4.
    pub cr4: u64,
    /// CR3.
    pub cr3: u64,
    /// CR0.
    pub cr0: u64,
    /// DR7.
    pub dr7: u64,
    /// DR6.
    pub dr6: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// RIP.
    pub rip: u64,
    _580: [u8; 0x58],
    /// RSP.
    pub rsp: u64,
    _5e0: [u8; 0x18],
    /// RAX.
    pub rax: u64,
    _600: [u8; 0x40],
    /// CR2.
    pub cr2: u64,
    _648: [u8; 0x20],
    /// The PAT of nested paging.
    pub pat: u64,
    _670: [u8; 0x990],
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Vmcb>() == 4096);
    assert!(offset_of!(Vmcb, more_intercepts) == 0x14);
    assert!(offset_of!(Vmcb, io_permissions) == 0x40);
    assert!(offset_of!(Vmcb, tsc_offset) == 0x50);
    assert!(offset_of!(Vmcb, asid) == 0x58);
    assert!(offset_of!(Vmcb, int_control) == 0x60);
    assert!(offset_of!(Vmcb, exit_code) == 0x70);
    assert!(offset_of!(Vmcb, nested_control) == 0x90);
    assert!(offset_of!(Vmcb, event) == 0xa8);
    assert!(offset_of!(Vmcb, clean) == 0xc0);
    assert!(offset_of!(Vmcb, next_rip) == 0xc8);
    assert!(offset_of!(Vmcb, es) == 0x400);
    assert!(offset_of!(Vmcb, gdtr) == 0x460);
    assert!(offset_of!(Vmcb, idtr) == 0x480);
    assert!(offset_of!(Vmcb, task) == 0x490);
    assert!(offset_of!(Vmcb, cpl) == 0x4cb);
    assert!(offset_of!(Vmcb, efer) == 0x4d0);
    assert!(offset_of!(Vmcb, cr4) == 0x548);
    assert!(offset_of!(Vmcb, rip) == 0x578);
    assert!(offset_of!(Vmcb, rsp) == 0x5d8);
    assert!(offset_of!(Vmcb, rax) == 0x5f8);
    assert!(offset_of!(Vmcb, cr2) == 0x640);
    assert!(offset_of!(Vmcb, pat) == 0x668);
};

impl Vmcb {
    /// All zero.
    #[must_use]
    pub const fn zeroed() -> Self {
        // SAFETY: integers and arrays of them, for which zero is a value.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }

    /// What is to be delivered at the entry. Interrupts of devices are virtual ones: QEMU forgets an injected one only at
    /// the next exit, and delivers it once more if its clock makes it look up before that.
    pub fn set_event(&mut self, event: Option<Event>) {
        (self.event, self.int_control) = match event {
            Some(Event::Interrupt { vector }) => (0, virtual_interrupt(vector)),
            other => (other.map_or(0, Event::encode), 0),
        };
    }

    /// Keeps interrupts of devices out of the guest run. The guest must not touch CR8 in it, which would not be the local
    /// APIC's then. After [`Self::set_event`].
    pub const fn keep_interrupts_out(&mut self) {
        self.int_control |= VIRTUAL_MASKING;
    }

    /// After an exit: the interrupt that was to be delivered and was not, because something else came first.
    #[must_use]
    pub fn undelivered(&self) -> Option<u8> {
        let begun = Event::decode(self.exit_int_info).is_some();
        let waits = self.int_control & VIRTUAL_IRQ != 0 && !begun;
        waits.then_some((self.int_control >> VIRTUAL_VECTOR) as u8)
    }

    /// Intercept vectors 3 and 4.
    #[must_use]
    pub fn intercepts(&self) -> Intercepts {
        Intercepts::from_bits_retain(
            u64::from(self.intercepts[1]) << 32 | u64::from(self.intercepts[0]),
        )
    }

    /// Intercepts these as well.
    pub fn add_intercepts(&mut self, intercepts: Intercepts) {
        let bits = intercepts.bits();
        self.intercepts[0] |= bits as u32;
        self.intercepts[1] |= (bits >> 32) as u32;
    }

    /// Intercepts these alone.
    pub fn set_intercepts(&mut self, intercepts: Intercepts) {
        let bits = intercepts.bits();
        self.intercepts = [bits as u32, (bits >> 32) as u32];
    }
}

/// Interrupt control with a virtual interrupt of this vector, whatever the task priority is.
#[must_use]
pub const fn virtual_interrupt(vector: u8) -> u64 {
    VIRTUAL_IRQ | IGNORE_PRIORITY | (vector as u64) << VIRTUAL_VECTOR
}
