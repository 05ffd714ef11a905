//! Events of some instructions only, by the qualifiers of the emulated PMU, against exact mode with the same filters.

use pmu_model::Model;
use protocol::record::{ExactResult, SnippetResult};
use qemu_tests::{Guest, Ran, both_ways, skip, ways_on};
use xtask::cli::{Boot, Counting};
use xtask::machine::Given;

/// What is compared, as exact mode calls it.
const EXACT: [&str; 4] = ["instructions", "branches", "loads", "stores"];
/// BR_INST_RETIRED.ALL_BRANCHES and MEM_INST_RETIRED.ALL_LOADS, ALL_STORES.
const INTEL: [&str; 4] = ["r00c0", "r00c4", "r81d0", "r82d0"];
/// Retired instructions and branches; LS_DISPATCH: loads, stores, and load-stores with both.
const AMD: [&str; 4] = ["r00c0", "r00c2", "r0529", "r0629"];

const MODELS: [(Model, [&str; 4]); 5] = [
    (Model::Skylake, INTEL),
    (Model::IceLake, INTEL),
    (Model::SapphireRapids, INTEL),
    (Model::Zen2, AMD),
    (Model::Zen4, AMD),
];

/// Each kind of branch and access: of one width, of two places, by registers, of vectors; and instructions that are emulated.
/// The repeated instruction has one element: of several, the PMU counts lines, and exact mode elements.
const MIXED: &str = "push rax; add [r14 + 8], rcx; imul eax, ecx; mov al, [rsi]; xor edx, edx; jnz 2f; jz 2f; ud2; \
    2: call 3f; jmp 4f; 3: ret; 4: pop rax; push qword ptr [r14]; pop qword ptr [r14 + 16]; \
    lea rax, [rip + 5f]; mov [r14 + 32], rax; call [r14 + 32]; jmp 6f; 5: ret; \
    6: movups xmm0, [r14 + 60]; lock inc dword ptr [r14 + 4]; xchg rcx, [r14 + 48]; cpuid; \
    mov ecx, 3; 7: dec dword ptr [r14 + 8]; loop 7b; mov ecx, 1; rep stosd; enter 16, 0; leave";

/// What is counted of it.
const FILTERS: [&str; 12] = [
    r#"opcodes = ["imul"]"#,
    r#"opcodes = ["push", "pop", "call", "ret", "loop", "jne", "je"]"#,
    r#"opcodes = ["stosd", "cpuid", "enter", "leave"]"#,
    r#"instructions = "1..8""#,
    r#"instructions = "8..40""#,
    r#"instructions = "0..1000""#,
    r#"instructions = "2..3""#,
    r#"data = "r14:8..9""#,
    r#"data = "rsp:-64..64""#,
    r#"data = "r14:32..64""#,
    r#"opcodes = ["push", "add", "call"], instructions = "1..0x100", data = "r14:0..40""#,
    r#"opcodes = ["push", "add"], instructions = "0..1", data = "r14:0..16""#,
];

fn on(model: Model, counting: Counting, toml: &str) -> Ran {
    let guest = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) };
    Guest { counting, ..guest }.run()
}

fn job(events: &[&str]) -> String {
    let mut job = "[defaults]\nunroll = 3\nruns = 2\nwarmup = 1\n".to_string();
    for (number, filter) in FILTERS.iter().enumerate() {
        let asm = format!("asm = '''\n{MIXED}\n'''\n");
        job += &format!("[[snippet]]\nname = \"{number}\"\nexact = {{ {filter} }}\n{asm}");
        job += &format!(
            "[[snippet]]\nname = \"{number}\"\nevents = {events:?}\nonly = {{ {filter} }}\n{asm}"
        );
    }
    job
}

fn of_exact(result: &ExactResult) -> [f64; 4] {
    let of = |event| result.counts.iter().find(|count| count.event == event).expect(event).value;
    EXACT.map(of)
}

