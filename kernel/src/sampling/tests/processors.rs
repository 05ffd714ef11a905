//! Several processors, each with a PMU, a log and tasks of its own.

use super::*;
use crate::sampling::whole::together;
use protocol::record::{SampledCount, SampledProcessor};

/// Processors that run one after the other, as those of the emulated PMU do.
struct Hosts(Vec<Host>);

impl Hosts {
    fn new(model: Model, count: u16) -> Self {
        let host = |cpu| Host { cpu, ..Host::new(model) };
        Self((0..count).map(host).collect())
    }

    fn at(&mut self, cpu: u16) -> &mut Host {
        &mut self.0[usize::from(cpu)]
    }
}

impl Sampler for Hosts {
    fn pmu(&mut self) -> Result<Pmu<'_>, String> {
        self.at(0).pmu()
    }
    fn gather(&mut self, cpus: &[u16], _: bool) -> Result<(), String> {
        let missing = cpus.iter().find(|&&cpu| usize::from(cpu) >= self.0.len());
        missing.map_or(Ok(()), |cpu| Err(format!("there is no processor {cpu}")))
    }
    fn on(
        &mut self,
        cpu: u16,
        work: &mut dyn FnMut(&mut dyn Registers, &mut Driver),
    ) -> Result<(), String> {
        self.at(cpu).on(cpu, work)
    }
    fn load_task(&mut self, task: &Task, gate: &Gate) -> (CodePlace, core::ops::Range<u64>) {
        self.at(0).load_task(task, gate)
    }
    fn run_task(&mut self, task: &Task, vectors: bool) -> Result<u64, Unmeasured> {
        self.at(0).run_task(task, vectors)
    }
    fn run_tasks(&mut self, item: &Sampling, interval: Option<u64>) -> Result<Scheduled, String> {
        let mut all: Option<Scheduled> = None;
        for cpu in item.workload.cpus() {
            let ran = self.at(cpu).run_tasks(item, interval)?;
            let before = all.map_or(0, |ran| ran.ticks);
            all = Some(Scheduled { ticks: before + ran.ticks, ..ran });
        }
        all.ok_or_else(|| "there are no tasks".to_string())
    }
    fn deliver(&mut self, cpu: u16, block: &ControlBlock, how: Delivery, timer: Option<Interval>) {
        self.at(cpu).deliver(cpu, block, how, timer);
    }
    fn withdraw(&mut self, cpu: u16, block: &mut ControlBlock) {
        self.at(cpu).withdraw(cpu, block);
    }
    fn clocks(&self) -> [u64; 2] {
        self.0[0].clocks()
    }
    fn code(&mut self, address: u64) -> Vec<u8> {
        self.at(0).code(address)
    }
    fn pointers(&self, task: Option<usize>) -> [u64; 5] {
        self.0[0].pointers(task)
    }
    fn has_extended_lvt(&mut self, entry: u8) -> bool {
        self.at(0).has_extended_lvt(entry)
    }
    fn has_emulated_pmu(&self) -> bool {
        true
    }
}

