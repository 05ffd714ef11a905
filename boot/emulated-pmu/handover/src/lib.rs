//! What a loader and the hypervisor agree on.
//!
//! The hypervisor is one position-independent ELF file. A loader, be it `boot/direct` or the UEFI
//! application, finds memory that nobody else will use ([`image::bytes_needed`]), puts the file there
//! ([`image::load`]), and calls its entry point ([`Entry`]) with a [`Launch`]. The call returns: with a
//! [`Refusal`], and nothing has changed, or with success, and the caller runs as a guest from then on.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

pub mod image;
mod refusal;
pub mod startup;

pub use refusal::Refusal;
pub use startup::Startup;

/// Type of the hypervisor's entry point: 0 for success, else the number of a [`Refusal`].
pub type Entry = extern "sysv64" fn(launch: *const Launch) -> u64;

/// What the loader tells the hypervisor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Launch {
    /// [`LAUNCH_VERSION`].
    pub version: u64,
    /// Command line, UTF-8: see the hypervisor's `options`.
    pub options: *const u8,
    /// Its length in bytes.
    pub options_len: u64,
    /// Physical address of ACPI's root pointer, or 0.
    pub rsdp: u64,
    /// Number of the processor that makes the call; the first one's is 0.
    pub processor: u64,
    /// What the copies share if there are other processors, which the guest starts by itself; null if there are none. The copies
    /// of the others are called first, by the processor that makes all these calls: they prepare themselves, and that is
    /// all that they change. The first processor's copy comes last.
    pub startup: *mut Startup,
}

/// Most processors: as many as there are timers for. QEMU's HPET has registers for 24 of them, whatever `hpet.timers` says:
/// its memory ends at 0x400 (`HPET_LEN`), and timer n's registers begin at 0x100 + 0x20 * n (IA-PC HPET specification 1.0a,
/// 2.3.1). The first two may replace the PC's old timers.
pub const MAX_PROCESSORS: usize = 22;

/// Version of [`Launch`].
pub const LAUNCH_VERSION: u64 = 5;

/// I/O port of QEMU's debug console, where the hypervisor speaks; its documented default.
pub const DEBUG_PORT: u16 = 0xe9;
