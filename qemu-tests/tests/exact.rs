//! Exact mode on the target, and the emulated PMU against it.

pub mod generate;
pub mod hand_written;

use pmu_model::Model;
use protocol::job::exact::DEFAULT_STEPS;
use protocol::record::ExactResult;
use qemu_tests::{Guest, Ran, direct};
use xtask::cli::Boot;
use xtask::disassembly::listed;
use xtask::machine::Given;

/// Value of each count that is not 0.
fn counts(result: &ExactResult) -> Vec<(&str, f64)> {
    let all = result.counts.iter().map(|count| (count.event.as_str(), count.value));
    all.filter(|&(_, value)| value != 0.0).collect()
}

fn count(result: &ExactResult, event: &str) -> f64 {
    result.counts.iter().find(|count| count.event == event).expect(event).value
}

fn exact(toml: &str) -> Ran {
    direct(&format!("[defaults]\nunroll = 3\n{toml}"))
}

/// A snippet with each kind of branch and access, as text and as its expected counts.
const MIXED: &str = "push rax; add [r14 + 8], rcx; imul eax, ecx; mov al, [rsi]; xor edx, edx; jnz 2f; \
                     jz 2f; ud2; 2: call 3f; jmp 4f; 3: ret; 4: pop rax";

#[test]
fn counts_opcodes_and_listing_are_those_of_the_code() {
    let ran = exact(&format!("[[snippet]]\nexact = true\nasm = \"{MIXED}\""));
    let results: Vec<_> = ran.ends_with(0).report.exact().collect();
    let [result] = results[..] else { panic!("{results:?}") };
    let expected = [
        ("instructions", 11.0),
        ("branches", 5.0),
        ("conditional_branches", 2.0),
        ("conditional_taken", 1.0),
        ("taken_branches", 4.0),
        ("near_jumps", 1.0),
        ("near_calls", 1.0),
        ("near_returns", 1.0),
        ("loads", 4.0),
        ("stores", 3.0),
        ("bytes_loaded", 25.0),
        ("bytes_stored", 24.0),
    ];
    assert_eq!(counts(result), expected);
    assert_eq!((result.per, result.filtered, result.counts[0].totals), (3, false, [33, 66]));
    let opcodes: Vec<_> = result.opcodes.iter().map(|count| count.event.as_str()).collect();
    let names = ["add", "call", "imul", "je", "jmp", "jne", "mov", "pop", "push", "ret", "xor"];
    assert_eq!(opcodes, names);
    let listing: Vec<_> = result.listing.iter().map(|row| (row.offset, listed(row))).collect();
    assert_eq!(listing[1], (1, "add [r14+0x8], rcx".to_string()));
    // UD2 is never executed.
    assert_eq!((listing.len(), result.listed), (11, 11));
    assert!(listing.iter().all(|(_, text)| text != "ud2"));
}

#[test]
fn a_loop_counts_the_body_and_not_itself() {
    for difference in ["double", "empty"] {
        let snippet = format!("exact = true\nloop = 7\ndifference = \"{difference}\"");
        let ran = exact(&format!("[[snippet]]\n{snippet}\nasm = \"nop; jmp 2f; 2:\""));
        let result = ran.ends_with(0).report.exact().next().unwrap();
        assert_eq!((result.per, count(result, "instructions")), (21, 2.0));
        assert_eq!(count(result, "branches"), 1.0);
    }
}

/// What each filter lets count of [`MIXED`]: instructions, loads, stores, bytes loaded.
fn filtered(filter: &str) -> [f64; 4] {
    let ran = exact(&format!("[[snippet]]\nexact = {{ {filter} }}\nasm = \"{MIXED}\""));
    let result = ran.ends_with(0).report.exact().next().unwrap();
    assert!(result.filtered);
    ["instructions", "loads", "stores", "bytes_loaded"].map(|event| count(result, event))
}

#[test]
fn t1_only_a_range_of_instructions_counts() {
    // The ADD at 1 and the IMUL at 5.
    assert_eq!(filtered("instructions = \"1..8\""), [2.0, 1.0, 1.0, 8.0]);
}

