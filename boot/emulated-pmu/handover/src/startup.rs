//! What the copies of the hypervisor share where an operating system starts the other processors by itself.
//!
//! Each processor has a copy of its own, prepared before the operating system runs. When the guest sends a start-up
//! interrupt (SIPI), the sender's hypervisor notes the vector with the receiver ([`Processor::vector`]) and sends it to
//! [`Startup::page`] instead, where code of the hypervisor's own leads the receiver into its copy. That makes a guest of
//! it, at the vector that was meant.
//!
//! The processors' guests run one at a time ([`Startup::turn`]).

use crate::MAX_PROCESSORS;
use core::sync::atomic::AtomicU64;

/// Bits of a SIPI's vector to the left of which the page's address begins (SDM vol. 3, 11.6.1).
pub const PAGE_SHIFT: u32 = 12;
/// Pages below this address can be told by a SIPI's vector of eight bits.
pub const END: u64 = 1 << (8 + PAGE_SHIFT);

/// One processor.
#[derive(Debug)]
#[repr(C)]
pub struct Processor {
    /// Id of its local APIC.
    pub apic_id: u64,
    /// Where its copy continues in 64-bit mode, all memory mapped one to one, without a stack. Written by the copy.
    pub arrival: AtomicU64,
    /// Vector of the last SIPI that the guest sent it.
    pub vector: AtomicU64,
    /// What it does: a number of the hypervisor's.
    pub status: AtomicU64,
    /// 1: the guest sent it an NMI.
    pub nmi: AtomicU64,
    /// The TSC from which on it is to have a turn: to look whether another processor has written to memory, or because its timer
    /// has rung.
    pub due: AtomicU64,
    /// 1: another processor has sent it an interrupt.
    pub called: AtomicU64,
    /// Its local APIC's logical destination register, and in the upper half its destination format register.
    pub destination: AtomicU64,
}

/// What they share. The loader fills in `page`, `count`, and `apic_id` of each processor, the first of which is the one
/// that starts the others.
#[derive(Debug)]
#[repr(C)]
pub struct Startup {
    /// Physical address of a page below [`END`] for the code through which the processors come.
    pub page: u64,
    /// How many processors there are.
    pub count: u64,
    /// They.
    pub processors: [Processor; MAX_PROCESSORS],
    /// What the first copy has found out about the machine's accounting, for all: 1 if it has.
    pub calibrated: AtomicU64,
    /// Instructions of the hypervisor's in each guest run.
    pub overhead: AtomicU64,
    /// Nanoseconds from the clock to the guest.
    pub before_entry: AtomicU64,
    /// Whose turn it is: its number, or [`NOBODY`].
    pub turn: AtomicU64,
    /// 1: all wait for interrupts.
    pub asleep: AtomicU64,
    /// Who had the last turn that was not to look for interrupts, who looked last, and how many have looked since that turn.
    pub last: AtomicU64,
    /// See there.
    pub looker: AtomicU64,
    /// See there.
    pub looks: AtomicU64,
    /// Processors that execute something, as bits by their numbers.
    pub awake: AtomicU64,
    /// The guest's time when the turn was passed on, or when all began to wait.
    pub now: AtomicU64,
    /// The machine's time when all began to wait.
    pub slept: AtomicU64,
    /// How far the power management timer is ahead of the guest's time, and 1 in the highest bit; 0 as long as nobody holds
    /// it back.
    pub timer_ahead: AtomicU64,
    /// Memory type range registers of the processor that has sent the last start-up interrupt, in the hypervisor's order.
    pub mtrrs: [AtomicU64; MAX_MTRRS],
}

/// The default type, the 11 fixed ranges, and 16 pairs of variable ones, twice as many as QEMU's processors have.
pub const MAX_MTRRS: usize = 12 + 2 * 16;

/// It is nobody's turn.
pub const NOBODY: u64 = u64::MAX;

impl Processor {
    const fn none() -> Self {
        Self {
            apic_id: 0,
            arrival: AtomicU64::new(0),
            vector: AtomicU64::new(0),
            status: AtomicU64::new(0),
            nmi: AtomicU64::new(0),
            due: AtomicU64::new(0),
            called: AtomicU64::new(0),
            destination: AtomicU64::new(0),
        }
    }
}

impl Startup {
    /// For these processors, by the ids of their local APICs. `None` if they are too many, or one is beyond what a SIPI
    /// reaches without x2APIC, or the page does.
    #[must_use]
    pub fn new(page: u64, apic_ids: &[u64]) -> Option<Self> {
        const HIGHEST_ID: u64 = 0xfe;
        let mut processors = [const { Processor::none() }; MAX_PROCESSORS];
        for (index, &apic_id) in apic_ids.iter().enumerate() {
            processors.get_mut(index)?.apic_id = apic_id;
        }
        let reached = apic_ids.iter().all(|&id| id <= HIGHEST_ID);
        let fits = page != 0 && page < END && page.is_multiple_of(1 << PAGE_SHIFT);
        let startup = Self {
            page,
            count: apic_ids.len() as u64,
            processors,
            calibrated: AtomicU64::new(0),
            overhead: AtomicU64::new(0),
            before_entry: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            asleep: AtomicU64::new(0),
            last: AtomicU64::new(0),
            looker: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            awake: AtomicU64::new(1),
            now: AtomicU64::new(0),
            slept: AtomicU64::new(0),
            timer_ahead: AtomicU64::new(0),
            mtrrs: [const { AtomicU64::new(0) }; MAX_MTRRS],
        };
        (reached && fits).then_some(startup)
    }

    /// The processors that there are.
    #[must_use]
    pub fn all(&self) -> &[Processor] {
        &self.processors[..(self.count as usize).min(MAX_PROCESSORS)]
    }

    /// The vector of a SIPI to the page.
    #[must_use]
    pub fn own_vector(&self) -> u8 {
        (self.page >> PAGE_SHIFT) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_page_must_be_within_reach() {
        let startup = Startup::new(0x9_f000, &[0, 1, 4]).unwrap();
        assert_eq!((startup.count, startup.own_vector()), (3, 0x9f));
        assert!(startup.all().iter().map(|one| one.apic_id).eq([0, 1, 4]));
        assert!(Startup::new(0x9_f000, &[0; MAX_PROCESSORS]).is_some());
        assert!(Startup::new(0x9_f000, &[0; MAX_PROCESSORS + 1]).is_none());
        assert!(Startup::new(0x9_f000, &[0, 0xff]).is_none(), "the id of all");
        for page in [0, 0x9_f800, 0x10_0000] {
            assert!(Startup::new(page, &[0, 1]).is_none(), "{page:#x}");
        }
    }
}
