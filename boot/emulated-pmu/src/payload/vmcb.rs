//! The virtual machine control block: AMD APM vol. 2, appendix B.

use bitflags::bitflags;

bitflags! {
    /// Intercept vectors 3 and 4, as one number: vector 3 in the lower half.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Intercepts: u64 {
        const INTR = 1 << 0;
        const NMI = 1 << 1;
        const VINTR = 1 << 4;
        const RDPMC = 1 << 15;
        const PUSHF = 1 << 16;
        const POPF = 1 << 17;
        const CPUID = 1 << 18;
        const IRET = 1 << 20;
        const INT_N = 1 << 21;
        const HLT = 1 << 24;
        const PORT = 1 << 27;
        const INVLPG = 1 << 25;
        const MSR = 1 << 28;
        const SHUTDOWN = 1 << 31;
        const VMRUN = 1 << 32;
        const VMMCALL = 1 << 33;
        const VMLOAD = 1 << 34;
        const VMSAVE = 1 << 35;
        const STGI = 1 << 36;
        const CLGI = 1 << 37;
        const SKINIT = 1 << 38;
        const ICEBP = 1 << 40;
        const WBINVD = 1 << 41;
        const MWAIT = 1 << 43;
    }
}

/// A segment register with its hidden part.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Segment {
    pub selector: u16,
    /// Bits 7:0: descriptor bits 47:40; 11:8: bits 55:52.
    pub attributes: u16,
    pub limit: u32,
    pub base: u64,
}

/// EVENTINJ: the type in bits 10:8.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    Interrupt { vector: u8 },
    Nmi,
    Exception { vector: u8, error: Option<u32> },
    SoftwareInterrupt { vector: u8 },
}

/// Above are interrupts of devices.
const LAST_EXCEPTION: u8 = 31;

/// Interrupt control: a virtual interrupt waits.
const VIRTUAL_IRQ: u64 = 1 << 8;
/// Interrupt control: it comes whatever the task priority is.
const IGNORE_PRIORITY: u64 = 1 << 20;
/// Interrupt control: interrupts of devices are the hypervisor's, which has them off (V_INTR_MASKING).
const MASKS_INTERRUPTS: u64 = 1 << 24;
/// Interrupt control: where the vector begins.
const VIRTUAL_VECTOR: u32 = 32;

impl Event {
    /// The vector that it is delivered through.
    pub fn vector(self) -> u8 {
        match self {
            Self::Nmi => 2,
            Self::Interrupt { vector }
            | Self::Exception { vector, .. }
            | Self::SoftwareInterrupt { vector } => vector,
        }
    }

    /// What EXITINTINFO says.
    pub fn decode(info: u64) -> Option<Self> {
        const VALID: u64 = 1 << 31;
        const HAS_ERROR: u64 = 1 << 11;
        let vector = info as u8;
        match (info & VALID != 0, info >> 8 & 7) {
            (false, _) => None,
            (_, 0) => Some(Self::Interrupt { vector }),
            (_, 2) => Some(Self::Nmi),
            // QEMU calls an interrupt that it delivered itself an exception.
            (_, 3) if vector > LAST_EXCEPTION => Some(Self::Interrupt { vector }),
            (_, 4) => Some(Self::SoftwareInterrupt { vector }),
            _ => Some(Self::Exception {
                vector,
                error: (info & HAS_ERROR != 0).then_some((info >> 32) as u32),
            }),
        }
    }

    pub fn encode(self) -> u64 {
        const VALID: u64 = 1 << 31;
        const HAS_ERROR: u64 = 1 << 11;
        match self {
            Self::Interrupt { vector } => VALID | u64::from(vector),
            Self::Nmi => VALID | 2 << 8 | 2,
            Self::Exception { vector, error: None } => VALID | 3 << 8 | u64::from(vector),
            Self::Exception { vector, error: Some(code) } => {
                u64::from(code) << 32 | VALID | HAS_ERROR | 3 << 8 | u64::from(vector)
            }
            Self::SoftwareInterrupt { vector } => VALID | 4 << 8 | u64::from(vector),
        }
    }
}

/// Exit codes that occur here.
pub mod exit {
    pub const WRITE_CR0: u64 = 0x10;
    pub const WRITE_CR3: u64 = 0x13;
    pub const WRITE_CR4: u64 = 0x14;
    pub const READ_DR0: u64 = 0x20;
    pub const WRITE_DR0: u64 = 0x30;
    pub const LAST_DR: u64 = 0x3f;
    pub const EXCEPTION: u64 = 0x40;
    pub const INTR: u64 = 0x60;
    pub const NMI: u64 = 0x61;
    pub const VINTR: u64 = 0x64;
    pub const RDPMC: u64 = 0x6f;
    pub const CPUID: u64 = 0x72;
    pub const IRET: u64 = 0x74;
    pub const INT_N: u64 = 0x75;
    pub const HLT: u64 = 0x78;
    pub const PORT: u64 = 0x7b;
    pub const MSR: u64 = 0x7c;
    pub const SHUTDOWN: u64 = 0x7f;
    pub const VMRUN: u64 = 0x80;
    pub const VMMCALL: u64 = 0x81;
    pub const SKINIT: u64 = 0x86;
    pub const ICEBP: u64 = 0x88;
    pub const MWAIT: u64 = 0x8b;
    pub const NESTED_PAGE_FAULT: u64 = 0x400;
    /// VMRUN refuses the guest's state. QEMU's MOV to a control register ends so, too.
    pub const INVALID: u64 = 0xffff_ffff;
}

