//! The emitted code runs on the host as it does on the target: it is an ordinary function.

use super::*;
use arch::msr::Msr;
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind};
use proptest::prelude::*;
use protocol::control::Ring;
use protocol::job::{Difference, Setup};
use protocol::marker::{PAUSE, RESUME};
use protocol::program::Call;
use std::borrow::Cow;

const CODE_BYTES: usize = 1 << 20;
const AREA_BYTES: usize = 1 << 16;

/// Memory for data, code and one area, and the code emitted into it.
struct Host {
    base: *mut u8,
    place: Place,
}

impl Host {
    fn new() -> Self {
        let bytes = 4096 + CODE_BYTES + AREA_BYTES;
        let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: requests fresh memory at any address.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                rights,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let at = base as u64;
        let middle = at + 4096 + (CODE_BYTES + AREA_BYTES / 2) as u64;
        let place = Place { code: at + 4096, data: at, pointers: [middle; 5] };
        Self { base: base.cast(), place }
    }

    fn emit(&mut self, snippet: &Snippet, copies: u64) -> Emitted {
        // SAFETY: the code part of the mapping, which nobody else uses.
        let memory =
            unsafe { core::slice::from_raw_parts_mut(self.place.code as *mut u8, CODE_BYTES) };
        emit(memory, &self.place, snippet, copies, &Gate::EMPTY)
    }

    fn run(&mut self, emitted: &Emitted) -> Data {
        // SAFETY: emitted code is such a function, and the snippets of these tests are harmless.
        unsafe {
            let function: extern "sysv64" fn() = core::mem::transmute(emitted.function.start);
            function();
            *(self.place.data as *const Data)
        }
    }

    fn word(&self, offset: i64) -> u64 {
        let at = self.place.pointers[4].wrapping_add_signed(offset);
        // SAFETY: within the area.
        unsafe { (at as *const u64).read() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), 4096 + CODE_BYTES + AREA_BYTES) };
    }
}

fn snippet(
    init: &[u8],
    body: &[u8],
    loop_count: u64,
    loop_counter: LoopCounter,
) -> Snippet<'static> {
    Snippet {
        name: Cow::Borrowed("test"),
        init: Cow::Owned(init.to_vec()),
        body: Cow::Owned(body.to_vec()),
        unroll: 1,
        loop_count,
        loop_counter,
        extended_state: false,
        warmup: 0,
        runs: 1,
        difference: Difference::Double,
        values: false,
        events: vec![],
        setup: Setup::default(),
    }
}

/// inc qword ptr [r14]
const COUNT_UP: [u8; 3] = [0x49, 0xff, 0x06];

#[test]
fn the_body_runs_unroll_times_loop_times() {
    for (copies, loop_count, expected) in [(1, 0, 1), (7, 0, 7), (0, 0, 0), (3, 5, 15), (0, 4, 0)] {
        for counter in [LoopCounter::R15, LoopCounter::Memory] {
            let mut host = Host::new();
            let emitted = host.emit(&snippet(&[], &COUNT_UP, loop_count, counter), copies);
            let data = host.run(&emitted);
            assert_eq!(host.word(0), expected, "{copies} copies, loop {loop_count}, {counter:?}");
            assert!(data.stop > data.start && data.start > 0);
        }
    }
}

#[test]
fn registers_start_as_documented_and_init_runs_first() {
    let mut host = Host::new();
    // init: mov ecx, 5. body: add [r14], rcx; mov [r14+8], rdi; mov [r14+16], rsp; mov [r14+24], rbx
    let body =
        [0x49, 0x01, 0x0e, 0x49, 0x89, 0x7e, 0x08, 0x49, 0x89, 0x66, 0x10, 0x49, 0x89, 0x5e, 0x18];
    let emitted = host.emit(&snippet(&[0xb9, 5, 0, 0, 0], &body, 0, LoopCounter::R15), 2);
    host.run(&emitted);
    assert_eq!(host.word(0), 10);
    assert_eq!([host.word(8), host.word(16)], [host.place.pointers[2], host.place.pointers[0]]);
    assert_eq!(host.word(24), 0);
}

