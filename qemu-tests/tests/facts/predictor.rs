//! The predictor of the emulated PMU, by parameters, and what is told of it.

use super::run;
use pmu_model::uarch::Parameters;
use protocol::record::{FactsTimer, PipelineFacts};

const CORE: &str = "[[facts]]\nname = \"predictor\"\nparts = [\"core\"]\n";

pub fn core(pmu: &str) -> PipelineFacts {
    let facts = run(CORE, &["--pmu", pmu]);
    assert!(facts.memory.is_none() && facts.cores.is_none() && facts.noise.is_none());
    assert_eq!((facts.timer, facts.emulated), (FactsTimer::CoreCycles, true));
    *facts.core.unwrap()
}

#[test]
fn d1_predictors_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "returns=24,mispredict=17,btb=512/4"),
        ("zen4", "returns=7,mispredict=1,btb=48/3"),
        ("goldencove", "returns=64,mispredict=30,btb=1024/1,l1d=24k/6"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let core = core(&format!("{model},{parameters}"));
        let times = core.mispredict_tenths;
        let tenths = u64::from(really.mispredict_cycles) * 10;
        assert_eq!((times.least, times.most), (tenths, tenths), "{core:#?}");
        assert_eq!((core.returns.entries, core.returns.doubtful), (Some(really.returns), 0));
        let targets = &core.targets;
        assert_eq!(
            (targets.entries(), targets.ways),
            (Some(really.btb.entries), Some(really.btb.ways))
        );
        assert_eq!((targets.granule, targets.doubtful), (Some(1), 0), "{targets:#?}");
    }
}

#[test]
fn d1_of_a_predictor_that_costs_nothing_nothing_is_told() {
    let core = core("skylake,mispredict=0");
    assert_eq!(core.mispredict_tenths.most, 0);
    assert!(core.returns.entries.is_none() && core.returns.reason.is_some(), "{core:#?}");
    assert!(core.targets.entries().is_none() && core.targets.reason.is_some(), "{core:#?}");
    assert!(core.code.line.is_none() && core.code.reason.is_some(), "{core:#?}");
}
