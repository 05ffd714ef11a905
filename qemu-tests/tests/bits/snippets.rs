//! Snippets, measured and stepped through.

use super::code::{NARROW, there_and_back};
use super::{MODELS, on};
use pmu_model::Model;
use protocol::record::{ErrorCode, ExactResult, SnippetResult};
use qemu_tests::{Guest, direct};
use xtask::cli::Boot;
use xtask::disassembly::listed;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// The median of an event, if it was counted.
fn median(result: &SnippetResult, event: &str) -> Option<f64> {
    result.metrics.iter().find(|metric| metric.event == event).map(|metric| metric.value.median)
}

fn count(result: &ExactResult, event: &str) -> f64 {
    let found = result.counts.iter().find(|count| count.event == event);
    found.map_or(f64::NAN, |count| count.value)
}

#[test]
fn t6_32_bit_snippets_are_counted_exactly_in_both_rings_on_the_models() {
    let mut job = "[defaults]\nbits = 32\nunroll = 3\nruns = 2\nwarmup = 0\n\
                   events = [\"instructions\", \"branches\", \"loads\", \"stores\"]\n"
        .to_string();
    for ring in [0, 3] {
        for (asm, ..) in NARROW {
            job += &format!("[[snippet]]\nasm = \"{asm}\"\nmachine = {{ ring = {ring} }}\n");
        }
    }
    for model in MODELS {
        let ran = on(model, &job);
        ran.ends_with(0);
        let results = ran.results();
        assert_eq!(results.len(), 2 * NARROW.len());
        for (result, (asm, instructions, branches, accesses)) in
            results.into_iter().zip(NARROW.into_iter().chain(NARROW))
        {
            let at = format!("{model:?}, {asm}: {:?}", result.controls);
            assert_eq!(median(result, "instructions"), Some(instructions), "{at}");
            assert_eq!(median(result, "branches"), Some(branches), "{at}");
            assert!(result.uncounted.is_empty(), "{at}: {:?}", result.uncounted);
            if let Some(accesses) = accesses {
                let counted = ["loads", "stores"].map(|event| median(result, event));
                assert_eq!(counted, accesses.map(Some), "{at}");
            }
            assert!(result.metrics.iter().all(|metric| metric.deterministic), "{at}");
            let applied = result.controls.iter().find(|one| one.option == "bits=32");
            assert!(applied.is_some_and(|one| one.applied), "{at}");
        }
    }
}

#[test]
fn t6_exact_counts_of_32_bit_and_of_mixed_code_are_those_of_the_pmu() {
    let (mixed, wide, compatibility, branches) = there_and_back(0);
    let mut job = "[defaults]\nunroll = 3\nexact = { verify = true }\n".to_string();
    for (asm, ..) in NARROW {
        job += &format!("[[snippet]]\nasm = \"{asm}\"\nbits = 32\n");
    }
    job += &format!("[[snippet]]\nasm = '''\n{mixed}\n'''\n");
    for model in MODELS {
        let ran = on(model, &job);
        let results: Vec<_> = ran.ends_with(0).report.exact().collect();
        assert_eq!(results.len(), NARROW.len() + 1);
        for (result, (asm, instructions, branches, accesses)) in results.iter().zip(NARROW) {
            let at = format!("{model:?}, {asm}");
            let counts = ["instructions", "instructions_32", "instructions_64", "branches"];
            let counts = counts.map(|event| count(result, event));
            assert_eq!(counts, [instructions, instructions, 0.0, branches], "{at}");
            if let Some(accesses) = accesses {
                assert_eq!(["loads", "stores"].map(|event| count(result, event)), accesses, "{at}");
            }
            assert!(result.listing.iter().all(|row| row.bits == 32), "{at}");
        }
        let result = results[NARROW.len()];
        let counts = ["instructions_64", "instructions_32", "branches"];
        let counts = counts.map(|event| count(result, event));
        assert_eq!(counts, [wide, compatibility, branches].map(|count| count as f64), "{model:?}");
        assert!(results.iter().all(|result| result.comparisons.iter().all(|one| one.agrees)));
        assert!(results.iter().all(|result| result.comparisons.len() == 2));
    }
}

