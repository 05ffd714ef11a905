use super::*;
use iced_x86::InstructionInfoFactory;
use pmu_model::uarch::AccessKind;
use pmu_model::{BranchKind, Ring};
use proptest::prelude::*;

const RIP: u64 = 0x1000;

fn at(bytes: &[u8]) -> Instruction {
    decode(bytes, RIP, 64).unwrap()
}

#[test]
fn special_instructions_are_told_apart() {
    for (bytes, expected) in [
        (&[0x90][..], Kind::Plain),
        (&[0x9c], Kind::PushFlags),
        (&[0x9d], Kind::PopFlags),
        (&[0x48, 0xcf], Kind::InterruptReturn),
        (&[0xcd, 0x80], Kind::SoftwareInterrupt(0x80)),
        (&[0xcc], Kind::SoftwareInterrupt(3)),
        (&[0x0f, 0x05], Kind::SystemCall),
        (&[0x48, 0x0f, 0x07], Kind::SystemReturn(true)),
        (&[0x0f, 0x34], Kind::SystemCall),
        (&[0x0f, 0x35], Kind::SystemReturn(false)),
        (&[0x48, 0x0f, 0x35], Kind::SystemReturn(true)),
        (&[0xfb], Kind::Shadow),
        (&[0x8e, 0xd0], Kind::Shadow),
        (&[0x8e, 0xd8], Kind::Plain),
        // PAUSE has the prefix too, and so have scalar SSE instructions.
        (&[0xf3, 0x90], Kind::Plain),
        (&[0xf3, 0x0f, 0x58, 0xc1], Kind::Plain),
        (&[0xa4], Kind::Plain),
    ] {
        assert_eq!(kind(&at(bytes)), expected, "{bytes:x?}");
    }
    let Kind::Repeated(operation) = kind(&at(&[0xf3, 0x48, 0xa5])) else { panic!() };
    assert_eq!((operation.element_bytes, operation.source), (8, true));
    assert_eq!(operation.destination, Some(AccessKind::Store));
}

proptest! {
    #[test]
    fn what_looks_plain_is_plain(bytes in prop::collection::vec(any::<u8>(), 15), bits in prop::sample::select(&[16u32, 32, 64][..])) {
        if is_plain(&bytes) && let Some(instruction) = decode(&bytes, RIP, bits) {
            prop_assert_eq!(kind(&instruction), Kind::Plain, "{:x?}", bytes);
        }
    }
}

fn branch_at(bytes: &[u8], rip: u64) -> Option<pmu_model::Branch> {
    branch(&at(bytes), &Behind { rip, ..Behind::default() }, Ring::User)
}

#[test]
fn branches_have_kind_target_and_direction() {
    let kind_of = |bytes: &[u8]| branch_at(bytes, 0x2000).map(|branch| branch.kind);
    for (bytes, expected) in [
        (&[0x75, 0x10][..], BranchKind::Conditional),
        (&[0xe2, 0x10], BranchKind::Conditional),
        (&[0xe3, 0x10], BranchKind::Conditional),
        (&[0xeb, 0x10], BranchKind::RelativeJump),
        (&[0xe8, 0, 0, 0, 0], BranchKind::RelativeCall),
        (&[0xff, 0xd0], BranchKind::IndirectCall),
        (&[0xff, 0xe0], BranchKind::IndirectJump),
        (&[0xc3], BranchKind::Return),
        (&[0xc2, 8, 0], BranchKind::Return),
        (&[0xcb], BranchKind::Far),
        (&[0x48, 0xcf], BranchKind::Far),
        (&[0xcd, 0x80], BranchKind::Far),
        (&[0x0f, 0x05], BranchKind::Far),
        (&[0x0f, 0x07], BranchKind::Far),
    ] {
        assert_eq!(kind_of(bytes), Some(expected), "{bytes:x?}");
    }
    assert_eq!(kind_of(&[0x90]), None);
    assert_eq!(kind_of(&[0x0f, 0x0b]), None);
    let taken = branch_at(&[0x75, 0x10], 0x1012).unwrap();
    assert_eq!((taken.taken, taken.to, taken.from), (true, 0x1012, RIP));
    let fell_through = branch_at(&[0x75, 0x10], 0x1002).unwrap();
    assert_eq!((fell_through.taken, fell_through.to), (false, 0x1012));
    // To the next instruction: the flags tell.
    let zero = Behind { rip: 0x1002, rflags: 1 << 6, rcx: 0 };
    let [taken, fell_through] =
        [&[0x74, 0][..], &[0x75, 0]].map(|bytes| branch(&at(bytes), &zero, Ring::User).unwrap());
    assert_eq!((taken.taken, taken.to), (true, 0x1002));
    assert_eq!((fell_through.taken, fell_through.to), (false, 0x1002));
}

