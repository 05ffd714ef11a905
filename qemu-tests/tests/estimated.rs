//! Events of some instructions only on processors without qualifier registers: an estimate by PEBS or IBS samples, whose interval
//! holds what exact mode counts.

use pmu_model::Model;
use protocol::record::ExactResult;
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

/// What a model samples, its period, what exact mode calls it, and the filters that are tried.
struct By {
    event: &'static str,
    rate: &'static str,
    exact: &'static str,
    filters: &'static [usize],
}

/// INST_RETIRED.PREC_DIST, MEM_INST_RETIRED.ALL_LOADS and ALL_STORES: the periods are primes.
const INTEL: [By; 3] = [
    By {
        event: "inst_retired.prec_dist:u",
        rate: "period = 97",
        exact: "instructions",
        filters: &[0, 1, 2, 6],
    },
    By { event: "r81d0:u", rate: "period = 23", exact: "loads", filters: &[1, 3, 4, 5] },
    By { event: "r82d0:u", rate: "period = 23", exact: "stores", filters: &[2, 3, 5] },
];
/// Operations, of which each instruction is one on the emulated PMU. A period is a multiple of 16, at least 256.
const AMD: [By; 1] = [By {
    event: "r00c1",
    rate: "period = 272\nrandomise = true",
    exact: "instructions",
    filters: &[0, 1, 2, 3, 4, 5, 6],
}];

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn sample(event: &str, rate: &str, filter: &str, task: &str) -> String {
    format!(
        "[[sample]]\nprecise = true\nkeep = \"samples\"\nevents = [\"{event}\"]\n{rate}\nonly = {{ {filter} }}\n{task}\n"
    )
}

fn task(turns: u64, ring: u8) -> String {
    format!("[[sample.task]]\nname = \"t\"\nring = {ring}\nturns = {turns}\nasm = '''\n{BODY}\n'''")
}

fn job(by: &[By], turns: u64) -> String {
    let exact =
        |filter: &&str| format!("[[snippet]]\nexact = {{ {filter} }}\nasm = '''\n{BODY}\n'''\n");
    let mut job: String = FILTERS.iter().map(exact).collect();
    for By { event, rate, filters, .. } in by {
        for &filter in *filters {
            job += &sample(event, rate, FILTERS[filter], &task(turns, 3));
        }
    }
    job
}

fn counted(result: &ExactResult, event: &str) -> u64 {
    result.counts.iter().find(|count| count.event == event).expect(event).value as u64
}

/// A model, what it samples, by what, and turns of the tasks.
type Sampled<'a> = (Model, &'a [By], &'a str, u64);

#[test]
fn t1_t2_t3_t8_an_estimate_s_interval_holds_what_exact_mode_counts() {
    hold(&[(Model::Skylake, &INTEL, "PEBS", 8_000), (Model::Zen4, &AMD, "IBS", 24_000)]);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn t1_t2_t3_t8_an_estimate_s_interval_holds_what_exact_mode_counts_on_ice_lake_soak() {
    hold(&[(Model::IceLake, &INTEL, "PEBS", 8_000)]);
}

fn hold(models: &[Sampled<'_>]) {
    for &(model, by, name, turns) in models {
        let ran = on(model, &job(by, turns));
        ran.ends_with(0);
        let exact: Vec<&ExactResult> = ran.report.exact().collect();
        let mut sampled = ran.report.sampled();
        let mut held = 0;
        for By { event, exact: counts, filters, .. } in by {
            for &filter in *filters {
                let one = &sampled.next().expect("a result").events[0];
                let found = one.qualified.as_ref().unwrap_or_else(|| panic!("{model:?}: {one:?}"));
                let right = counted(exact[filter], counts) * turns;
                let what = format!("{model:?} {event} {}: {right}, {one:?}", FILTERS[filter]);
                let [least, most] = found.between;
                let holds = least <= right && right <= most;
                held += usize::from(holds);
                // Prime periods spread evenly. Random ones do not: an interval of 95 % misses one time in twenty, by some more. It has
                // 1.96 standard deviations to each side; 4.4 are exceeded once in 90,000 times.
                let close = right.abs_diff(found.estimate) * 8 <= (most - least) * 9;
                assert!(if name == "IBS" { close } else { holds }, "{what}");
                // Some 1,000 samples: the interval is no wider than 6.5 % of all.
                assert!(
                    found.samples > 900 && (most - least) * 1000 <= 65 * found.counted,
                    "{what}"
                );
                assert!(found.only.starts_with("only=") && found.by == name, "{what}");
                assert_eq!(found.passed == 0, right == 0, "{what}");
                assert!(!one.remarks.iter().any(|text| text.contains("factor")), "{what}");
            }
        }
        // More than three of seven miss once in 5,000 times.
        let all: usize = by.iter().map(|one| one.filters.len()).sum();
        assert!(held + 3 >= all, "{model:?}: {held} of {all}");
    }
}

/// An event, what is asked of it, the exit code, and what the refusal says.
type Refusal<'a> = (&'a str, &'a str, u8, &'a str);

#[test]
fn t8_what_samples_cannot_estimate_is_refused_by_name() {
    let opcodes = r#"opcodes = ["imul"]"#;
    let data = r#"data = "r14:0..8""#;
    let cases: [(Model, &[Refusal<'_>]); 3] = [
        (Model::Nehalem, &[("r01c0", opcodes, 3, "came with Haswell (format 2)")]),
        (
            Model::Skylake,
            &[
                ("inst_retired.prec_dist", data, 3, "no data address"),
                ("mem-loads", data, 3, "load latency looks at some of the loads"),
                ("uops_issued.any", opcodes, 3, "the nearest is `inst_retired.prec_dist`"),
            ],
        ),
        (
            Model::Zen4,
            &[
                ("cycles", opcodes, 3, "not cycles, fetches"),
                ("mem-loads", data, 3, "loads and stores apart"),
                ("r00c1", opcodes, 0, "with ring = 3"),
            ],
        ),
    ];
    for (model, cases) in cases {
        let items = cases.iter().map(|(event, filter, ring, _)| {
            sample(event, "period = 272", filter, &task(1_000, *ring))
        });
        let ran = on(model, &items.collect::<String>());
        let errors = ran.errors();
        assert_eq!(errors.len(), cases.len(), "{model:?}: {errors:?}");
        for (error, (event, .., part)) in errors.iter().zip(cases) {
            assert!(error.text.contains(event) && error.text.contains(part), "{}", error.text);
        }
    }
}

/// What falls short of an estimate is said: the period keeps step with the loop, or samples are missing.
#[test]
fn t8_a_period_with_a_factor_and_samples_that_are_missing_are_told() {
    let of = |rate: &str| {
        sample("inst_retired.prec_dist:u", rate, r#"opcodes = ["imul"]"#, &task(500, 3))
    };
    let ran = on(Model::Skylake, &(of("period = 24") + &of("period = 23\ncapacity = 100")));
    ran.ends_with(0);
    let events: Vec<_> = ran.report.sampled().map(|result| &result.events[0]).collect();
    let [step, few] = events[..] else { panic!("{events:?}") };
    let said = |text: &str| {
        step.remarks.iter().chain(&few.remarks).filter(|one| one.contains(text)).count()
    };
    assert_eq!(said("has a factor in common with the period, 24"), 1);
    assert!(step.qualified.is_some());
    assert_eq!((few.qualified.as_ref(), said("no estimate, because")), (None, 1), "{few:?}");
}
