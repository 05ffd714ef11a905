//! PEBS on the emulated models: each record is of the instruction itself, with its data's address, and none is lost
//! unseen.

use pmu_model::Model;
use protocol::record::{CheckVerdict, SampleResult, SampledCount, Samples};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Each record format, and an event that every instruction is and that is precise there: on fixed counter 0, and on a
/// general-purpose one beyond the first four.
const MODELS: [(Model, &str); 8] = [
    (Model::Core2, "r00c0"),
    (Model::Nehalem, "r01c0"),
    (Model::Haswell, "inst_retired.prec_dist"),
    (Model::Skylake, "inst_retired.prec_dist"),
    (Model::IceLake, "inst_retired.prec_dist"),
    (Model::SapphireRapids, "inst_retired.any_p:counter=5"),
    (Model::ArrowLake, "inst_retired.any_p:counter=9"),
    (Model::CougarCove, "inst_retired.any_p:counter=7"),
];

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn sampled(ran: &Ran) -> Vec<&SampleResult> {
    ran.report.sampled().collect()
}

/// Whether records have the address of the instruction itself, and not of the one after.
fn is_exact(model: Model) -> bool {
    !matches!(model, Model::Core2 | Model::Nehalem)
}

/// Whether records are adaptive.
fn is_adaptive(model: Model) -> bool {
    matches!(model, Model::IceLake | Model::SapphireRapids | Model::ArrowLake)
}

/// Every event is in a period that has its record, or in the rest.
fn is_whole(one: &SampledCount) {
    assert_eq!(one.samples + one.dropped + one.lost, one.overflows, "{one:?}");
    assert_eq!(Some(one.overflows * one.period + one.rest), one.witness, "{one:?}");
}

/// Two tasks of ring 3: five instructions a turn, and four; the loop's two among them.
const TASKS: [(&str, &str, u64, [u64; 5]); 2] = [
    ("a", "nop; imul rax, rax; nop", 6_000, [0, 1, 5, 6, 9]),
    ("b", "inc rbx; add rcx, rbx", 5_000, [0, 3, 6, 9, u64::MAX]),
];

fn tasks() -> String {
    let task = |(name, asm, turns, _): (&str, &str, u64, _)| {
        format!("[[sample.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nturns = {turns}\nring = 3\n")
    };
    TASKS.map(task).concat()
}

#[test]
fn m9_s1_records_name_the_instruction_that_retired_the_event_and_none_is_lost() {
    const PERIOD: u64 = 77;
    for (model, event) in MODELS {
        let toml = format!(
            "[[sample]]\nprecise = true\nevents = [\"{event}:u\"]\nperiod = {PERIOD}\nkeep = \"samples\"\n\
             tick-ns = 300000\njitter = 1\n{}",
            tasks()
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = sampled(&ran)[0];
        let one = &result.events[0];
        is_whole(one);
        // Each task ends in an INT.
        let counted = 5 * 6_000 + 1 + 4 * 5_000 + 1;
        assert_eq!((one.witness, one.overflows), (Some(counted), counted / PERIOD), "{model:?}");
        assert_eq!((one.lost, one.dropped), (0, 0), "{model:?}");
        let skid = one.skid.as_deref().expect("a precise event");
        assert_eq!(skid.starts_with("0: "), is_exact(model), "{model:?}: {skid}");
        // Which instruction of its own sequence each record is of, task by task; the periods go on from one task to the
        // other, so what the tasks have done together is a multiple of the period at each record.
        let all: Vec<_> = ran.report.samples(result.item).flat_map(Samples::iter).collect();
        assert_eq!(all.len() as u64, one.overflows, "{model:?}");
        assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1), "the TSC rises: {model:?}");
        let place = |&(address, _, _, task): &(u64, u64, u32, u32)| {
            let index = (task >> 2) as usize;
            assert_eq!(task & 3, 3, "{model:?}: ring 3");
            let body = result.code[index].body.map(|at| at.0);
            let at = TASKS[index].3.iter().position(|&at| body[0].wrapping_add(at) == address);
            (index, at)
        };
        let mut seen = [0; 2];
        for pair in all.windows(2) {
            let [(before, from), (after, to)] = [place(&pair[0]), place(&pair[1])];
            seen[after] += 1;
            let (Some(from), Some(to)) = (from, to) else { continue };
            if before == after {
                let turn = [5, 4][before] as u64;
                // Nothing of the other task between them, or a number of instructions that only the whole tells.
                let step = (turn + to as u64 - from as u64) % turn;
                let alone = pair[1].1 - pair[0].1 < 2 * PERIOD;
                assert!(!alone || step == PERIOD % turn, "{model:?}: {pair:x?}");
            }
        }
        let unknown = all.iter().filter(|one| place(one).1.is_none()).count();
        assert!(unknown <= 1, "{model:?}: {unknown} outside the loops, where the INTs are");
        assert!(seen[0] > 300 && seen[1] > 200, "{model:?}: {seen:?}");
    }
}

