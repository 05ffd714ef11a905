//! The plans, carried out as QEMU would carry them out: whatever stops a block, what was done has been counted.

use super::*;
use crate::decode::{Raw, decode};
use crate::opened::{LOADED, STORED};
use crate::tally::Sums;
use iced_x86::InstructionInfoFactory;
use pmu_model::Occurrence;
use proptest::prelude::*;

mod qualified;

fn facts(start: u64, code: &[&[u8]]) -> Vec<Facts> {
    let mut linear = start;
    let mut raw = Vec::new();
    for bytes in code {
        raw.push(Raw { linear, bytes: bytes.to_vec() });
        linear += bytes.len() as u64;
    }
    let mut factory = InstructionInfoFactory::new();
    let decoded = decode(&raw, false);
    decoded.iter().map(|one| Facts::of(&mut factory, one.as_ref().expect("valid"))).collect()
}

/// Carries a plan out up to the access or start of instruction `stop`, in which the block is left. `accessed`: its
/// accesses have been made, and it fails after them. Returns what was counted, and what is open.
fn carry_out(
    plan: &[(At, Action)],
    length: usize,
    stop: usize,
    accessed: bool,
) -> (Sums, Option<Opened>) {
    let (mut sums, mut open) = (Sums::NONE, None);
    let mut at = |place: At| {
        for (_, action) in plan.iter().filter(|(other, _)| *other == place) {
            match action {
                Action::Count(tally) => sums.add(tally, 1),
                Action::Open(opened) | Action::OpenSettled(opened) => open = Some(*opened),
                Action::Close => open = None,
                _ => {}
            }
        }
    };
    at(At::Start);
    for index in 0..length {
        at(At::Before(index));
        if index == stop && !accessed {
            break;
        }
        at(At::Loaded(index));
        at(At::Stored(index));
        if index == stop {
            break;
        }
    }
    (sums, open)
}

/// Instructions that do not branch, some of which can fail.
const PLAIN: &[&[u8]] = &[
    &[0x48, 0x8b, 0x07],       // mov rax, [rdi]
    &[0x48, 0x89, 0x07],       // mov [rdi], rax
    &[0x48, 0x01, 0x07],       // add [rdi], rax
    &[0xf0, 0x48, 0xff, 0x07], // lock inc [rdi]
    &[0x48, 0xff, 0xc0],       // inc rax
    &[0x50],                   // push rax
    &[0xff, 0x37],             // push [rdi]
    &[0x48, 0xf7, 0x37],       // div [rdi]
    &[0x0f, 0xae, 0x07],       // fxsave [rdi]
    &[0xc5, 0xfc, 0x10, 0x07], // vmovups ymm0, [rdi]
    &[0xdb, 0x2f],             // fld tbyte [rdi]
    &[0xec],                   // in al, dx
    &[0x0f, 0xae, 0x3f],       // clflush [rdi]
    &[0xa6],                   // cmpsb
];

/// What may end a block.
const LAST: &[&[u8]] = &[
    &[0x75, 0x10],       // jnz
    &[0xeb, 0xf0],       // jmp
    &[0xe8, 0, 1, 0, 0], // call
    &[0xff, 0x17],       // call [rdi]
    &[0xff, 0xe0],       // jmp rax
    &[0xc3],             // ret
    &[0x48, 0xcf],       // iretq
    &[0xf3, 0xa4],       // rep movsb
    &[0x90],             // nop: the block is cut off
];

const MODE: Mode = Mode::BRANCHES
    .union(Mode::TAKEN)
    .union(Mode::ACCESSES)
    .union(Mode::STRINGS)
    .union(Mode::INSTRUCTIONS);

/// What the instructions count when they are done.
fn expected(block: &[Facts]) -> Sums {
    let mut sums = Sums::NONE;
    for facts in block {
        sums.add(&facts.tally(MODE, facts.branch), 1);
    }
    sums
}

/// What is open at an exit at instruction `stop`, taken back.
fn taken_back((mut sums, open): (Sums, Option<Opened>), stop: &Facts) -> Sums {
    match open {
        Some(Opened::Early { ip, tally, .. }) if ip == stop.ip => sums.add(&tally, u64::MAX),
        Some(Opened::Repeat { ip, .. }) if ip == stop.ip => {
            sums.add(&Tally::one(tally::STRING_STARTS), u64::MAX);
        }
        _ => {}
    }
    sums
}

proptest! {
    #[test]
    fn what_is_done_is_counted_wherever_the_block_is_left(
        plain in prop::collection::vec(prop::sample::select(PLAIN), 0..12),
        last in prop::sample::select(LAST),
        stop: prop::sample::Index,
    ) {
        let mut code = plain;
        code.push(last);
        let block = facts(0x40_1f80, &code);
        let plan = plan(&block, MODE);
        let whole = carry_out(&plan, block.len(), usize::MAX, true);
        let mut all = expected(&block);
        if block.last().is_some_and(|last| last.repeated.is_some()) {
            all.add(&Tally::one(tally::STRING_STARTS), 1);
        }
        prop_assert_eq!(whole.0, all);
        // At a fault of an instruction that can fail, before its accesses; and after them, if it can fail there.
        let stop = stop.index(block.len());
        let failing = &block[stop];
        prop_assume!(failing.end != End::Always);
        let done = expected(&block[..stop]);
        let fault = carry_out(&plan, block.len(), stop, false);
        prop_assert_eq!(taken_back(fault, failing), done);
        if failing.end == End::Unknown {
            let fault = carry_out(&plan, block.len(), stop, true);
            prop_assert_eq!(taken_back(fault, failing), done);
        }
    }
}

