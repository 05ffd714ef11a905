use super::*;
use crate::events::Known;
use crate::snippet::events::{Plan, plan, plan_with_latencies};
use crate::snippet::measure::measure;
use crate::snippet::measure::tests::nop;
use alloc::rc::Rc;
use arch::call::Trap;
use arch::pmu::{Driver, find};
use events::pack::Sources;
use events::tables::Tables;
use pmu_model::{Delta, GuestMemory, Host, Model, Occurrence, Pmu, Retirement, Ring, Timing};
use std::borrow::Cow;
use std::sync::OnceLock;

const LOCKED: &str = "mem_inst_retired.lock_loads:retire_latency";
const SPLIT: &str = "mem_inst_retired.split_loads:retire_latency";

fn known(model: Model, table: &str) -> Known<'static> {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    let block = BLOCK.get_or_init(|| Sources::embedded().unwrap().pack().unwrap());
    let core = Tables::open(block).unwrap().cores().find(|core| core.name() == table);
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
    Known::new(&find(&mut pmu).unwrap(), core, &mut pmu)
}

fn texts(all: &[&'static str]) -> Vec<Cow<'static, str>> {
    all.iter().map(|&text| text.into()).collect()
}

/// Memory that is the test's own.
struct Own;

impl GuestMemory for Own {
    fn read(&mut self, linear: u64) -> Option<u64> {
        // SAFETY: the driver's area or buffer, which the records have allocated.
        Some(unsafe { (linear as *const u64).read_volatile() })
    }

    fn write(&mut self, linear: u64, value: u64) -> Option<()> {
        // SAFETY: as above.
        unsafe { (linear as *mut u64).write_volatile(value) };
        Some(())
    }

    fn write_physical(&mut self, physical: u64, value: u64) -> Option<()> {
        self.write(physical, value)
    }
}

/// A machine whose body is these instructions: each a locked load, of data in memory or in the first level.
struct Machine {
    model: Model,
    table: &'static str,
    pmu: Pmu,
    driver: Driver,
    body: Vec<Delta>,
    /// Locked loads beside the body, out of the first level, in each run.
    beside: u64,
    copies: u64,
    records: Option<Records>,
    counts: Vec<u64>,
    periods: Vec<u64>,
    refuses: bool,
}

fn locked(far: bool) -> Delta {
    let level = if far { Occurrence::LoadLlcMiss } else { Occurrence::LoadL1Hit };
    let load = Delta::step(Ring::Kernel).with(Occurrence::Load, 1).with(Occurrence::Locked, 1);
    load.with(level, 1)
}

impl Machine {
    fn new((model, table): (Model, &'static str), body: Vec<Delta>) -> Self {
        let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
        let driver = Driver::new(find(&mut pmu).unwrap());
        let (beside, copies, periods) = (0, 0, Vec::new());
        let (records, counts, refuses) = (None, Vec::new(), false);
        Self { model, table, pmu, driver, body, beside, copies, records, counts, periods, refuses }
    }

    fn retire(&mut self, delta: &Delta) {
        let outcome = self.pmu.advance(delta);
        if outcome.due != 0 {
            let retired = Retirement { ip: 0x1000, next: 0x1004, ..Retirement::default() };
            self.pmu.write_record(outcome.due, &retired, &mut Own);
        }
    }
}

impl Runner for Machine {
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        Rc::new(plan_with_latencies(&snippet.events, &known(self.model, self.table)))
    }

    fn program(&mut self, _: &[Counted]) -> Result<(), (usize, String)> {
        Ok(())
    }

    fn program_records(
        &mut self,
        pass: &[Counted],
        periods: &[u64],
    ) -> Result<(), (usize, String)> {
        if self.refuses {
            return Err((0, "the register refuses".into()));
        }
        self.driver.reset(&mut self.pmu).map_err(|error| (0, format!("{error}")))?;
        self.records = Some(Records::arm(&mut self.pmu, &mut self.driver, pass, periods)?);
        self.periods = periods.to_vec();
        self.counts = alloc::vec![0; pass.len()];
        Ok(())
    }

    fn retired(&self) -> (&[Retired], bool) {
        self.records.as_ref().unwrap().last()
    }

    fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn load(&mut self, _: &Snippet, copies: u64) {
        self.copies = copies;
    }

    fn load_once(&mut self, _: &Snippet) {}

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        if self.records.is_some() {
            self.driver.start(&mut self.pmu).unwrap();
            for _ in 0..self.beside {
                self.retire(&locked(false));
            }
            for _ in 0..self.copies {
                for delta in self.body.clone() {
                    self.retire(&delta);
                }
            }
            self.driver.stop(&mut self.pmu).unwrap();
            let records = self.records.as_mut().unwrap();
            records.take(&mut self.pmu, &self.driver, &mut self.counts);
        }
        Ok(self.copies)
    }

    fn explain(&self, _: &Trap, _: &Snippet) -> Fault {
        unreachable!("nothing faults")
    }
}

const ARROW_LAKE: (Model, &str) = (Model::ArrowLake, "lioncove_arl");
const COUGAR_COVE: (Model, &str) = (Model::CougarCove, "cougarcove");

fn snippet(events: &[&'static str]) -> Snippet<'static> {
    Snippet { events: texts(events), unroll: 30, ..nop("locks") }
}

/// A load out of memory takes 201 cycles, one out of the first level one. What is beside the body is in both code sizes.
#[test]
fn s3_the_retire_latency_is_the_mean_of_the_bodys_records() {
    for (machine, beside) in [(ARROW_LAKE, 0), (ARROW_LAKE, 30), (COUGAR_COVE, 0)] {
        for (body, mean) in [
            (vec![locked(true)], 201.0),
            (vec![locked(false)], 1.0),
            (vec![locked(true), locked(false)], 101.0),
        ] {
            let (mut machine, size) = (Machine::new(machine, body.clone()), body.len() as u64);
            machine.beside = beside;
            let measured = measure(&mut machine, &snippet(&[LOCKED])).unwrap();
            assert!(measured.uncounted.is_empty(), "{:?}", measured.uncounted);
            let [_, metric] = &measured.metrics[..] else { panic!("{:?}", measured.metrics) };
            assert_eq!((&*metric.event, metric.value.median), (LOCKED, mean), "beside {beside}");
            // Of the loads of eight runs each third or fifth has a record.
            let period = period(60 * size + beside, 8);
            let each = |copies| 8 * (copies * size + beside) / period;
            let retired = metric.retired.unwrap();
            assert_eq!((retired.records, retired.period), ([each(30), each(60)], period));
            assert_eq!(metric.series[1].max, (retired.cycles[1] / 8).cast_signed());
        }
    }
}

/// The period follows how often the event occurs, and that is asked first; a job may say it.
#[test]
fn s3_the_period_follows_how_often_the_event_occurs() {
    for (events, runs, expected) in
        [(0, 8, 3), (96, 8, 3), (128, 8, 5), (10_000, 8, 313), (u64::MAX, 8, (1 << 31) + 11)]
    {
        assert_eq!(period(events, runs), expected, "{events}");
    }
    for (text, expected) in [
        (LOCKED, 31),
        ("mem_inst_retired.lock_loads:retire_latency=7", 7),
        ("mem_inst_retired.lock_loads:retire_latency=2", 2),
    ] {
        let mut machine = Machine::new(ARROW_LAKE, vec![locked(true)]);
        let snippet = Snippet { unroll: 500, ..snippet(&[text]) };
        let measured = measure(&mut machine, &snippet).unwrap();
        assert_eq!(machine.periods, [expected], "{text}");
        let metric = &measured.metrics[1];
        assert_eq!(metric.retired.unwrap().period, expected);
        let remarks = &metric.counting.as_ref().unwrap().remarks;
        assert!(remarks.iter().all(|one| !one.contains("full")), "{remarks:?}");
    }
    // 1,000 loads in a run, and room for 512.
    let mut machine = Machine::new(ARROW_LAKE, vec![locked(true); 2]);
    let many =
        Snippet { unroll: 500, ..snippet(&["mem_inst_retired.lock_loads:retire_latency=2"]) };
    let measured = measure(&mut machine, &many).unwrap();
    let remarks = &measured.metrics[1].counting.as_ref().unwrap().remarks;
    assert!(remarks.iter().any(|one| one.contains("buffer of records was full")), "{remarks:?}");
}

#[test]
fn s3_without_a_record_there_is_no_mean_and_the_reason() {
    let said = |body: Delta, text, change: fn(&mut Machine)| {
        let mut machine = Machine::new(ARROW_LAKE, vec![body]);
        change(&mut machine);
        let measured = measure(&mut machine, &snippet(&[text])).unwrap();
        assert_eq!(measured.metrics.len(), 1, "the time alone");
        measured.uncounted[0].reason.clone()
    };
    let never = said(Delta::step(Ring::Kernel), LOCKED, |_| {});
    assert!(never.contains("it did not occur"), "{never}");
    let long = "mem_inst_retired.lock_loads:retire_latency=100003";
    let rare = said(locked(true), long, |_| {});
    assert!(rare.contains("of one for 100003 events the larger code wrote 0"), "{rare}");
    assert!(rare.contains("in a run of the larger 60 occur"), "{rare}");
    let refused = said(locked(true), LOCKED, |machine| machine.refuses = true);
    assert_eq!(refused, "the register refuses");
}

/// Latencies share a pass, after those of counts; they are not among counts, nor for others than a snippet.
#[test]
fn s3_latencies_have_passes_of_their_own() {
    let known_arrow = known(Model::ArrowLake, "lioncove_arl");
    let all = texts(&[LOCKED, "instructions", SPLIT, "mem_inst_retired.lock_loads"]);
    let plan_of = |texts: &[Cow<str>]| plan_with_latencies(texts, &known_arrow);
    let planned = plan_of(&all);
    let names: Vec<Vec<(usize, &str)>> = (planned.passes.iter())
        .map(|pass| pass.iter().map(|one| (one.number, &*one.event)).collect())
        .collect();
    let counts = vec![(1, "instructions"), (3, "mem_inst_retired.lock_loads")];
    assert_eq!(names, [counts, vec![(0, LOCKED), (2, SPLIT)]]);
    let passes = planned.passes[1].iter().map(|one| (one.counting.pass, one.retired, one.level));
    assert_eq!(passes.collect::<Vec<_>>(), [(1, Some(0), 2); 2]);
    assert!(planned.passes[1].iter().all(|one| one.selection.precise));
    // Alone it leaves the first pass to the time.
    let alone = plan_of(&texts(&[LOCKED]));
    assert_eq!((alone.passes.len(), alone.passes[0].len()), (2, 0));
    let mixed = plan_of(&texts(&["{instructions,mem_inst_retired.lock_loads:retire_latency}"]));
    let said: Vec<&str> = mixed.uncounted.iter().map(|one| &*one.reason).collect();
    assert!(said.len() == 2 && said[0].contains("put it outside the braces"), "{said:?}");
    let elsewhere = plan(&texts(&[LOCKED]), &known_arrow);
    assert!(elsewhere.uncounted[0].reason.contains("[[snippet]] on the boot processor"));
    // No field before format 6.
    let older = known(Model::SapphireRapids, "sapphirerapids");
    let refused = &plan_with_latencies(&texts(&[LOCKED]), &older).uncounted[0].reason;
    assert!(refused.contains("do not state it"), "{refused}");
}
