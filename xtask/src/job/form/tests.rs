//! The generated code, decoded and followed: who waits for whom is found again from the machine code.

use super::compatibility::bits_of;
use super::*;
use crate::job::assemble::{Part, Source, Syntax, assemble};
use crate::job::file::{self, JobFile};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
use proptest::prelude::*;
use protocol::bits::Bits;
use std::collections::{BTreeMap, BTreeSet};

const FORMS: [&str; 66] = [
    "add r64, r64",
    "add r32, imm32",
    "add r8, r8",
    "add r16, r16",
    "adc r64, r64",
    "inc r64",
    "imul r64, r64",
    "imul r32, r32, imm8",
    "mul r64",
    "mul r8",
    "div r32",
    "div r64",
    "idiv r64",
    "shl r64, cl",
    "shl r64, imm8",
    "lea r64, m",
    "mov r64, r64",
    "mov r64, m64",
    "mov r32, m32",
    "mov m64, r64",
    "mov r64, imm64",
    "movzx r32, r8",
    "movzx r32, m8",
    "popcnt r64, r64",
    "bsf r64, r64",
    "cmovc r64, r64",
    "setc r8",
    "cmp r64, r64",
    "test r64, r64",
    "bswap r64",
    "add r64, m64",
    "xchg r64, r64",
    "cmpxchg r64, r64",
    "cdq",
    "addps xmm, xmm",
    "mulsd xmm, xmm",
    "divpd xmm, xmm",
    "sqrtsd xmm, xmm",
    "paddd xmm, xmm",
    "pmulld xmm, xmm",
    "pshufb xmm, xmm",
    "pshufd xmm, xmm, imm8",
    "aesenc xmm, xmm",
    "movups xmm, m128",
    "addps xmm, m128",
    "movq xmm, r64",
    "movq r64, xmm",
    "cvtsi2sd xmm, r64",
    "cvttsd2si r64, xmm",
    "vaddpd ymm, ymm, ymm",
    "vfmadd231ps ymm, ymm, ymm",
    "vpaddd zmm, zmm, zmm",
    "vaddps zmm, zmm, m512",
    "blendvps xmm, xmm, xmm0",
    "paddb mm, mm",
    "vpaddd zmm {k}, zmm, zmm",
    "vpaddd zmm {k}{z}, zmm, m32 {1to16}",
    "vaddps zmm, zmm, zmm, {rn-sae}",
    "vcmpps k {k}, zmm, zmm, {sae}, imm8",
    "vmovups zmm {k}, zmm",
    "vgatherdps ymm, vm32y, ymm",
    "vgatherqps xmm, vm64y, xmm",
    "vpgatherdq zmm {k}, vm32y",
    "kandw k, k, k",
    "kmovw k, r32",
    "rdtsc",
];

/// A register, flags, or memory by base and displacement.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Thing {
    Register(u32),
    Flags,
    Memory(u32, u64),
}

/// Results of the form's instructions that a value comes from: number, and what they wrote.
pub(super) type Origins = BTreeSet<(usize, Thing)>;

/// What one instruction of the form got from others: the thing that brought it, and from where.
pub(super) type Received = Vec<(Thing, Origins)>;

/// Follows `code`; `is_form` says which of its instructions are of the form.
pub(super) fn follow(code: &[u8], bits: Bits, is_form: impl Fn(usize) -> bool) -> Vec<Received> {
    let mut factory = InstructionInfoFactory::new();
    let mut values: BTreeMap<Thing, Origins> = BTreeMap::new();
    let mut received = Vec::new();
    let decoder = Decoder::with_ip(bits.number().into(), code, 0, DecoderOptions::NONE);
    for (index, instruction) in decoder.into_iter().enumerate() {
        let info = factory.info(&instruction);
        let full = |register: Register| register.full_register() as u32;
        let registers = info.used_registers().iter();
        let registers =
            registers.map(|used| (Thing::Register(full(used.register())), used.access()));
        let memory = info
            .used_memory()
            .iter()
            .map(|used| (Thing::Memory(full(used.base()), used.displacement()), used.access()));
        let mut used: Vec<(Thing, OpAccess)> = registers.chain(memory).collect();
        used.extend((instruction.rflags_read() != 0).then_some((Thing::Flags, OpAccess::Read)));
        let writes = instruction.rflags_modified() != 0;
        used.extend(writes.then_some((Thing::Flags, OpAccess::Write)));
        let got = used.iter().filter(|(_, access)| *access != OpAccess::Write);
        let got: Received = got
            .filter_map(|(thing, _)| {
                let origins = values.get(thing).filter(|origins| !origins.is_empty())?;
                Some((*thing, origins.clone()))
            })
            .collect();
        let all: Origins = got.iter().flat_map(|(_, origins)| origins.clone()).collect();
        let reads = |access| matches!(access, OpAccess::Read | OpAccess::CondRead);
        for (thing, _) in used.iter().filter(|(_, access)| !reads(*access)) {
            let own = Origins::from([(received.len(), *thing)]);
            values.insert(*thing, if is_form(index) { own } else { all.clone() });
        }
        if is_form(index) {
            received.push(got);
        }
    }
    received
}

