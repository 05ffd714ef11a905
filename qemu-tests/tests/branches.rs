//! Branch records in samples: the branches that a workload takes, as often as it takes them.

use pmu_model::Model;
use protocol::record::{EdgeCount, SampleResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Turns of the inner loop; its jump is taken one time less, and the outer loop's once.
const INNER: u64 = 10;

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn job(ring: u8, more: &str) -> String {
    format!(
        "[[sample]]\nbranches = true\nevents = [\"branches\"]\nperiod = 1009\n{more}\n[[sample.task]]\nname = \"t\"\n\
         asm = \"xor ecx, ecx; inner: inc ecx; cmp ecx, {INNER}; jb inner\"\nturns = 4000\nring = {ring}\n"
    )
}

/// Edges that lead back: the inner loop's and the outer one's.
fn loops(result: &SampleResult) -> [EdgeCount; 2] {
    let branches = result.branches.as_ref().expect("branches were asked for");
    assert_eq!(branches.elsewhere, 0);
    let back = branches.edges.iter().filter(|edge| edge.to.0 < edge.from.0);
    let mut back: Vec<EdgeCount> = back.cloned().collect();
    back.truncate(2);
    back.try_into().expect("two loops")
}

#[test]
fn s2_edges_come_as_often_as_loops_take_them() {
    for (model, cycles, misses) in [
        (Model::Haswell, false, true),
        (Model::Skylake, true, true),
        (Model::SapphireRapids, true, true),
        (Model::Zen4, false, true),
    ] {
        for ring in [0, 3] {
            let ran = on(model, &job(ring, ""));
            ran.ends_with(0);
            let result = ran.report.sampled().next().expect("one item");
            let [inner, outer] = loops(result);
            let what = format!("{model:?} in ring {ring}: {inner:?} {outer:?}");
            // `inc ecx; cmp ecx, 10; jb`: the jump goes back over itself and five bytes.
            assert_eq!(inner.from.0 - inner.to.0, 5, "{what}");
            // Each record of a sample is one or the other; where samples begin in a turn varies with the period.
            let turns = inner.count as f64 / outer.count as f64;
            assert!((turns - (INNER - 1) as f64).abs() < 1.0, "{turns}: {what}");
            let entries = u64::from(result.branches.as_ref().unwrap().entries);
            let samples = result.events[0].samples;
            let all = inner.count + outer.count;
            // The handler's way in and out takes some of the places, in ring 0.
            let least = if ring == 3 { entries - 1 } else { entries - 8 };
            assert!(all <= entries * samples && all >= least * (samples - 1), "{samples}: {what}");
            assert_eq!(
                (inner.cycles.is_some(), inner.mispredicted.is_some()),
                (cycles, misses),
                "{what}"
            );
            if let Some(cycles) = inner.cycles {
                // Three instructions from one jump to the next, and what a misprediction costs.
                assert!(cycles >= 3 * (inner.count - samples), "{what}");
            }
        }
    }
}

#[test]
fn s2_branches_are_refused_with_the_reason() {
    for (model, more, reason) in [
        (Model::Zen2, "", "keeps no stack of branch records, but a single one"),
        (Model::Skylake, "precise = true", "precise samples have none of their own"),
    ] {
        let toml = job(3, more).replace("\"branches\"", "\"inst_retired.prec_dist\"");
        let toml = if model == Model::Zen2 { job(3, more) } else { toml };
        let ran = on(model, &toml);
        ran.ends_with(1);
        let text = format!("{:?}", ran.report.records);
        assert!(text.contains(reason), "{model:?}: {text}");
    }
    let toml = "[[sample]]\nbranches = true\ninterval-ns = 100000\nasm = \"nop\"\nturns = 1000\n";
    let ran = on(Model::Skylake, toml);
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("not at a timer's tick"), "{texts:?}");
}