#[test]
fn a_body_may_destroy_every_register() {
    let mut host = Host::new();
    // mov r64, -1 for all sixteen, std: the loop's count is in memory.
    let mut body = vec![];
    for register in 0..16u8 {
        body.extend([0x48 | register >> 3, 0xc7, 0xc0 | register & 7, 0xff, 0xff, 0xff, 0xff]);
    }
    body.push(0xfd);
    let emitted = host.emit(&snippet(&[], &body, 3, LoopCounter::Memory), 4);
    // Coming back alive, with this function's own values intact, is the test.
    let kept = core::hint::black_box([1u64, 2, 3, 4, 5, 6]);
    host.run(&emitted);
    assert_eq!(kept, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_flags_of_init_reach_the_body() {
    let mut host = Host::new();
    // init: stc. body: adc qword ptr [r14], 0
    let emitted = host.emit(&snippet(&[0xf9], &[0x49, 0x83, 0x16, 0x00], 0, LoopCounter::R15), 1);
    host.run(&emitted);
    assert_eq!(host.word(0), 1);
}

#[test]
fn the_listing_is_what_the_module_says() {
    let mut host = Host::new();
    let emitted = host.emit(&snippet(&[], &[0x90; 3], 9, LoopCounter::R15), 2);
    let bytes = (emitted.function.end - emitted.function.start) as usize;
    // SAFETY: the emitted bytes.
    let code = unsafe { core::slice::from_raw_parts(emitted.function.start as *const u8, bytes) };
    let mut decoder = Decoder::with_ip(64, code, emitted.function.start, DecoderOptions::NONE);
    let (mut formatter, mut names) = (IntelFormatter::new(), vec![]);
    for instruction in &mut decoder {
        assert!(!instruction.is_invalid());
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        names.push(text.split(' ').next().unwrap().to_string());
        if instruction.ip() == emitted.body.end {
            assert_eq!(text, "dec r15");
        }
    }
    let text = names.join(" ");
    assert!(text.contains("mov mov lfence rdtsc mov mov mov mov lfence nop nop nop nop nop nop dec jne lfence rdtsc"), "{text}");
    assert_eq!(emitted.body.start % ALIGN, 0);
    assert!(text.ends_with("cld popfq pop pop pop pop pop pop ret"));
}

#[test]
fn a_gate_opens_before_the_body_and_closes_behind_it() {
    let mut memory = vec![0; 1 << 16];
    let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
    let gate = Gate::EMPTY.with(Msr(0x38f), 0x7_0000_000f, 0).with(Msr(0x186), 1, 2);
    let body = [0x48, 0xff, 0xc0];
    let emitted = emit(&mut memory, &place, &snippet(&[], &body, 0, LoopCounter::R15), 2, &gate);
    assert_eq!(emitted.body.start % ALIGN, 0);
    let bytes = (emitted.function.end - emitted.function.start) as usize;
    let mut decoder = Decoder::with_ip(64, &memory[..bytes], place.code, DecoderOptions::NONE);
    let (mut formatter, mut lines) = (IntelFormatter::new(), vec![]);
    for instruction in &mut decoder {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        lines.push(text);
    }
    let at = lines.iter().position(|line| line == "inc rax").unwrap();
    let opening = ["mov ecx,38Fh", "mov eax,0Fh", "mov edx,7", "wrmsr", "mov ecx,186h"];
    let opens = lines[..at].windows(5).position(|five| five == opening).unwrap();
    let closing = ["inc rax", "mov ecx,38Fh", "mov eax,0", "mov edx,0", "wrmsr"];
    assert_eq!(lines[at + 1..at + 6], closing);
    // The TSC is read before the gate opens and after it has closed.
    let reads: Vec<_> = (0..lines.len()).filter(|&n| lines[n] == "rdtsc").collect();
    assert!(reads[0] < opens && reads[1] > at + 9, "{lines:#?}");
}

/// The address of the body, and the instructions up to its end.
fn listing(snippet: &Snippet, gate: &Gate) -> (u64, Vec<iced_x86::Instruction>) {
    let mut memory = vec![0; 1 << 16];
    let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
    let emitted = emit(&mut memory, &place, snippet, 1, gate);
    let bytes = (emitted.body.end - emitted.function.start) as usize;
    let decoder = Decoder::with_ip(64, &memory[..bytes], place.code, DecoderOptions::NONE);
    (emitted.body.start, decoder.into_iter().collect())
}

#[test]
fn n1_no_memory_mode_touches_none_between_init_and_the_end_of_the_body() {
    let gate = Gate::EMPTY.with(Msr(0x38f), 15, 0);
    for no_memory in [true, false] {
        let mut snippet = snippet(&[0xf9], &[0x48, 0xff, 0xc0], 0, LoopCounter::R15);
        snippet.setup.no_memory = no_memory;
        let (_, code) = listing(&snippet, &gate);
        let init = code.iter().position(|one| one.mnemonic() == iced_x86::Mnemonic::Stc).unwrap();
        let touches = code[init..]
            .iter()
            .any(|one| one.op_kinds().any(|kind| kind == iced_x86::OpKind::Memory));
        assert_eq!(touches, !no_memory);
    }
}

#[test]
fn n1_no_memory_mode_keeps_registers_flags_and_the_tsc() {
    let mut host = Host::new();
    // init: mov eax, 1; mov edx, 2; mov ecx, 3; stc. body: adc eax, edx; adc eax, ecx; mov [r14], rax
    let init = [0xb8, 1, 0, 0, 0, 0xba, 2, 0, 0, 0, 0xb9, 3, 0, 0, 0, 0xf9];
    let body = [0x11, 0xd0, 0x11, 0xc8, 0x49, 0x89, 0x06];
    let mut snippet = snippet(&init, &body, 0, LoopCounter::R15);
    snippet.setup.no_memory = true;
    let emitted = host.emit(&snippet, 1);
    let data = host.run(&emitted);
    assert_eq!(host.word(0), 7);
    assert!(data.start > 0 && data.stop > data.start && data.stop - data.start < 1 << 40);
}

#[test]
fn n1_late_init_and_the_drain_stand_directly_before_the_body() {
    let mut snippet = snippet(&[], &[0x48, 0xff, 0xc0], 0, LoopCounter::R15);
    snippet.setup.late_init = Cow::Borrowed(&[0xf9]);
    snippet.setup.drain_frontend = true;
    let (body, code) = listing(&snippet, &Gate::EMPTY.with(Msr(0x38f), 15, 0));
    assert_eq!(body % ALIGN, 0);
    let names: Vec<_> = code.iter().map(iced_x86::Instruction::mnemonic).collect();
    let before = &names[..names.len() - 1];
    use iced_x86::Mnemonic::{Lfence, Nop, Stc};
    let (rest, nops) = before.split_at(before.len() - DRAIN_NOPS);
    assert!(nops.iter().all(|&name| name == Nop));
    assert_eq!(rest[rest.len() - 3..], [Lfence, Stc, Lfence]);
}

#[test]
fn n5_for_ring_3_gate_and_timer_lie_between_the_two_stays() {
    use iced_x86::Mnemonic::{Int, Iretq, Rdtsc, Stc, Wrmsr};
    let mut snippet = snippet(&[0xf9], &[0x48, 0xff, 0xc0], 0, LoopCounter::R15);
    snippet.setup.control.ring = Ring::User;
    let mut memory = vec![0; 1 << 16];
    let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
    let gate = Gate::EMPTY.with(Msr(0x38f), 15, 0);
    let emitted = emit(&mut memory, &place, &snippet, 2, &gate);
    assert_eq!(emitted.body.start % ALIGN, 0);
    let bytes = (emitted.exit - emitted.function.start) as usize;
    let code: Vec<_> = Decoder::with_ip(64, &memory[..bytes], place.code, DecoderOptions::NONE)
        .into_iter()
        .collect();
    let marked = code.iter().filter(|one| {
        matches!(one.mnemonic(), Iretq | Int | Rdtsc | Wrmsr | Stc)
            || one.ip() == emitted.body.start
    });
    let order: Vec<_> = marked.map(iced_x86::Instruction::mnemonic).collect();
    let inc = iced_x86::Mnemonic::Inc;
    assert_eq!(order, [Iretq, Stc, Int, Rdtsc, Wrmsr, Iretq, inc, Int, Wrmsr, Rdtsc]);
    // Each stay is left to the instruction after its INT, and the second one begins where its frame says.
    let landings =
        code.iter().filter(|one| one.mnemonic() == Int).map(iced_x86::Instruction::next_ip);
    assert_eq!(landings.collect::<Vec<_>>(), emitted.landings.unwrap()[..2]);
    // Without teardown code its vector leads where that of the body does.
    assert_eq!(emitted.landings.unwrap()[1], emitted.landings.unwrap()[2]);
    let constants = code.iter().filter(|one| one.op1_kind() == iced_x86::OpKind::Immediate64);
    let constants: Vec<u64> = constants.map(iced_x86::Instruction::immediate64).collect();
    for address in [emitted.init.start, emitted.body.start] {
        assert!(constants.contains(&address), "{address:#x}");
    }
}

/// A snippet that calls code at `function`, with teardown code.
fn calling(function: u64, teardown: &[u8]) -> Snippet<'static> {
    let call = Call { program: 0, function, teardown: Cow::Owned(teardown.to_vec()) };
    let mut snippet = snippet(&[0xb9, 5, 0, 0, 0], &[], 0, LoopCounter::R15);
    snippet.setup.call = Some(call);
    snippet
}

#[test]
fn a_function_is_called_once_or_not_and_both_code_sizes_are_alike() {
    let mut host = Host::new();
    // The function: add [r14], rcx; ret. The teardown code: inc qword ptr [r14 + 8].
    let function = host.place.code + CODE_BYTES as u64 - 64;
    for (at, byte) in (function..).zip([0x49, 0x01, 0x0e, 0xc3]) {
        // SAFETY: after everything that is emitted here.
        unsafe { (at as *mut u8).write(byte) };
    }
    let snippet = calling(function, &[0x49, 0xff, 0x46, 0x08]);
    let mut sizes = Vec::new();
    for (copies, sum, torn_down) in [(0, 0, 1), (1, 5, 2), (0, 5, 3)] {
        let emitted = host.emit(&snippet, copies);
        host.run(&emitted);
        assert_eq!((host.word(0), host.word(8)), (sum, torn_down), "{copies}");
        assert_eq!(emitted.teardown.end - emitted.teardown.start, 4);
        assert_eq!((emitted.body.end - emitted.body.start, emitted.copy_bytes), (5, 5));
        sizes.push(emitted);
    }
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn n5_teardown_code_of_ring_3_has_a_stay_of_its_own_behind_the_timer() {
    use iced_x86::Mnemonic::{Call, Int, Iretq, Rdtsc, Stc};
    let mut snippet = calling(0x1000_0000, &[0xf9]);
    snippet.setup.control.ring = Ring::User;
    let mut memory = vec![0; 1 << 16];
    let place = Place { code: 0x4020_0000, data: 0x4000_0000, pointers: [0x5678; 5] };
    let emitted = emit(&mut memory, &place, &snippet, 1, &Gate::EMPTY);
    let bytes = (emitted.exit - emitted.function.start) as usize;
    let code: Vec<_> = Decoder::with_ip(64, &memory[..bytes], place.code, DecoderOptions::NONE)
        .into_iter()
        .collect();
    let marks = [Iretq, Int, Rdtsc, Stc, Call];
    let order: Vec<_> =
        code.iter().map(Instruction::mnemonic).filter(|name| marks.contains(name)).collect();
    assert_eq!(order, [Iretq, Int, Rdtsc, Iretq, Call, Int, Rdtsc, Iretq, Stc, Int]);
    let landings = code.iter().filter(|one| one.mnemonic() == Int).map(Instruction::next_ip);
    assert_eq!(landings.collect::<Vec<_>>(), emitted.landings.unwrap());
    let call = code.iter().find(|one| one.mnemonic() == Call).unwrap();
    assert_eq!((call.ip(), call.near_branch64()), (emitted.body.start, 0x1000_0000));
}

/// Decodes each piece as what it will be executed as.
fn pieces(memory: &[u8], place: &Place, emitted: &Emitted) -> Vec<(u64, Mnemonic, Instruction)> {
    let mut found = Vec::new();
    let (mut at, mut bits) = (place.code, 64);
    while at < emitted.function.end {
        let code = &memory[(at - place.code) as usize..];
        let one = Decoder::with_ip(bits, code, at, DecoderOptions::NONE).decode();
        found.push((u64::from(bits), one.mnemonic(), one));
        at = one.next_ip();
        bits = match one.mnemonic() {
            Mnemonic::Iretq => 32,
            Mnemonic::Jmp if one.is_jmp_far() || one.is_jmp_far_indirect() => 96 - bits,
            Mnemonic::Int => 64,
            _ => bits,
        };
    }
    found
}

#[test]
fn t6_32_bit_parts_lie_between_two_switches_each_and_everything_else_is_64_bit_code() {
    use Mnemonic::{Dec, Inc, Int, Iretq, Jmp, Rdtsc, Stc, Wrmsr};
    // stc; inc eax, which is a REX prefix in 64-bit code.
    let mut snippet = snippet(&[0xf9], &[0x40], 7, LoopCounter::Memory);
    snippet.setup.bits = Bits::Compatibility;
    let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [1, 2, 3, 4, 0x5678] };
    let gate = Gate::EMPTY.with(Msr(0x38f), 15, 0);
    for (ring, [enter, leave]) in [(Ring::Kernel, [Jmp, Jmp]), (Ring::User, [Iretq, Int])] {
        snippet.setup.control.ring = ring;
        let mut memory = vec![0; 1 << 16];
        let emitted = emit(&mut memory, &place, &snippet, 2, &gate);
        assert_eq!(emitted.body.start % ALIGN, 0);
        let code = pieces(&memory, &place, &emitted);
        let marked = code.iter().filter(|(_, name, one)| {
            [Rdtsc, Wrmsr, Stc, Inc, Dec, Iretq, Int].contains(name)
                || one.is_jmp_far()
                || one.is_jmp_far_indirect()
        });
        let order: Vec<_> = marked.map(|&(bits, name, _)| (bits, name)).collect();
        let expected = [
            (64, enter),
            (32, Stc),
            (32, leave),
            (64, Rdtsc),
            (64, Wrmsr),
            (64, enter),
            (32, Inc),
            (32, Inc),
            (32, Dec),
            (32, leave),
            (64, Wrmsr),
            (64, Rdtsc),
        ];
        assert_eq!(order, expected, "{ring:?}");
        let compatibility = |begin: u64| match ring {
            Ring::Kernel => begin | 0x40 << 32,
            Ring::User => begin,
        };
        let constants: Vec<u64> = code
            .iter()
            .filter(|(.., one)| one.op1_kind() == OpKind::Immediate64)
            .map(|(.., one)| one.immediate64())
            .collect();
        for begin in [emitted.init.start, emitted.body.start] {
            assert!(constants.contains(&compatibility(begin)), "{ring:?}: {begin:#x}");
        }
        // EBX stands for R14.
        assert_eq!(constants.iter().filter(|&&value| value == 0x5678).count(), 2);
        // Each way out of ring 0's 32-bit code leads after itself, into the 64-bit segment.
        for (.., one) in code.iter().filter(|(.., one)| one.is_jmp_far()) {
            assert_eq!(
                (one.far_branch_selector(), u64::from(one.far_branch32())),
                (8, one.next_ip())
            );
        }
        assert_eq!(emitted.landings.is_some(), ring == Ring::User);
        let down = code.iter().find(|(_, name, _)| *name == Dec).unwrap().2;
        assert_eq!(down.memory_displacement64(), place.data + COUNT_AT as u64);
        assert_eq!(down.memory_size().size(), 4);
        let back = code.iter().find(|(_, name, _)| *name == Mnemonic::Jne).unwrap();
        assert_eq!((back.0, back.2.near_branch_target()), (32, emitted.body.start));
    }
}

#[test]
fn n1_a_marker_jumps_to_the_gate_and_back_and_without_a_gate_stays_a_nop() {
    let body = [&[0x90][..], &PAUSE, &[0xf9], &RESUME].concat();
    let mut snippet = snippet(&[], &body, 0, LoopCounter::R15);
    snippet.setup.alignment_offset = 3;
    for gate in [Gate::EMPTY, Gate::EMPTY.with(Msr(0x38f), 15, 1)] {
        let mut memory = vec![0; 1 << 16];
        let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
        let emitted = emit(&mut memory, &place, &snippet, 3, &gate);
        let decode = |from: u64, to: u64| {
            let bytes = &memory[(from - place.code) as usize..(to - place.code) as usize];
            Decoder::with_ip(64, bytes, from, DecoderOptions::NONE).into_iter().collect::<Vec<_>>()
        };
        let code = decode(emitted.body.start, emitted.body.end);
        let jumps: Vec<_> = code.iter().filter(|one| one.is_jmp_short_or_near()).collect();
        if gate.on().is_empty() {
            assert_eq!((jumps.len(), code.len()), (0, 3 * 4));
            continue;
        }
        assert_eq!(jumps.len(), 6);
        for jump in jumps {
            let target = jump.near_branch_target();
            assert!((emitted.exit..emitted.function.end).contains(&target));
            let stub = decode(target, emitted.function.end);
            let back = stub.iter().find(|one| one.is_jmp_short_or_near()).unwrap();
            assert_eq!(back.near_branch_target(), jump.ip() + 8);
        }
    }
}

/// The code of a marker in its longest form, with as many writes as a gate can have, has the room that limits reckon with.
#[test]
fn n1_the_longest_code_of_a_marker_fits_where_limits_say() {
    let values = (u64::MAX - 1, u64::MAX - 2);
    let gate = (0..arch::pmu::driver::MAX_WRITES as u32)
        .fold(Gate::EMPTY, |gate, n| gate.with(Msr(0x186 + n), values.0, values.1));
    let longest = [PAUSE, RESUME].map(|marker| {
        let snippet = snippet(&[], &marker, 0, LoopCounter::R15);
        let mut memory = vec![0; 1 << 16];
        let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
        let emitted = emit(&mut memory, &place, &snippet, 1, &gate);
        let begin = emitted.body.start;
        let bytes = &memory[(begin - place.code) as usize..];
        let jump = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE).into_iter().next();
        emitted.function.end - jump.unwrap().near_branch_target()
    });
    let most = longest.into_iter().max().unwrap();
    assert_eq!(most, protocol::marker::STUB_BYTES, "{longest:?}");
}

