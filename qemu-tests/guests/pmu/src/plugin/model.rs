//! Caches, TLBs and predictor: this guest runs the same model beside the code, by addresses that it works out itself, and every
//! occurrence must be the same.

use super::own;
use super::{area, set};
use crate::line;
use crate::machine::physical;
use core::arch::global_asm;
use plugin_channel::{MAX_RECORDS, Mode, Parts, SLOTS};
use pmu_model::uarch::{self, Access, AccessKind, Core, Llc, PAGE_BYTES, Resolved, StringRun};
use pmu_model::{BranchKind, Occurrence};

/// Bytes that the loop goes over, half of what the last-level cache holds.
const BYTES: usize = 1 << 20;

#[repr(C, align(4096))]
struct Area([u8; BYTES + 4096]);

static mut WIDE: Area = Area([0; BYTES + 4096]);
static mut CORE: Core = Core::new(uarch::Prefetch::None);
static mut LLC: Llc = Llc::new();

const TURNS: u64 = 3000;
const SEED: u64 = 88_172_645_463_325_252;
const FACTOR: u64 = 1_103_515_245;
const ADDEND: u64 = 12_345;

global_asm!(
    ".balign 64",
    "model_loop:",
    "mov r8d, {turns}",
    "movabs r9, {seed}",
    "model_loop_top:",
    "imul r9, r9, {factor}",
    "add r9, {addend}",
    "mov rax, r9",
    "shr rax, 16",
    "and eax, {mask}",
    "test r9d, 0x10000",
    "model_loop_jz:",
    "jz model_loop_store",
    "mov rdx, [rdi + rax]",
    "model_loop_jmp:",
    "jmp model_loop_change",
    "model_loop_store:",
    "mov [rdi + rax], edx",
    "model_loop_change:",
    "add byte ptr [rdi + rax], 1",
    "test r9d, 0x60000",
    "model_loop_jnz:",
    "jnz model_loop_next",
    "movups xmm0, [rdi + rax]",
    "vmovups ymm0, [rdi + rax + 5]",
    "fld tbyte ptr [rdi + rax]",
    "fstp qword ptr [rdi + rax + 60]",
    "test r9d, 0x80000",
    "lea rax, [rip + model_loop_leaf]",
    "lea rdx, [rip + model_loop_other_leaf]",
    "cmovz rax, rdx",
    "model_loop_call:",
    "call rax",
    "model_loop_next:",
    "dec r8d",
    "model_loop_back:",
    "jnz model_loop_top",
    "model_loop_end:",
    "ret",
    "model_loop_leaf:",
    "ret",
    "model_loop_other_leaf:",
    "nop",
    "model_loop_other_ret:",
    "ret",
    turns = const TURNS,
    seed = const SEED,
    factor = const FACTOR,
    addend = const ADDEND,
    mask = const BYTES - 1,
);

global_asm!(
    "model_special:",
    "cld",
    "fxsave64 [rdi]",
    "fxrstor64 [rdi]",
    "push qword ptr [rdi + 1020]",
    "pop qword ptr [rdi + 2044]",
    "mov edx, 5000",
    "bts [rdi], edx",
    "mov r8, rdi",
    "lea rsi, [r8 + 3900]",
    "lea rdi, [r8 + 100]",
    "movsq",
    "cmpsb",
    "mov ecx, 300",
    "lea rsi, [r8 + 3990]",
    "lea rdi, [r8 + 1000]",
    "rep movsb",
    "mov ecx, 40",
    "lea rsi, [r8 + 5]",
    "lea rdi, [r8 + 4093]",
    "repne cmpsq",
    "clflush [r8 + 1000]",
    "mov rax, [r8 + 1000]",
    "invlpg [r8]",
    "mov rax, [r8 + 8]",
    "mov rax, cr3",
    "mov cr3, rax",
    "mov rax, [r8 + 16]",
    "lock add [r8 + 4092], rax",
    "model_special_end:",
    "ret",
);

unsafe extern "C" {
    static model_loop: u8;
    static model_loop_top: u8;
    static model_loop_jz: u8;
    static model_loop_jmp: u8;
    static model_loop_store: u8;
    static model_loop_change: u8;
    static model_loop_jnz: u8;
    static model_loop_call: u8;
    static model_loop_next: u8;
    static model_loop_back: u8;
    static model_loop_end: u8;
    static model_loop_leaf: u8;
    static model_loop_other_leaf: u8;
    static model_loop_other_ret: u8;
    static model_special: u8;
    static model_special_end: u8;
}

macro_rules! at {
    ($label:ident) => {
        &raw const $label as u64
    };
}

