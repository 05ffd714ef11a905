//! The suite on the model of every processor: sound ones, and ones with a planted fault.

mod host;
mod measured;
mod models;
mod mutations;

use super::*;
use arch::pmu::find;
use host::Host;
use pmu_model::{Model, Mutation};
use protocol::record::Check as Made;
use std::borrow::Cow;

/// All checks.
fn all() -> Conformance<'static> {
    Conformance { name: Cow::Borrowed("suite"), checks: vec![] }
}

/// Runs the suite on a model, with a fault or without.
fn suite(model: Model, fault: Option<Mutation>, job: &Conformance) -> (Vec<Made>, Suite) {
    let mut host = Host::new(model);
    host.pmu.set_mutation(fault);
    host.pmu.reset();
    suite_on(&mut host, job)
}

/// Runs the suite on a machine.
fn suite_on(host: &mut Host, job: &Conformance) -> (Vec<Made>, Suite) {
    let pmu = find(host);
    let found = match &pmu {
        Ok(has) => Ownership::claim(host, has),
        Err(_) => Ownership::default(),
    };
    let subject = Subject {
        pmu: pmu.as_ref().map_err(|missing| *missing),
        found: &found,
        tried: None,
        hypervisor: Some(Hypervisor::Tcg),
    };
    let mut made = vec![];
    let suite = run(job, 0, &subject, host, |check| made.push(check.clone()));
    (made, suite)
}

fn named(made: &[Made], verdict: CheckVerdict) -> Vec<&str> {
    made.iter().filter(|check| check.verdict == verdict).map(|check| check.name.as_str()).collect()
}