#[test]
fn t6_the_listing_shows_each_instruction_as_what_it_was_executed_as() {
    let (mixed, ..) = there_and_back(0);
    let ran = direct(&format!("[[snippet]]\nunroll = 2\nexact = true\nasm = '''\n{mixed}\n'''\n"));
    let result = ran.ends_with(0).report.exact().next().unwrap();
    let rows: Vec<_> = result.listing.iter().map(|row| (row.bits, listed(row))).collect();
    let has = |bits, part: &str| rows.iter().any(|row| row.0 == bits && row.1.starts_with(part));
    for (bits, part) in [(64, "push rax"), (64, "nop"), (32, "inc eax"), (32, "push eax")] {
        assert!(has(bits, part), "{part}: {rows:?}");
    }
    assert!(!has(32, "push r") && !has(64, "inc"), "{rows:?}");
}

#[test]
fn t6_t8_a_filter_by_width_holds_together_with_the_others() {
    let (mixed, wide, compatibility, _) = there_and_back(0);
    let of = |filter: &str| {
        let ran = direct(&format!(
            "[[snippet]]\nunroll = 2\nexact = {{ {filter} }}\nasm = '''\n{mixed}\n'''\n"
        ));
        let result = ran.ends_with(0).report.exact().next().unwrap();
        assert!(result.filtered);
        ["instructions", "stores", "bytes_stored"].map(|event| count(result, event))
    };
    // PUSH of 8 bytes and of 4.
    assert_eq!(of("bits = 64"), [wide as f64, 2.0, 16.0]);
    assert_eq!(of("bits = 32"), [compatibility as f64, 3.0, 12.0]);
    assert_eq!(of("bits = 32, opcodes = [\"push\"]"), [2.0, 2.0, 8.0]);
    assert_eq!(of("bits = 64, opcodes = [\"inc\"]"), [0.0; 3]);
    assert_eq!(of("bits = 32, data = \"rsi:0..4\""), [1.0, 0.0, 0.0]);
    assert_eq!(of("bits = 64, opcodes = [\"push\"], data = \"rsp:-8..0\""), [1.0, 1.0, 8.0]);
}

#[test]
fn t6_init_registers_flags_and_the_loop_reach_32_bit_code() {
    // Each part sees what the one before it left; a wrong value raises #UD.
    let parts = "one-time-init = \"mov dword ptr [ebx + 8], 5\"\n\
                 init = \"cmp dword ptr [ebx + 8], 5; jne 2f; mov eax, 0x12345678; mov ecx, esp; stc; jmp 3f; 2: ud2; 3:\"\n\
                 late-init = \"jnc 2f; cmp ecx, esp; jne 2f; jmp 3f; 2: ud2; 3:\"\n\
                 asm = \"cmp eax, 0x12345678; jne 2f; inc dword ptr [ebx]; push edi; pop edi; jmp 3f; 2: ud2; 3:\"";
    let mut job = "[defaults]\nbits = 32\nunroll = 2\nevents = [\"instructions\"]\n".to_string();
    for machine in
        ["ring = 0", "ring = 3", "ring = 0, page-size = \"2m\"", "ring = 3, page-size = \"2m\""]
    {
        job += &format!("[[snippet]]\n{parts}\nmachine = {{ {machine} }}\n");
    }
    job +=
        &format!("[[snippet]]\n{parts}\nloop = 9\nalignment-offset = 5\ndrain-frontend = true\n");
    let ran = on(Model::Skylake, &job);
    ran.ends_with(0);
    let counts = ran.results().into_iter().map(|result| median(result, "instructions"));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(6.0); 5]);
}