/// The block. Fields that are not used keep their place as padding.
#[repr(C, align(4096))]
pub struct Vmcb {
    pub cr_intercepts: u32,
    pub dr_intercepts: u32,
    pub exceptions: u32,
    intercepts: [u32; 2],
    _014: [u8; 0x2c],
    pub io_permissions: u64,
    pub msr_permissions: u64,
    pub tsc_offset: u64,
    pub asid: u32,
    /// 1: flush everything at entry.
    pub tlb_control: u32,
    int_control: u64,
    /// Bit 0: interrupt shadow.
    pub int_state: u64,
    pub exit_code: u64,
    pub exit_info_1: u64,
    pub exit_info_2: u64,
    pub exit_int_info: u64,
    /// Bit 0: nested paging.
    pub nested_control: u64,
    _098: [u8; 0x10],
    event: u64,
    pub nested_cr3: u64,
    _0b8: [u8; 0x348],
    pub es: Segment,
    pub cs: Segment,
    pub ss: Segment,
    pub ds: Segment,
    _440: [Segment; 2],
    pub gdtr: Segment,
    _470: Segment,
    pub idtr: Segment,
    /// TR: of VMSAVE alone.
    pub task: Segment,
    _4a0: [u8; 0x2b],
    pub cpl: u8,
    _4cc: [u8; 4],
    pub efer: u64,
    _4d8: [u8; 0x70],
    pub cr4: u64,
    pub cr3: u64,
    pub cr0: u64,
    pub dr7: u64,
    pub dr6: u64,
    pub rflags: u64,
    pub rip: u64,
    _580: [u8; 0x58],
    pub rsp: u64,
    _5e0: [u8; 0x18],
    pub rax: u64,
    _600: [u8; 0x40],
    pub cr2: u64,
    _648: [u8; 0x20],
    pub pat: u64,
    _670: [u8; 0x990],
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Vmcb>() == 4096);
    assert!(offset_of!(Vmcb, io_permissions) == 0x40);
    assert!(offset_of!(Vmcb, tsc_offset) == 0x50);
    assert!(offset_of!(Vmcb, asid) == 0x58);
    assert!(offset_of!(Vmcb, exit_code) == 0x70);
    assert!(offset_of!(Vmcb, nested_control) == 0x90);
    assert!(offset_of!(Vmcb, event) == 0xa8);
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
    /// What is to be delivered at the entry. Interrupts of devices are virtual ones: QEMU forgets an injected one only at
    /// the next exit, and delivers it once more if its clock makes it look up before that.
    pub fn set_event(&mut self, event: Option<Event>) {
        (self.event, self.int_control) = match event {
            Some(Event::Interrupt { vector }) => {
                (0, VIRTUAL_IRQ | IGNORE_PRIORITY | u64::from(vector) << VIRTUAL_VECTOR)
            }
            other => (other.map_or(0, Event::encode), 0),
        };
    }

    /// Keeps interrupts of devices out of the stay. The guest must not touch CR8 in it, which would not be the local APIC's then.
    /// Behind [`Self::set_event`].
    pub fn keep_interrupts_out(&mut self) {
        self.int_control |= MASKS_INTERRUPTS;
    }

    /// Makes the guest leave as soon as it would take an interrupt, of which one waits with this vector. Behind
    /// [`Self::set_event`] with nothing.
    pub fn leave_for_interrupt(&mut self, vector: u8) {
        self.add_intercepts(Intercepts::VINTR);
        self.int_control = VIRTUAL_IRQ | IGNORE_PRIORITY | u64::from(vector) << VIRTUAL_VECTOR;
    }

    /// After an exit: the interrupt that was to be delivered and was not, because something else came first.
    pub fn undelivered(&self) -> Option<u8> {
        let begun = Event::decode(self.exit_int_info).is_some();
        let waits = self.int_control & VIRTUAL_IRQ != 0 && !begun;
        waits.then_some((self.int_control >> VIRTUAL_VECTOR) as u8)
    }

    pub fn add_intercepts(&mut self, intercepts: Intercepts) {
        let bits = intercepts.bits();
        self.intercepts[0] |= bits as u32;
        self.intercepts[1] |= (bits >> 32) as u32;
    }

    pub fn set_intercepts(&mut self, intercepts: Intercepts) {
        let bits = intercepts.bits();
        self.intercepts = [bits as u32, (bits >> 32) as u32];
    }
}