fn job(forms: &[&str]) -> JobFile {
    let forms: Vec<String> = forms.iter().map(|form| format!("{form:?}")).collect();
    file::parse(&format!("[[characterise]]\nforms = [{}]", forms.join(", ")), "x.toml").unwrap()
}

/// Each item of the forms: what it measures, and the code of its body.
pub(super) fn expanded(forms: &[&str]) -> Vec<(Case, String, Vec<u8>)> {
    let file = job(forms);
    let file = expand(&file).unwrap_or_else(|error| panic!("{error}"));
    let texts = file.snippets.iter().flat_map(|snippet| {
        [&snippet.asm, &snippet.init].map(|text| Source {
            part: Part::Body,
            text,
            syntax: Syntax::Intel,
            bits: snippet.options.bits,
            symbols: &[],
        })
    });
    let codes = assemble(&texts.collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error:?}"));
    file.snippets
        .iter()
        .zip(codes.chunks(2))
        .map(|(snippet, code)| {
            let case = snippet.name.parse().unwrap_or_else(|()| panic!("{}", snippet.name));
            (case, snippet.asm.clone(), code[0].clone())
        })
        .collect()
}

#[test]
fn n3_each_chain_leads_from_its_destination_to_its_source_and_nowhere_else() {
    let pairs = chains_lead_back(&FORMS);
    assert!(pairs > 100, "{pairs}");
}

/// Checks the chains of all pairs, and counts them.
pub(super) fn chains_lead_back(forms: &[&str]) -> usize {
    let mut pairs = 0;
    for (case, text, code) in expanded(forms) {
        let case::Kind::Latency { from, to, .. } = &case.kind else { continue };
        let lines = text.lines().count();
        let received =
            follow(&code.repeat(4), bits_of(&case.form), |index| index.is_multiple_of(lines));
        assert_eq!(received.len(), 4, "{text}");
        for (number, got) in received.iter().enumerate().skip(1) {
            // A read-modify-write of memory keeps its own chain beside one through the operand: both go through memory.
            let memory =
                |got: &&(Thing, Origins)| matches!(got.0, Thing::Memory(..)) && from != "memory";
            let got: Vec<_> = got.iter().filter(|one| !memory(one)).collect();
            let [(through, origins)] = got[..] else { panic!("{case}\n{text}\n{got:?}") };
            // Older results may come along in an address, long after they were there.
            let before: Vec<_> = origins.iter().filter(|(other, _)| *other + 1 == number).collect();
            assert_eq!(before.len(), 1, "{case}\n{text}\n{got:?}");
            assert!(origins.iter().all(|origin| origin.1 == before[0].1), "{case}\n{text}");
            let wrote = before[0].1;
            match &**from {
                "flags" => assert_eq!(*through, Thing::Flags, "{case}"),
                "memory" => assert!(matches!(through, Thing::Memory(..)), "{case}"),
                _ => assert!(matches!(through, Thing::Register(_)), "{case}"),
            }
            match &**to {
                "flags" => assert_eq!(wrote, Thing::Flags, "{case}"),
                "memory" => assert!(matches!(wrote, Thing::Memory(..)), "{case}"),
                _ => assert!(matches!(wrote, Thing::Register(_)), "{case}"),
            }
        }
        pairs += 1;
    }
    pairs
}

#[test]
fn n3_instructions_of_a_throughput_wait_for_none_of_the_others() {
    none_waits(&FORMS, 4);
}

/// Checks that all forms have a throughput, of so many instructions at least that wait for none of the others.
pub(super) fn none_waits(forms: &[&str], least: u32) {
    let (mut seen, mut beside) = (BTreeSet::new(), BTreeSet::new());
    for (case, text, code) in expanded(forms) {
        let case::Kind::Throughput { copies, with } = case.kind.clone() else { continue };
        beside.extend(with);
        let lines = text.lines().count();
        let each = lines / copies as usize;
        assert_eq!(each * copies as usize, lines, "{text}");
        let received = follow(&code, bits_of(&case.form), |index| index % each == each - 1);
        assert_eq!(received.len(), copies as usize);
        assert!(received.iter().all(Vec::is_empty), "{case}\n{text}\n{received:?}");
        // Two copies of the body: a register's old value comes from the body before, as far away as can be.
        let received =
            follow(&code.repeat(2), bits_of(&case.form), |index| index % each == each - 1);
        for (number, got) in received.iter().enumerate() {
            let near = got.iter().flat_map(|(_, origins)| origins);
            let near = near.filter(|(other, _)| number - other < copies as usize);
            assert_eq!(near.count(), 0, "{case}\n{text}");
        }
        assert!(copies >= least, "{case}");
        seen.insert(case.form);
    }
    let all = forms.iter().map(|form| form.parse::<Form>().unwrap().to_string());
    let all: BTreeSet<String> = all.chain(beside).collect();
    assert_eq!(seen, all);
}