/// Tasks of 10, 3 and 11 instructions a turn, 1,000 turns each: the first and the last on processor 1, the other on 3.
fn spread(events: &[SampledEvent<'static>]) -> Sampling<'static> {
    let mut item = item(events, 1_000);
    let task = item.workload.tasks[0].clone();
    let tasks: [(u16, &[u8]); 3] = [(1, &[0x90; 10]), (3, &[0x90; 3]), (1, &[0x90; 11])];
    let with = |(cpu, body)| Task { cpu: Some(cpu), body: Cow::Borrowed(body), ..task.clone() };
    item.workload.tasks = tasks.into_iter().map(with).collect();
    item
}

fn run_on(hosts: &mut Hosts, item: &Sampling) -> (SampleResult, Vec<Samples>) {
    let mut chunks = Vec::new();
    let result = measure(hosts, 3, item, &mut (), &mut |chunk| chunks.push(chunk));
    (result.unwrap_or_else(|error| panic!("{error:?}")), chunks)
}

/// Overflows, samples, dropped, rest and witness.
fn account(one: &SampledCount) -> [u64; 5] {
    [one.overflows, one.samples, one.dropped, one.rest, one.witness.unwrap_or(0)]
}

/// Each processor has the account of its own tasks, on every model; the sums are those of the item.
#[test]
fn i5_m13_each_processor_has_an_account_of_its_own_and_the_sums_are_the_items() {
    for (model, _) in hosts() {
        for freeze in [sampling::Freeze::Auto, sampling::Freeze::Software] {
            let item = Sampling { freeze, ..spread(&[event(RETIRED, 97)]) };
            let (result, chunks) = run_on(&mut Hosts::new(model, 4), &item);
            let [one, three] = &result.processors[..] else { panic!("{result:?}") };
            assert_eq!((one.cpu, three.cpu, chunks.len()), (1, 3, 0), "{model:?}");
            // 21,000 instructions are 216 * 97 + 48; 3,000 are 30 * 97 + 90.
            assert_eq!(account(&one.events[0]), [216, 216, 0, 48, 21_000], "{model:?}");
            assert_eq!(account(&three.events[0]), [30, 30, 0, 90, 3_000], "{model:?}");
            assert_eq!(account(&result.events[0]), [246, 246, 0, 138, 24_000], "{model:?}");
            assert_eq!(result.interrupts, one.interrupts + three.interrupts, "{model:?}");
            for row in &result.addresses {
                assert_eq!(row.cpu, item.workload.cpu_of(row.task as usize), "{model:?}: {row:?}");
            }
            let of = |cpu| {
                let rows = result.addresses.iter().filter(move |row| row.cpu == cpu);
                rows.map(|row| row.count).sum::<u64>()
            };
            assert_eq!([of(0), of(1), of(3)], [0, 216, 30], "{model:?}");
        }
    }
}

/// A log of fixed size for each: what one drops, or where one stops, is no other's.
#[test]
fn m11_m13_each_processor_has_a_log_of_its_own_size() {
    for (model, _) in hosts() {
        for on_full in [OnFull::Drop, OnFull::Stop] {
            let (keep, capacity) = (Keep::Samples, 100);
            let item = Sampling { keep, capacity, on_full, ..spread(&[event(RETIRED, 97)]) };
            let (result, chunks) = run_on(&mut Hosts::new(model, 4), &item);
            let [one, three] = &result.processors[..] else { panic!("{result:?}") };
            let stops = on_full == OnFull::Stop;
            assert_eq!((one.stopped, three.stopped), (stops, false), "{model:?}");
            assert_eq!((one.logged, three.logged, result.logged), (100, 30, 130), "{model:?}");
            // 216 overflows, of which 100 fit.
            let dropped = if stops { 0 } else { 116 };
            assert_eq!([one.dropped, three.dropped, result.dropped], [dropped, 0, dropped]);
            assert_eq!(account(&three.events[0]), [30, 30, 0, 90, 3_000], "{model:?}");
            let counted = &one.events[0];
            assert_eq!(counted.overflows, 100 + dropped, "{model:?}");
            assert_eq!(Some(counted.overflows * 97 + counted.rest), counted.witness, "{model:?}");
            // The records are numbered through, and each is of one processor.
            let told: Vec<_> =
                chunks.iter().map(|one| (one.cpu, one.first, one.tsc.len())).collect();
            assert_eq!(told, [(1, 0, 100), (3, 100, 30)], "{model:?}");
            for chunk in &chunks {
                for (.., task) in chunk.iter() {
                    assert_eq!(item.workload.cpu_of(task as usize >> 2), chunk.cpu, "{model:?}");
                }
            }
        }
    }
}

/// A rate is that of all processors together, with one period.
#[test]
fn m8_a_frequency_is_that_of_all_processors_together() {
    for (model, _) in hosts() {
        let rate = SampledEvent { rate: Rate::PerSecond(1_000_000), ..event(RETIRED, 1) };
        let (result, _) = run_on(&mut Hosts::new(model, 4), &spread(&[rate]));
        let periods: Vec<u64> = result.processors.iter().map(|one| one.events[0].period).collect();
        // One instruction a nanosecond.
        assert_eq!((result.events[0].period, periods), (1_000, vec![1_000; 2]), "{model:?}");
        assert_eq!(result.events[0].overflows, 24, "{model:?}");
    }
}

/// Where the timer samples beside the scheduler, each processor has its ticks, and the account of the counters stays exact.
#[test]
fn m8_m13_a_timer_samples_beside_the_schedulers_ticks_on_each_processor() {
    for (model, _) in hosts() {
        let mut item = Sampling { interval_ns: 500, ..spread(&[event(RETIRED, 97)]) };
        item.workload.tick_ns = 1_000;
        let (result, _) = run_on(&mut Hosts::new(model, 4), &item);
        let [one, three] = &result.processors[..] else { panic!("{result:?}") };
        for (part, counted, least) in [(one, 21_000, 42), (three, 3_000, 6)] {
            let [events, ticks] = &part.events[..] else { panic!("{part:?}") };
            assert_eq!(events.overflows * 97 + events.rest, counted, "{model:?}");
            assert_eq!(events.samples, events.overflows, "{model:?}");
            assert_eq!((ticks.period, ticks.samples), (500, ticks.overflows), "{model:?}");
            // The clock goes on in handlers as well.
            assert!(ticks.overflows >= least, "{model:?}: {ticks:?}");
            assert_eq!(part.timer.as_ref().map(|timer| timer.set_ns), Some(500), "{model:?}");
        }
        let timer = result.timer.as_ref().expect("a timer sampled");
        assert_eq!((timer.asked_ns, timer.set_ns), (500, 500), "{model:?}");
        let ticks = &result.events[1];
        assert_eq!(ticks.overflows, one.events[1].overflows + three.events[1].overflows);
    }
}

/// With PEBS each processor has a buffer of its own, with IBS a unit.
#[test]
fn s1_m13_precise_samples_are_each_processors_own() {
    for model in [Model::Skylake, Model::IceLake, Model::CougarCove, Model::Zen2, Model::Zen4] {
        let amd = matches!(model, Model::Zen2 | Model::Zen4);
        let (text, period) = if amd { ("r00c1", 272) } else { (RETIRED, 272) };
        let item = Sampling { precise: true, ..spread(&[event(text, period)]) };
        let (result, _) = run_on(&mut Hosts::new(model, 4), &item);
        let [one, three] = &result.processors[..] else { panic!("{result:?}") };
        for (part, counted) in [(one, 21_000), (three, 3_000)] {
            let one = &part.events[0];
            let seen = one.overflows * period + one.rest;
            // This machine asks a unit of IBS at a switch only, every seven instructions; what came since its sample is in no period.
            let unseen = if amd { 6 * one.overflows } else { 0 };
            assert!((counted - unseen..=counted).contains(&seen), "{model:?}: {one:?}");
            assert!(one.overflows >= counted / period - 1, "{model:?}: {one:?}");
            assert_eq!((one.samples, one.dropped, one.lost), (one.overflows, 0, 0), "{model:?}");
        }
        assert!(result.addresses.iter().all(|row| row.cpu == if row.task == 1 { 3 } else { 1 }));
    }
}

#[test]
fn c7_what_a_processor_cannot_is_refused_with_its_number() {
    let item = spread(&[event(RETIRED, 97)]);
    let refused = |hosts: &mut Hosts| match measure(hosts, 0, &item, &mut (), &mut |_| ()) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut Hosts::new(Model::Skylake, 2)), "there is no processor 3");
    let mut hosts = Hosts::new(Model::Skylake, 4);
    hosts.at(3).absent = true;
    assert_eq!(refused(&mut hosts), "on processor 3: there is no PMU: none");
    let mut hosts = Hosts::new(Model::Skylake, 4);
    hosts.at(3).forgets = true;
    let text = refused(&mut hosts);
    assert!(text.starts_with("on processor 3: r00c0: 30 overflows, but 0 samples"), "{text}");
}