/// In ring 0, from the first instruction of the body on: the n-th record is of the instruction at n periods.
#[test]
fn m9_s1_the_nth_record_is_of_the_instruction_at_n_periods() {
    const PERIOD: u64 = 64;
    const PLACES: [u64; 5] = [0, 1, 5, 6, 9];
    for (model, event) in MODELS {
        // Fewer than the buffer's threshold, so that no handler is counted.
        let toml = format!(
            "[[sample]]\nprecise = true\nasm = \"nop; imul rax, rax; nop\"\nturns = 2000\n\
             events = [\"{event}\"]\nperiod = {PERIOD}\nkeep = \"samples\"\nregisters = [\"r15\"]\n"
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = sampled(&ran)[0];
        is_whole(&result.events[0]);
        assert_eq!(result.interrupts, 0, "{model:?}");
        let body = result.code[0].body[0].0;
        let all: Vec<u64> =
            ran.report.samples(0).flat_map(Samples::iter).map(|one| one.0).collect();
        let counts: Vec<u64> =
            ran.report.samples(0).flat_map(|chunk| &chunk.registers).map(|r| r.0).collect();
        let number = |address: u64| PLACES.iter().position(|at| body + at == address);
        let inside: Vec<(usize, u64, u64)> = (all.iter().zip(&counts).enumerate())
            .filter_map(|(n, (address, r15))| Some((n, number(*address)? as u64, *r15)))
            .collect();
        assert!(inside.len() >= all.len() - 1 && all.len() >= 156, "{model:?}: {all:x?}");
        // Instructions of the loop up to each record's own: R15 counts the turns down, its state is that after.
        let done = |&(_, place, r15): &(usize, u64, u64)| match is_exact(model) {
            // DEC is the fourth.
            true => 5 * (2000 - r15 - u64::from(place >= 3)) + place,
            // The address is that of the next one, so the turn is the next one's too.
            false => 5 * (2000 - r15 - u64::from(place == 4)) + place - 1,
        };
        let begin = done(&inside[0]);
        for one in &inside {
            let expected = begin + (one.0 - inside[0].0) as u64 * PERIOD;
            assert_eq!(done(one), expected, "{model:?}: {one:x?}");
        }
        // A few instructions of the gate and of the code in front of the loop are counted as well.
        assert!(begin < PERIOD && PERIOD - begin < 16, "{model:?}: {begin}");
    }
}

#[test]
fn m9_s1_each_record_has_the_address_of_the_data_that_its_instruction_accessed() {
    for (model, loads, stores) in [
        (Model::Haswell, "mem_uops_retired.all_loads", "mem_uops_retired.all_stores"),
        (Model::Skylake, "mem_inst_retired.all_loads", "mem_inst_retired.all_stores"),
        (Model::IceLake, "mem_inst_retired.all_loads", "mem_inst_retired.all_stores"),
        (Model::ArrowLake, "mem_inst_retired.all_loads", "mem_inst_retired.all_stores"),
        (Model::CougarCove, "mem_inst_retired.all_loads", "mem_inst_retired.all_stores"),
    ] {
        let options = |event: &str, keep: &str| {
            format!(
                "[[sample]]\nprecise = true\nturns = 3000\nevents = [\"{event}\"]\nperiod = 71\n{keep}\n\
                 asm = \"mov rdx, [r14+rcx]; mov [rdi+rcx*2], rdx; add rcx, 8; and rcx, 0x1f8\"\n"
            )
        };
        let single = "keep = \"samples\"\nregisters = [\"rcx\", \"r14\", \"rdi\"]";
        let toml = options(loads, single) + &options(stores, single) + &options(loads, "");
        let ran = on(model, &toml);
        ran.ends_with(0);
        let results = sampled(&ran);
        for result in &results {
            is_whole(&result.events[0]);
            assert!(result.events[0].overflows >= 42, "{model:?}: {result:?}");
        }
        for item in [0, 1] {
            let body = results[item as usize].code[0].body[0].0;
            let mut inside = 0;
            for chunk in ran.report.samples(item) {
                let count = chunk.iter().count();
                let columns = [chunk.data.len(), chunk.registers.len() / 3];
                assert_eq!(columns, [count; 2], "{model:?}: {chunk:?}");
                let places = chunk.iter().zip(&chunk.data).zip(chunk.registers.chunks(3));
                for ((sample, data), registers) in places {
                    // In the order of their encoding.
                    let [rcx, rdi, r14] = [0, 1, 2].map(|n| registers[n].0);
                    let expected = match item {
                        0 => (body, r14 + rcx),
                        // Behind the load of four bytes.
                        _ => (body + 4, rdi + 2 * rcx),
                    };
                    // The measuring code's own accesses have other addresses.
                    let own = sample.0 < body || sample.0 >= body + 30;
                    assert!(own || (sample.0, data.0) == expected, "{model:?}: {sample:x?}");
                    inside += usize::from(!own);
                }
            }
            // All but those of the measuring code.
            assert!(inside >= 40, "{model:?}: {inside} samples of the loop");
        }
        let counted = results[2];
        let rows: u64 = counted.data.iter().map(|row| row.count).sum();
        assert_eq!(rows, counted.events[0].samples, "{model:?}");
        // Eight lines of eight words, each word as often as the others but for chance.
        assert!(counted.data.len() >= 30, "{model:?}: {:?}", counted.data);
        assert_eq!(counted.data_elsewhere, 0);
    }
}

#[test]
fn m11_s1_records_that_found_the_buffer_full_are_counted() {
    for (model, event) in MODELS {
        // No interrupt comes through, and nothing freezes the counters meanwhile.
        let toml = format!(
            "[[sample]]\nprecise = true\nasm = \"cli; imul rax, rax; nop\"\nturns = 8000\nfreeze = \"off\"\n\
             events = [\"{event}\"]\nperiod = 64\n"
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let one = &sampled(&ran)[0].events[0];
        is_whole(one);
        // An architectural buffer is of a power of two, here 128 KiB, and its records have 288 bytes each.
        let fit = if model == Model::CougarCove { 131_072 / 288 } else { 256 };
        assert_eq!(one.samples, fit, "{model:?}: {one:?}");
        assert!((616..=628).contains(&(one.lost + fit)), "{model:?}: {one:?}");
    }
}

/// A load of a line that is there, and one of a line that was flushed before.
const NEAR_AND_FAR: &str = "mov rdx, [r14]; clflush [r14+64]; mfence; mov rax, [r14+64]";

#[test]
fn m5_s1_load_latency_is_sampled_by_its_threshold_with_levels_and_cycles() {
    let item = |latency: u32| {
        format!(
            "[[sample]]\nasm = \"{NEAR_AND_FAR}\"\nturns = 1000\n\
             events = [{{ event = \"mem-loads\", latency = {latency}, period = 65 }}]\n"
        )
    };
    for model in [
        Model::Nehalem,
        Model::Haswell,
        Model::Skylake,
        Model::SapphireRapids,
        Model::ArrowLake,
        Model::CougarCove,
    ] {
        let ran = on(model, &(item(3) + &item(100)));
        ran.ends_with(0);
        let [all, slow] = sampled(&ran)[..] else { panic!("{model:?}") };
        let levels = |result: &SampleResult| {
            let level = |one: &protocol::record::SourceCount| {
                (one.source.split(',').next().unwrap().to_string(), one.least, one.longest)
            };
            let mut seen: Vec<_> = result.sources.iter().map(level).collect();
            seen.sort();
            seen.dedup();
            seen
        };
        let told: u64 = all.sources.iter().map(|one| one.count).sum();
        assert_eq!((told, all.sources_elsewhere), (all.events[0].samples, 0), "{model:?}: {all:?}");
        assert!(told >= 30, "{model:?}: {told}");
        let seen = levels(all);
        let near_and_far = [("L1".to_string(), 4, 4), ("memory".to_string(), 128, 204)];
        assert!(near_and_far.iter().all(|one| seen.contains(one)), "{model:?}: {seen:?}");
        // The far one alone: 1,000 in all.
        assert_eq!(levels(slow), near_and_far[1..], "{model:?}");
        assert!((14..=16).contains(&slow.events[0].samples), "{model:?}: {slow:?}");
        let [line] = &slow.data[..] else { panic!("{model:?}: {:?}", slow.data) };
        assert_eq!((line.longest, line.latency), (Some(204), Some(204 * line.count)), "{model:?}");
    }
    // Core 2 has no such register.
    let ran = on(Model::Core2, &item(30));
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("MEM_LOAD_RETIRED.L1D_MISS"), "{texts:?}");
}

/// Records are the instruction's own: vector registers with its result in them, and every instruction in the counter beside.
#[test]
fn s1_records_have_vector_registers_and_values_of_counters() {
    const PERIOD: u64 = 67;
    for (model, counters) in [
        (Model::IceLake, ""),
        (Model::ArrowLake, "counters = [\"instructions\", \"branches\"]"),
        (Model::CougarCove, "counters = [\"instructions\", \"branches\"]"),
    ] {
        let toml = format!(
            "[[sample]]\nprecise = true\nasm = \"add rax, 1; movq xmm3, rax\"\nturns = 2000\nvectors = true\n{counters}\n\
             events = [\"r00c0:counter=5\"]\nperiod = {PERIOD}\nkeep = \"samples\"\nregisters = [\"rax\"]\n"
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = sampled(&ran)[0];
        is_whole(&result.events[0]);
        let chunks: Vec<&Samples> = ran.report.samples(0).collect();
        let body = result.code[0].body[0].0;
        let addresses = chunks.iter().flat_map(|chunk| chunk.iter()).map(|one| one.0);
        let turns = chunks.iter().flat_map(|chunk| &chunk.registers).map(|word| word.0);
        let vectors: Vec<u64> =
            chunks.iter().flat_map(|chunk| &chunk.vectors).map(|word| word.0).collect();
        let mut inside = 0;
        for ((address, rax), sample) in addresses.zip(turns).zip(vectors.chunks(32)) {
            // ADD has four bytes. RAX begins at 0.
            if address == body + 4 {
                inside += 1;
                assert!(rax > 0, "{model:?}");
                assert_eq!(sample[6..8], [rax, 0], "{model:?} {address:#x}");
            }
        }
        assert!(inside >= 20, "{model:?}: {inside}");
        let values: Vec<u64> = chunks.iter().flat_map(|chunk| &chunk.values).copied().collect();
        assert_eq!(result.values.len(), if counters.is_empty() { 0 } else { 2 }, "{model:?}");
        for pair in values.chunks(2).collect::<Vec<_>>().windows(2) {
            assert_eq!(pair[1][0] - pair[0][0], PERIOD, "{model:?}");
            // One branch in four instructions.
            assert!((16..=17).contains(&(pair[1][1] - pair[0][1])), "{model:?}: {pair:?}");
        }
    }
    let ran = on(
        Model::Skylake,
        "[[sample]]\nprecise = true\nasm = \"nop\"\nvectors = true\nkeep = \"samples\"\n\
         events = [\"inst_retired.prec_dist\"]\nperiod = 64\n",
    );
    ran.ends_with(1);
    assert!(
        ran.errors()[0].text.contains("vectors: PEBS records of format 3"),
        "{:?}",
        ran.errors()
    );
}

/// Each instruction of the emulated models takes a cycle, one of whose slots retires; the other slots of a taken branch are those of the
/// front end, and of the others those of the back end. A field is known to a 255th of all slots until then.
#[test]
fn s1_s3_records_have_the_fields_of_perf_metrics_at_their_instant() {
    const PERIOD: u64 = 101;
    let fields = ["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"];
    let list = fields.map(|field| format!("\"{field}\"")).join(", ");
    for model in [Model::ArrowLake, Model::CougarCove] {
        let toml = format!(
            "[[sample]]\nprecise = true\nasm = \"add rax, 1; jmp 2f; 2: nop\"\nturns = 2000\ncounters = [{list}, \"instructions\"]\n\
             events = [\"r00c0:counter=5\"]\nperiod = {PERIOD}\nkeep = \"samples\"\n"
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = sampled(&ran)[0];
        is_whole(&result.events[0]);
        assert_eq!(result.values[..3], fields, "{model:?}");
        assert!(result.events[0].remarks.is_empty(), "{:?}", result.events[0]);
        let values: Vec<u64> =
            ran.report.samples(0).flat_map(|chunk| &chunk.values).copied().collect();
        let samples: Vec<&[u64]> = values.chunks(4).collect();
        assert!(samples.len() > 70, "{model:?}: {}", samples.len());
        for one in samples {
            let [retiring, front, back, instructions] = *one else { panic!("{one:?}") };
            let sum = retiring + front + back;
            // Eight slots a cycle, and what each field loses by rounding.
            let slots = 8 * instructions;
            let exact = slots.div_ceil(255);
            assert!(slots.abs_diff(sum) <= 3 * exact, "{model:?}: {one:?}");
            assert!(instructions.abs_diff(retiring) <= exact, "{model:?}: {one:?}");
            // Two of the five instructions of a turn are branches that are taken.
            let branches = 7 * instructions * 2 / 5;
            assert!(branches.abs_diff(front) <= exact + 14, "{model:?}: {one:?}");
        }
    }
}

#[test]
fn c7_precise_sampling_is_refused_where_the_processor_the_event_or_the_format_cannot() {
    let item = |event: &str| {
        format!("[[sample]]\nasm = \"nop\"\nperiod = 64\nprecise = true\nevents = [\"{event}\"]\n")
    };
    for (model, event, part) in [
        (Model::Zen4, "r00c0", "IBS samples by cycles"),
        (Model::IceLake, "cpu_clk_unhalted.thread_p", "cannot be counted precisely"),
        (Model::ArrowLake, "l1d.replacement", "cannot be counted precisely"),
        (Model::CougarCove, "l1d.replacement", "cannot be counted precisely"),
        (Model::Core2, "r00c4", "cannot be counted precisely"),
        (Model::Core2, "r00c0:pp", "records of format 2 or newer"),
        (Model::Skylake, "inst_retired.any_p", "cannot be counted precisely"),
        (Model::Skylake, "inst_retired.prec_dist:counter=5", "no counter"),
    ] {
        let ran = on(model, &item(event));
        ran.ends_with(1);
        let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
        assert!(texts[0].contains(part), "{model:?} {event}: {texts:?}");
    }
}

#[test]
fn k1_the_checks_of_pebs_pass_where_it_is_and_are_skipped_elsewhere() {
    let job = "kind = \"conformance\"\nchecks = [\"pebs.*\"]";
    let with = MODELS.map(|(model, _)| {
        let groups = if is_adaptive(model) { 5 } else { 0 };
        // Golden Cove has an event that runs beside load latency.
        let latency = match model {
            Model::Core2 => 0,
            Model::SapphireRapids => 4,
            _ => 3,
        };
        let stored = match model {
            // Its records have checks of their own; those of branches are the same.
            Model::CougarCove => 1,
            _ => 6 + u32::from(is_exact(model)),
        };
        (model, stored + groups + latency)
    });
    for (model, passed) in with.into_iter().chain([(Model::Zen4, 0)]) {
        let ran = on(model, job);
        let suite = ran.report.suites().next().expect("a suite ran");
        let checks: Vec<_> = ran.report.checks().collect();
        assert_eq!((suite.passed, suite.failed), (passed, 0), "{model:?}: {checks:#?}");
        let skipped = checks.iter().filter(|check| check.verdict == CheckVerdict::Skip);
        assert_eq!(skipped.count() as u32, 16 - passed, "{model:?}: {checks:#?}");
    }
}

#[test]
fn k1_the_checks_of_architectural_pebs_pass_where_it_is_and_are_skipped_elsewhere() {
    let job = "kind = \"conformance\"\nchecks = [\"apebs.*\"]";
    for (model, passed) in [(Model::CougarCove, 13), (Model::ArrowLake, 0)] {
        let ran = on(model, job);
        let suite = ran.report.suites().next().expect("a suite ran");
        let checks: Vec<_> = ran.report.checks().collect();
        assert_eq!((suite.passed, suite.failed), (passed, 0), "{model:?}: {checks:#?}");
        assert_eq!(suite.skipped, 13 - passed, "{model:?}: {checks:#?}");
    }
}

/// Loads out of memory, out of the first level, and an instruction that is no load: 201 cycles, one, and one, by the emulated PMU's
/// rule. Both kinds of record state it, of each sample as well, and a snippet has the mean of an event.
#[test]
fn s1_records_state_the_retire_latency_of_known_code() {
    const BODY: &str = "clflush [r14]; lock add qword ptr [r14], 1; lock add qword ptr [r14+64], 1";
    let toml = format!(
        "[[sample]]\nname = \"each\"\nprecise = true\nkeep = \"samples\"\n\
         events = [{{ event = \"mem_inst_retired.lock_loads:u\", period = 3 }}]\n\
         [[sample.task]]\nname = \"t\"\nasm = \"{BODY}\"\nturns = 600\nring = 3\n\
         [[snippet]]\nname = \"mean\"\nasm = \"{BODY}\"\nunroll = 30\n\
         events = [\"mem_inst_retired.lock_loads:retire_latency\", \"mem_inst_retired.lock_loads:retire_latency=7\"]\n"
    );
    for model in [Model::ArrowLake, Model::CougarCove] {
        let ran = on(model, &toml);
        let [each] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.report) };
        let event = &each.events[0];
        let retired = event.retire_latency.unwrap_or_else(|| panic!("{model:?}: {event:?}"));
        // 1,200 loads, one of both kinds in turn.
        assert_eq!(retired.records, 400, "{model:?}");
        assert_eq!((retired.longest, retired.mean()), (201, Some(101.0)), "{model:?}: {retired:?}");
        let chunks: Vec<&Samples> = ran.report.samples(each.item).collect();
        let latencies: Vec<u16> =
            chunks.iter().flat_map(|chunk| chunk.retire_latencies.iter().copied()).collect();
        assert_eq!(latencies.len(), 400, "{model:?}");
        assert_eq!(latencies.iter().filter(|cycles| **cycles >= 201).count(), 200, "{model:?}");
        let sum: u64 = latencies.iter().map(|cycles| u64::from(*cycles)).sum();
        assert_eq!(sum, retired.cycles, "{model:?}");
        let [mean] = ran.results()[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let [_, all, some] = &mean.metrics[..] else { panic!("{model:?}: {mean:?}") };
        // 120 loads in each of ten runs: 1,200 by 256. Of every seventh, one more of the slow kind is among 85.
        assert_eq!(all.retired.unwrap().period, 5, "{model:?}");
        assert_eq!(all.value.median, 101.0, "{model:?}: {all:?}");
        assert_eq!(some.retired.unwrap().period, 7, "{model:?}");
        assert_eq!(some.value.median, (43.0 * 201.0 + 42.0) / 85.0, "{model:?}: {some:?}");
    }
}

/// So far from its overflow that blocks do not count towards it, a counter overflows at the very occurrence all the same.
#[test]
fn e1_m9_an_overflow_that_was_far_away_is_at_its_very_occurrence() {
    const FAR: u64 = 1 << 28;
    const MORE: u64 = 12_345;
    // The load and the loop's own jump: one of each in a turn.
    let item = |event: &str, period: u64| {
        format!(
            "[[sample]]\nprecise = true\nasm = \"mov rax, [r14]\"\nturns = {}\nevents = [\"{event}\"]\n\
             period = {period}\nkeep = \"samples\"\nregisters = [\"r15\"]\n",
            period + 1_000
        )
    };
    let mut toml = String::new();
    for event in ["mem_inst_retired.all_loads", "br_inst_retired.conditional"] {
        toml += &(item(event, MORE) + &item(event, FAR + MORE));
    }
    let ran = on(Model::Skylake, &toml);
    ran.ends_with(0);
    let results = sampled(&ran);
    assert_eq!(results.len(), 4);
    for result in &results {
        is_whole(&result.events[0]);
        assert_eq!(result.events[0].samples, 1, "item {}", result.item);
    }
    // Turns that were left at the record.
    let left = |item: u32| -> Vec<u64> {
        let all = ran.report.samples(item).flat_map(|chunk| &chunk.registers);
        all.map(|register| register.0).collect()
    };
    for pair in results.chunks(2) {
        let [near, far] = [&pair[0], &pair[1]].map(|result| left(result.item));
        assert_eq!(near.len(), 1);
        assert_eq!(near, far, "{}", pair[0].events[0].event);
    }
}