fn names(forms: &[&str]) -> Vec<String> {
    expanded(forms).into_iter().map(|(case, ..)| case.to_string()).collect()
}

#[test]
fn n3_pairs_ways_back_and_implicit_operands_are_named() {
    assert_eq!(
        names(&["imul r64, r64"]),
        [
            "latency: imul r64, r64 (1 -> 1)",
            "latency: imul r64, r64 (2 -> 1; back: movsxd r64, r32; breaking 1)",
            "throughput: imul r64, r64 (8 apart)",
            "latency: movsxd r64, r32 (2 -> 1)",
        ]
    );
    assert_eq!(
        names(&["div r64"])[..6],
        [
            "latency: div r64 (1 -> rax; back: lea r64, m; breaking rax, rdx)",
            "latency: div r64 (rax -> rax; breaking rdx)",
            "latency: div r64 (rdx -> rax; back: movsxd r64, r32; breaking rax)",
            "latency: div r64 (1 -> rdx; back: lea r64, m; breaking rax, rdx)",
            "latency: div r64 (rax -> rdx; back: movsxd r64, r32; breaking rdx)",
            "latency: div r64 (rdx -> rdx; breaking rax)",
        ]
    );
    assert_eq!(names(&["mov r64, m64"])[0], "latency: mov r64, m64 (address -> 1)");
    assert_eq!(
        names(&["adc r64, r64"])[2],
        "latency: adc r64, r64 (flags -> 1; back: test r64, r64; breaking 1)"
    );
    assert_eq!(
        names(&["lfence", "nop"]),
        ["throughput: lfence (8 apart)", "throughput: nop (8 apart)"]
    );
}

fn message(key: &str, form: &str) -> String {
    let text = format!("name = \"x\"\n[[snippet]]\n{key} = {form:?}");
    let done = file::parse(&text, "x.toml").and_then(|file| expand(&file).map(|_| ()));
    done.unwrap_err().to_string()
}

#[test]
fn n3_a_form_that_cannot_be_measured_is_named_with_the_reason() {
    for (form, part) in [
        (
            "imull r64, r64",
            "x.toml:2:1: the assembler refuses the form `imull r64, r64`, tried as `imull r8, r9`: ",
        ),
        ("imul r64, xmm", "the assembler refuses the form `imul r64, xmm`"),
        ("imul r65, r64", "the form `imul r65, r64` has `r65`, which is no operand class"),
        ("", "a form is empty"),
        ("add r64, r64; ud2", "has `r64; ud2`"),
        ("jmp r64", "`jmp r64` cannot be measured by itself: it has no result"),
        ("int3", "`int3` cannot be measured by itself: it leaves the straight line"),
        ("hlt", "it is privileged"),
        ("mov cr5, r64", "has `cr5`"),
        ("rdmsr", "it has no result"),
        ("wbinvd", "it is privileged"),
        ("fxtract", "no simple way leads back from where it moved the x87 stack to"),
        ("fnsave m", "it replaces the whole x87 stack"),
        ("std", "it changes a flag that the firmware works with"),
        ("mwait", "it waits, or prepares to wait"),
        ("ldmxcsr m32", "it loads the state of the floating-point unit"),
        ("xlatb", "a register of it is a pointer to memory"),
        ("rep movsb", "repeated instruction"),
        ("lfence", "it has no result that waits for a source"),
        ("push r64", "it accesses memory that no operand names"),
    ] {
        let seen = message("latency", form);
        assert!(seen.contains(part), "{form}: {seen}");
    }
    let seen = message("throughput", "nop]");
    assert!(seen.contains("line 3, column 14") && seen.contains("`]`"), "{seen}");
}

