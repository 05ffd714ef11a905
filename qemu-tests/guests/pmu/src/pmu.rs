//! One counter of whichever PMU is there, by its registers.

use core::arch::asm;
use x86_64::registers::model_specific::Msr;

/// INST_RETIRED.ANY_P on Intel, retired instructions on AMD.
pub const INSTRUCTIONS: u64 = 0xc0;
/// Event select: USR, OS, INT, EN.
pub const USER: u64 = 1 << 16;
pub const KERNEL: u64 = 1 << 17;
pub const INTERRUPT: u64 = 1 << 20;
const ENABLE: u64 = 1 << 22;

/// A counter, and how it is switched.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    pub intel: bool,
    /// Intel's version; AMD's is 2 with global registers, else 0.
    pub version: u8,
    /// Event select of counter 0.
    pub select: u32,
    pub counter: u32,
    pub width: u8,
    /// Status and its clearing register, if there are any.
    pub status: Option<(u32, u32)>,
}

impl Unit {
    pub fn find() -> Self {
        let cpuid = core::arch::x86_64::__cpuid;
        let vendor = cpuid(0);
        if vendor.ebx == u32::from_le_bytes(*b"Genu") {
            let leaf = cpuid(10);
            let version = leaf.eax as u8;
            let status = (version >= 2).then_some((0x38e, 0x390));
            let width = (leaf.eax >> 16) as u8;
            return Self { intel: true, version, select: 0x186, counter: 0xc1, width, status };
        }
        let extended = cpuid(0x8000_0001).ecx & 1 << 23 != 0;
        let (select, counter) =
            if extended { (0xc001_0200, 0xc001_0201) } else { (0xc001_0000, 0xc001_0004) };
        let v2 = cpuid(0x8000_0000).eax >= 0x8000_0022 && cpuid(0x8000_0022).eax & 1 != 0;
        let status = v2.then_some((0xc000_0300, 0xc000_0302));
        Self { intel: false, version: if v2 { 2 } else { 0 }, select, counter, width: 48, status }
    }

    /// The register that starts and stops, and its value for running.
    pub fn switch(&self, select: u64) -> (u32, u64) {
        if self.intel { (0x38f, 1) } else { (self.select, select | ENABLE) }
    }

    /// Programs an event, stopped, with the counter at `start`.
    pub fn program(&self, select: u64, start: u64) {
        if self.intel {
            write(0x38f, 0);
            write(self.select, select | ENABLE);
        } else {
            write(self.select, select);
        }
        write(self.counter, start);
    }

    pub fn read(&self) -> u64 {
        read(self.counter)
    }

    /// Counter 1, as select, counter and the code of branches.
    pub fn branches(&self) -> (u32, u32, u64) {
        let step = if self.intel || self.select < 0xc001_0200 { 1 } else { 2 };
        (self.select + step, self.counter + step, if self.intel { 0xc4 } else { 0xc2 })
    }

    /// Counts `select` over `code`, and [`AROUND`] of the call. `beside`: other counters to enable, where one register
    /// enables all.
    pub fn over_raw(&self, select: u64, code: unsafe extern "C" fn(), beside: u64) -> u64 {
        self.program(select, 0);
        let (switch, on) = self.switch(select);
        let beside = if self.intel { beside } else { 0 };
        call(switch, on | beside, code as *const () as u64);
        let seen = self.read();
        write(self.select, 0);
        seen
    }

    /// Counts `select` over a call of `code`, without the call itself.
    pub fn over(&self, select: u64, code: unsafe extern "C" fn()) -> u64 {
        let seen = self.over_raw(select, code, 0);
        seen.wrapping_sub(if select & KERNEL != 0 { AROUND } else { 0 })
    }
}

/// What `call` executes between the two writes, `code` not among it: CALL, and four up to and including the WRMSR that
/// stops.
pub const AROUND: u64 = 5;

/// Starts, calls `code`, stops.
pub fn call(switch: u32, on: u64, code: u64) {
    // SAFETY: the registers exist; the code keeps to its convention: it may change anything but RBX, RBP, RSP, and R12 to R15.
    unsafe {
        asm!(
            "push rbx", "push rbp",
            "mov rdx, r13", "shr rdx, 32", "mov rax, r13", "mov ecx, r12d",
            "wrmsr",
            "call r14",
            "mov ecx, r12d", "xor eax, eax", "xor edx, edx",
            "wrmsr",
            "pop rbp", "pop rbx",
            in("r12") u64::from(switch), in("r13") on, in("r14") code,
            clobber_abi("sysv64"),
        );
    }
}

pub fn write(msr: u32, value: u64) {
    // SAFETY: registers of the PMU that the model has.
    unsafe { Msr::new(msr).write(value) };
}

pub fn read(msr: u32) -> u64 {
    // SAFETY: as above.
    unsafe { Msr::new(msr).read() }
}