/// The boot processor alone is told as before.
#[test]
fn i5_the_boot_processor_alone_is_not_named() {
    let (result, _) = run(&mut Host::new(Model::Skylake), &item(&[event(RETIRED, 100)], 100));
    assert!(result.processors.is_empty() && result.addresses.iter().all(|row| row.cpu == 0));
    assert_eq!(together(vec![(0, result.clone())]), Some(result.clone()));
    let named = together(vec![(2, result.clone())]).unwrap();
    let events: Vec<&SampledProcessor> = named.processors.iter().collect();
    assert_eq!((events.len(), events[0].cpu, &events[0].events), (1, 2, &result.events));
    assert_eq!(together(vec![]), None);
}

/// What is doubtful on all is said once; on one, with its number.
#[test]
fn i5_remarks_name_their_processor() {
    let (result, _) = run(&mut Host::new(Model::Skylake), &item(&[event(RETIRED, 100)], 1));
    let with = |remarks: &[&str]| {
        let remarks = remarks.iter().map(ToString::to_string).collect();
        let one = SampledCount { remarks, ..result.events[0].clone() };
        SampleResult { events: vec![one], ..result.clone() }
    };
    let whole = together(vec![(0, with(&["both", "mine"])), (2, with(&["both", "yours"]))]);
    let expected = ["both", "on processor 0: mine", "on processor 2: yours"];
    assert_eq!(whole.unwrap().events[0].remarks, expected);
}

mod sums {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_count()(
            overflows in 0_u64..1 << 40, dropped in 0_u64..1 << 40, throttled in 0_u64..1 << 40,
            rest in 0_u64..1 << 40, last in prop::option::of(1_u64..1 << 40),
            witness in prop::option::of(0_u64..1 << 40), lost in 0_u64..9,
        ) -> SampledCount {
            SampledCount {
                event: "e".to_string(), period: 100, overflows, dropped, throttled, rest,
                last_period: last, witness, lost,
                samples: overflows.saturating_sub(dropped + lost), ..SampledCount::default()
            }
        }
    }

    proptest! {
        /// What holds for each processor holds for the sum.
        #[test]
        fn i5_m12_sums_keep_the_account(parts in prop::collection::vec(any_count(), 1..6)) {
            let (result, _) = run(&mut Host::new(Model::Skylake), &item(&[event(RETIRED, 100)], 1));
            let of = |(cpu, one): (u16, &SampledCount)| {
                (cpu, SampleResult { events: vec![one.clone()], ..result.clone() })
            };
            let whole = together((1..).zip(&parts).map(of).collect()).unwrap();
            let seen = |one: &SampledCount| (one.overflows + one.throttled) * one.period + one.rest;
            let all = &whole.events[0];
            prop_assert_eq!(seen(all), parts.iter().map(seen).sum::<u64>());
            prop_assert_eq!(all.samples, parts.iter().map(|one| one.samples).sum::<u64>());
            prop_assert_eq!(all.dropped + all.lost, parts.iter().map(|one| one.dropped + one.lost).sum::<u64>());
            prop_assert_eq!(all.witness.is_some(), parts.iter().all(|one| one.witness.is_some()));
            prop_assert_eq!(all.last_period, parts.iter().filter_map(|one| one.last_period).max());
            prop_assert_eq!(whole.processors.len(), parts.len());
        }
    }
}
