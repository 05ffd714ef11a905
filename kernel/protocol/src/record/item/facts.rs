//! Fact sheets.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{
    BandwidthFacts, CoreFacts, FactsResult, ItemRecord, MemoryFacts, NoiseFacts, NoiseWindow,
    PipelineFacts, PrefetchFacts, Prefetched, Uncounted,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl ItemRecord for FactsResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Facts(_))
    }

    fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        self.memory.iter().for_each(|memory| of_memory(memory, &mut all));
        self.bandwidth.iter().for_each(|facts| of_bandwidth(facts, &mut all));
        self.core.iter().for_each(|core| of_core(core, &mut all));
        self.cores.iter().for_each(|cores| of_cores(cores, &mut all));
        self.noise.iter().for_each(|noise| of_noise(noise, &mut all));
        // What was not determined is no figure, and nothing that a counter missed.
        all.retain(|one| one.value.is_some());
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }
}

fn of_memory(memory: &MemoryFacts, all: &mut Vec<Figure>) {
    let cycles = |tenths: u64| tenths as f64 / 10.0;
    all.push(figure("line", memory.line.map(f64::from)));
    for cache in &memory.caches {
        let level = cache.level;
        all.push(figure(format!("L{level} bytes"), cache.bytes().map(|bytes| bytes as f64)));
        all.push(figure(format!("L{level} ways"), cache.ways.map(f64::from)));
        all.push(figure(format!("L{level} cycles"), cache.tenths.map(cycles)));
    }
    all.push(figure("memory cycles", Some(cycles(memory.memory_tenths))));
    for tlb in &memory.tlbs {
        let name = format!("L{} TLB of {} KiB pages", tlb.level, tlb.page >> 10);
        let entries = tlb.ways.zip(tlb.sets).map(|(ways, sets)| f64::from(ways * sets));
        all.push(figure(format!("{name} entries"), entries));
        all.push(figure(format!("{name} ways"), tlb.ways.map(f64::from)));
        all.push(figure(format!("{name} walk cycles"), Some(cycles(tlb.walk_tenths))));
    }
    memory.prefetch.iter().for_each(|facts| of_prefetchers(facts, all));
    all.push(figure("line crossing cycles", Some(cycles(memory.crossing_tenths[0]))));
    all.push(figure("page crossing cycles", Some(cycles(memory.crossing_tenths[1]))));
}

/// Of pairs 1 or 0, of streams by stride the loads before and the lines after.
fn of_prefetchers(facts: &PrefetchFacts, all: &mut Vec<Figure>) {
    let pairs = facts.pairs().map(|pairs| f64::from(u8::from(pairs)));
    all.push(figure("prefetched pairs", pairs));
    for stride in facts.strides() {
        for (first, found) in [true, false].into_iter().zip(facts.stream(stride)) {
            // None is a figure as well.
            let values = found.map_or([0; 2], |one| [one.after, one.ahead]);
            let named = Prefetched::figures(stride, first).into_iter().zip(values);
            all.extend(named.map(|(name, value)| figure(name, Some(value.into()))));
        }
    }
}

/// Of working sets in the middle of a level.
fn of_bandwidth(facts: &BandwidthFacts, all: &mut Vec<Figure>) {
    let place = |level: u32| match level {
        0 => "memory".into(),
        level => format!("L{level}"),
    };
    for point in &facts.alone {
        let Some(level) = point.level else { continue };
        let name = format!("{} {} bytes per", place(level), point.by.name());
        all.push(figure(format!("{name} cycle"), point.per_cycle()));
        all.push(figure(format!("{name} tick"), point.per_tick()));
    }
    let thousandths = |milli: u64| (milli > 0).then_some(milli as f64 / 1000.0);
    for sum in &facts.together {
        let name = format!("{} {} by all bytes per", place(sum.level), sum.by.name());
        all.push(figure(format!("{name} cycle"), thousandths(sum.milli_per_cycle.median)));
        all.push(figure(format!("{name} tick"), thousandths(sum.milli_per_tick.median)));
    }
}

