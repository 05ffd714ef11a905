//! What a core is beside its predictor, by parameters, and what is told of it.

use super::predictor::core;
use pmu_model::uarch::Parameters;

#[test]
fn d1_instruction_caches_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "l1i=32k/8@12"),
        ("zen4", "l1i=24k/3@7,line=128"),
        ("goldencove", "l1i=48k/12@19,line=32,returns=24"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let fact = core(&format!("{model},{parameters}")).code;
        let code = really.code.unwrap();
        let told = (fact.bytes().map(u64::from), fact.ways, fact.line);
        assert_eq!(told, (Some(code.bytes), Some(code.ways), Some(really.line)), "{fact:?}");
        assert_eq!((fact.miss_tenths, fact.doubtful), (u64::from(code.cycles) * 10, 0), "{fact:?}");
    }
}
