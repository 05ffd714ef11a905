use super::*;
use crate::snippet::measure::tests::{Made, nop};
use arch::pmu;
use arch::pmu::energy::Shared;
use arch::pmu::uncore::{Refusal, Register};
use events::parse::parse_event;
use pmu_model::{Host, Model, Pmu, Timing};
use proptest::prelude::*;
use protocol::job::Setup;
use protocol::record::EnergyReading;
use std::borrow::Cow;

/// Members whose copies cost so many ticks each; each starts 3 ticks after the one before it.
struct Made4 {
    members: Vec<Member>,
    made: Vec<Made>,
    runs: u64,
    fault: Option<(usize, u64)>,
    in_turn: bool,
    /// The member on which PERF_METRICS overflows.
    overflows_on: Option<u64>,
    /// The codes of the uncore's events that are counted, and what they have counted: as many as their code with each copy.
    uncore: Vec<u64>,
    of_uncore: Vec<u64>,
    copies: u64,
}

fn capabilities(model: Model) -> Capabilities {
    pmu::find(&mut Pmu::new(model, Host::EXAMPLE, Timing::FLAT)).expect("a PMU")
}

fn member(number: u32, pmu: Result<Capabilities, String>) -> Member {
    Member { number, apic_id: 2 * number, core: None, pmu, offset: Offset { ticks: -4, error: 2 } }
}

fn set(costs: &[u64], pmus: &[Option<Model>]) -> Made4 {
    let pmu = |model: Option<Model>| model.map(capabilities).ok_or("no PMU here".to_string());
    let members = (0..).zip(pmus).map(|(number, &model)| member(number, pmu(model))).collect();
    let made = costs.iter().map(|&cost| Made::new(cost, 50)).collect();
    Made4 {
        members,
        made,
        runs: 0,
        fault: None,
        in_turn: false,
        overflows_on: None,
        uncore: vec![],
        of_uncore: vec![],
        copies: 0,
    }
}

impl ProcessorSet for Made4 {
    fn members(&self) -> &[Member] {
        &self.members
    }
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        use crate::snippet::Runner;
        let is_uncore = |text: &&Cow<str>| text.starts_with("uncore");
        let (uncore, core): (Vec<_>, Vec<_>) = snippet.events.iter().partition(is_uncore);
        let events = core.into_iter().cloned().collect();
        let plan = self.made[0].prepare(&Snippet { events, ..snippet.clone() });
        let wanted = |text: &Cow<str>| crate::uncore::Wanted::of(&parse_event(text).unwrap());
        let uncore = uncore.into_iter().map(|text| vec![wanted(text).unwrap().unwrap()]).collect();
        Rc::new(Plan { uncore, ..(*plan).clone() })
    }
    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        Uncore::find(&Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::FLAT))
    }
    /// Read by processor 0 for the first two, and by processor 2.
    fn program_uncore(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        self.uncore = round.iter().map(|one| one.event.select & 0xff).collect();
        if let Some(at) = self.uncore.iter().position(|code| *code == 0x99) {
            return Err((at, Refusal::Absent(Register::Msr(0x3b0))));
        }
        let packages = [(0, vec![0, 1]), (2, vec![2])];
        let of = |(reader, processors): (u32, Vec<u32>)| {
            let shared = Shared { reader, processors };
            let counter = move |event| Counter {
                event,
                place: (3, Register::Msr(0x3b0)),
                shared: shared.clone(),
            };
            (0..round.len()).map(counter)
        };
        Ok(packages.into_iter().flat_map(of).collect())
    }
    fn uncore_counts(&self) -> &[u64] {
        &self.of_uncore
    }
    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        use crate::snippet::Runner;
        self.made[0].program(pass)
    }
    fn load(&mut self, snippet: &Snippet, copies: u64) {
        use crate::snippet::Runner;
        self.copies = copies;
        self.made.iter_mut().for_each(|made| made.load(snippet, copies));
    }
    fn load_once(&mut self, snippet: &Snippet) {
        use crate::snippet::Runner;
        self.made.iter_mut().for_each(|made| made.load_once(snippet));
    }
    fn run(&mut self) -> Vec<Ran> {
        use crate::snippet::Runner;
        self.runs += 1;
        if let Some((place, at)) = self.fault {
            self.made[place].fault_at = Some(at);
        }
        let begin = 1000 * self.runs;
        let of = |times: u64| self.uncore.iter().map(move |code| 7 + times * code);
        self.of_uncore = of(self.copies).chain(of(2 * self.copies)).collect();
        let each = (0..).zip(&mut self.made).zip(&self.members);
        each.map(|((place, made), member)| {
            let ended = made.run();
            let counts = if member.pmu.is_ok() { made.counts()[..1].to_vec() } else { vec![] };
            let metrics_overflowed = self.overflows_on == Some(place);
            Ran { start: begin + 3 * place, ended, counts, metrics_overflowed }
        })
        .collect()
    }
    fn interrupts(&mut self, period: u64) -> Result<Vec<Option<Interrupts>>, (u32, String)> {
        let one = |member: &Member| {
            let taken = u64::from(member.number) + period;
            member.pmu.is_ok().then_some(Interrupts { taken, ..Interrupts::default() })
        };
        Ok(self.members.iter().map(one).collect())
    }
    fn in_turn(&self) -> bool {
        self.in_turn
    }
    fn contend(&mut self, rounds: u32) -> Result<contention::Together, (usize, String)> {
        let rounds = u64::from(rounds);
        let one = ContentionRounds {
            rounds,
            locked: rounds,
            interrupts: rounds,
            pmis: rounds,
            counted: None,
        };
        let each = self.members.iter().map(|_| one).collect();
        let sum = rounds * self.members.len() as u64 - u64::from(self.in_turn);
        Ok(contention::Together { each, sum, alone: Vec::new() })
    }
    fn snapshot(&mut self) -> SnapshotCounts {
        let tsc = (0..self.members.len() as u64).map(|place| 105 + 10 * place).collect();
        SnapshotCounts { deadline: 100, tsc, counts: vec![vec![9]; self.members.len()] }
    }
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        use crate::snippet::Runner;
        self.made[0].explain(trap, snippet)
    }
}

