//! Events of some instructions only on processors without qualifier registers: an estimate by PEBS or IBS samples, whose interval
//! holds what exact mode counts.

use pmu_model::Model;
use protocol::record::{ExactResult, SampledCount};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Loads and stores of several widths and places, and instructions without.
const BODY: &str = "mov rax, [r14]; imul rax, rcx; mov [r14 + 8], rax; add rdx, [r14 + 16]; push rax; pop rbx; \
    lea rbx, [rbx + 4]; mov byte ptr [r14 + 7], 1; xor edx, edx; imul edx, edx";

const FILTERS: [&str; 7] = [
    r#"opcodes = ["imul"]"#,
    r#"opcodes = ["push", "pop", "mov"]"#,
    r#"instructions = "0..12""#,
    r#"data = "r14:0..8""#,
    r#"data = "rsp:-64..0""#,
    r#"opcodes = ["mov", "add"], instructions = "1..0x100", data = "r14:7..17""#,
    r#"opcodes = ["div"]"#,
];

/// What a model samples, its period, and what exact mode calls it.
struct By {
    event: &'static str,
    rate: &'static str,
    exact: &'static str,
}

/// INST_RETIRED.PREC_DIST, MEM_INST_RETIRED.ALL_LOADS and ALL_STORES: no loop's length has a factor in common with the periods.
const INTEL: [By; 3] = [
    By { event: "inst_retired.prec_dist", rate: "period = 479", exact: "instructions" },
    By { event: "r81d0", rate: "period = 127", exact: "loads" },
    By { event: "r82d0", rate: "period = 127", exact: "stores" },
];
/// Operations, of which each instruction is one on the emulated PMU. A period is a multiple of 16.
const AMD: [By; 1] = [By { event: "r00c1", rate: "period = 480\nrandomise = true", exact: "instructions" }];

const TURNS: u64 = 40_000;

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn job(by: &[By]) -> String {
    let mut job = String::new();
    for filter in FILTERS {
        job += &format!("[[snippet]]\nexact = {{ {filter} }}\nasm = '''\n{BODY}\n'''\n");
    }
    for By { event, rate, .. } in by {
        for filter in FILTERS {
            job += &format!(
                "[[sample]]\nprecise = true\nkeep = \"samples\"\nevents = [\"{event}\"]\n{rate}\nonly = {{ {filter} }}\n\
                 asm = '''\n{BODY}\n'''\nturns = {TURNS}\n"
            );
        }
    }
    job
}

fn counted(result: &ExactResult, event: &str) -> u64 {
    let count = result.counts.iter().find(|count| count.event == event).expect(event);
    count.value as u64 * TURNS
}

#[test]
fn t1_t2_t3_t8_an_estimate_s_interval_holds_what_exact_mode_counts() {
    for (model, by) in
        [(Model::Skylake, &INTEL[..]), (Model::IceLake, &INTEL), (Model::Zen4, &AMD)]
    {
        let ran = on(model, &job(by));
        let exact: Vec<&ExactResult> = ran.report.exact().collect();
        let sampled: Vec<_> = ran.report.sampled().collect();
        eprintln!("{}", ran.pmu_said.join("\n"));
        let mut wrong = Vec::new();
        let mut refused = 0;
        for e in ran.errors() { eprintln!("{model:?} {}", e.text); refused += 1; }
        eprintln!("{model:?} {} {} {}", exact.len(), sampled.len(), refused);
        for r in &sampled {
            let one: &SampledCount = &r.events[0];
            eprintln!("{:?} {} ov {} rest {} ended {:?} wit {:?} hi {:?} int {} {:?} {:?}", r.item, one.event, one.overflows, one.rest, one.ended, one.witness, r.handler_instructions, r.interrupts, one.qualified, one.remarks);
        }
        for e in &exact {
            eprintln!("{} {:?}", e.item, by.iter().map(|b| counted(e, b.exact)).collect::<Vec<_>>());
        }
        wrong.push(1);
    }
    panic!();
}
