//! What makes the guest leave: intercept vectors 3 and 4.

use bitflags::bitflags;

bitflags! {
    /// Intercept vectors 3 and 4, as one number: vector 3 in the lower half. Bit n leads to exit code 0x60 + n.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Intercepts: u64 {
        /// Interrupts of devices.
        const INTR = 1 << 0;
        /// Non-maskable interrupts.
        const NMI = 1 << 1;
        /// Virtual interrupts, when they can be taken.
        const VIRTUAL_IRQ = 1 << 4;
        /// Writes to CR0 that change more than TS and MP.
        const CR0_SELECTIVE = 1 << 5;
        /// RDTSC.
        const RDTSC = 1 << 14;
        /// RDPMC.
        const RDPMC = 1 << 15;
        /// PUSHF.
        const PUSHF = 1 << 16;
        /// POPF.
        const POPF = 1 << 17;
        /// CPUID.
        const CPUID = 1 << 18;
        /// IRET.
        const IRET = 1 << 20;
        /// INT n.
        const INT_N = 1 << 21;
        /// PAUSE.
        const PAUSE = 1 << 23;
        /// HLT.
        const HLT = 1 << 24;
        /// INVLPG.
        const INVLPG = 1 << 25;
        /// INVLPGA.
        const INVLPGA = 1 << 26;
        /// Ports, by the I/O permission map.
        const PORT = 1 << 27;
        /// Model-specific registers, by the MSR permission map.
        const MSR = 1 << 28;
        /// Triple faults.
        const SHUTDOWN = 1 << 31;
        /// VMRUN.
        const VMRUN = 1 << 32;
        /// VMMCALL.
        const VMMCALL = 1 << 33;
        /// VMLOAD.
        const VMLOAD = 1 << 34;
        /// VMSAVE.
        const VMSAVE = 1 << 35;
        /// STGI.
        const STGI = 1 << 36;
        /// CLGI.
        const CLGI = 1 << 37;
        /// SKINIT.
        const SKINIT = 1 << 38;
        /// INT1.
        const ICEBP = 1 << 40;
        /// WBINVD.
        const WBINVD = 1 << 41;
        /// MWAIT.
        const MWAIT = 1 << 43;

        // The others are those of a guest that is a hypervisor.
        const _ = !0;
    }
}