proptest! {
    #[test]
    fn n1_the_body_starts_at_its_offset(offset in 0u8..64, late in 0usize..100, no_memory: bool, drain: bool) {
        let mut snippet = snippet(&[], &[0x90], 0, LoopCounter::R15);
        snippet.setup.alignment_offset = offset;
        snippet.setup.late_init = Cow::Owned(vec![0x90; late]);
        (snippet.setup.no_memory, snippet.setup.drain_frontend) = (no_memory, drain);
        let mut host = Host::new();
        let emitted = host.emit(&snippet, 3);
        prop_assert_eq!(emitted.body.start % ALIGN, u64::from(offset));
        prop_assert_eq!(emitted.late_init.end - emitted.late_init.start, late as u64);
        host.run(&emitted);
    }

    #[test]
    fn any_init_keeps_the_body_aligned_and_the_function_decodable(init in 0usize..200, body in 0usize..50, copies in 0u64..100) {
        let mut host = Host::new();
        let emitted = host.emit(&snippet(&vec![0x90; init], &vec![0x90; body], 0, LoopCounter::R15), copies);
        prop_assert_eq!(emitted.body.start % ALIGN, 0);
        prop_assert_eq!(emitted.body.end - emitted.body.start, body as u64 * copies);
        host.run(&emitted);
    }
}
