//! Interrupts and exceptions that nothing explains: of a vector that nobody took, at an instruction that cannot have raised
//! them.
//!
//! They come from outside: an emulator that delivers a PMI at vector 0 whatever LVTPC says, an NMI of the machine's own,
//! one that was requested and comes when nobody waits any more. The interrupted code has done nothing, so it continues; what
//! was measured meanwhile is spoilt, and whoever runs it asks [`take`].

use crate::apic::{self, Register};
use crate::memory::space::Window;
use crate::trap::TrapFrame;
use crate::vectors::FIRST_DEVICE_VECTOR;
use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::PageTable;
use x86_64::structures::paging::mapper::{MappedPageTable, Translate};
use x86_64::{PhysAddr, VirtAddr};

/// Whether the instruction whose bytes begin `at`, or the one that `before` ends with, can raise exception `vector` in code
/// of so many bits.
pub type Judge = fn(vector: u8, at: &[u8], before: &[u8], bits: u32) -> bool;

static JUDGE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets who knows what instructions raise. Without, every exception is taken for what it says.
pub fn set_judge(judge: Judge) {
    JUDGE.store(judge as *mut (), Ordering::Release);
}

/// Since the last [`take`], on all processors.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The first one's vector and address.
static VECTOR: AtomicU64 = AtomicU64::new(0);
static RIP: AtomicU64 = AtomicU64::new(0);

/// What came from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stray {
    /// How many came.
    pub count: u64,
    /// The first one's vector.
    pub vector: u8,
    /// The instruction that would have been next.
    pub rip: u64,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rip == 0 {
            return write!(
                f,
                "interrupts of vector {} kept arriving without an overflow, so they were masked",
                self.vector
            );
        }
        let exception = crate::trap::Exception(self.vector);
        write!(f, "a stray interrupt of vector {}", self.vector)?;
        if self.vector < FIRST_DEVICE_VECTOR {
            write!(
                f,
                " ({}) came at {:#x}, where no instruction raises it",
                exception.mnemonic(),
                self.rip
            )?;
        } else {
            write!(f, " came at {:#x}, which nothing here requested", self.rip)?;
        }
        match self.count {
            ..=1 => Ok(()),
            count => write!(f, "; {count} in all"),
        }
    }
}

/// What came since the last call.
#[must_use]
pub fn take() -> Option<Stray> {
    let count = COUNT.swap(0, Ordering::Relaxed);
    (count > 0).then(|| Stray {
        count,
        vector: VECTOR.load(Ordering::Relaxed) as u8,
        rip: RIP.load(Ordering::Relaxed),
    })
}

/// Notes that interrupts of `vector`, which are requested, came without their cause until they were masked: what counts on
/// them from then on is as spoilt as by a stray one.
pub(crate) fn storm(vector: u8) {
    if COUNT.fetch_add(1, Ordering::Relaxed) == 0 {
        VECTOR.store(vector.into(), Ordering::Relaxed);
        RIP.store(0, Ordering::Relaxed);
    }
}

/// So many, and LVTPC is masked: it is the PMU that most likely does not stop.
const PATIENCE: u64 = 16;
/// So many without anybody's asking, and they are taken for what they say they are: the code gets no further.
const MOST: u64 = 10_000;

/// Notes the interrupt, if it is a stray one, and lets the interrupted code continue. `no_error_code`: its vector should have
/// brought an error code and did not.
pub(super) fn note(frame: &TrapFrame, no_error_code: bool) -> bool {
    let vector = frame.vector as u8;
    let from_device = vector >= FIRST_DEVICE_VECTOR;
    let delivered = vector >= FIRST_LEGAL && apic::is_in_service(vector);
    if from_device && !delivered {
        // Spurious, or an INT of the interrupted code.
        return false;
    }
    if !delivered && explained(frame, no_error_code) {
        return false;
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    if count == 0 {
        VECTOR.store(frame.vector, Ordering::Relaxed);
        RIP.store(frame.rip, Ordering::Relaxed);
    }
    if count >= PATIENCE {
        apic::write(Register::LvtPmc, LVT_MASK);
    }
    if delivered {
        apic::end_of_interrupt();
    }
    count < MOST
}

const LVT_MASK: u32 = 1 << 16;
/// The local APIC takes no lower vectors (SDM vol. 3, 10.5.2).
const FIRST_LEGAL: u8 = 16;

/// Whether the code at the frame's address can have raised the exception.
fn explained(frame: &TrapFrame, no_error_code: bool) -> bool {
    let vector = frame.vector as u8;
    // Of these any code may be the cause, or none.
    if matches!(vector, 1 | 6 | 7 | 8 | 10..=14 | 18 | 20 | 21 | 28..=30) && !no_error_code {
        return true;
    }
    let judge = JUDGE.load(Ordering::Acquire);
    if judge.is_null() {
        return true;
    }
    let (mut at, mut before) = ([0; AT], [0; BEFORE]);
    let length = read(frame.rip, &mut at);
    let from = frame.rip.wrapping_sub(BEFORE as u64);
    let known = read(from, &mut before);
    let before = if known == BEFORE { &before[..] } else { &[] };
    if no_error_code {
        // Nothing but INT n brings none.
        return before == [0xcd, vector];
    }
    // SAFETY: the only values ever stored, other than null, are `Judge`s from `set_judge`.
    let judge: Judge = unsafe { core::mem::transmute(judge) };
    let bits = if crate::descriptors::is_compatibility(frame.cs) { 32 } else { 64 };
    judge(vector, &at[..length], before, bits)
}

/// The longest instruction, and INT n.
const AT: usize = 15;
const BEFORE: usize = 2;

/// Copies what is mapped of `bytes` from `address` on, and returns how many that are. A fault would end on the stack that
/// this runs on, so the page tables are asked first.
fn read(address: u64, bytes: &mut [u8]) -> usize {
    let table = Window::PHYSICAL.offset + Cr3::read().0.start_address().as_u64();
    // SAFETY: the tables in use are mapped there, in every address space of the firmware; nothing changes them now.
    let tables = unsafe { MappedPageTable::new(&mut *(table as *mut PageTable), Window::PHYSICAL) };
    for (index, byte) in bytes.iter_mut().enumerate() {
        let Ok(at) = VirtAddr::try_new(address.wrapping_add(index as u64)) else { return index };
        if tables.translate_addr(at).is_none_or(|physical: PhysAddr| physical.is_null()) {
            return index;
        }
        // SAFETY: just seen to be mapped; a byte that is being written at the same time would only be judged wrongly.
        *byte = unsafe { at.as_ptr::<u8>().read_volatile() };
    }
    bytes.len()
}
