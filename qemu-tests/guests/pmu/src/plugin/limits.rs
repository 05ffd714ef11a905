//! Limits: the guest leaves, by an NMI, in time.

use super::own::{self, ON_EXIT, STOOD};
use super::{ACCESSES, BRANCHES, Test, area, set};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use plugin_channel::{Limit, Mode, Parts};
use pmu_model::Occurrence;

/// What was counted when the NMI came, and how often one did.
static SEEN: AtomicU64 = AtomicU64::new(0);
static LEAD: AtomicU64 = AtomicU64::new(0);
static NMIS: AtomicU64 = AtomicU64::new(0);
static SELECTION: AtomicU64 = AtomicU64::new(0);

fn on_nmi(_: &mut u64) {
    NMIS.fetch_add(1, Relaxed);
    let selection = SELECTION.load(Relaxed);
    // SAFETY: one processor, whose exit has just written them.
    let counts = unsafe { core::ptr::read_volatile(&raw const (*own::mailbox()).counts) };
    let chosen = counts.iter().enumerate().filter(|(index, _)| selection >> index & 1 != 0);
    // SAFETY: as above.
    LEAD.store(unsafe { core::ptr::read_volatile(&raw const (*own::mailbox()).lead) }, Relaxed);
    SEEN.store(chosen.map(|(_, count)| count).sum(), Relaxed);
}

const fn bits(list: &[Occurrence]) -> u64 {
    let mut bits = 0;
    let mut index = 0;
    while index < list.len() {
        bits |= 1 << list[index] as u64;
        index += 1;
    }
    bits
}

pub fn run() {
    use Occurrence::*;
    // SAFETY: one processor.
    unsafe { ON_EXIT = on_nmi };
    let all = Mode::BRANCHES | Mode::TAKEN | Mode::ACCESSES | Mode::LIMITS;
    set(all, Parts::empty(), BRANCHES | ACCESSES);
    let start = loops as *const () as u64;
    // Three branches a turn: the one that makes the sum `left` is the last before the NMI.
    for left in [1, 2, 3, 4999, 5000, 5001, 20_000] {
        exact(left, BRANCHES, true);
        let behind = start + [LOOP, BEHIND_JMP, BEHIND_JC][(left % 3) as usize];
        crate::line!("case place.{left} {:#x} {behind:#x}", STOOD.load(Relaxed));
    }
    exact(700, bits(&[JccNotTaken]), false);
    exact(700, bits(&[JccTakenBackward]), true);
    exact(700, bits(&[RelativeJump]), true);
    for left in [100, 1000, 5001] {
        exact(left, bits(&[Load]), false);
        exact(left, bits(&[Load, Store, Locked]), false);
    }
    // Fewer are left than a block has: the first run makes the plugin know that block, and the second ends before it.
    for left in [3, 3, 7] {
        exact_over(straight(), left, bits(&[Load]), false);
    }
    // Nothing reaches it.
    let test = of();
    NMIS.store(0, Relaxed);
    let counted = test.limited(&[Limit { selection: BRANCHES, left: 1_000_000 }]);
    crate::line!("case unreached.nmis {} 0", NMIS.load(Relaxed));
    crate::line!("case unreached.stopped {} 0", counted.stopped);
    // Sent to another processor, which there is not.
    own::stop_by(1);
    NMIS.store(0, Relaxed);
    let counted = test.limited(&[Limit { selection: BRANCHES, left: 1_000 }]);
    crate::line!("case elsewhere.nmis {} 0", NMIS.load(Relaxed));
    crate::line!("case elsewhere.stopped {} 1", counted.stopped);
    own::stop_by(0);
}

fn of() -> Test {
    use Occurrence::*;
    Test::new(
        "loops",
        &[
            (JccNotTaken, 10_000 + 1),
            (JccTakenBackward, 9_999),
            (RelativeJump, 10_000),
            (Load, 20_000 + 1),
            (Store, 10_000),
            (Return, 1),
        ],
        0,
    )
    .with(area(0))
    .at(loops)
}

/// Eight loads in one block, and RET.
fn straight() -> Test {
    use Occurrence::{Load, Return};
    Test::new("straight", &[(Load, 8 + 1), (Return, 1)], 0).with(area(0)).at(eight_loads)
}

#[unsafe(naked)]
extern "C" fn eight_loads() {
    naked_asm!(".rept 8", "mov rax, [rdi]", ".endr", "ret")
}

/// Runs up to a limit. `exactly`: the sum is `left` then; else it is no more, and the rest is less than a block's lead.
fn exact(left: u64, selection: u64, exactly: bool) {
    exact_over(of(), left, selection, exactly);
}

fn exact_over(test: Test, left: u64, selection: u64, exactly: bool) {
    SEEN.store(0, Relaxed);
    NMIS.store(0, Relaxed);
    SELECTION.store(selection, Relaxed);
    let counted = test.limited(&[Limit { selection: 1, left: 1 << 40 }, Limit { selection, left }]);
    crate::line!("case limit.{left}.{selection:x}.nmis {} 1", NMIS.load(Relaxed));
    crate::line!("case limit.{left}.{selection:x}.stopped {} 1", counted.stopped);
    let seen = SEEN.load(Relaxed);
    let missing = if exactly { 0 } else { LEAD.load(Relaxed) + 1 };
    let fits = seen <= left && left - seen <= missing;
    crate::line!("case limit.{left}.{selection:x}.fits.{seen}.{missing} {} true", fits);
}

/// Offsets of what follows the branches: after JMP, after JC, and the loop's start.
const BEHIND_JMP: u64 = LOOP + 3 + 3 + 2;
const BEHIND_JC: u64 = BEHIND_JMP + 3 + 1 + 6;
const LOOP: u64 = 5;

/// 10,000 turns of JMP, JC, which is not taken, and JNZ. JC leads past a NOP: the guest leaves behind each jump to the very next
/// instruction.
#[unsafe(naked)]
extern "C" fn loops() {
    naked_asm!(
        "mov ecx, 10000",
        "2: mov rax, [rdi]",
        "mov [rdi], rax",
        "jmp 3f",
        "3: add rax, [rdi]",
        "clc",
        ".byte 0x0f, 0x82",
        ".long 1",
        "nop",
        "dec ecx",
        ".byte 0x0f, 0x85",
        ".long 2b - 4f",
        "4: ret",
    )
}
