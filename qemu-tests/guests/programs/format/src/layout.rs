//! Linear addresses of the window, frames of the pool, vectors and selectors.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Where the window begins: 1 GiB, where no loader puts anything.
pub const WINDOW: u64 = 0x4000_0000;
/// Pages of the window: one page table's.
pub const PAGES: u16 = 512;
/// Bytes of the pool: a large page's.
pub const FRAMES_BYTES: u64 = 2 << 20;
/// The whole pool by one large page, writable and open to ring 3: right after the window.
pub const LARGE: u64 = WINDOW + PAGES as u64 * PAGE;

/// The pages of the window that the guest maps itself, for ring 0 alone.
pub mod page {
    /// The window's page table, as data.
    pub const TABLE: u16 = 511;
    /// What the guest and the program know of each other: [`super::slot`].
    pub const SLOTS: u16 = 510;
    /// The local APIC's registers.
    pub const APIC: u16 = 509;
    /// Programs may have the pages below this one.
    pub const END: u16 = 500;
}

/// The frames that the guest keeps for itself.
pub mod frame {
    /// The window's page table.
    pub const TABLE: u16 = 511;
    /// The slots.
    pub const SLOTS: u16 = 510;
    /// Programs may have the frames below this one.
    pub const END: u16 = 500;
}

/// Offsets in the page of slots.
pub mod slot {
    /// Address at which the guest waits for the program's end: jump there in ring 0.
    pub const EXIT: u64 = 0;
    /// RSP after a stay in ring 3.
    pub const BACK_RSP: u64 = 8;
    /// RIP after a stay in ring 3.
    pub const BACK_RIP: u64 = 16;
    /// Interrupts of [`super::vector::DEVICE`] so far.
    pub const DEVICES: u64 = 24;
    /// First of the program's own.
    pub const FREE: u64 = 64;
}

/// Linear address of a page.
#[must_use]
pub const fn address(page: u16) -> u64 {
    WINDOW + page as u64 * PAGE
}

/// Linear address of a slot.
#[must_use]
pub const fn slot_address(slot: u64) -> u64 {
    address(page::SLOTS) + slot
}

/// Linear address of a page's entry in the page table.
#[must_use]
pub const fn entry_address(page: u16) -> u64 {
    address(page::TABLE) + 8 * page as u64
}

/// Interrupt vectors, all open to ring 3.
pub mod vector {
    /// Comes straight back.
    pub const SERVICE: u8 = 0x80;
    /// Ends a stay in ring 3.
    pub const LEAVE: u8 = 0x82;
    /// A device interrupt: the APIC's timer, or the program's own IPI.
    pub const DEVICE: u8 = 0x90;
    /// The PMI where it is no NMI.
    pub const PMI: u8 = 0x91;
}

/// SYSCALL with this in EAX ends a stay in ring 3; any other comes straight back.
pub const LEAVE_CALL: u32 = 0x6c65_6176;

/// Segment selectors.
pub mod selector {
    /// Data of ring 0.
    pub const KERNEL_DATA: u16 = 0x10;
    /// Data of ring 3.
    pub const USER_DATA: u16 = 0x1b;
    /// 64-bit code of ring 3.
    pub const USER_CODE: u16 = 0x23;
    /// 32-bit code of ring 3.
    pub const USER_CODE_32: u16 = 0x3b;
}

/// Flags of a page.
pub mod flag {
    /// It is there from the beginning on.
    pub const PRESENT: u16 = 1 << 0;
    /// It can be written.
    pub const WRITE: u16 = 1 << 1;
    /// Ring 3 may use it.
    pub const USER: u16 = 1 << 2;
    /// A page fault makes it present and goes on. One of the bits that processors leave to software (SDM vol. 3, 4.5).
    pub const DEMAND: u16 = 1 << 9;
}
