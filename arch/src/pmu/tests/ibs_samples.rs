//! Many samples of AMD's unit, through the handler: the model takes them, which is written apart from the driver.

use super::ibs::{Features, Period, Unit};
use super::interrupt::Processor;
use super::pmi::{ControlBlock, Filter, Interrupted, Sample, Sampling, pause, resume, sampled};
use super::*;
use pmu_model::{Delta, Retirement, Ring};

/// Those that have the unit.
const MODELS: [Model; 3] = [Model::K10, Model::Zen2, Model::Zen4];
/// Operations from one sample to the next: the one behind so many is tagged.
const LENGTH: u64 = 64;
/// The slot of the counter whose samples they are.
const SLOT: u8 = 2;
/// The code that the task is stopped for.
const OTHER: u64 = 1 << 40;

/// A processor whose unit samples.
struct Bench {
    processor: Processor,
    block: ControlBlock,
    /// Instructions of the task that is sampled.
    ran: u64,
    /// Samples that the unit took, and the instructions that they are of.
    tagged: Vec<u64>,
    /// An interrupt that was not let in yet.
    pending: bool,
}

impl Bench {
    fn new(model: Model, log: &mut [Sample], filter: Option<Filter>) -> Self {
        let mut pmu = machine(model);
        let driver = Driver::new(find(&mut pmu).expect("a PMU"));
        let has = Features::announced(Registers::cpuid(&pmu, 0x8000_001b, 0).eax);
        // Family 10h counts cycles, which are instructions here.
        let operations = has.contains(Features::COUNTS_OPS);
        let period = Period::new(Unit::Op, operations, LENGTH, has).expect("a period");
        let mut block = ControlBlock::of(&driver);
        block.log_to(log);
        let keeps = has.contains(Features::READ_WRITE_COUNT);
        let sampling = Sampling::new(period, SLOT, 0).keeping_count(keeps).filtered_by(filter);
        block.sample_by(sampling.clearing_maximum(model == Model::K10));
        let mut processor = Processor::new(pmu, &driver);
        resume(&mut block, &mut processor);
        Self { processor, block, ran: 0, tagged: Vec::new(), pending: false }
    }

    /// An instruction retires.
    fn retire(&mut self, ip: u64) {
        let load = ip.is_multiple_of(2).then_some(0x8000 + ip);
        let retired = Retirement { ip, next: ip + 1, load, ..Retirement::default() };
        let delta = Delta::bulk(Ring::Kernel, 1);
        let outcome = model::retire(&mut self.processor.pmu, &delta, &retired);
        if outcome.ibs {
            self.tagged.push(ip);
            self.pending = true;
        }
    }

    /// The task goes on for so many instructions; `open`: interrupts are let in.
    fn run(&mut self, instructions: u64, open: bool) {
        for _ in 0..instructions {
            self.ran += 1;
            self.retire(self.ran);
            if open {
                self.serve();
            }
        }
    }

    fn serve(&mut self) {
        if std::mem::take(&mut self.pending) {
            let from = Interrupted { rip: self.ran, ..Interrupted::default() };
            sampled(&mut self.block, &mut self.processor, &from);
        }
    }

    /// Other code runs, at whose end interrupts are let in.
    fn switch(&mut self) {
        pause(&mut self.block, &mut self.processor, &Interrupted::default());
        (1..=LENGTH * 3).for_each(|n| self.retire(OTHER + n));
        resume(&mut self.block, &mut self.processor);
        self.serve();
    }
}

/// 10^5 samples. At every seventh one interrupts are off, and the task is stopped before it is taken out: it is taken there, and its
/// interrupt, which comes later, finds none. The log is too small for the last ones, which are counted as dropped.
#[test]
fn s1_m11_of_many_samples_of_operations_none_is_lost_unaccounted() {
    const SAMPLES: u64 = 100_000;
    const ROOM: u64 = 90_000;
    for model in MODELS {
        let mut log = vec![Sample::default(); ROOM as usize];
        let mut bench = Bench::new(model, &mut log, None);
        while (bench.tagged.len() as u64) < SAMPLES {
            let closed = bench.tagged.len() % 7 == 3;
            let before = bench.tagged.len();
            while bench.tagged.len() == before {
                bench.run(1, !closed);
            }
            if closed {
                // While nobody takes it, the unit stands still.
                bench.run(10, false);
                bench.switch();
            }
        }
        let Bench { block, tagged, .. } = &bench;
        assert_eq!(block.slot(SLOT.into()).overflows, SAMPLES, "{model:?}");
        assert_eq!(block.logged(log.as_ptr()) as u64, ROOM, "{model:?}");
        assert_eq!(
            (block.dropped, block.slot(SLOT.into()).dropped),
            (SAMPLES - ROOM, SAMPLES - ROOM)
        );
        let ibs = block.sampling().expect("the unit");
        assert_eq!((ibs.invalid, ibs.filtered, block.spurious), (0, 0, 0), "{model:?}");
        // Each is there once, of the instruction that the unit tagged, and none is of the other code.
        let wrong = log.iter().zip(tagged).find(|(sample, ip)| sample.rip != **ip);
        assert!(wrong.is_none(), "{model:?}: {wrong:?}");
        assert!(tagged.iter().all(|ip| *ip < OTHER), "{model:?}");
        // One in 65 instructions, but for those that the unit stood still for.
        assert!(bench.ran >= SAMPLES * LENGTH && bench.ran < SAMPLES * (LENGTH + 20), "{model:?}");
    }
}

/// Those that a filter keeps away are counted, and no period is lost with them.
#[test]
fn s1_m11_of_many_samples_those_that_are_filtered_are_counted() {
    const SAMPLES: u64 = 100_000;
    for model in MODELS {
        let mut log = vec![Sample::default(); SAMPLES as usize];
        let mut bench = Bench::new(model, &mut log, Some(Filter::Stores));
        while (bench.tagged.len() as u64) < SAMPLES {
            bench.run(1, true);
        }
        let ibs = bench.block.sampling().expect("the unit");
        let kept = bench.block.slot(SLOT.into()).overflows;
        assert_eq!((kept + ibs.filtered, ibs.invalid), (SAMPLES, 0), "{model:?}");
        assert_eq!((kept, bench.block.pmis, bench.block.spurious), (0, SAMPLES, 0), "{model:?}");
    }
}