/// The model that the plugin has as well.
#[allow(static_mut_refs, reason = "one processor")]
fn model() -> (&'static mut Core, &'static mut Llc) {
    // SAFETY: one processor, and nobody keeps them over a call of anybody else who asks.
    unsafe { (&mut CORE, &mut LLC) }
}

/// The model beside the code.
struct Mirror {
    counts: [u64; SLOTS],
    /// Branches that were taken, and the last of them, by their number.
    taken: u64,
    last: [(BranchKind, u64, u64); MAX_RECORDS],
}

impl Mirror {
    const fn new() -> Self {
        Self { counts: [0; SLOTS], taken: 0, last: [(BranchKind::Far, 0, 0); MAX_RECORDS] }
    }

    fn access(&mut self, kind: AccessKind, linear: u64, bytes: u32) {
        self.locked(kind, linear, bytes, false);
    }

    fn locked(&mut self, kind: AccessKind, linear: u64, bytes: u32, locked: bool) {
        let next = (linear & !(PAGE_BYTES - 1)) + PAGE_BYTES;
        let crosses = linear % PAGE_BYTES + u64::from(bytes) > PAGE_BYTES;
        let own = physical(linear);
        let physical_next_page = if crosses { physical(next) } else { own };
        let (non_temporal, page_bits) = (false, 12);
        let access = Access {
            linear,
            physical: own,
            physical_next_page,
            bytes,
            kind,
            locked,
            non_temporal,
            page_bits,
        };
        let (core, llc) = model();
        core.access(&access, llc, uarch::Parts::ALL, &mut self.counts);
    }

    fn branch(&mut self, kind: BranchKind, from: u64, to: u64, bytes: u64, taken: bool) {
        if taken {
            self.last[self.taken as usize % MAX_RECORDS] = (kind, from, to);
            self.taken += 1;
        }
        let resolved = Resolved::new((from, to, from + bytes), kind, taken, to <= from);
        model().0.branch(&resolved, uarch::Parts::ALL, &mut self.counts);
    }

    fn compare(&self, name: &str, seen: &own::Counted) {
        for occurrence in Occurrence::ALL {
            let (own, other) = (self.counts[occurrence as usize], seen.counts[occurrence as usize]);
            if own != 0 || other != 0 {
                line!("case {name}.{occurrence:?} {other} {own}");
            }
        }
    }
}

pub fn run() {
    super::accesses::enable();
    set(Mode::MEMORY | Mode::PREDICTOR, Parts::MEMORY | Parts::PREDICTOR, 0);
    let base = &raw mut WIDE as u64;
    for name in ["loop", "again"] {
        let seen = own::run(at!(model_loop), base, &[]);
        let mut mirror = Mirror::new();
        mirror_loop(&mut mirror, base);
        mirror.compare(name, &seen);
    }
    for name in ["special", "special_again"] {
        let seen = own::run(at!(model_special), area(0), &[]);
        let mut mirror = Mirror::new();
        mirror_special(&mut mirror, area(0));
        mirror.compare(name, &seen);
    }
    // Without the parts nothing moves, and directions are counted all the same.
    set(Mode::MEMORY | Mode::PREDICTOR, Parts::empty(), 0);
    let seen = own::run(at!(model_loop), base, &[]);
    line!("case still.LlcMiss {} 0", seen.counts[Occurrence::LlcMiss as usize]);
    line!("case still.LoadStore {} {TURNS}", seen.counts[Occurrence::LoadStore as usize]);
    set(Mode::MEMORY | Mode::PREDICTOR, Parts::MEMORY | Parts::PREDICTOR, 0);
    let seen = own::run(at!(model_special), area(0), &[]);
    let mut mirror = Mirror::new();
    mirror_special(&mut mirror, area(0));
    mirror.compare("special_then", &seen);
}

/// The last branches that were taken, by linear addresses, with the instructions between them.
pub fn records() {
    super::accesses::enable();
    set(Mode::RECORDS, Parts::PREDICTOR | Parts::RECORDS, 0);
    let seen = own::run(at!(model_special), area(0), &[]);
    let ret = (BranchKind::Return, at!(model_special_end), own::back());
    compare("special", &seen, 1, &[ret]);
    let record = seen.records.list[0];
    // Both strings count once, RET too.
    line!("case special.instructions {} 29", record.instructions);
    line!("case special.position {} 29", seen.records.position);
    let seen = own::run(at!(model_loop), &raw mut WIDE as u64, &[]);
    let mut mirror = Mirror::new();
    mirror_loop(&mut mirror, &raw mut WIDE as u64);
    let first = mirror.taken.saturating_sub(MAX_RECORDS as u64) as usize;
    let mut last = mirror.last;
    last.rotate_left(first % MAX_RECORDS);
    compare("loop", &seen, mirror.taken, &last);
}

