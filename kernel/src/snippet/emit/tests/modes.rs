//! Ring 3 and 32-bit code.

use super::*;
use iced_x86::{Instruction, Mnemonic, OpKind};
use protocol::job::control::Ring;

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