fn item(events: &[&'static str]) -> Processors<'static> {
    let events = events.iter().map(|&event| Cow::Borrowed(event)).collect();
    Processors {
        snippet: Snippet { events, ..nop("x") },
        cpu: None,
        core: None,
        interrupt_every: None,
        contention: None,
    }
}

const SAME: [Option<Model>; 3] = [Some(Model::Skylake); 3];

#[test]
fn i7_each_processor_has_its_own_figures_and_counts_are_summed() {
    let mut set = set(&[3, 5, 9], &SAME);
    let result = measure_all(&mut set, 4, &item(&["one", "two", "unknown"])).unwrap();
    assert_eq!((result.item, result.processors.len()), (4, 3));
    for (one, cost) in result.processors.iter().zip([3.0, 5.0, 9.0]) {
        let medians: Vec<f64> = one.metrics.iter().map(|metric| metric.value.median).collect();
        assert_eq!(medians, [cost, 1.0, 1.0]);
        assert_eq!((one.tsc_offset, one.tsc_offset_error), (-4, 2));
        assert!(one.metrics.iter().all(|metric| metric.deterministic));
    }
    let sums: Vec<_> =
        result.sums.iter().map(|sum| (&*sum.event, sum.value, sum.processors)).collect();
    assert_eq!(sums, [("one", 3.0, 3), ("two", 3.0, 3)]);
    assert_eq!(result.uncounted.len(), 1);
    assert_eq!(result.start_skew, Skew { min: 6, median: 6, max: 6 });
    assert_eq!(result.processors.iter().map(|one| one.apic_id).collect::<Vec<_>>(), [0, 2, 4]);
}

#[test]
fn s3_the_uncore_is_read_once_for_each_package_and_shifts_no_figure_of_a_processor() {
    let [a, b, c] = ["80,name=a", "80,cmask=1,name=b", "81,name=c"]
        .map(|rest| -> &'static str { format!("uncore_arb/event=0x{rest}/").leak() });
    let mut set = set(&[3, 5, 9], &SAME);
    // Of the uncore two passes, and of the processors one.
    let result = measure_all(&mut set, 0, &item(&["one", a, b, c])).unwrap();
    let figures = |place: usize| -> Vec<(&str, f64, u32)> {
        let metrics = result.processors[place].metrics.iter();
        let pass = |one: &Metric| one.counting.as_ref().map_or(0, |counting| counting.pass);
        metrics.map(|one| (&*one.event, one.value.median, pass(one))).collect()
    };
    let of_package =
        |times: f64| [("a", 128.0 * times, 0), ("c", 129.0 * times, 0), ("b", 128.0 * times, 1)];
    let own = |cost| [("tsc", cost, 0), ("one", 1.0, 0)];
    assert_eq!(figures(0), [&own(3.0)[..], &of_package(1.0)].concat());
    assert_eq!(figures(1), own(5.0));
    assert_eq!(figures(2), [&own(9.0)[..], &of_package(2.0)].concat());
    let counting = result.processors[2].metrics[2].counting.as_ref().unwrap();
    assert_eq!((counting.reader, &counting.processors[..], counting.units), (2, &[2][..], 3));
    let sums: Vec<_> = result.sums.iter().map(|sum| (&*sum.event, sum.value)).collect();
    assert_eq!(sums, [("one", 3.0), ("a", 384.0), ("c", 387.0), ("b", 384.0)]);
    assert_eq!(result.uncounted, []);
}

#[test]
fn s3_what_of_the_uncore_is_refused_leaves_the_processors_in_step() {
    let refused = "uncore_arb/event=0x99,name=no/";
    for pmus in [SAME, [Some(Model::Skylake), None, Some(Model::Skylake)]] {
        let mut set = set(&[3, 5, 9], &pmus);
        let result = measure_all(&mut set, 0, &item(&["one", refused, "two"])).unwrap();
        let [lost] = &result.uncounted[..] else { panic!("{:?}", result.uncounted) };
        assert_eq!(lost.event, "no");
        assert!(lost.reason.contains("no unit answers"), "{lost:?}");
        let medians = |place: usize| -> Vec<f64> {
            result.processors[place].metrics.iter().map(|one| one.value.median).collect()
        };
        assert_eq!((medians(0), medians(2)), (vec![3.0, 1.0, 1.0], vec![9.0, 1.0, 1.0]));
        assert_eq!(medians(1)[0], 5.0, "{pmus:?}");
    }
}

#[test]
fn s4_energy_goes_to_the_processor_that_read_it() {
    let energy = |reader: u32| {
        let energy = EnergyReading { reader, ..Default::default() };
        let (value, series) = Default::default();
        let event = format!("energy of {reader}");
        Metric {
            event,
            value,
            deterministic: false,
            series,
            counting: None,
            energy: Some(energy),
            retired: None,
        }
    };
    let members = &set(&[1; 3], &SAME).members[1..];
    let mut figures = vec![Vec::new(); 2];
    // Processor 0 reads for those of its package, and is not among them.
    give(vec![energy(2), energy(0)], members, &mut figures);
    let events: Vec<Vec<&str>> =
        figures.iter().map(|own| own.iter().map(|one| &*one.event).collect()).collect();
    assert_eq!(events, [["energy of 0"], ["energy of 2"]]);
}

/// An event stands in a list twice where it was asked for by itself and by a metric, or where several metrics have it.
#[test]
fn m10_an_event_that_is_there_twice_is_summed_once() {
    let figure = |event: &str, median: f64, reader: Option<u32>| Metric {
        event: event.into(),
        value: protocol::record::Aggregates { median, ..Default::default() },
        deterministic: true,
        series: Default::default(),
        counting: Some(protocol::record::Counting {
            name: event.into(),
            counter: "c".into(),
            pass: 0,
            remarks: vec![],
            ..Default::default()
        }),
        energy: reader.map(|reader| EnergyReading { reader, ..Default::default() }),
        retired: None,
    };
    let one = |median| figure("instructions", median, None);
    let package = |reader| figure("energy-pkg", 3.0, Some(reader));
    let figures = [vec![one(5.0), one(5.0), package(0), package(4)], vec![one(7.0), one(7.0)]];
    let summed: Vec<(String, f64, u32)> =
        sums(&figures).into_iter().map(|sum| (sum.event, sum.value, sum.processors)).collect();
    let expected = [("instructions", 12.0, 2), ("energy-pkg", 6.0, 2)];
    assert_eq!(summed, expected.map(|(event, value, all)| (event.to_string(), value, all)));
}

#[test]
fn m10_the_snapshot_has_each_processors_time_and_the_skew() {
    let result = measure_all(&mut set(&[1, 1, 1], &SAME), 0, &item(&["one"])).unwrap();
    assert_eq!((result.snapshot.deadline, result.snapshot.skew), (100, 20));
    assert_eq!(result.snapshot.events, ["one"]);
    let times: Vec<u64> = result.processors.iter().map(|one| one.snapshot_tsc).collect();
    assert_eq!(times, [105, 115, 125]);
    assert!(result.processors.iter().all(|one| one.snapshot == [9]));
}

#[test]
fn m13_each_processor_has_its_own_interrupts_if_they_are_asked_for() {
    let pmus = [Some(Model::Skylake), None, Some(Model::Skylake)];
    let asked = Processors { interrupt_every: Some(1000), ..item(&[]) };
    let result = measure_all(&mut set(&[1, 1, 1], &pmus), 0, &asked).unwrap();
    let taken = result.processors.iter().map(|one| one.interrupts.map(|one| one.taken));
    assert_eq!(taken.collect::<Vec<_>>(), [Some(1000), None, Some(1002)]);
    let result = measure_all(&mut set(&[1, 1, 1], &pmus), 0, &item(&[])).unwrap();
    assert!(result.processors.iter().all(|one| one.interrupts.is_none()));
}

#[test]
fn i7_m10_rounds_of_contention_are_made_if_they_are_asked_for_and_judged() {
    let asked = Processors { contention: Some(7), ..item(&[]) };
    let result = measure_all(&mut set(&[1, 1, 1], &SAME), 0, &asked).unwrap();
    let rounds = result.processors.iter().map(|one| one.contention.map(|one| one.rounds));
    assert_eq!(rounds.collect::<Vec<_>>(), [Some(7); 3]);
    let result = measure_all(&mut set(&[1, 1, 1], &SAME), 0, &item(&[])).unwrap();
    assert!(result.processors.iter().all(|one| one.contention.is_none()));
    let mut broken = Made4 { in_turn: true, ..set(&[1, 1, 1], &SAME) };
    let failure = measure_all(&mut broken, 0, &asked).unwrap_err();
    assert_eq!(failure.processor, Some(0));
    assert!(format!("{:?}", failure.why).contains("20 of 21 additions"), "{:?}", failure.why);
}

#[test]
fn m10_where_one_counts_for_all_the_snapshot_counts_nothing() {
    let mut set = Made4 { in_turn: true, ..set(&[1, 1, 1], &SAME) };
    let result = measure_all(&mut set, 0, &item(&["one"])).unwrap();
    assert!(result.in_turn && result.snapshot.events.is_empty());
    assert_eq!((result.snapshot.skew, result.sums[0].value), (20, 3.0));
}

#[test]
fn i7_a_processor_without_pmu_is_timed_and_says_why_it_counts_nothing() {
    let pmus = [Some(Model::Skylake), None, Some(Model::Skylake)];
    let events = ["one", "two", "stuck"];
    let result = measure_all(&mut set(&[3, 5, 9], &pmus), 0, &item(&events)).unwrap();
    let lengths: Vec<usize> = result.processors.iter().map(|one| one.metrics.len()).collect();
    assert_eq!(lengths, [3, 1, 3]);
    let second = &result.processors[1];
    assert_eq!(second.metrics[0].value.median, 5.0);
    assert_eq!(second.pmu_absent.as_deref(), Some("no PMU here"));
    assert_eq!((result.sums[0].value, result.sums[0].processors), (2.0, 2));
    assert_eq!(result.uncounted[0].event, "stuck");
}

#[test]
fn i7_without_any_pmu_there_is_time_and_a_reason() {
    let result = measure_all(&mut set(&[3, 5], &[None, None]), 0, &item(&["one"])).unwrap();
    assert_eq!(result.processors[1].metrics[0].value.median, 5.0);
    assert_eq!(result.sums, []);
    assert_eq!(result.uncounted[0].reason, "no PMU here");
}

#[test]
fn i11_cores_of_two_kinds_are_refused_and_the_difference_is_named() {
    let pmus = [Some(Model::Skylake), None, Some(Model::Core2)];
    let failure = measure_all(&mut set(&[1, 1, 1], &pmus), 0, &item(&["one"])).unwrap_err();
    let Unmeasured::Refused(text) = failure.why else { panic!("refused") };
    assert!(text.contains("processor 0 and processor 2 differ in their version"), "{text}");
    let mut hybrid = capabilities(Model::Skylake);
    hybrid.core_type = Some(arch::cpu::CoreType::Atom);
    let members = [member(0, Ok(capabilities(Model::Skylake))), member(1, Ok(hybrid))];
    let error = agreement::check(&members).unwrap_err();
    assert_eq!((error.one, error.other, error.what), (0, 1, "the kind of their cores"));
}

#[test]
fn i7_an_exception_on_one_processor_names_it() {
    let mut set = set(&[1, 1, 1], &SAME);
    set.fault = Some((2, 5));
    let failure = measure_all(&mut set, 0, &item(&[])).unwrap_err();
    assert_eq!(failure.processor, Some(2));
    assert!(matches!(failure.why, Unmeasured::Fault(_)));
}

proptest! {
    /// Whatever the snippet asks for, every processor's figure is that of its own cost.
    #[test]
    fn i7_notes_and_replay_stay_in_step(
        costs in prop::collection::vec(1u64..1000, 1..6), events in 0usize..4, stuck in 0usize..5,
        once: bool, initial_warmup in 0u32..3, warmup in 0u32..3, runs in 1u32..6, absent in 0usize..8,
    ) {
        let names = ["one", "two", "three", "stuck"];
        let mut events: Vec<&'static str> = names[..events].to_vec();
        if stuck < events.len() {
            events[stuck] = "stuck";
        }
        let mut pmus = vec![Some(Model::Zen2); costs.len()];
        if absent < pmus.len() {
            pmus[absent] = None;
        }
        let mut item = item(&events);
        // Warm-up swallows the cold run; without one it would be in the figures.
        item.snippet.warmup = warmup + 1;
        item.snippet.runs = runs;
        let one_time_init = if once { Cow::Borrowed(&[0x90][..]) } else { Cow::Borrowed(&[][..]) };
        item.snippet.setup = Setup { one_time_init, initial_warmup, ..Setup::default() };
        let result = measure_all(&mut set(&costs, &pmus), 0, &item).unwrap();
        for (place, (one, &cost)) in result.processors.iter().zip(&costs).enumerate() {
            prop_assert_eq!(one.metrics[0].value.median, cost as f64);
            let counted = events.iter().filter(|&&event| event != "stuck").count();
            let counts = if place == absent || absent == 0 { 0 } else { counted };
            prop_assert_eq!(one.metrics.len(), 1 + counts);
            prop_assert!(one.metrics[1..].iter().all(|metric| metric.value.median == 1.0));
        }
    }
}

#[test]
fn s3_a_share_that_overflowed_on_one_processor_is_no_figure_of_any() {
    let models = [Some(Model::IceLake); 2];
    for overflows_on in [None, Some(0), Some(1)] {
        let mut set = Made4 { overflows_on, ..set(&[5, 9], &models) };
        let result = measure_all(&mut set, 0, &item(&["loads", "share"])).unwrap();
        let lost = overflows_on.is_some();
        assert_eq!(result.uncounted.iter().any(|one| one.event == "share"), lost);
        for one in &result.processors {
            let has = one.metrics.iter().any(|metric| metric.event == "share");
            assert_eq!(has, !lost, "{overflows_on:?} {}", one.processor);
        }
        assert_eq!(result.sums.len(), 2 - usize::from(lost));
    }
}

/// Number 2 and those from 5 on did not come.
#[test]
fn i7_a_processor_that_did_not_come_leaves_a_gap_among_the_numbers_and_none_among_the_places() {
    let pmu = || Err("there is no PMU".to_string());
    let members = [0, 1, 3, 4].map(|number| member(number, pmu()));
    let places = [0, 1, 2, 3, 4, 5].map(|number| place_of(&members, number));
    assert_eq!(places, [Some(0), Some(1), None, Some(2), Some(3), None]);
}
