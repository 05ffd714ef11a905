//! Exit codes: AMD APM vol. 2, appendix C.

/// MOV from CR0, and after it those from the other control registers.
pub const READ_CR0: u64 = 0x00;
/// MOV to CR0.
pub const WRITE_CR0: u64 = 0x10;
/// MOV to CR3.
pub const WRITE_CR3: u64 = 0x13;
/// MOV to CR4.
pub const WRITE_CR4: u64 = 0x14;
/// MOV from DR0.
pub const READ_DR0: u64 = 0x20;
/// MOV to DR0.
pub const WRITE_DR0: u64 = 0x30;
/// MOV to DR15.
pub const LAST_DR: u64 = 0x3f;
/// Exception 0.
pub const EXCEPTION: u64 = 0x40;
/// Exception 31.
pub const LAST_EXCEPTION: u64 = 0x5f;
/// An interrupt of a device.
pub const INTR: u64 = 0x60;
/// A non-maskable interrupt.
pub const NMI: u64 = 0x61;
/// A virtual interrupt can be taken.
pub const VIRTUAL_IRQ: u64 = 0x64;
/// A write to CR0 changes more than TS and MP.
pub const CR0_SELECTIVE: u64 = 0x65;
/// RDTSC.
pub const RDTSC: u64 = 0x6e;
/// RDPMC.
pub const RDPMC: u64 = 0x6f;
/// CPUID.
pub const CPUID: u64 = 0x72;
/// IRET.
pub const IRET: u64 = 0x74;
/// INT n.
pub const INT_N: u64 = 0x75;
/// PAUSE.
pub const PAUSE: u64 = 0x77;
/// HLT.
pub const HLT: u64 = 0x78;
/// INVLPGA.
pub const INVLPGA: u64 = 0x7a;
/// An access to a port.
pub const PORT: u64 = 0x7b;
/// RDMSR, or WRMSR if the first exit information is 1.
pub const MSR: u64 = 0x7c;
/// A triple fault.
pub const SHUTDOWN: u64 = 0x7f;
/// VMRUN.
pub const VMRUN: u64 = 0x80;
/// VMMCALL.
pub const VMMCALL: u64 = 0x81;
/// VMLOAD.
pub const VMLOAD: u64 = 0x82;
/// VMSAVE.
pub const VMSAVE: u64 = 0x83;
/// STGI.
pub const STGI: u64 = 0x84;
/// CLGI.
pub const CLGI: u64 = 0x85;
/// SKINIT.
pub const SKINIT: u64 = 0x86;
/// RDTSCP.
pub const RDTSCP: u64 = 0x87;
/// INT1.
pub const ICEBP: u64 = 0x88;
/// MWAIT.
pub const MWAIT: u64 = 0x8b;
/// The last that an intercept vector has: vector 5, bit 31.
pub const LAST_INTERCEPT: u64 = 0xbf;
/// A nested page fault.
pub const NESTED_PAGE_FAULT: u64 = 0x400;
/// VMRUN refuses the guest's state. QEMU's MOV to a control register ends so, too.
pub const INVALID: u64 = 0xffff_ffff;
/// The same, as the architecture has it: -1.
pub const ARCHITECTURAL_INVALID: u64 = u64::MAX;
