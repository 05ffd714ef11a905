//! The address space. Everything has a fixed place, the same for every way to boot, so that two runs see
//! the same addresses.
//!
//! | from | what | rights |
//! | --- | --- | --- |
//! | `0x1_0000` to `0x4000_0000` | a program: compiled code that an item calls ([`super::program`]) | RX, R, RW |
//! | `0x4000_0000` | snippet arena: measuring data, code, memory areas ([`super::arena`]) | RW, RX, RW |
//! | `0x5000_0000` | memory areas in pages of 4 KiB and 2 MiB ([`super::areas`]) | RW |
//! | `0x7000_0000` | memory that an item requests, while it fits ([`super::requested`]) | RW |
//! | `0x8000_0000` | tasks, each in an address space that has no other's ([`crate::task::memory`]) | RX, RW |
//! | `0x0000_1010_0000_0000` | memory areas in pages of 1 GiB ([`super::areas`]) | RW |
//! | `0x0000_2000_0000_0000` | code for ring 3, a page ([`super::user`]) | RX |
//! | `0x0000_2000_0010_0000` | stack of ring 3, a page | RW |
//! | `0x0000_3000_0000_0000` | memory that an item requests and that does not fit below | RW |
//! | `0xffff_8000_0000_0000` | all physical memory, the heap within | RW |
//! | `0xffff_9000_0000_0000` to `0xffff_b800_0000_0000` | what the boot loader maps, and the pool for the new page tables | not mapped later |
//! | `0xffff_c000_0000_0000` | screen | RW, write-combining |
//! | `0xffff_c040_0000_0000` | a page of a device's registers, mapped for each access ([`crate::pci::native`]) | RW, uncached |
//! | `0xffff_d000_0000_0000` | stacks, each with an unmapped page below | RW |
//! | `0xffff_d800_0000_0000` | second view of the arena's code, for writing it | RW |
//! | `0xffff_ff00_0000_0000` | the boot loader's page tables, recursively | not mapped later |
//! | `0xffff_ffff_8000_0000` | the firmware's image, linked for the top 2 GiB, as the kernel code model wants | RX, R, RW |
//!
//! What snippets and tasks use is below 4 GiB where it fits, because 32-bit code reaches no further.

use core::ops::Range;

/// The snippet arena.
pub const ARENA: u64 = 0x4000_0000;
/// Memory areas in pages of 4 KiB and 2 MiB.
pub const AREAS: u64 = 0x5000_0000;
/// Memory areas in pages of 1 GiB.
pub const GIANT_AREAS: u64 = 0x0000_1010_0000_0000;
/// Memory that an item requests; `protocol::job::memory::LOW` has the same value. It shares no page directory's entry with others.
pub const REQUESTED: Range<u64> = 0x7000_0000..0x8000_0000;
/// The same for what does not fit there: one entry of the top table; `protocol::job::memory::HIGH` has the same value.
pub const HIGH_REQUESTED: Range<u64> = 0x0000_3000_0000_0000..0x0000_3080_0000_0000;
/// Code for ring 3.
pub const USER_CODE: u64 = 0x0000_2000_0000_0000;
/// Stack of ring 3.
pub const USER_STACK: u64 = 0x0000_2000_0010_0000;
/// Tasks, 2 MiB apart.
pub const TASKS: u64 = 0x8000_0000;
/// Physical memory, at this offset.
pub const PHYSICAL: u64 = 0xffff_8000_0000_0000;
/// Stack that the boot loader provides.
pub const BOOT_STACK: u64 = 0xffff_9000_0000_0000;
/// Boot information.
pub const BOOT_INFO: u64 = 0xffff_a000_0000_0000;
/// Ramdisk, as the boot loader maps it.
pub const RAMDISK: u64 = 0xffff_b000_0000_0000;
/// New page tables, while the boot loader's are in use.
pub const TABLE_POOL: u64 = 0xffff_b800_0000_0000;
/// Start of the boot loader's recursive entry.
pub const RECURSIVE: u64 = 0xffff_ff00_0000_0000;
/// Screen.
pub const SCREEN: u64 = 0xffff_c000_0000_0000;
/// A page of a device's registers.
pub const DEVICE: u64 = 0xffff_c040_0000_0000;
/// The firmware's own stacks.
pub const STACKS: u64 = 0xffff_d000_0000_0000;
/// Writable view of the arena's code.
pub const CODE_WRITE_VIEW: u64 = 0xffff_d800_0000_0000;
