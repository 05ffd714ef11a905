//! The tracker, fed with the traps that a processor would make.

use super::*;
use crate::snippet::Emitted;
use arch::step::{Next, TRAP_FLAG};
use arch::trap::TrapFrame;
use iced_x86::Register;
use protocol::bits::Bits;
use std::borrow::Cow;

const CODE: u64 = 0x1000;
/// What the registers point to in these tests.
const POINTERS: [u64; 5] = [0x1_0000, 0x2_0000, 0x3_0000, 0x4_0000, 0x5_0000];

/// Where the flags were corrected.
#[derive(Default)]
struct Made(Vec<u64>);

impl Processor for Made {
    fn base(&self, _: Register) -> u64 {
        0x70_0000
    }
    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        [leaf + 1, 2, subleaf + 3, 4]
    }
    fn clear_pushed_trap_flag(&mut self, stack: u64) {
        self.0.push(stack);
    }
}

/// A function of one NOP, `copies` of the body, another NOP, and a RET as its exit.
fn emitted(body: &[u8], copies: u64) -> (Emitted, Vec<u8>) {
    let mut code = vec![0x90];
    (0..copies).for_each(|_| code.extend(body));
    let end = CODE + code.len() as u64;
    code.extend([0x90, 0xc3]);
    let emitted = Emitted {
        function: CODE..end + 2,
        exit: end + 1,
        init: CODE..CODE,
        late_init: CODE..CODE,
        body: CODE + 1..end,
        copy_bytes: body.len() as u64,
        teardown: 0..0,
        closed: 0..0,
        landings: None,
    };
    (emitted, code)
}

/// A trap at this place, with this change to the registers.
/// Most instructions that are stepped over here.
const LIMIT: u64 = 10_000;

type Stop = (u64, fn(&mut TrapFrame));

/// Traps at these places, each with changes to the registers, as offsets from the body's start; the entry comes first
/// and the exit last by themselves.
fn track(
    body: &[u8],
    copies: u64,
    filter: &Filter,
    traps: &[Stop],
) -> (Tally, Option<Refusal>, Vec<u64>) {
    let (emitted, code) = emitted(body, copies);
    let qualifier = Qualifier::new(filter, POINTERS).unwrap();
    let mut tracker = Tracker::new(&emitted, &code, &qualifier, LIMIT);
    let mut made = Made::default();
    let mut frame = TrapFrame {
        rsp: POINTERS[0],
        rdi: POINTERS[2],
        rsi: POINTERS[3],
        r14: POINTERS[4],
        rcx: 3,
        rflags: 2,
        ..TrapFrame::default()
    };
    let behind = emitted.body.end - emitted.body.start;
    let all = traps.iter().copied().chain([(behind, nothing as fn(&mut _)), (behind + 1, nothing)]);
    frame.rip = CODE;
    let mut last = tracker.trap(&mut frame, &mut made);
    for (at, change) in all {
        if last != Next::Step {
            break;
        }
        frame.rip = emitted.body.start + at;
        frame.rflags |= TRAP_FLAG;
        change(&mut frame);
        last = tracker.trap(&mut frame, &mut made);
    }
    let expected = if tracker.refusal.is_some() { Next::Leave } else { Next::Free };
    assert_eq!(last, expected);
    (tracker.tally, tracker.refusal, made.0)
}

fn nothing(_: &mut TrapFrame) {}

/// The counts that are not 0.
fn counts(tally: &Tally) -> Vec<(&'static str, u64)> {
    let all = tally::EVENTS.iter().copied().zip(tally.counts);
    all.filter(|&(_, count)| count > 0).collect()
}

fn opcodes(tally: &Tally) -> Vec<(String, u64)> {
    tally.opcodes.iter().map(|(&mnemonic, &count)| (name(mnemonic), count)).collect()
}

/// push rax; add [r14+8], rcx; imul eax, ecx; mov al, [rsi]; jz +0 over nothing; jmp to the next copy
const MIXED: [u8; 14] =
    [0x50, 0x49, 0x01, 0x4e, 0x08, 0x0f, 0xaf, 0xc1, 0x8a, 0x06, 0x75, 0x02, 0xeb, 0x00];