fn counted(result: &SnippetResult) -> Vec<f64> {
    assert_eq!(result.uncounted, [], "{}", result.name);
    result.metrics[1..].iter().map(|metric| metric.value.median).collect()
}

#[test]
fn t1_t2_t3_t8_qualified_counts_are_those_of_exact_mode_by_plugin_and_by_stepping() {
    for (model, events) in MODELS {
        for counting in ways_on(model) {
            let ran = on(model, counting, &job(&events));
            ran.ends_with(0);
            let stepped: Vec<_> = ran.report.exact().collect();
            let results = ran.results();
            assert_eq!((stepped.len(), results.len()), (FILTERS.len(), FILTERS.len()));
            let how = match counting {
                Counting::Plugin => "at the translator's speed",
                _ => "stepped",
            };
            let mut differ = Vec::new();
            for ((exact, result), filter) in stepped.into_iter().zip(results).zip(FILTERS) {
                let (exact, counted) = (of_exact(exact), counted(result));
                if exact[..] != counted[..] {
                    differ.push(format!("{filter}: exact {exact:?}, counted {counted:?}"));
                }
                let [control] = &result.controls[..] else { panic!("{:?}", result.controls) };
                assert!(control.option.starts_with("only=") && control.note.contains(how));
            }
            assert!(differ.is_empty(), "{model:?} {counting:?}:\n{}", differ.join("\n"));
        }
    }
}

/// 10^7 instructions and more, all three qualifiers: the hypervisor takes few steps and exits, so nothing of the loop was stepped.
#[test]
fn t8_a_long_loop_with_all_qualifiers_is_not_stepped() {
    if !both_ways().contains(&Counting::Plugin) {
        skip!("the plugin's steps are looked at");
    }
    let toml = r#"
        [[snippet]]
        unroll = 1
        loop = 1_000_000
        runs = 1
        warmup = 0
        difference = "empty"
        events = ["r00c0", "r81d0"]
        only = { opcodes = ["mov"], instructions = "0..11", data = "r14:0..8" }
        asm = "mov rax, [r14]; mov rcx, [r14 + 8]; mov [r14 + 4], rcx; mov rdx, [r14]; imul rax, rcx; add rax, rdx; nop; nop; nop; nop"
        "#;
    for model in [Model::Skylake, Model::SapphireRapids] {
        let options = format!("pmu={} clock=machine shift=0 statistics=1", model.spec().name);
        let guest = Guest { pmu_options: Some(options), ..Guest::new(Boot::Direct, toml) };
        let ran = Guest { pmu: Given::Emulated(model), counting: Counting::Plugin, ..guest }.run();
        ran.ends_with(0);
        // The first MOV and the third, of which the first loads; the fourth begins after the range.
        assert_eq!(counted(ran.results()[0]), [2.0, 1.0], "{model:?}");
        let last = ran.pmu_said.iter().rev().find(|line| line.starts_with("statistics: ")).unwrap();
        let of = |name: &str| {
            let mut words = last.split(' ').filter_map(|word| word.split_once('='));
            words.find(|(word, _)| *word == name).map_or(0, |(_, count)| count.parse().unwrap())
        };
        let (exits, steps): (u64, u64) = (of("exits"), of("step"));
        assert!(exits > 100 && exits < 100_000 && steps < 1_000, "{model:?}: {last}");
    }
}

#[test]
fn t8_without_qualifiers_an_item_is_refused_by_name() {
    let toml =
        "[[snippet]]\nasm = \"nop\"\nevents = [\"instructions\"]\nonly = { opcodes = [\"nop\"] }";
    let options = "pmu=skylake clock=machine shift=0 qualifiers=off".to_string();
    let guest = Guest { pmu_options: Some(options), ..Guest::new(Boot::Direct, toml) };
    let ran = Guest { pmu: Given::Emulated(Model::Skylake), ..guest }.run();
    let errors = ran.errors();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert!(error.text.contains("this emulated PMU has no qualifiers"), "{}", error.text);
    assert!(error.text.contains("exact = "), "{}", error.text);
}