#[test]
fn n3_an_item_has_code_or_forms() {
    for (text, part) in [
        ("asm = 'nop'\nlatency = 'inc r64'", "either asm, or latency"),
        ("name = 'x'", "missing field `asm`"),
        ("latency = 'inc r64'\ninit = 'nop'", "make their own code"),
        ("throughput = 'inc r64'\nname = 'x'", "named after the form"),
    ] {
        let error = file::parse(&format!("[[snippet]]\n{text}"), "x.toml").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains(part), "{error}");
    }
    let text = "[defaults]\nruns = 4\n[[characterise]]\nforms = ['inc r64']\nunroll = 9";
    let file = file::parse(text, "x.toml").unwrap();
    let expanded = expand(&file).unwrap();
    let options = expanded.snippets.iter().map(|s| (s.options.runs, s.options.unroll));
    assert_eq!(options.collect::<Vec<_>>(), [(4, 9); 2]);
}

/// Each form alone and behind each of the blocking ones, with its code; and pairs of these once.
#[test]
fn d2_ports_take_each_form_alone_and_behind_instructions_that_keep_ports_busy() {
    let text = "[[characterise]]\nforms = ['adc r64, m64', 'mulps xmm, xmm']\nports = true";
    let file = file::parse(text, "x.toml").unwrap();
    let expanded = expand(&file).unwrap();
    let ports = expanded.snippets.iter().filter_map(|snippet| {
        let case: Case = snippet.name.parse().ok()?;
        matches!(case.kind, case::Kind::Ports { .. }).then_some((case, snippet))
    });
    let ports: Vec<_> = ports.collect();
    let blockers = blocked::BLOCKERS.len();
    for form in ["adc r64, m64", "mulps xmm, xmm", "nop", "imul r64, r64"] {
        let own = ports.iter().filter(|(case, _)| {
            case.form == form && matches!(case.kind, case::Kind::Ports { row: 1, .. })
        });
        assert_eq!(own.count(), 1 + blockers, "{form}");
    }
    let pairs = ports.iter().filter(|(case, _)| {
        matches!(&case.kind, case::Kind::Ports { row, behind, .. } if row * behind.as_ref().map_or(0, |one| one.0) > 16)
    });
    let paired = blockers - 2;
    assert_eq!(pairs.count(), paired * (paired - 1) / 2 * blocked::PAIRS.len());
    let name = "ports: adc r64, m64 (4 apart; behind 16 imul r64, r64)";
    let (_, snippet) = ports.iter().find(|(_, snippet)| snippet.name == name).unwrap();
    let lines: Vec<&str> = snippet.asm.lines().collect();
    assert_eq!(lines.len(), 4 * 17);
    assert!(lines[..16].iter().all(|line| line.starts_with("imul ")), "{lines:?}");
    // No register is of both, so none waits for the other.
    let registers = |line: &str| -> BTreeSet<String> {
        let words = line.split([' ', ',', '[', ']']).skip(1);
        words.filter(|word| word.starts_with('r') && *word != "r14").map(String::from).collect()
    };
    let blocking: BTreeSet<String> = lines[..16].iter().flat_map(|line| registers(line)).collect();
    let own = registers(lines[16]);
    assert!(own.is_disjoint(&blocking) && !own.is_empty(), "{own:?} {blocking:?}");
    assert!(snippet.options.events.iter().any(|event| event.to_string() == "uops-retired"));
}

fn word() -> impl Strategy<Value = String> {
    "[a-z0-9]{1,6}( [a-z0-9]{1,4})?"
}

prop_compose! {
    fn any_case()(
        form in word(), from in word(), to in word(), back in prop::collection::vec(word(), 0..3),
        breaking in prop::collection::vec(word(), 0..3), copies in 1_u32..100, kind in 0..4,
        row in 1_u32..40, behind in prop::option::of((1_u32..40, word())),
    ) -> Case {
        let kind = match kind {
            0 => case::Kind::Latency { from, to, back },
            1 => case::Kind::SameRegister,
            2 => case::Kind::Ports { copies, row, behind },
            _ => case::Kind::Throughput { copies, with: back },
        };
        // Nothing is written anew where ports are looked at.
        let breaking = if kind_has_breaks(&kind) { breaking } else { Vec::new() };
        Case { form, kind, breaking }
    }
}

fn kind_has_breaks(kind: &case::Kind) -> bool {
    !matches!(kind, case::Kind::Ports { .. })
}

proptest! {
    #[test]
    fn a_name_says_what_the_case_is(case in any_case()) {
        prop_assert_eq!(case.to_string().parse(), Ok(case));
    }

    #[test]
    fn no_name_makes_reading_it_panic(name in "(latency: |throughput: |one register: |ports: )?.{0,60}") {
        let _ = name.parse::<Case>();
    }

    #[test]
    fn no_text_makes_reading_a_form_panic(text in ".{0,40}") {
        if let Ok(form) = text.parse::<Form>() {
            prop_assert_eq!(form.to_string().parse(), Ok(form));
        }
    }
}