const THROUGH: [Stop; 6] =
    [(0, nothing), (1, nothing), (5, nothing), (8, nothing), (10, nothing), (12, nothing)];

#[test]
fn instructions_branches_and_accesses_are_counted_and_the_code_around_is_not() {
    let (tally, refusal, _) = track(&MIXED, 1, &Filter::default(), &THROUGH);
    assert_eq!(refusal, None);
    assert_eq!(
        counts(&tally),
        [
            ("instructions", 6),
            ("branches", 2),
            ("conditional_branches", 1),
            ("taken_branches", 1),
            ("near_jumps", 1),
            ("loads", 2),
            ("stores", 2),
            ("bytes_loaded", 9),
            ("bytes_stored", 16),
        ]
    );
    let names: Vec<_> = opcodes(&tally).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["add", "imul", "jmp", "jne", "mov", "push"]);
    let places: Vec<_> =
        tally.places.iter().map(|(&(at, _), &(length, n))| (at, length, n)).collect();
    assert_eq!(places, [(0, 1, 1), (1, 4, 1), (5, 3, 1), (8, 2, 1), (10, 2, 1), (12, 2, 1)]);
}

#[test]
fn copies_share_their_places() {
    let traps: Vec<_> = (0..6).map(|at| (at, nothing as fn(&mut _))).collect();
    let (tally, _, _) = track(&[0x90, 0x50], 3, &Filter::default(), &traps);
    assert_eq!(counts(&tally)[0], ("instructions", 6));
    assert_eq!(
        tally.places.into_iter().collect::<Vec<_>>(),
        [((0, Bits::SixtyFour), (1, 3)), ((1, Bits::SixtyFour), (1, 3))]
    );
}

fn filtered(filter: &Filter) -> Vec<(&'static str, u64)> {
    counts(&track(&MIXED, 1, filter, &THROUGH).0)
}

#[test]
fn t1_only_instructions_of_the_range_count() {
    let filter = Filter { instructions: "0x1..0x8".parse().ok(), ..Filter::default() };
    let expected = [
        ("instructions", 2),
        ("loads", 1),
        ("stores", 1),
        ("bytes_loaded", 8),
        ("bytes_stored", 8),
    ];
    assert_eq!(filtered(&filter), expected);
}

#[test]
fn t2_only_the_opcodes_count_and_an_unknown_one_is_refused() {
    let filter = |opcodes: &[&'static str]| Filter {
        opcodes: opcodes.iter().map(|&opcode| Cow::Borrowed(opcode)).collect(),
        ..Filter::default()
    };
    assert_eq!(filtered(&filter(&["imul"])), [("instructions", 1)]);
    let two = [("instructions", 2), ("stores", 1), ("bytes_stored", 8)];
    assert_eq!(filtered(&filter(&["imul", "push"])), two);
    let unknown = filter(&["imull"]);
    let refusal = Qualifier::new(&unknown, POINTERS).unwrap_err();
    assert_eq!(refusal.to_string(), "the filter's opcode `imull` does not exist");
}

#[test]
fn t3_only_accesses_to_the_data_count_and_instructions_that_make_one() {
    let data = |range: &str| Filter { data: range.parse().ok(), ..Filter::default() };
    let stack = [("instructions", 1), ("stores", 1), ("bytes_stored", 8)];
    assert_eq!(filtered(&data("rsp:-8..0")), stack);
    // The last byte of eight.
    let add = [
        ("instructions", 1),
        ("loads", 1),
        ("stores", 1),
        ("bytes_loaded", 8),
        ("bytes_stored", 8),
    ];
    assert_eq!(filtered(&data("r14:15..16")), add);
    assert_eq!(filtered(&data("r14:16..32")), []);
    assert_eq!(
        filtered(&data("0x40000..0x40001")),
        [("instructions", 1), ("loads", 1), ("bytes_loaded", 1)]
    );
}