#[test]
fn a_block_without_anything_that_fails_counts_once_at_its_end() {
    let block = facts(0x1000, &[&[0x48, 0xff, 0xc0], &[0x90], &[0xeb, 0xf0]]);
    let plan = plan(&block, Mode::BRANCHES);
    let counts: Vec<_> =
        plan.iter().filter(|(_, action)| matches!(action, Action::Count(_))).collect();
    let jump = Tally::one(Occurrence::RelativeJump as usize);
    assert_eq!(counts, [&(At::Before(2), Action::Count(jump))]);
}

#[test]
fn a_jump_whose_ways_differ_in_their_pages_alone_needs_the_address() {
    let block = facts(0x1000, &[&[0x90], &[0x0f, 0x84, 0, 0x10, 0, 0]]);
    let with = plan(&block, Mode::BRANCHES | Mode::TAKEN);
    assert!(with.contains(&(At::Start, Action::NoteStart)));
    let block = facts(0x1000, &[&[0x90], &[0x0f, 0x84, 1, 0x10, 0, 0]]);
    let without = plan(&block, Mode::BRANCHES | Mode::TAKEN);
    assert!(!without.contains(&(At::Start, Action::NoteStart)));
}

#[test]
fn callbacks_see_what_they_count_and_nothing_counts_it_twice() {
    let block = facts(0x1000, &[&[0x48, 0x8b, 0x07], &[0x0f, 0xae, 0x07], &[0x90], &[0xc3]]);
    let mode = complete(Mode::MEMORY | Mode::PREDICTOR);
    let plan = plan(&block, mode);
    assert!(plan.iter().all(|(_, action)| !matches!(action, Action::Count(_))), "{plan:?}");
    assert_eq!(plan[0], (At::Start, Action::Resolve(0)));
    for index in [0, 1, 3] {
        assert!(plan.contains(&(At::Before(index), Action::Trace)), "{index}");
    }
    assert!(plan.contains(&(At::Before(2), Action::Commit)), "the area's access");
    let opens = plan
        .iter()
        .filter(|(_, action)| matches!(action, Action::Open(_) | Action::OpenSettled(_)))
        .count();
    assert_eq!(opens, 1, "the return");
}

#[test]
fn modes_bring_those_that_they_include() {
    let all = complete(Mode::RECORDS | Mode::MEMORY);
    let included = Mode::PREDICTOR | Mode::BRANCHES | Mode::TAKEN | Mode::ACCESSES;
    assert!(all.contains(included | Mode::INSTRUCTIONS));
    assert_eq!(complete(Mode::STRINGS), Mode::STRINGS);
}

#[test]
fn a_block_looks_for_what_fell_through_only_where_something_may_have() {
    let block = facts(0x1000, &[&[0x48, 0xff, 0xc0], &[0x75, 0x10]]);
    let looks = |mode| plan(&block, mode).contains(&(At::Start, Action::FellThrough(key(0))));
    assert!(!looks(Mode::BRANCHES | Mode::LIMITS));
    for mode in [Mode::TAKEN, Mode::STRINGS | Mode::TAKEN, Mode::ACCESSES, Mode::INSTRUCTIONS] {
        assert!(looks(Mode::BRANCHES | mode), "{mode:?}");
    }
}

/// Where the guest continues does not tell the way of such a jump; of any other one it does.
#[test]
fn the_guest_leaves_behind_a_jump_to_the_next_instruction() {
    let leaves = |code: &[u8], mode| {
        let plan = plan(&facts(0x1000, &[&[0x90], code]), complete(mode));
        plan.iter().filter(|step| **step == (At::Before(1), Action::Leave)).count()
    };
    // JNZ and LOOP, JNZ elsewhere, JMP.
    for (code, expected) in [(&[0x75, 0][..], 1), (&[0xe2, 0], 1), (&[0x75, 2], 0), (&[0xeb, 0], 0)]
    {
        for mode in [Mode::TAKEN | Mode::BRANCHES, Mode::PREDICTOR, Mode::RECORDS] {
            assert_eq!(leaves(code, mode), expected, "{code:x?} {mode:?}");
        }
        assert_eq!(leaves(code, Mode::BRANCHES), 0, "nobody asks");
    }
}