#[test]
fn t6_x1_faults_and_endless_loops_in_32_bit_code_are_reported_as_such_and_cost_one_item() {
    let cases = [
        ("inc eax; ud2", ErrorCode::SnippetFault, "#UD", 1, "0f0b"),
        ("xor ecx, ecx; div ecx", ErrorCode::SnippetFault, "#DE", 2, "f7f1"),
        ("mov ecx, 0x1234; dec eax; mov [ecx], edx", ErrorCode::SnippetFault, "#PF", 6, "8911"),
        ("inc eax; 2: jmp 2b", ErrorCode::TimeLimit, "time limit", 1, "ebfe"),
    ];
    let mut job = "[defaults]\nbits = 32\nunroll = 1\nruns = 1\nwarmup = 0\n".to_string();
    for ring in [0, 3] {
        for (asm, ..) in cases {
            let machine = format!("machine = {{ ring = {ring}, time-limit = 20 }}");
            job += &format!("[[snippet]]\nasm = \"{asm}\"\n{machine}\n");
            job += "[[snippet]]\nasm = \"nop\"\nbits = 64\n";
        }
    }
    let ran = on(Model::Skylake, &job);
    ran.ends_with(1);
    assert_eq!(ran.medians(), [("nop", 1.0); 8]);
    let errors = ran.errors();
    assert_eq!(errors.len(), 2 * cases.len());
    for (error, (asm, code, mnemonic, offset, bytes)) in
        errors.iter().zip(cases.iter().chain(&cases))
    {
        let fault = error.fault.as_ref().expect(asm);
        assert_eq!(
            (error.code, fault.mnemonic.as_str(), fault.bits),
            (*code, *mnemonic, 32),
            "{error:?}"
        );
        assert_eq!(
            (fault.offset, fault.bytes.as_deref()),
            (Some(*offset), Some(*bytes)),
            "{error:?}"
        );
        if *mnemonic == "#PF" {
            assert_eq!(fault.registers.cr2.0, 0x1234);
        }
    }
    let shown = xtask::render::render(&ran.report, &Default::default(), xtask::cli::Format::Table);
    for part in ["copy 0: ud2 (32-bit)", "div ecx (32-bit)", "mov [ecx], edx (32-bit)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn t6_the_example_runs() {
    let ran = on(Model::Skylake, include_str!("../../../xtask/jobs/bits.toml"));
    ran.ends_with(0);
    let counts = |name: &str| {
        let result = ran.results().into_iter().find(|result| result.name == name).expect(name);
        ["instructions", "loads", "stores"].map(|event| median(result, event))
    };
    assert_eq!(counts("as 64-bit code"), [4.0, 1.0, 1.0].map(Some));
    assert_eq!(counts("as 32-bit code"), counts("as 64-bit code"));
    let exact: Vec<_> = ran.report.exact().collect();
    let both = ["instructions_64", "instructions_32"].map(|event| count(exact[0], event));
    assert_eq!((both, count(exact[1], "instructions")), ([5.0, 7.0], 2.0));
    let compatibility = ran.report.sampled().next().expect("a sample").addresses.iter();
    assert!(compatibility.filter(|row| row.bits == 32).all(|row| row.task == 1));
}

#[test]
fn t6_32_bit_code_runs_on_several_processors() {
    let job = "[[processors]]\nbits = 32\nunroll = 5\nevents = [\"instructions\"]\n\
               asm = \"inc eax; inc dword ptr [ebx]; push edx; pop edx\"";
    let guest = Guest {
        cpus: Cpus::Many(2),
        pmu: Given::Emulated(Model::Skylake),
        ..Guest::new(Boot::Direct, job)
    };
    let ran = guest.run();
    let result = ran.ends_with(0).report.processors().next().expect("an item for both");
    assert_eq!(result.processors.len(), 2);
    for one in &result.processors {
        assert!(one.metrics.iter().all(|metric| metric.value.median == 4.0), "{one:?}");
    }
}

/// QEMU's translator lets 32-bit code reach data through an empty DS; a processor does not. So the selectors are looked at.
#[test]
fn t6_32_bit_code_finds_data_segments_of_its_ring_and_they_are_put_back_behind_it() {
    let check = |selector: u16| {
        let of = |segment: &str| format!("mov eax, {segment}; cmp eax, {selector}; jne 2f; ");
        format!("{}{}{}jmp 3f; 2: ud2; 3:", of("ds"), of("es"), of("ss"))
    };
    let mut job = "[defaults]\nbits = 32\nunroll = 1\nruns = 2\n".to_string();
    for (ring, selector) in [(0, 0x10), (3, 0x1b), (0, 0x10)] {
        let asm = check(selector);
        job += &format!(
            "[[snippet]]\ninit = \"{asm}\"\nasm = \"{asm}\"\nmachine = {{ ring = {ring} }}\n"
        );
    }
    job += "[[snippet]]\nbits = 64\nasm = \"mov eax, ds; mov ecx, es; cmp eax, ecx; jne 2f; cmp eax, 0x10; je 3f; 2: ud2; 3:\"\n";
    let ran = direct(&job);
    ran.ends_with(0);
    let restored = ran.results().iter().any(|result| !result.restored.is_empty());
    assert!(ran.results().len() == 4 && !restored, "{:?}", ran.results());
}