#[test]
fn t8_all_filters_have_to_hold_at_once() {
    let filter = |opcode: &'static str, instructions: &str, data: &str| Filter {
        opcodes: vec![Cow::Borrowed(opcode)],
        instructions: instructions.parse().ok(),
        data: data.parse().ok(),
        bits: None,
    };
    let stack = [("instructions", 1), ("stores", 1), ("bytes_stored", 8)];
    assert_eq!(filtered(&filter("push", "0..1", "rsp:-8..0")), stack);
    assert_eq!(filtered(&filter("add", "0..1", "rsp:-8..0")), []);
    assert_eq!(filtered(&filter("push", "1..9", "rsp:-8..0")), []);
    assert_eq!(filtered(&filter("push", "0..1", "rsp:0..8")), []);
}

/// Goes on in ring 0's 32-bit code segment, or in its 64-bit one.
fn compatibility(frame: &mut TrapFrame) {
    frame.cs = arch::descriptors::KERNEL_CODE_32.0.into();
}

fn wide(frame: &mut TrapFrame) {
    frame.cs = arch::descriptors::KERNEL_CODE.0.into();
}

/// jmp far [rsi]; inc eax; push eax; jmp 8:…; push rax: the third byte, 0x40, would be a REX prefix of the fourth.
const BOTH: [u8; 12] = [0xff, 0x2e, 0x40, 0x50, 0xea, 0, 0, 0, 0, 8, 0, 0x50];
const CHANGES: [Stop; 5] = [(0, wide), (2, compatibility), (3, nothing), (4, nothing), (11, wide)];

#[test]
fn t6_each_instruction_is_decoded_by_the_segment_it_is_in() {
    let (tally, refusal, _) = track(&BOTH, 1, &Filter::default(), &CHANGES);
    assert_eq!((refusal, tally.widths), (None, [2, 3]));
    let expected = [
        ("instructions", 5),
        ("branches", 2),
        ("taken_branches", 2),
        ("far_branches", 2),
        ("loads", 1),
        ("stores", 2),
        ("bytes_loaded", 6),
        // Four by the 32-bit PUSH, eight by the other.
        ("bytes_stored", 12),
    ];
    assert_eq!(counts(&tally), expected);
    let places: Vec<_> = tally.places.into_keys().collect();
    let (w, n) = (Bits::SixtyFour, Bits::Compatibility);
    assert_eq!(places, [(0, w), (2, n), (3, n), (4, n), (11, w)]);
}

/// POP SS moves the stack pointer before the instruction in its shadow, which is stepped over with it.
#[test]
fn t6_t8_an_instruction_in_the_shadow_of_pop_ss_has_the_stack_pointer_of_its_own() {
    // As above, with pop ss; push eax.
    let mut body = BOTH;
    body[2] = 0x17;
    let stops: [Stop; 4] = [(0, wide), (2, compatibility), (4, nothing), (11, wide)];
    let filter = Filter { data: "rsp:0..4".parse().ok(), ..Filter::default() };
    let (tally, refusal, _) = track(&body, 1, &filter, &stops);
    let word = [("loads", 1), ("stores", 1), ("bytes_loaded", 4), ("bytes_stored", 4)];
    let expected: Vec<_> = [("instructions", 2)].into_iter().chain(word).collect();
    assert_eq!((counts(&tally), refusal), (expected, None));
}

#[test]
fn t6_t8_a_filter_by_width_holds_with_the_others() {
    let count = |bits, opcode: Option<&'static str>| {
        let opcodes = opcode.into_iter().map(Cow::Borrowed).collect();
        let filter = Filter { bits: Some(bits), opcodes, ..Filter::default() };
        assert!(!filter.is_empty());
        track(&BOTH, 1, &filter, &CHANGES).0.counts[0]
    };
    assert_eq!([count(Bits::SixtyFour, None), count(Bits::Compatibility, None)], [2, 3]);
    assert_eq!(
        [count(Bits::SixtyFour, Some("push")), count(Bits::Compatibility, Some("push"))],
        [1, 1]
    );
    assert_eq!(
        [count(Bits::SixtyFour, Some("inc")), count(Bits::Compatibility, Some("inc"))],
        [0, 1]
    );
}