fn compare(name: &str, seen: &own::Counted, count: u64, taken: &[(BranchKind, u64, u64)]) {
    line!("case {name}.records {} {count}", seen.records.count);
    for (record, (kind, from, to)) in seen.records.list.iter().zip(taken) {
        let (own, other) = (record.from, record.to);
        line!(
            "case {name}.record {}:{own:x}:{other:x} {}:{from:x}:{to:x}",
            record.kind,
            *kind as u32
        );
    }
}

fn mirror_loop(mirror: &mut Mirror, base: u64) {
    use AccessKind::*;
    use BranchKind::*;
    let stack = own::stack() - 8;
    let mut state = SEED;
    for turn in 0..TURNS {
        state = state.wrapping_mul(FACTOR).wrapping_add(ADDEND);
        let place = base + (state >> 16 & (BYTES as u64 - 1));
        let stores = state & 0x1_0000 == 0;
        mirror.branch(Conditional, at!(model_loop_jz), at!(model_loop_store), 2, stores);
        if stores {
            mirror.access(Store, place, 4);
        } else {
            mirror.access(Load, place, 8);
            mirror.branch(RelativeJump, at!(model_loop_jmp), at!(model_loop_change), 2, true);
        }
        mirror.access(LoadStore, place, 1);
        let skips = state & 0x6_0000 != 0;
        mirror.branch(Conditional, at!(model_loop_jnz), at!(model_loop_next), 2, skips);
        if !skips {
            mirror.access(Load, place, 16);
            mirror.access(Load, place + 5, 32);
            mirror.access(Load, place, 10);
            mirror.access(Store, place + 60, 8);
            let (leaf, ret) = if state & 0x8_0000 == 0 {
                (at!(model_loop_other_leaf), at!(model_loop_other_ret))
            } else {
                (at!(model_loop_leaf), at!(model_loop_leaf))
            };
            mirror.access(Store, stack - 8, 8);
            mirror.branch(IndirectCall, at!(model_loop_call), leaf, 2, true);
            mirror.access(Load, stack - 8, 8);
            mirror.branch(Return, ret, at!(model_loop_next), 1, true);
        }
        let back = at!(model_loop_end) - at!(model_loop_back);
        mirror.branch(
            Conditional,
            at!(model_loop_back),
            at!(model_loop_top),
            back,
            turn + 1 < TURNS,
        );
    }
    mirror.access(Load, stack, 8);
    mirror.branch(Return, at!(model_loop_end), own::back(), 1, true);
}

fn mirror_special(mirror: &mut Mirror, base: u64) {
    use AccessKind::*;
    let stack = own::stack() - 8;
    mirror.access(Store, base, 512);
    mirror.access(Load, base, 512);
    mirror.access(Load, base + 1020, 8);
    mirror.access(Store, stack - 8, 8);
    mirror.access(Load, stack - 8, 8);
    mirror.access(Store, base + 2044, 8);
    mirror.access(LoadStore, base + 5000 / 32 * 4, 4);
    mirror.access(Load, base + 3900, 8);
    mirror.access(Store, base + 100, 8);
    mirror.access(Load, base + 3908, 1);
    mirror.access(Load, base + 108, 1);
    let mut copy = [StringRun::NEW; 2];
    for n in 0..300 {
        element(mirror, &mut copy[0], Load, base + 3990 + n, 1);
        element(mirror, &mut copy[1], Store, base + 1000 + n, 1);
    }
    let mut search = [StringRun::NEW; 2];
    for n in 0..40 {
        let (source, destination) = (base + 5 + 8 * n, base + 4093 + 8 * n);
        element(mirror, &mut search[0], Load, source, 8);
        element(mirror, &mut search[1], Load, destination, 8);
        // SAFETY: this group's area.
        let of = |at: u64| unsafe { core::ptr::read_unaligned(at as *const u64) };
        if of(source) == of(destination) {
            break;
        }
    }
    let (core, llc) = model();
    core.clflush(physical(base + 1000), llc, None);
    mirror.counts[Occurrence::ClFlush as usize] += 1;
    mirror.access(Load, base + 1000, 8);
    model().0.invlpg(base);
    mirror.access(Load, base + 8, 8);
    model().0.flush_tlb();
    mirror.access(Load, base + 16, 8);
    mirror.locked(LoadStore, base + 4092, 8, true);
    mirror.access(Load, stack, 8);
    mirror.branch(BranchKind::Return, at!(model_special_end), own::back(), 1, true);
}

fn element(mirror: &mut Mirror, run: &mut StringRun, kind: AccessKind, linear: u64, bytes: u32) {
    for piece in run.element(linear, bytes) {
        mirror.access(kind, piece.linear, piece.bytes);
    }
}
