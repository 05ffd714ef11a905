//! No-memory mode, late init and the drain.

use super::host::Host;
use super::*;

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