fn touched(bytes: &[u8]) -> Vec<(u64, u32, AccessKind, bool)> {
    let mut found = vec![];
    let register = |name| match name {
        Register::RSP => 0x8000,
        Register::RAX => 0x100,
        Register::RCX => 0x10,
        Register::FS => 0x7000_0000,
        _ => 0,
    };
    accesses(&mut InstructionInfoFactory::new(), &at(bytes), register, |touch| {
        found.push((touch.linear, touch.bytes, touch.kind, touch.locked));
    });
    found
}

#[test]
fn accesses_have_address_size_and_direction() {
    use AccessKind::{Load, LoadStore, Store};
    // mov rbx, [rax + rcx*4 + 8]; mov [rax], ecx; add [rax], cl; lock inc; push rax; pop rax
    assert_eq!(touched(&[0x48, 0x8b, 0x5c, 0x88, 0x08]), [(0x148, 8, Load, false)]);
    assert_eq!(touched(&[0x89, 0x08]), [(0x100, 4, Store, false)]);
    assert_eq!(touched(&[0x00, 0x08]), [(0x100, 1, LoadStore, false)]);
    assert_eq!(touched(&[0xf0, 0x48, 0xff, 0x00]), [(0x100, 8, LoadStore, true)]);
    assert_eq!(touched(&[0x50]), [(0x7ff8, 8, Store, false)]);
    assert_eq!(touched(&[0x58]), [(0x8000, 8, Load, false)]);
    // mov rax, fs:[0]; lea; nop with an operand; call: pushes; ret: pops.
    assert_eq!(
        touched(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0]),
        [(0x7000_0000, 8, Load, false)]
    );
    assert_eq!(touched(&[0x48, 0x8d, 0x00]), []);
    assert_eq!(touched(&[0x0f, 0x1f, 0x00]), []);
    assert_eq!(touched(&[0xe8, 0, 0, 0, 0]), [(0x7ff8, 8, Store, false)]);
    assert_eq!(touched(&[0xc3]), [(0x8000, 8, Load, false)]);
}

#[test]
fn t6_32_bit_code_has_stack_and_addresses_of_32_bits_and_16_bit_ones_by_prefix() {
    use AccessKind::{Load, Store};
    let touched = |bytes: &[u8]| {
        let mut found = vec![];
        let register = |name| match name {
            Register::ESP => 0x8000,
            Register::EAX => 0xffff_fff0,
            Register::ESI => 0x20,
            Register::BX => 0xfff0,
            Register::SI => 0x20,
            Register::FS => 0xffff_f000,
            _ => 0,
        };
        let instruction = decode(bytes, RIP, 32).unwrap();
        accesses(&mut InstructionInfoFactory::new(), &instruction, register, |touch| {
            found.push((touch.linear, touch.bytes, touch.kind));
        });
        found
    };
    // push eax; pop eax; mov edx, [eax + esi]; mov edx, [bx + si]; mov edx, fs:[0x2000]; call; les eax, [esi]
    assert_eq!(touched(&[0x50]), [(0x7ffc, 4, Store)]);
    assert_eq!(touched(&[0x58]), [(0x8000, 4, Load)]);
    assert_eq!(touched(&[0x8b, 0x14, 0x30]), [(0x10, 4, Load)]);
    assert_eq!(touched(&[0x67, 0x8b, 0x10]), [(0x10, 4, Load)]);
    assert_eq!(touched(&[0x64, 0x8b, 0x15, 0, 0x20, 0, 0]), [(0x1000, 4, Load)]);
    assert_eq!(touched(&[0xe8, 0, 0, 0, 0]), [(0x7ffc, 4, Store)]);
    assert_eq!(touched(&[0xc4, 0x06]), [(0x20, 6, Load)]);
}

#[test]
fn t6_repeated_string_instructions_count_in_as_many_bits_as_their_addresses_have() {
    for (bits, bytes, mask) in [
        (64, &[0xf3, 0xa4][..], u64::MAX),
        (64, &[0x67, 0xf3, 0xa4], 0xffff_ffff),
        (32, &[0xf3, 0xa4], 0xffff_ffff),
        (32, &[0x67, 0xf3, 0xa4], 0xffff),
        (32, &[0x67, 0xf3, 0xab], 0xffff),
        (32, &[0x67, 0xf3, 0xac], 0xffff),
    ] {
        let instruction = decode(bytes, RIP, bits).unwrap();
        assert!(matches!(kind(&instruction), Kind::Repeated(_)), "{bytes:x?}");
        assert_eq!(StringOperation::count_mask(&instruction), mask, "{bits}: {bytes:x?}");
    }
}

