//! The emitted code runs on the host as it does on the target: it is an ordinary function.

mod host;
mod markers;
mod modes;
mod no_memory;

use super::*;
use arch::msr::Msr;
use host::{CODE_BYTES, Host};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use proptest::prelude::*;
use protocol::job::{Difference, Setup};
use protocol::program::Call;
use std::borrow::Cow;

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
