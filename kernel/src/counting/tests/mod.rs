//! The library against the register-level model of every processor.

mod addresses;
mod bindings;
mod charged;
mod console;
pub(super) mod fake_machine;
mod gated;
mod interrupts;
mod jobs;
mod ledger;
mod owners;
mod parts;
mod plans;
mod readings;
mod room;
mod series;
mod sets;
mod sets_of_jobs;
mod shares;
mod snapshots;
mod status;
mod tasks;
mod turns;
mod virtual_counters;

use super::*;
use crate::events::Known;
use arch::pmu::pmi::ControlBlock;
use arch::pmu::{Counter, Driver, Freeze, FreezeKind, Selection};
use fake_machine::FakeMachine;
use pmu_model::{Model, Ring};
use proptest::prelude::*;
use session::{Notification, Occasion};

/// Instructions retired, everywhere.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

/// What a model's PMU can count, without an event table: raw, fixed and architectural events.
fn known(bench: &mut FakeMachine, driver: &Driver) -> Known<'static> {
    Known::new(driver.capabilities(), None, bench)
}

/// Every model, with what is known of it.
fn machines() -> impl Iterator<Item = (Model, FakeMachine, Driver, Known<'static>)> {
    FakeMachine::all().map(|(model, mut bench, driver)| {
        let known = known(&mut bench, &driver);
        (model, bench, driver, known)
    })
}

/// A set of these, all at once.
fn together(requests: Vec<Request>, known: &Known) -> Set {
    Set::build(requests, Sharing::Together, known).unwrap()
}

/// The raw counts of a session now.
fn raw(session: &mut Session, bench: &mut FakeMachine) -> Vec<u64> {
    let mut counts = Counts::new(session.set());
    session.sample(bench, &mut counts).unwrap();
    counts.counts().iter().map(|count| count.raw).collect()
}

fn taken(session: &mut Session) -> Vec<Occasion> {
    let mut all = Vec::new();
    assert_eq!(session.take_notifications(|one: Notification| all.push(one.occasion)), 0);
    all
}

/// Instructions retired, on every model.
fn instructions() -> Request {
    Request::new("r00c0")
}