#[test]
fn t6_far_branches_of_32_bit_code_are_far() {
    for bytes in [
        // jmp 8:0; jmp far [esi]; call 8:0; retf; int 0x82; iretd
        &[0xea, 0, 0, 0, 0, 8, 0][..],
        &[0xff, 0x2e],
        &[0x9a, 0, 0, 0, 0, 8, 0],
        &[0xcb],
        &[0xcd, 0x82],
        &[0xcf],
    ] {
        let found = branch(
            &decode(bytes, RIP, 32).unwrap(),
            &Behind { rip: 0x2000, ..Behind::default() },
            Ring::User,
        );
        assert_eq!(found.map(|branch| branch.kind), Some(BranchKind::Far), "{bytes:x?}");
    }
}

#[test]
fn maintenance_is_recognised() {
    assert_eq!(
        maintenance(&at(&[0x0f, 0xae, 0x38])),
        Some(Maintenance::FlushLine { evicts: true })
    );
    assert_eq!(maintenance(&at(&[0x0f, 0x01, 0x38])), Some(Maintenance::FlushPage));
    assert_eq!(maintenance(&at(&[0x0f, 0x09])), Some(Maintenance::FlushCaches));
    assert_eq!(maintenance(&at(&[0x0f, 0x22, 0xd8])), Some(Maintenance::FlushTranslations));
    assert_eq!(maintenance(&at(&[0x0f, 0xae, 0xe8])), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..16), rip: u64) {
        if let Some(instruction) = decode(&bytes, rip, 64) {
            let _ = (kind(&instruction), maintenance(&instruction), branch(&instruction, &Behind { rip, ..Behind::default() }, Ring::User));
            accesses(&mut InstructionInfoFactory::new(), &instruction, |_| rip, |_| ());
        }
    }
}

#[test]
fn bit_tests_by_a_register_reach_as_far_as_it_says() {
    let place = |bytes: &[u8], value: u64| {
        let register = |name: Register| match name.full_register() {
            Register::RAX => value,
            Register::RDI => 0x5000,
            _ => 0,
        };
        let mut linear = 0;
        accesses(&mut InstructionInfoFactory::new(), &at(bytes), register, |touch| {
            linear = touch.linear;
        });
        linear
    };
    // BTS [RDI], EAX and RAX; BT [RDI], AX.
    assert_eq!(place(&[0x0f, 0xab, 0x07], 100), 0x500c);
    assert_eq!(place(&[0x48, 0x0f, 0xab, 0x07], 100), 0x5008);
    assert_eq!(place(&[0x0f, 0xab, 0x07], 0xffff_ffff), 0x4ffc, "bit -1");
    assert_eq!(place(&[0x66, 0x0f, 0xa3, 0x07], 0x8000), 0x5000 - 4096);
    // BTS [RDI], 37.
    assert_eq!(place(&[0x0f, 0xba, 0x2f, 37], 0), 0x5000);
}

#[test]
fn d1_stores_with_a_non_temporal_hint_are_told_apart() {
    let hints = |bytes: &[u8]| {
        let mut found = Vec::new();
        accesses(
            &mut InstructionInfoFactory::new(),
            &at(bytes),
            |_| 0x100,
            |touch| {
                found.push((touch.kind, touch.non_temporal));
            },
        );
        found
    };
    // movnti [rsi], rax; movntdq [rsi], xmm0; vmovntdq [rsi], ymm0; vmovntps [rsi], zmm0
    let stores: [&[u8]; 4] = [
        &[0x48, 0x0f, 0xc3, 0x06],
        &[0x66, 0x0f, 0xe7, 0x06],
        &[0xc5, 0xfd, 0xe7, 0x06],
        &[0x62, 0xf1, 0x7c, 0x48, 0x2b, 0x06],
    ];
    for store in stores {
        assert_eq!(hints(store), [(AccessKind::Store, true)], "{store:x?}");
    }
    // movdqa [rsi], xmm0; movntdqa xmm0, [rsi], which loads
    assert_eq!(hints(&[0x66, 0x0f, 0x7f, 0x06]), [(AccessKind::Store, false)]);
    assert_eq!(hints(&[0x66, 0x0f, 0x38, 0x2a, 0x06]), [(AccessKind::Load, false)]);
}