#[test]
fn t2_only_some_opcodes_count() {
    assert_eq!(filtered("opcodes = [\"imul\"]"), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(filtered("opcodes = [\"push\", \"pop\"]"), [2.0, 1.0, 1.0, 8.0]);
}

#[test]
fn t3_only_accesses_to_a_range_of_data_count() {
    assert_eq!(filtered("data = \"r14:8..9\""), [1.0, 1.0, 1.0, 8.0]);
    assert_eq!(filtered("data = \"r14:0..8\""), [0.0; 4]);
    // PUSH, CALL, RET and POP.
    assert_eq!(filtered("data = \"rsp:-64..64\""), [4.0, 2.0, 2.0, 16.0]);
}

#[test]
fn t8_all_filters_hold_at_once() {
    let all = "opcodes = [\"push\", \"add\"], instructions = \"1..0x100\", data = \"r14:0..16\"";
    assert_eq!(filtered(all), [1.0, 1.0, 1.0, 8.0]);
    assert_eq!(filtered(&all.replace("1..0x100", "0..1")), [0.0; 4]);
}

/// Steps through three copies of each.
fn stepped(snippets: &str) -> Ran {
    direct(&format!("[defaults]\nunroll = 3\nexact = true\n{snippets}"))
}

/// What the trap flag shows to the code, or does not stop at.
#[test]
fn the_code_does_not_see_the_trap_flag_and_hides_nothing_from_it() {
    let ran = stepped(
        r#"
        [[snippet]]
        name = "flags"
        asm = "pushfq; test dword ptr [rsp], 0x100; jz 2f; ud2; 2: popfq"
        [[snippet]]
        name = "half flags"
        asm = ".byte 0x66, 0x9c; test word ptr [rsp], 0x100; jz 2f; ud2; 2: .byte 0x66, 0x9d"
        [[snippet]]
        name = "iretq"
        asm = "mov rax, rsp; mov ecx, ss; push rcx; push rax; pushfq; mov ecx, cs; push rcx; lea rcx, [rip + 2f]; push rcx; iretq; ud2; 2:"
        [[snippet]]
        name = "shadow of ss"
        asm = "mov eax, ss; mov ss, eax; push rax; mov ss, [rsp]; pop rax"
        [[snippet]]
        name = "intercepted by hypervisors"
        asm = "cpuid; nop; cpuid"
        [[snippet]]
        name = "repeated"
        asm = "mov ecx, 5; rep stosd; mov ecx, 0; rep stosd; nop"
        "#,
    );
    let of = |result: &ExactResult| {
        ["instructions", "branches", "stores"].map(|event| count(result, event))
    };
    let seen: Vec<_> = ran.ends_with(0).report.exact().map(|r| (r.name.as_str(), of(r))).collect();
    let expected = [
        ("flags", [4.0, 1.0, 1.0]),
        ("half flags", [4.0, 1.0, 1.0]),
        ("iretq", [10.0, 1.0, 5.0]),
        ("shadow of ss", [5.0, 0.0, 1.0]),
        ("intercepted by hypervisors", [3.0, 0.0, 0.0]),
        ("repeated", [5.0, 0.0, 5.0]),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn what_cannot_be_stepped_is_refused_by_name_and_the_next_snippet_runs() {
    let endless = format!("not done after {DEFAULT_STEPS} instructions");
    let refused = [
        ("nop; syscall", "step over `syscall` at byte 1"),
        ("nop; int 0x80", "step over `int` at byte 1"),
        ("hlt", "step over `hlt` at byte 0"),
        ("pushfq; or dword ptr [rsp], 0x100; popfq; nop", "sets the trap flag"),
        ("2: jmp 2b", endless.as_str()),
        ("nop; ud2", "raised #UD at byte 1 of the body, copy 0"),
        ("int3", "raised #BP"),
        (".byte 0xf1", "raised #DB"),
        ("jmp r14", "raised #PF outside the snippet"),
        ("xor esp, esp; push rax", "raised #PF at byte 2"),
    ];
    let text = |(asm, _): &(&str, &str)| {
        format!("[[snippet]]\nasm = \"{asm}\"\n[[snippet]]\nname = \"fine\"\nasm = \"nop\"\n")
    };
    let ran = stepped(&refused.iter().map(text).collect::<String>());
    let errors = ran.ends_with(1).errors();
    assert_eq!(errors.len(), refused.len(), "{errors:#?}");
    for (error, (asm, part)) in errors.iter().zip(refused) {
        assert!(error.text.contains(part), "{asm}: {}", error.text);
    }
    let fine: Vec<_> = ran.report.exact().map(|result| count(result, "instructions")).collect();
    assert_eq!(fine, vec![1.0; refused.len()]);
}

/// Generated and hand-written snippets, each measured with the PMU and stepped through.
fn verify_all(model: Model) {
    let generated = (0..170).map(generate::snippet);
    let written = hand_written::SNIPPETS.iter().map(|row| row.0.to_string());
    let snippets: Vec<String> = generated.chain(written).collect();
    assert!(snippets.len() >= 200, "{}", snippets.len());
    let mut toml =
        String::from("[defaults]\nexact = { verify = true }\nunroll = 2\nruns = 2\nwarmup = 1\n");
    for (index, asm) in snippets.iter().enumerate() {
        // A third of them in a loop.
        let turns = if index % 3 == 0 { 3 } else { 0 };
        toml += &format!("[[snippet]]\nname = \"{index}\"\nloop = {turns}\nasm = \"{asm}\"\n");
    }
    let guest = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    let results: Vec<_> = ran.report.exact().collect();
    let errors: Vec<_> = ran.errors().iter().map(|error| (&error.name, &error.text)).collect();
    assert_eq!((results.len(), errors), (snippets.len(), vec![]));
    for (result, asm) in results.iter().zip(&snippets) {
        let names: Vec<_> = result.comparisons.iter().map(|c| c.event.as_str()).collect();
        assert_eq!(names, ["instructions", "branches"], "{asm}");
        assert!(result.emulated);
        for comparison in &result.comparisons {
            assert!(comparison.agrees, "{asm}: {comparison:?}");
        }
    }
    for (result, row) in results[170..].iter().zip(hand_written::SNIPPETS) {
        let seen = ["instructions", "branches"].map(|event| count(result, event));
        assert_eq!(seen, [row.1, row.2], "{}", row.0);
    }
    // The generator makes branches of each kind, or the agreement says little.
    for kind in ["conditional_branches", "near_jumps", "near_calls", "near_returns"] {
        let total: f64 = results.iter().map(|result| count(result, kind)).sum();
        assert!(total > 50.0, "{kind}: {total}");
    }
    ran.ends_with(0);
}

#[test]
fn x2_two_hundred_snippets_agree_on_skylake() {
    verify_all(Model::Skylake);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn x2_two_hundred_snippets_agree_on_zen4_soak() {
    verify_all(Model::Zen4);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn x2_two_hundred_snippets_agree_on_core2_soak() {
    verify_all(Model::Core2);
}

#[test]
fn x2_an_empty_snippet_is_zero_in_every_event() {
    let toml = "[defaults]\nexact = { verify = true }\n[[snippet]]\nasm = \"\"\n\
                [[snippet]]\nasm = \"\"\nloop = 5\ndifference = \"empty\"";
    for model in [Model::Skylake, Model::Zen4] {
        let guest = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) };
        let ran = guest.run();
        let results: Vec<_> = ran.ends_with(0).report.exact().collect();
        assert_eq!(results.len(), 2);
        for result in results {
            assert_eq!(counts(result), []);
            assert_eq!((result.opcodes.len(), result.listing.len()), (0, 0));
            let pmu: Vec<_> = result.comparisons.iter().map(|c| (c.pmu_min, c.pmu_max)).collect();
            assert_eq!(pmu, [(0.0, 0.0); 2]);
        }
    }
}
