//! The types of QEMU's plugin interface, version 4, as far as they are used.

use core::ffi::{c_char, c_int, c_void};

/// The version of the interface that is requested: that of QEMU 10.0. It has per-vCPU scoreboards, conditional callbacks
/// and registers; older ones lack one or another.
pub const VERSION: c_int = 4;

/// Names the plugin to QEMU.
pub type Id = u64;

/// What QEMU says at the start. Only the beginning, which all versions share.
#[repr(C)]
pub struct Info {
    /// The emulated architecture.
    pub target: *const c_char,
    /// The oldest version of the interface that QEMU takes.
    pub oldest: c_int,
    /// Its own.
    pub newest: c_int,
    /// Whether it is a whole machine.
    pub is_system: bool,
    /// vCPUs at the start.
    pub vcpus: c_int,
}

/// A translated block, while it is being translated.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Block(*mut c_void);

/// An instruction of a block, while it is being translated.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Insn(*mut c_void);

/// A scoreboard: an array per vCPU.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Scoreboard(*mut c_void);

/// A word of a scoreboard's entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Word {
    /// Which scoreboard.
    pub score: Scoreboard,
    /// Bytes from the entry's start.
    pub offset: usize,
}

/// What a memory callback is told of its access: size, direction, byte order and how it was translated.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct MemInfo(u32);

/// A physical address, as QEMU hands it out.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct HwAddress(pub *const c_void);

/// A register of the vCPU.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Register(*mut c_void);

/// GLib's array of bytes or of other things: what QEMU gives its answers in.
#[repr(C)]
pub struct GArray {
    /// Its elements.
    pub data: *mut u8,
    /// How many.
    pub length: u32,
}

/// A register's name.
#[repr(C)]
pub struct Descriptor {
    /// What to read it by.
    pub handle: Register,
    /// As GDB calls it.
    pub name: *const c_char,
    /// GDB's group of registers.
    pub feature: *const c_char,
}

/// A block is about to be executed for the first time.
pub type Translated = extern "C" fn(Id, Block);
/// Code runs on a vCPU.
pub type Executed = extern "C" fn(u32, *mut c_void);
/// An access is done: vCPU, kind, linear address.
pub type Accessed = extern "C" fn(u32, MemInfo, u64, *mut c_void);
/// Something happened to a vCPU.
pub type OnVcpu = extern "C" fn(Id, u32);
/// Something happened.
pub type OnPlugin = extern "C" fn(Id);

/// Whether a callback sees the registers as they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub enum Registers {
    /// It does not look at them.
    None = 0,
    /// It reads them.
    Read = 1,
}

/// Accesses that are meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub enum Direction {
    /// Loads.
    Load = 1,
    /// Stores.
    Store = 2,
    /// Both.
    Both = 3,
}

/// What is done in place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub enum Operation {
    /// Adds to the word.
    Add = 0,
    /// Writes the word.
    Store = 1,
}

/// When a conditional callback is made: how the word compares to the value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub enum Condition {
    /// Equal.
    Equal = 2,
    /// Not equal.
    NotEqual = 3,
    /// Greater or equal, unsigned.
    AtLeast = 7,
}