/// Where the guest does not leave for interrupts and page faults, what is open says how far an element of a string came.
#[test]
fn e1_an_element_of_a_string_is_known_to_be_done_where_deliveries_are_seen() {
    let actions = |code: &[u8], mode| {
        let all = plan(&facts(0x1000, &[code]), mode);
        let is_own = |action: &Action| !matches!(action, Action::Count(_) | Action::Element);
        all.into_iter().filter(|(_, action)| is_own(action)).collect::<Vec<_>>()
    };
    for more in [Mode::empty(), Mode::LIMITS, Mode::ACCESSES, Mode::BRANCHES] {
        let mode = Mode::STRINGS | more;
        assert!(mode.sees_deliveries());
        for (code, own) in [
            (&[0xf3, 0xa4][..], (At::Stored(0), Action::Done(STORED))), // rep movsb
            (&[0xf3, 0xab], (At::Stored(0), Action::Done(STORED))),     // rep stosd
            (&[0xf2, 0xae], (At::Loaded(0), Action::Done(LOADED))),     // repne scasb
            (&[0xf3, 0xac], (At::Loaded(0), Action::Done(LOADED))),     // rep lodsb
            (&[0xf3, 0xa6], (At::Before(0), Action::NoteCount)),        // repe cmpsb
        ] {
            let all = actions(code, mode);
            assert!(matches!(all[0], (At::Start, Action::Continued(Opened::Repeat { .. }))));
            assert_eq!((&all[1], all.len()), (&(At::Start, Action::Close), 4), "{all:?}");
            assert!(all.contains(&own), "{all:?}");
            assert!(all.iter().any(|(at, action)| {
                *at == At::Before(0) && matches!(action, Action::Begin(Opened::Repeat { .. }))
            }));
        }
        // Nothing else is open.
        let start = [(At::Start, Action::Unfinished(0)), (At::Start, Action::Close)];
        assert_eq!(actions(&[0x75, 0x10], mode), start);
    }
    for more in [Mode::TAKEN, Mode::MEMORY, Mode::INSTRUCTIONS, Mode::PORTS, Mode::QUALIFIED] {
        let mode = Mode::STRINGS | more;
        assert!(!mode.sees_deliveries() && !more.sees_deliveries());
        let all = actions(&[0xf3, 0xa4], mode);
        assert!(!all.iter().any(|(_, action)| matches!(action, Action::Begin(_))), "{all:?}");
    }
}

/// SYSCALL and SYSRET, which are frequent, need no look at the stack after them.
#[test]
fn e1_what_may_raise_a_page_fault_is_looked_for_in_its_frame() {
    let faults = |code: &[u8]| {
        let plan = plan(&facts(0x1000, &[code]), Mode::STRINGS | Mode::BRANCHES | Mode::ACCESSES);
        plan.iter().find_map(|(_, action)| match action {
            Action::Open(opened @ Opened::Early { faults, .. }) => Some((*faults, opened.key())),
            _ => None,
        })
    };
    let (syscall, sysret) = (faults(&[0x0f, 0x05]), faults(&[0x48, 0x0f, 0x07]));
    assert_eq!([syscall, sysret].map(|it| it.map(|(faults, _)| faults)), [Some(false); 2]);
    // FXSAVE, IRETQ, a far jump.
    for code in [&[0x0f, 0xae, 0x07][..], &[0x48, 0xcf], &[0xff, 0x2f]] {
        let (faults, key) = faults(code).expect("it is counted early");
        assert!(faults && crate::arrival::decides(key), "{code:x?}");
    }
    assert!(!syscall.is_some_and(|(_, key)| crate::arrival::decides(key)));
}

/// QEMU lets a store that changes its own block begin again: the block's address, or a word, tells that from a branch to the same offset
/// in another page.
#[test]
fn e1_what_may_begin_again_is_told_from_a_branch_to_the_same_offset() {
    let notes = |last: &[u8], mode| {
        let block = facts(0x1000, &[&[0x90], last]);
        plan(&block, complete(mode)).contains(&(At::Start, Action::NoteStart))
    };
    let stored = |last: &[u8], mode| {
        let block = facts(0x1000, &[&[0x90], last]);
        plan(&block, complete(mode)).contains(&(At::Stored(1), Action::Iterated))
    };
    let (far_call, fxsave): (&[u8], &[u8]) = (&[0xff, 0x1f], &[0x0f, 0xae, 0x07]);
    let (iret, call, to_itself): (&[u8], &[u8], &[u8]) =
        (&[0x48, 0xcf], &[0xff, 0xd0], &[0xe8, 0xfb, 0x0f, 0, 0]);
    for mode in [Mode::BRANCHES | Mode::ACCESSES, Mode::PREDICTOR | Mode::MEMORY] {
        assert!(notes(far_call, mode) && notes(fxsave, mode), "{mode:?}");
        assert!(!notes(iret, mode) && !notes(call, mode), "{mode:?}");
    }
    assert!(stored(call, Mode::PREDICTOR) && stored(to_itself, Mode::PREDICTOR));
    // Counted when it has stored, or never in doubt.
    assert!(!stored(call, Mode::BRANCHES) && !stored(&[0xe8, 0, 1, 0, 0], Mode::PREDICTOR));
}
