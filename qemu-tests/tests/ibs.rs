//! Instruction-based sampling on the emulated AMD models: each sample is of the tagged instruction itself.

use pmu_model::Model;
use protocol::record::{CheckVerdict, SampleResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

const MODELS: [Model; 3] = [Model::K10, Model::Zen2, Model::Zen4];
/// Instructions by which interrupts differ from each other, and those of a tick of the tasks' timer: one more or less comes with
/// what the hypervisor takes of the machine's time, and was 96.
const FEW: i64 = 64 + 96;

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn sampled(ran: &Ran) -> Vec<&SampleResult> {
    ran.report.sampled().collect()
}

/// Every sample is accounted for, and the periods come to what a counter beside counted less `seen` for each interrupt: the end of
/// the handler, and what that counter goes on earlier. These are counts of this version's handlers. The last period has no sample.
fn is_whole(result: &SampleResult, seen: i64, model: Model) {
    let one = &result.events[0];
    assert_eq!((one.samples + one.dropped, one.lost), (one.overflows, 0), "{model:?}: {one:?}");
    let sum = one.ended.unwrap_or(one.overflows * one.period) + one.rest;
    let beside = one.witness.expect("a counter counts beside");
    let last = beside.cast_signed() - sum.cast_signed() - seen * one.overflows.cast_signed();
    // A random period is longer by 63 at most.
    let longest = one.period.cast_signed() + if one.ended.is_some() { 63 } else { 0 };
    assert!(
        (-FEW..=longest + FEW).contains(&last),
        "{model:?}: {last} of {sum}, {beside}: {one:?}"
    );
}

#[test]
fn s1_ibs_samples_the_tagged_instruction_with_its_data() {
    for model in MODELS {
        for ring in [0, 3] {
            let toml = format!(
                "[[sample]]\nprecise = true\nevents = [\"r00c1\"]\nperiod = 272\nkeep = \"samples\"\ncapacity = 4000\n\
                 [[sample.task]]\nname = \"t\"\nturns = 4000\nring = {ring}\n\
                 asm = \"mov rdx, [r14+rcx]; add rcx, 8; and rcx, 0x1f8\"\n"
            );
            let ran = on(model, &toml);
            ran.ends_with(0);
            let result = sampled(&ran)[0];
            is_whole(result, if model == Model::Zen2 { 43 } else { 42 }, model);
            let one = &result.events[0];
            assert_eq!(one.counter.as_deref(), Some("ibs_op, by operations"), "{model:?}");
            assert!(one.skid.as_deref().is_some_and(|skid| skid.starts_with("0: ")), "{one:?}");
            // 20,000 instructions, and handlers' ends.
            assert!((73..=140).contains(&one.samples), "{model:?} {ring}: {one:?}");
            let body = result.code[0].body[0].0;
            let (mut loads, mut others) = (0, 0);
            for chunk in ran.report.samples(0) {
                for ((address, ..), data) in chunk.iter().zip(&chunk.data) {
                    let at = address.wrapping_sub(body);
                    match at {
                        0 => {
                            loads += 1;
                            assert!(data.0 != 0 && data.0 % 8 == 0, "{model:?}: {data:?}");
                        }
                        // `add` and `and`, four and seven bytes, after the load of four.
                        4 | 8 => {
                            others += 1;
                            assert_eq!(data.0, 0, "{model:?}: {at}");
                        }
                        // The loop's own, and the handler's end.
                        _ => {}
                    }
                }
            }
            assert!(loads >= 8 && others >= 16, "{model:?} in ring {ring}: {loads}, {others}");
        }
    }
}

#[test]
fn s1_ibs_tells_sources_latencies_and_outcomes() {
    const CODE: &str = "mov rdx, [r14]; clflush [r14+64]; mfence; mov rax, [r14+64]";
    let item = |event: &str| {
        format!("[[sample]]\nprecise = true\nevents = [{event}]\nasm = \"{CODE}\"\nturns = 4000\n")
    };
    let toml = item("{ event = \"r00c1\", period = 272 }")
        + &item("{ event = \"mem-loads\", latency = 30, period = 272 }")
        + &item("{ event = \"mem-stores\", period = 272 }");
    for model in MODELS {
        let ran = on(model, &toml);
        ran.ends_with(0);
        let [all, slow, stores] = sampled(&ran)[..] else { panic!("{model:?}") };
        let levels = |result: &SampleResult| {
            let row =
                |one: &protocol::record::SourceCount| (one.source.clone(), one.least, one.longest);
            let loads =
                result.sources.iter().filter(|one| !one.store && one.tlb_miss == Some(false));
            let mut seen: Vec<_> = loads.map(row).collect();
            seen.sort();
            seen
        };
        let far = ("memory".to_string(), 128, 200);
        assert!(levels(all).contains(&("L1".to_string(), 0, 0)), "{model:?}: {:?}", all.sources);
        assert!(levels(all).contains(&far), "{model:?}: {:?}", all.sources);
        assert_eq!(levels(slow), [far], "{model:?}");
        let one = &slow.events[0];
        // One of six instructions of a turn is such a load.
        assert!(one.filtered > 2 * one.samples && one.samples > 5, "{model:?}: {one:?}");
        assert_eq!(one.samples, slow.data[0].count, "{model:?}");
        // The loop stores nothing; a handler does.
        assert!(stores.events[0].filtered > 60, "{model:?}: {:?}", stores.events[0]);
        // The loop's own jump, which is taken but for once.
        let [jump, ..] = &all.outcomes[..] else { panic!("{model:?}: no branch") };
        assert!(jump.count > 5 && jump.taken + 1 >= jump.count, "{model:?}: {jump:?}");
        assert_eq!(jump.returns, 0, "{model:?}");
    }
}

#[test]
fn s1_ibs_by_cycles_of_fetches_and_by_a_rate() {
    let item = |event: &str| {
        // Beside a counter that is sampled as ever, one asks for itself.
        let precise = !event.contains(":pp");
        format!(
            "[[sample]]\nprecise = {precise}\nevents = [{event}]\nasm = \"imul rax, rax; nop\"\nturns = 6000\n"
        )
    };
    let events = [
        "{ event = \"cycles\", period = 256 }",
        "{ event = \"ibs_fetch\", period = 256 }",
        "{ event = \"ex_ret_ops\", frequency = 200000 }",
        "{ event = \"cycles:pp\", period = 512 }, { event = \"instructions\", period = 1000 }",
    ];
    let ran = on(Model::Zen4, &events.map(item).concat());
    ran.ends_with(0);
    let results = sampled(&ran);
    // Beside another event's interrupts, the unit sees more of these than the counter does.
    for (result, (counter, seen)) in results.iter().zip([
        ("ibs_op, by cycles", 36),
        ("ibs_fetch", 36),
        ("ibs_op, by operations", 36),
        ("ibs_op, by cycles", -12),
    ]) {
        let one = &result.events[0];
        assert_eq!(one.counter.as_deref(), Some(counter));
        is_whole(result, seen, Model::Zen4);
        assert!(one.samples >= 5, "{one:?}");
        assert_eq!(one.period % 16, 0, "{one:?}");
    }
    // A counter is sampled beside as ever.
    let other = &results[3].events[1];
    assert!(other.overflows >= 20 && other.samples == other.overflows, "{other:?}");
}

#[test]
fn s1_ibs_refuses_what_it_cannot_by_name() {
    let item = |event: &str, period: u64| {
        format!(
            "[[sample]]\nprecise = true\nevents = [\"{event}\"]\nasm = \"nop\"\nperiod = {period}\n"
        )
    };
    let random = item("r01c0", 1000).replace("precise", "randomise = true\nprecise");
    let ran = on(Model::Skylake, &random);
    ran.ends_with(1);
    let refused = "randomise is for instruction-based sampling (IBS): a counter, and PEBS, start";
    assert!(ran.errors()[0].text.contains(refused), "{:?}", ran.errors());
    for (model, event, period, part) in [
        (Model::Zen4, "ex_ret_instr", 272, "IBS samples by cycles"),
        (Model::Zen4, "cycles:u", 272, "every ring"),
        (Model::Zen4, "cycles", 1000, "the nearest are 992 and 1008"),
        (Model::Zen4, "cycles", 128, "at least 256 are needed"),
        (Model::K10, "cycles", 1 << 20, "out of IBS's range, which is 16 to 1048560"),
        (Model::Skylake, "ibs_op", 272, "instruction-based sampling is AMD's"),
    ] {
        let ran = on(model, &item(event, period));
        ran.ends_with(1);
        let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
        assert!(texts[0].contains(part), "{model:?} {event}: {texts:?}");
    }
}

#[test]
fn k1_the_checks_of_ibs_pass_where_it_is_and_are_skipped_elsewhere() {
    let job = "kind = \"conformance\"\nchecks = [\"ibs.*\"]";
    for (model, passed) in MODELS.map(|model| (model, 10)).into_iter().chain([(Model::Skylake, 0)])
    {
        let ran = on(model, job);
        let suite = ran.report.suites().next().expect("a suite ran");
        let checks: Vec<_> = ran.report.checks().collect();
        assert_eq!((suite.passed, suite.failed), (passed, 0), "{model:?}: {checks:#?}");
        let skipped = checks.iter().filter(|check| check.verdict == CheckVerdict::Skip);
        assert_eq!(skipped.count() as u32, 10 - passed, "{model:?}: {checks:#?}");
    }
}

/// With one period from the same value each time, a loop that divides it is sampled in few places; random periods see all of it.
#[test]
fn s1_random_periods_spread_over_a_loop_that_divides_them() {
    const LENGTHS: std::ops::Range<usize> = 8..24;
    let item = |nops: usize, randomise: bool| {
        let asm = vec!["nop"; nops].join("; ");
        let turns = 40_000 / nops;
        format!(
            "[[sample]]\nprecise = true\nrandomise = {randomise}\nevents = [\"r00c1\"]\nperiod = 272\n\
             asm = \"{asm}\"\nturns = {turns}\n"
        )
    };
    let toml: String = LENGTHS.map(|nops| item(nops, false) + &item(nops, true)).collect();
    let ran = on(Model::Zen4, &toml);
    ran.ends_with(0);
    let results = sampled(&ran);
    let (mut narrow, mut sums) = (0, [0; 2]);
    for (nops, pair) in LENGTHS.zip(results.chunks(2)) {
        let [fixed, random] = pair else { panic!("two items each") };
        let places = |result: &SampleResult| {
            let [start, end] = result.code[0].body.map(|at| at.0);
            result.addresses.iter().filter(|row| (start..end).contains(&row.address.0)).count()
        };
        is_whole(fixed, 36, Model::Zen4);
        is_whole(random, 36, Model::Zen4);
        let one = &random.events[0];
        let ended = one.ended.expect("its periods are random");
        assert!(one.remarks.iter().any(|text| text.contains("random")), "{one:?}");
        assert_eq!(fixed.events[0].ended, None);
        // Of some 130 samples most of the loop.
        assert!(places(random) >= nops * 3 / 4, "{nops}: {}", places(random));
        narrow += usize::from(places(fixed) <= 2);
        sums = [sums[0] + ended, sums[1] + one.overflows];
    }
    assert!(narrow >= 1, "some loop divides a period with the handler's end");
    // Some 2,000 periods from -63 to 63 around their mean: it is met within 3 (4 standard deviations of theirs).
    assert!(sums[1] > 1_500, "{sums:?}");
    assert!(sums[0].abs_diff(272 * sums[1]) < 4 * sums[1], "{sums:?}");
}

/// The seed is the same on each emulated machine, and so are the samples.
#[test]
fn s1_random_periods_repeat_on_the_emulated_pmu() {
    let item = |event: &str| {
        format!(
            "[[sample]]\nprecise = true\nrandomise = true\nevents = [\"{event}\"]\nperiod = 512\n\
             asm = \"imul rax, rax; nop\"\nturns = 20000\nkeep = \"samples\"\n"
        )
    };
    for model in MODELS {
        let toml = ["ibs_op", "ibs_fetch"].map(item).concat();
        let [first, second] = [(); 2].map(|()| on(model, &toml));
        let of = |ran: &Ran| {
            ran.ends_with(0);
            let chunks: Vec<String> = (0..2)
                .flat_map(|item| {
                    ran.report
                        .samples(item)
                        .map(|chunk| {
                            let places: Vec<_> =
                                chunk.iter().map(|(address, ..)| address).collect();
                            format!("{places:x?}")
                        })
                        .collect::<Vec<_>>()
                })
                .collect();
            let counts: Vec<_> = sampled(ran)
                .iter()
                .map(|one| (one.events[0].overflows, one.events[0].ended))
                .collect();
            (chunks, counts)
        };
        assert_eq!(of(&first), of(&second), "{model:?}");
        for (overflows, ended) in of(&first).1 {
            let ended = ended.expect("random");
            assert!(overflows > 50, "{model:?}");
            assert!(
                ended.abs_diff(512 * overflows) < 20 * overflows,
                "{model:?}: {ended} of {overflows}"
            );
        }
    }
}

/// An entry of the extended table that is changed by what it holds: 0x10000 after RESET, then vector, mode and mask.
#[test]
fn s1_the_extended_apic_registers_take_read_modify_write() {
    // The task finds the page through the firmware's map of physical memory; IBS_CTL is read first, as a driver does.
    let asm = "mov ecx, 0xc001103a; rdmsr; mov rdi, 0xffff8000fee00510; mov dword ptr [rdi], 0x10000; \
               or dword ptr [rdi], 0x4e2; and dword ptr [rdi], 0xfffeffff; lock bts dword ptr [rdi], 16; setc al; \
               xor dword ptr [rdi], 2; mov edx, 0x10; add [rdi], edx; btr dword ptr [rdi], 16; setc ah; movzx eax, ax; \
               shl rax, 32; mov edx, [rdi]; or rax, rdx; mov dword ptr [rdi], 0x10000; mov [r14], rax";
    let toml = format!(
        "[[run]]\ntick-ns = 0\n[[run.task]]\nname = \"t\"\nasm = \"{asm}\"\nturns = 1\nring = 0\n"
    );
    let ran = on(Model::Zen4, &toml);
    ran.ends_with(0);
    let tasks = ran.report.tasks().next().expect("a task ran");
    // 0x4E2 with mask; without; set again (CF 0), 2 taken out, 0x10 more, the mask taken out (CF 1).
    assert_eq!(tasks.tasks[0].value.0, 0x100_0000_04f0, "{tasks:?}");
}
