//! Vector registers in samples of architectural PEBS, beyond XMM.

use pmu_model::Model;
use protocol::job::sampling::VectorRegisters;
use protocol::record::{SampleResult, Samples};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

/// The one item's result: every record is a sample.
fn sampled(ran: &Ran) -> &SampleResult {
    ran.ends_with(0);
    let result = ran.report.sampled().next().expect("an item");
    let one = &result.events[0];
    assert_eq!((one.samples, one.dropped), (one.overflows, 0), "{one:?}");
    result
}

/// The words of one list of every chunk, those of a sample in a row.
fn words<'a>(chunks: &'a [&Samples], kind: VectorRegisters) -> impl Iterator<Item = u64> + 'a {
    chunks.iter().flat_map(move |chunk| chunk.vectors_of(kind)).map(|word| word.0)
}

/// Whole YMM registers after each instruction of a turn: RAX is its number, and each register follows one instruction later.
#[test]
fn s1_samples_have_the_ymm_registers_of_their_instruction() {
    let ran = on(
        Model::CougarCove,
        "[[sample]]\nprecise = true\nturns = 2000\nvectors = [\"ymm\", \"xmm\"]\nregisters = [\"rax\"]\n\
         init = \"vpxor ymm3, ymm3, ymm3; vpxor ymm4, ymm4, ymm4; vpxor ymm5, ymm5, ymm5; vpcmpeqb ymm15, ymm15, ymm15\"\n\
         asm = \"add rax, 1; vmovq xmm3, rax; vpbroadcastq ymm4, xmm3; vinserti128 ymm5, ymm5, xmm4, 1\"\n\
         events = [\"r00c0:counter=5\"]\nperiod = 67\nkeep = \"samples\"\n",
    );
    let result = sampled(&ran);
    let chunks: Vec<&Samples> = ran.report.samples(0).collect();
    let body = result.code[0].body[0].0;
    let addresses = chunks.iter().flat_map(|chunk| chunk.iter()).map(|one| one.0);
    let turns = chunks.iter().flat_map(|chunk| &chunk.registers).map(|word| word.0);
    let ymm: Vec<u64> = words(&chunks, VectorRegisters::Ymm).collect();
    let xmm: Vec<u64> = words(&chunks, VectorRegisters::Xmm).collect();
    // Where each instruction begins: of 4, 5, 5 and 6 bytes.
    let (mut seen, starts) = ([0; 4], [0, 4, 9, 14]);
    for (((address, rax), ymm), xmm) in addresses.zip(turns).zip(ymm.chunks(64)).zip(xmm.chunks(32))
    {
        for (whole, lower) in ymm.chunks(4).zip(xmm.chunks(2)) {
            assert_eq!(&whole[..2], lower);
        }
        let Some(at) = starts.iter().position(|start| address == body + start) else { continue };
        seen[at] += 1;
        // ADD itself changes no vector register, and each of the others one.
        let of = |instruction: usize| if at >= instruction { rax } else { rax - 1 };
        let register = |n: usize| &ymm[4 * n..4 * n + 4];
        assert_eq!(register(3), [of(1), 0, 0, 0], "{at} {rax}");
        assert_eq!(register(4), [of(2); 4], "{at} {rax}");
        assert_eq!(register(5), [0, 0, of(3), of(3)], "{at} {rax}");
        assert_eq!(register(15), [u64::MAX; 4], "{at} {rax}");
    }
    assert!(seen.iter().all(|&count| count >= 20), "{seen:?}");
}

/// The choice of the emulated PMU: while XCR0 has AVX off, the upper halves are 0 in records, and those of the registers stay.
#[test]
fn s1_upper_halves_are_0_in_records_while_avx_is_off() {
    let ran = on(
        Model::CougarCove,
        "[[sample]]\nprecise = true\nturns = 1000\nvectors = [\"ymm\"]\n\
         init = \"vpcmpeqb ymm7, ymm7, ymm7\"\n\
         asm = \"xor ecx, ecx; xgetbv; and eax, -5; xsetbv; nop; nop; or eax, 4; xsetbv; nop; nop\"\n\
         events = [\"r00c0:counter=5\"]\nperiod = 67\nkeep = \"samples\"\n",
    );
    let result = sampled(&ran);
    let chunks: Vec<&Samples> = ran.report.samples(0).collect();
    let body = result.code[0].body[0].0;
    let ymm: Vec<u64> = words(&chunks, VectorRegisters::Ymm).collect();
    let addresses = chunks.iter().flat_map(|chunk| chunk.iter()).map(|one| one.0);
    let mut seen = [0; 2];
    for (address, ymm) in addresses.zip(ymm.chunks(64)) {
        // XOR 2 bytes, XGETBV 3, AND 3, XSETBV 3, two NOPs, OR 3, XSETBV 3, two NOPs.
        let half = match address.wrapping_sub(body) {
            8..=13 => 0,
            0..=7 | 16..=20 => 1,
            _ => continue,
        };
        seen[half] += 1;
        let upper = if half == 0 { 0 } else { u64::MAX };
        assert_eq!(ymm[28..32], [u64::MAX, u64::MAX, upper, upper], "{:#x}", address - body);
    }
    assert!(seen.iter().all(|&count| count >= 40), "{seen:?}");
}

/// What the processor's leaf does not list is refused by name.
#[test]
fn s1_registers_that_records_do_not_have_are_refused_with_the_nearest() {
    let item = |vectors: &str| {
        format!(
            "[[sample]]\nprecise = true\nasm = \"nop\"\nvectors = [{vectors}]\nkeep = \"samples\"\n\
             events = [\"r00c0\"]\nperiod = 64\n"
        )
    };
    for (model, vectors, parts) in [
        (Model::CougarCove, "\"zmm\"", ["vectors: zmm:", "EBX[22]", "\"ymm\" in vectors"]),
        (Model::CougarCove, "\"opmask\"", ["vectors: opmask:", "EBX[21]", "\"ymm\" in vectors"]),
        (Model::IceLake, "\"ymm\"", ["vectors: ymm:", "format 4", "\"xmm\" in vectors"]),
    ] {
        let ran = on(model, &item(vectors));
        ran.ends_with(1);
        let text = &ran.errors()[0].text;
        assert!(parts.iter().all(|part| text.contains(part)), "{model:?}: {text}");
    }
}
