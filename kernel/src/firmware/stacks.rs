//! The firmware's stacks, each above a page that is not mapped. Each processor has a set of its own; the boot
//! processor's is the first.

use super::boot::Ready;
use arch::descriptors::{IST_STACKS, Tables};
use arch::interrupts;
use arch::memory::space::{DATA, MapError};
use arch::memory::{Frames, Space, layout};
use arch::smp;
use core::arch::asm;
use core::hint::black_box;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use protocol::record::StackUse;
use spin::Mutex;
use x86_64::VirtAddr;
use x86_64::structures::idt::InterruptDescriptorTable;

/// Bytes of the main stack, and of each interrupt stack. The conformance suite keeps several control blocks of the PMI on
/// the main one, some 6 KiB each; formatting a crash record comes next.
pub const STACK_BYTES: u64 = 128 << 10;
/// From one stack to the next; what lies between is not mapped.
const STRIDE: u64 = 1 << 20;
/// Stacks of a set: the main stack and the interrupt stacks.
const COUNT: usize = 1 + IST_STACKS;
/// Sets that are mapped.
static SETS: AtomicU64 = AtomicU64::new(1);

static mut TABLES: Tables = Tables::new();
static mut IDT: InterruptDescriptorTable = InterruptDescriptorTable::new();
/// What `enter` carries over to the new stack.
static CARGO: Mutex<Option<Cargo>> = Mutex::new(None);

type Cargo = (Ready, fn(Ready) -> !);

/// Addresses of stack `index`; the first of each set is the main one.
fn range(index: u64) -> Range<u64> {
    let end = layout::STACKS + (index + 1) * STRIDE;
    end - STACK_BYTES..end
}

/// The stacks of a set.
fn set(number: u64) -> [Range<u64>; COUNT] {
    core::array::from_fn(|index| range(number * COUNT as u64 + index as u64))
}

/// The stacks of the set that `address` lies in, for checking addresses against; else those of the boot processor.
pub fn around(address: u64) -> [Range<u64>; COUNT] {
    let number = address.wrapping_sub(layout::STACKS) / (COUNT as u64 * STRIDE);
    set(if number < SETS.load(Ordering::Relaxed) { number } else { 0 })
}

/// Whether `address` lies in the unmapped space below a stack.
pub fn is_guard(address: u64) -> bool {
    let bytes = SETS.load(Ordering::Relaxed) * COUNT as u64 * STRIDE;
    let region = layout::STACKS..layout::STACKS + bytes;
    region.contains(&address) && !around(address).iter().any(|stack| stack.contains(&address))
}

/// What the main stack is filled with before it is used: no address, and no small number.
const PAINT: u8 = 0xa7;
/// Bytes below the frame of `paint` that it leaves alone.
const OWN_BYTES: u64 = 1 << 10;

/// Fills what is free of the boot processor's main stack, so that [`used`] finds how far down it was used.
#[inline(never)]
fn paint() {
    let here = 0_u8;
    let stack = range(0).start..(black_box(&raw const here) as u64).saturating_sub(OWN_BYTES);
    // SAFETY: the stack is mapped, and nothing lies so far below this frame.
    unsafe { (stack.start as *mut u8).write_bytes(PAINT, (stack.end - stack.start) as usize) };
}

/// How much of the boot processor's main stack was ever used.
pub fn used() -> StackUse {
    const PAINTED: u64 = u64::from_ne_bytes([PAINT; 8]);
    let stack = range(0);
    // SAFETY: the stack is mapped; what lies below this frame is nobody's variable.
    let is_painted = |at: &u64| unsafe { (*at as *const u64).read_volatile() } == PAINTED;
    let free = stack.clone().step_by(8).take_while(is_painted).count() as u64 * 8;
    StackUse { most: STACK_BYTES - free, bytes: STACK_BYTES }
}

/// Proof that the stacks are mapped.
pub struct Stacks(());

/// Maps the stacks into `space`, whose tables come out of `pool`.
pub fn map(space: &mut Space, pool: &mut Frames, frames: &mut Frames) -> Result<Stacks, MapError> {
    for stack in set(0) {
        let memory = frames.allocate(STACK_BYTES, 4096)?;
        space.map_range(pool, VirtAddr::new(stack.start), memory, STACK_BYTES, DATA)?;
    }
    Ok(Stacks(()))
}

/// Maps a set of stacks for one more processor into the space in use.
pub fn map_set(space: &mut Space, frames: &mut Frames) -> Result<smp::Stacks, MapError> {
    let stacks = set(SETS.load(Ordering::Relaxed));
    for stack in &stacks {
        space.map_fresh(frames, VirtAddr::new(stack.start), STACK_BYTES, DATA)?;
    }
    SETS.fetch_add(1, Ordering::Relaxed);
    let interrupts = core::array::from_fn(|index| VirtAddr::new(stacks[1 + index].end));
    Ok(smp::Stacks { main: stacks[0].end, interrupts })
}

/// Loads the new address space, descriptor tables and interrupt table, and goes on in `main` on the new
/// stack. The boot loader's stack is gone with its page tables.
pub fn enter(_: Stacks, ready: Ready, main: fn(Ready) -> !) -> ! {
    let root = ready.space.root().as_u64();
    *CARGO.lock() = Some((ready, main));
    // SAFETY: the new tables map the image, so this code goes on; the new stack is mapped and empty;
    // `on_new_stack` needs nothing of the old one.
    unsafe {
        asm!(
            "mov cr3, {root}",
            "mov rsp, {top}",
            "xor ebp, ebp",
            "call {go_on}",
            "ud2",
            root = in(reg) root,
            top = in(reg) range(0).end,
            go_on = sym on_new_stack,
            options(noreturn),
        );
    }
}

extern "sysv64" fn on_new_stack() -> ! {
    paint();
    let ends = core::array::from_fn(|index| VirtAddr::new(range(1 + index as u64).end));
    // SAFETY: runs once, before any other processor, so the statics are borrowed once; the stacks are mapped.
    unsafe {
        #[allow(static_mut_refs, reason = "the tables must stay in place for the processor")]
        TABLES.load(ends, smp::boot());
        #[allow(static_mut_refs, reason = "as above")]
        interrupts::load(&mut IDT);
    }
    let (ready, main) = CARGO.lock().take().expect("filled by `enter`");
    // SAFETY: `enter` loaded these tables.
    let space = unsafe { ready.space.in_use() };
    main(Ready { space, ..ready })
}