fn of_core(core: &PipelineFacts, all: &mut Vec<Figure>) {
    let cycles = core.mispredict_tenths.median as f64 / 10.0;
    all.push(figure("misprediction cycles", Some(cycles)));
    all.push(figure("return stack entries", core.returns.entries.map(f64::from)));
    all.push(figure("targets entries", core.targets.entries().map(f64::from)));
    all.push(figure("targets ways", core.targets.ways.map(f64::from)));
    let code = &core.code;
    all.push(figure("L1 code bytes", code.bytes().map(f64::from)));
    all.push(figure("L1 code ways", code.ways.map(f64::from)));
    all.push(figure("L1 code line", code.line.map(f64::from)));
    for one in &core.stores.forward {
        let [_, median, _] = one.tenths;
        all.push(figure(format!("{} cycles", one.name()), Some(median as f64 / 10.0)));
    }
    for one in &core.hazards {
        let median = one.tenths.map(|[_, median, _]| median as f64 / 10.0);
        all.push(figure(format!("{} cycles", one.name), median));
    }
    all.push(figure("issue width", core.issue.width.map(f64::from)));
    all.push(figure("retirement width", core.retire.width.map(f64::from)));
    let front = &core.front;
    all.push(figure("uop cache entries", front.uop_cache.map(f64::from)));
    all.push(figure("loop buffer entries", front.loop_buffer.map(f64::from)));
    all.push(figure("decode width", front.decode.map(f64::from)));
    all.push(figure("direct jumps entries", core.direct.entries.map(f64::from)));
    all.push(figure("store buffer entries", core.stores.entries.map(f64::from)));
    for one in &core.window {
        all.push(figure(format!("{} entries", one.name), one.entries.map(f64::from)));
    }
    let cost = (code.miss_tenths > 0).then_some(code.miss_tenths as f64 / 10.0);
    all.push(figure("L1 code miss cycles", cost));
}

/// Of all pairs, the nearest, the middle one and the farthest, and what waiting processors take to answer, in ticks.
fn of_cores(cores: &CoreFacts, all: &mut Vec<Figure>) {
    let ticks = |tenths: u64| tenths as f64 / 10.0;
    for matrix in &cores.matrices {
        let mut medians: Vec<u64> = matrix.medians().collect();
        medians.sort_unstable();
        let (name, last) = (matrix.by.name(), medians.len().saturating_sub(1));
        for (which, at) in [("nearest", 0), ("middle", last / 2), ("farthest", last)] {
            let value = medians.get(at).copied().map(ticks);
            all.push(figure(format!("{which} cores by {name} ticks"), value));
        }
    }
    for one in &cores.contention {
        let most = one.points.last().map(|point| ticks(point.tenths()));
        all.push(figure(format!("contended {} ticks", one.by.name()), most));
    }
    for way in cores.ways() {
        let mut medians: Vec<u64> = cores.wakes_by(way).map(|one| one.ticks.median).collect();
        medians.sort_unstable();
        let value = medians.get(medians.len() / 2).map(|ticks| *ticks as f64);
        let (waiting, hint) = way;
        let state = hint.map_or(String::new(), |hint| format!(" {hint:#x}"));
        all.push(figure(format!("wake by {}{state} ticks", waiting.name()), value));
    }
}

fn of_noise(noise: &NoiseFacts, all: &mut Vec<Figure>) {
    let sum = |of: fn(&NoiseWindow) -> u64| noise.windows.iter().map(of).sum::<u64>() as f64;
    let longest = noise.windows.iter().map(|window| window.longest).max();
    all.push(figure("gaps", Some(sum(|window| window.count))));
    all.push(figure("stolen ticks", Some(sum(|window| window.stolen))));
    all.push(figure("longest gap ticks", longest.map(|ticks| ticks as f64)));
    let smis: Option<u64> = noise.windows.iter().map(|window| window.smis).sum();
    all.push(figure("smis", smis.map(|count| count as f64)));
    let late = noise.timer.as_ref().map(|timer| timer.late.median as f64);
    all.push(figure("timer late ticks", late));
    for cost in &noise.costs {
        all.push(figure(format!("{} ticks", cost.name), Some(cost.ticks.median as f64)));
    }
}
