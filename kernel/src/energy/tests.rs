//! Figures of energy by the register-level model, whose rule is known.

use super::*;
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::tests::nop;
use crate::snippet::measure::{Runner, measure};
use alloc::boxed::Box;
use alloc::rc::Rc;
use arch::call::Trap;
use arch::msr::Msr;
use arch::pmu::Registers as _;
use arch::pmu::energy::Energy;
use pmu_model::model::energy::{UPDATE, WRAP};
use pmu_model::{Host, Model, Mutation, Pmu, Timing};
use protocol::job::Snippet;
use protocol::record::Fault;

/// A machine of 1 GHz whose clock continues by 100 ns at each look.
struct Made {
    pmu: Pmu,
    energy: Energy,
    time: u64,
    /// Whether there is a second package, read by processor 4, whose register goes on at half the speed.
    packages: bool,
}

impl Made {
    fn new(model: Model) -> Self {
        let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
        let energy = Energy::probe(&mut pmu).unwrap();
        Self { pmu, energy, time: (WRAP - 3) << UPDATE, packages: false }
    }
}

impl Source for Made {
    fn read(&mut self, Place { domain, processor }: Place) -> u32 {
        self.pmu.set_time(if processor == 4 { self.time / 2 } else { self.time });
        let Msr(register) = self.energy.register(domain).unwrap();
        self.pmu.rdmsr(Msr(register)).unwrap() as u32
    }
    fn now(&mut self) -> u64 {
        self.time += 100;
        self.time
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
    fn energy(&self) -> &Energy {
        &self.energy
    }
    fn shared(&self, _: Domain) -> Vec<Shared> {
        let first =
            Shared { reader: 0, processors: if self.packages { vec![0, 1] } else { vec![] } };
        let second = Shared { reader: 4, processors: vec![4, 5] };
        core::iter::once(first).chain(self.packages.then_some(second)).collect()
    }
}

fn wanted(texts: &[&str]) -> Vec<Wanted> {
    texts.iter().map(|text| Wanted::of_text(text).unwrap()).collect()
}

/// The same on the processor that measures.
fn had_of(texts: &[&str]) -> Vec<Had> {
    let shared = Shared { reader: 0, processors: Vec::new() };
    wanted(texts).into_iter().map(|wanted| Had { wanted, shared: shared.clone() }).collect()
}

/// Both code sizes, so many runs of which take so many updates.
fn both(
    machine: &mut Made,
    had: &[Had],
    updates: [u64; 2],
    runs: u32,
) -> [(Option<Result<Interval, Still>>, u32); 2] {
    updates.map(|updates| {
        let mut interval = begin(had, Ok(&mut *machine)).unwrap().unwrap();
        machine.time += updates << UPDATE;
        interval.end(machine);
        (Some(Ok(interval)), runs)
    })
}

#[test]
fn s4_a_figure_is_in_joules_of_an_execution_over_a_wrap() {
    let mut machine = Made::new(Model::Skylake);
    let had = had_of(&["energy-pkg", "power/energy-ram/"]);
    let sizes = both(&mut machine, &had, [10, 30], 2);
    let mut uncounted = Vec::new();
    let metrics = metrics(&had, Ok(&mut machine), sizes, 1000, &mut uncounted);
    assert_eq!(uncounted, []);
    let [package, memory] = &metrics[..] else { panic!("{metrics:?}") };
    // 20 updates of 2^-6 J for 2,000 executions; both ends may be off by an update.
    let joule = 20.0 / 64.0 / 2000.0;
    assert_eq!((package.event.as_str(), package.value.median), ("energy-pkg", joule));
    let ends = [package.value.min, package.value.max].map(|joules| joules * 64.0 * 2000.0);
    assert!((ends[0] - 18.0).abs() < 1e-9 && (ends[1] - 22.0).abs() < 1e-9, "{ends:?}");
    assert_eq!(package.series.each_ref().map(|series| series.min), [2560, 7680]);
    let energy = package.energy.as_ref().unwrap();
    assert_eq!((energy.unit, energy.resolution), (14, 2.0 / 64.0 / 2000.0));
    assert!(energy.update.abs_diff(1 << UPDATE) < 10_000, "{energy:?}");
    assert_eq!(package.counting.as_ref().unwrap().counter, "MSR 0x611");
    assert_eq!((memory.event.as_str(), memory.value.median), ("power/energy-ram/", joule / 8.0));
}

#[test]
fn s4_what_is_too_short_is_said_and_no_figure() {
    let mut machine = Made::new(Model::Zen4);
    let had = had_of(&["energy-pkg"]);
    let sizes = both(&mut machine, &had, [3, 5], 10);
    let mut uncounted = Vec::new();
    let made = metrics(&had, Ok(&mut machine), sizes, 1, &mut uncounted);
    assert_eq!(made, []);
    let [one] = &uncounted[..] else { panic!("{uncounted:?}") };
    let reason = "all runs of both codes differ by 2048 units of 2^-16 J, and the register changes by 1024 at once, every 1050 us";
    assert!(one.reason.starts_with(reason), "{}", one.reason);
    assert!(
        one.reason.contains("some 4 times the runs") || one.reason.contains("some 5 times"),
        "{}",
        one.reason
    );
}

/// A job asks for it, and a metric of the same job too.
#[test]
fn s4_energy_that_is_asked_for_twice_is_read_once() {
    let mut machine = Made::new(Model::Skylake);
    let asked = wanted(&["energy-pkg", "energy-ram", "energy-pkg"]);
    let mut uncounted = Vec::new();
    let read = had(&asked, Ok(&mut machine), &mut uncounted);
    assert_eq!((read, uncounted), (had_of(&["energy-pkg", "energy-ram"]), vec![]));
}

#[test]
fn s4_what_the_processor_lacks_is_refused_with_what_it_has() {
    let mut machine = Made::new(Model::Zen4);
    let mut uncounted = Vec::new();
    let had_here = had(&wanted(&["energy-ram", "energy-pkg"]), Ok(&mut machine), &mut uncounted);
    assert_eq!(had_here, had_of(&["energy-pkg"]));
    let reason = "AMD's processors have no register for it; there is energy-pkg, energy-cores";
    assert_eq!(uncounted, [Uncounted { event: "energy-ram".into(), reason: reason.into() }]);
    let none = had(&wanted(&["energy-pkg"]), Err(NoEnergy::NoUnit(0x606)), &mut uncounted);
    assert_eq!(none, []);
    assert!(uncounted[1].reason.contains("as by a hypervisor"), "{uncounted:?}");
}

#[test]
fn s4_a_register_that_stands_still_has_no_figure() {
    let mut machine = Made::new(Model::Skylake);
    machine.pmu.set_mutation(Some(Mutation::EnergyStandsStill));
    let had = had_of(&["energy-pkg"]);
    let begun = begin(&had, Ok(&mut machine));
    assert!(matches!(begun, Some(Err(_))), "{begun:?}");
    let mut uncounted = Vec::new();
    assert_eq!(totals(&had, Ok(&mut machine), begun, &mut uncounted), []);
    assert!(uncounted[0].reason.contains("does not change"), "{uncounted:?}");
}

#[test]
fn s4_tasks_have_a_total_with_its_resolution() {
    let mut machine = Made::new(Model::SapphireRapids);
    let had = had_of(&["energy-psys", "energy-cores"]);
    let mut interval = begin(&had, Ok(&mut machine));
    machine.time += 200 << UPDATE;
    if let Some(Ok(interval)) = &mut interval {
        interval.end(&mut machine);
    }
    let mut uncounted = Vec::new();
    let all = totals(&had, Ok(&mut machine), interval, &mut uncounted);
    assert_eq!(uncounted, []);
    // The platform counts in joules: 1,536 times 200 of 2^-16 J are 4.7. How far it moves at once is found at one of its own updates, after which the interval begins.
    let [platform, cores] = &all[..] else { panic!("{all:?}") };
    assert_eq!((platform.unit, platform.units, platform.joules), (0, 4, 4.0));
    assert_eq!((cores.units, cores.joules, cores.resolution), (200 * 128, 1.5625, 0.0078125));
}

#[test]
fn s4_each_package_is_read_once_and_has_its_own_figure() {
    let mut machine = Made { packages: true, ..Made::new(Model::Zen4) };
    let mut uncounted = Vec::new();
    let had = had(&wanted(&["energy-pkg", "energy-ram"]), Ok(&mut machine), &mut uncounted);
    // What the processor lacks is said once, not for each package.
    assert_eq!((had.len(), uncounted.len()), (2, 1), "{uncounted:?}");
    let mut interval = begin(&had, Ok(&mut machine));
    machine.time += 40 << UPDATE;
    if let Some(Ok(interval)) = &mut interval {
        interval.end(&mut machine);
    }
    let all = totals(&had, Ok(&mut machine), interval, &mut uncounted);
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((first.reader, &first.processors[..]), (0, &[0, 1][..]));
    assert_eq!((second.reader, &second.processors[..]), (4, &[4, 5][..]));
    assert_eq!(first.joules, 40.0 / 64.0);
    assert!((second.joules - 20.0 / 64.0).abs() <= second.resolution, "{second:?}");
    // What is too short is said once for both.
    let mut interval = begin(&had, Ok(&mut machine));
    if let Some(Ok(interval)) = &mut interval {
        interval.end(&mut machine);
    }
    let mut short = Vec::new();
    assert_eq!(totals(&had, Ok(&mut machine), interval, &mut short), []);
    assert_eq!(short.len(), 1, "{short:?}");
    // Without the second one the first one would be taken for both.
    let mut interval = begin(&had, Ok(&mut machine));
    machine.time += 2 << UPDATE;
    if let Some(Ok(interval)) = &mut interval {
        interval.end(&mut machine);
        assert!(interval.parts()[0].units() > interval.parts()[0].step, "{interval:?}");
        assert!(interval.parts()[1].units() <= interval.parts()[1].step, "{interval:?}");
    }
    let mut short = Vec::new();
    assert_eq!(totals(&had, Ok(&mut machine), interval, &mut short), []);
    assert_eq!(short.len(), 1, "{short:?}");
}

#[test]
fn s4_a_snippet_has_no_sum_without_one_of_its_packages() {
    let mut machine = Made { packages: true, ..Made::new(Model::Zen4) };
    let had = had(&wanted(&["energy-pkg"]), Ok(&mut machine), &mut Vec::new());
    let mut of = |updates| {
        let sizes = both(&mut machine, &had, updates, 10);
        let mut uncounted = Vec::new();
        let all = metrics(&had, Ok(&mut machine), sizes, 1, &mut uncounted);
        (all.len(), uncounted.len())
    };
    assert_eq!(of([10, 30]), (2, 0));
    // Three updates more of the first are told from nothing, one and a half of the second are not.
    assert_eq!(of([10, 13]), (0, 1));
}

#[test]
fn s4_figures_that_the_processor_filters_say_so() {
    let mut machine = Made::new(Model::Skylake);
    let figure = |machine: &mut Made| {
        let had = had_of(&["energy-pkg"]);
        let sizes = both(machine, &had, [10, 30], 10);
        let metrics = metrics(&had, Ok(machine), sizes, 100, &mut Vec::new());
        metrics[0].counting.clone().unwrap().remarks
    };
    assert!(figure(&mut machine).is_empty());
    assert!(meters(&machine.energy).iter().all(|one| !one.filtered));
    let pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
    let mut pmu = arch::pmu::model::EnergyFiltering(pmu, [true; 3]);
    machine.energy = Energy::probe(&mut pmu).unwrap();
    assert!(figure(&mut machine)[0].contains("IA32_MISC_PACKAGE_CTLS[0]"));
    assert!(meters(&machine.energy).iter().all(|one| one.filtered));
}

/// Runs of [`nop`] on [`Made`], each of which takes an update for a copy and one more.
struct Disturbed {
    made: Made,
    copies: u64,
    /// Times that each run of the larger size is made again, and those that were.
    repeats: [u32; 2],
}

impl Runner for Disturbed {
    fn prepare(&mut self, _: &Snippet) -> Rc<Plan> {
        Rc::new(Plan { energy: wanted(&["energy-pkg"]), ..Plan::default() })
    }
    fn program(&mut self, _: &[Counted]) -> Result<(), (usize, String)> {
        Ok(())
    }
    fn load(&mut self, _: &Snippet, copies: u64) {
        self.copies = copies;
    }
    fn load_once(&mut self, _: &Snippet) {}
    fn run(&mut self) -> Result<u64, Box<Trap>> {
        let again = if self.copies > nop("x").unroll.into() { self.repeats[0] } else { 0 };
        self.repeats[1] += again;
        let updates = (1 + self.copies) * u64::from(1 + again);
        self.made.time += updates << UPDATE;
        Ok(self.copies)
    }
    fn counts(&self) -> &[u64] {
        &[]
    }
    fn meters(&mut self) -> Meters<'_> {
        Ok(&mut self.made)
    }
    fn take_smi_repeats(&mut self) -> u32 {
        core::mem::take(&mut self.repeats[1])
    }
    fn explain(&self, _: &Trap, _: &Snippet) -> Fault {
        Fault::default()
    }
}

/// The run and its repetitions take energy, and it is divided by all of them.
#[test]
fn s4_runs_that_were_made_again_do_not_add_to_the_energy_of_an_execution() {
    for repeats in [0, 1, 3] {
        let made = Made::new(Model::Skylake);
        let mut runner = Disturbed { made, copies: 0, repeats: [repeats, 0] };
        let measured = measure(&mut runner, &nop("x")).unwrap();
        let [_, package] = &measured.metrics[..] else { panic!("{measured:?}") };
        // An update of 2^-6 J for each copy.
        let difference = (package.value.median * 64.0 - 1.0).abs();
        assert!(difference < 0.02, "{repeats}: {package:?}");
    }
}