#[test]
fn a_repeated_string_instruction_is_one_instruction_with_all_its_accesses() {
    fn one(frame: &mut TrapFrame) {
        (frame.rcx, frame.rsi, frame.rdi) = (frame.rcx - 1, frame.rsi + 8, frame.rdi + 8);
    }
    let traps: [Stop; 4] = [(0, nothing), (0, one), (0, one), (3, one)];
    let body = [0xf3, 0x48, 0xa5];
    let expected = [
        ("instructions", 1),
        ("loads", 3),
        ("stores", 3),
        ("bytes_loaded", 24),
        ("bytes_stored", 24),
    ];
    assert_eq!(counts(&track(&body, 1, &Filter::default(), &traps).0), expected);
    let second = Filter { data: "rdi:8..16".parse().ok(), ..Filter::default() };
    let expected = [("instructions", 1), ("stores", 1), ("bytes_stored", 8)];
    assert_eq!(counts(&track(&body, 1, &second, &traps).0), expected);
}

/// With RFLAGS.DF set a repeated string instruction runs downwards (SDM vol. 1, 7.3.9.1).
#[test]
fn t3_a_repeated_string_instruction_runs_downwards_with_the_direction_flag() {
    const DIRECTION: u64 = 1 << 10;
    fn first(frame: &mut TrapFrame) {
        frame.rflags |= DIRECTION;
    }
    fn one(frame: &mut TrapFrame) {
        (frame.rcx, frame.rsi, frame.rdi) = (frame.rcx - 1, frame.rsi - 8, frame.rdi - 8);
    }
    let traps: [Stop; 4] = [(0, first), (0, one), (0, one), (3, one)];
    let body = [0xf3, 0x48, 0xa5];
    let count = |range: &str| {
        let filter = Filter { data: range.parse().ok(), ..Filter::default() };
        assert!(filter.data.is_some(), "{range}");
        counts(&track(&body, 1, &filter, &traps).0)
    };
    let one_store = [("instructions", 1), ("stores", 1), ("bytes_stored", 8)];
    for below in ["rdi:0..8", "rdi:-8..0", "rdi:-16..-8"] {
        assert_eq!(count(below), one_store, "{below}");
    }
    assert_eq!(count("rdi:8..64"), [], "nothing lies above");
    assert_eq!(count("rsi:-16..-8"), [("instructions", 1), ("loads", 1), ("bytes_loaded", 8)]);
}

#[test]
fn pushed_flags_are_corrected_and_popped_ones_must_leave_the_trap_flag_alone() {
    fn pushed(frame: &mut TrapFrame) {
        frame.rsp -= 8;
    }
    fn popped(frame: &mut TrapFrame) {
        frame.rsp += 8;
        frame.rflags &= !TRAP_FLAG;
    }
    let body = [0x9c, 0x9d, 0x90];
    let good: [Stop; 3] = [(0, nothing), (1, pushed), (2, popped)];
    let (tally, refusal, corrected) = track(&body, 1, &Filter::default(), &good);
    assert_eq!((refusal, corrected), (None, vec![POINTERS[0] - 8]));
    assert_eq!(counts(&tally)[0], ("instructions", 3));
    let bad: [Stop; 3] = [(0, nothing), (1, pushed), (2, nothing)];
    assert_eq!(track(&body, 1, &Filter::default(), &bad).1, Some(Refusal::TrapFlag));
}

/// A load of SS holds the trap back until the instruction after it is done.
#[test]
fn an_instruction_in_a_shadow_is_counted() {
    // mov ss, eax; push rax; nop
    let body = [0x8e, 0xd0, 0x50, 0x90];
    let expected = [("instructions", 3), ("stores", 1), ("bytes_stored", 8)];
    let held: [Stop; 2] = [(0, nothing), (3, nothing)];
    assert_eq!(counts(&track(&body, 1, &Filter::default(), &held).0), expected);
    let not_held: [Stop; 3] = [(0, nothing), (2, nothing), (3, nothing)];
    assert_eq!(counts(&track(&body, 1, &Filter::default(), &not_held).0), expected);
}

#[test]
fn what_cannot_be_stepped_over_is_refused_by_name() {
    for (body, opcode) in [
        (&[0x90, 0x0f, 0x05][..], "syscall"),
        (&[0x90, 0xcd, 0x80], "int"),
        (&[0x90, 0xf4], "hlt"),
        (&[0x90, 0x0f, 0x34], "sysenter"),
    ] {
        let traps: [Stop; 2] = [(0, nothing), (1, nothing)];
        let refusal = track(body, 1, &Filter::default(), &traps).1;
        let expected = Refusal::Unsteppable { opcode: opcode.into(), site: Site::Body(1) };
        assert_eq!(refusal, Some(expected));
    }
    let traps: [Stop; 3] = [(0, nothing), (0x500, nothing), (0x501, nothing)];
    // jmp rax
    let refusal = track(&[0xff, 0xe0], 1, &Filter::default(), &traps).1;
    let refusal = refusal.expect("it left");
    assert_eq!(refusal, Refusal::Outside(Site::Body(0)));
    let text = "the snippet left for code outside of itself, from byte 0 of the body";
    assert_eq!(refusal.to_string(), text);
    let traps: [Stop; 2] = [(0, nothing), (0x2, nothing)];
    let refusal = track(&[0x90; 4], 1, &Filter::default(), &traps).1.expect("it got lost");
    assert_eq!(refusal, Refusal::Lost(Site::Body(0)));
    let text =
        "lost the snippet's trace: from byte 0 of the body it went on elsewhere, without a branch";
    assert_eq!(refusal.to_string(), text);
}

/// The place has no address that depends on where the code was emitted; that of compiled code is its image's.
#[test]
fn what_is_refused_around_the_body_or_in_a_program_is_not_said_to_be_in_the_body() {
    let (emitted, mut code) = emitted(&[0x90], 1);
    code[0] = 0xf4;
    let filter = Filter::default();
    let qualifier = Qualifier::new(&filter, POINTERS).unwrap();
    let program = [0x90, 0x0f, 0x05];
    let refused = |tracker: Tracker, rip| {
        let mut tracker = tracker;
        let mut frame = TrapFrame { rip, ..TrapFrame::default() };
        assert_eq!(tracker.trap(&mut frame, &mut Made::default()), Next::Leave);
        tracker.refusal.expect("it was refused").to_string()
    };
    let text = "exact mode cannot step over `hlt` at code around the body";
    assert_eq!(refused(Tracker::new(&emitted, &code, &qualifier, LIMIT), CODE), text);
    let tracker = Tracker::new(&emitted, &code, &qualifier, LIMIT);
    let tracker = tracker.calling(vec![(0x1_0000, &program)]);
    let text = "exact mode cannot step over `syscall` at 0x10001 of the program";
    assert_eq!(refused(tracker, 0x1_0001), text);
}

/// Hypervisors that forget the trap after CPUID do not matter.
#[test]
fn cpuid_is_executed_by_the_tracker() {
    fn checked(frame: &mut TrapFrame) {
        assert_eq!([frame.rax, frame.rbx, frame.rcx, frame.rdx], [2, 2, 9, 4]);
    }
    // cpuid; cpuid; push rax; nop
    let body = [0x0f, 0xa2, 0x0f, 0xa2, 0x50, 0x90];
    let (tally, refusal, _) = track(&body, 1, &Filter::default(), &[(0, nothing), (5, checked)]);
    assert_eq!(refusal, None);
    assert_eq!(counts(&tally), [("instructions", 4), ("stores", 1), ("bytes_stored", 8)]);
}

#[test]
fn a_loop_without_end_is_refused() {
    let (emitted, code) = emitted(&[0xeb, 0xfe], 1);
    let filter = Filter::default();
    let qualifier = Qualifier::new(&filter, POINTERS).unwrap();
    let mut tracker = Tracker::new(&emitted, &code, &qualifier, LIMIT);
    let mut frame = TrapFrame { rip: emitted.body.start, ..TrapFrame::default() };
    let mut steps = 0u64;
    while tracker.trap(&mut frame, &mut Made::default()) == Next::Step {
        steps += 1;
    }
    assert_eq!((steps + 1, tracker.steps()), (LIMIT, LIMIT));
    assert_eq!(tracker.refusal, Some(Refusal::TooLong(LIMIT)));
}
