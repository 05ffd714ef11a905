//! What events cost on the host: opening the tables, finding a name, encoding and planning a long
//! list. Ends with a panic if planning 1,000 requests takes 10 ms or more.

use criterion::Criterion;
use events::encode::{Encoded, encode};
use events::pack::Sources;
use events::parse::parse_event;
use events::passes::{Effort, plan};
use events::processor::Processor;
use events::set::EventSet;
use events::tables::{Core, Tables};
use std::hint::black_box;
use std::time::{Duration, Instant};

const REQUESTS: usize = 1_000;
const LIMIT: Duration = Duration::from_millis(10);

fn block() -> Vec<u8> {
    Sources::embedded().and_then(|sources| sources.pack()).expect("the project's own data packs")
}

/// Every other event of the largest table: plain, offcore, front-end and load-latency ones, some
/// of which must be counted alone.
fn requests(core: &Core<'_>) -> Vec<Encoded> {
    let processor = Processor::described_by(core);
    let events = core.events().step_by(2).take(REQUESTS);
    let encoded = events.map(|event| {
        let request = parse_event(event.name).expect("names parse");
        encode(&request, &processor, Some(core)).expect("rows encode")
    });
    encoded.collect()
}

fn singles(requests: &[Encoded]) -> EventSet {
    let mut set = EventSet::default();
    for request in requests {
        set.add(request.clone());
    }
    set
}

/// The same in groups of two, which the quick exact way does not understand.
fn pairs(requests: &[Encoded]) -> EventSet {
    let items = (0..requests.len()).collect::<Vec<_>>().chunks(2).map(<[usize]>::to_vec).collect();
    EventSet { requests: requests.to_vec(), items, correlates: Vec::new() }
}

fn benchmarks(c: &mut Criterion) {
    let block = block();
    println!("event tables: {} bytes", block.len());
    c.bench_function("open the tables", |b| {
        b.iter(|| Tables::open(black_box(&block)));
    });
    let tables = Tables::open(&block).unwrap();
    let core = tables.named("cascadelakex").expect("the largest table");
    c.bench_function("find a name among 2,344", |b| {
        b.iter(|| core.find(black_box("mem_load_retired.l1_miss")).unwrap());
    });
    c.bench_function("suggest for a misspelled name", |b| {
        b.iter(|| core.suggest(black_box("mem_laod_retired.l1_mis"), 3));
    });
    let processor = Processor::described_by(&core);
    c.bench_function("parse and encode", |b| {
        b.iter(|| {
            let request = parse_event(black_box("br_inst_retired.near_taken:u")).unwrap();
            encode(&request, &processor, Some(&core)).unwrap()
        });
    });
    let requests = requests(&core);
    for (name, set) in [("requests", singles(&requests)), ("requests in pairs", pairs(&requests))] {
        let planned = plan(&set, Effort::default()).unwrap();
        println!(
            "{REQUESTS} {name}: {} passes, at least {}, {} refused",
            planned.passes.len(),
            planned.lower_bound,
            planned.refused.len()
        );
        c.bench_function(&format!("plan 1,000 {name}"), |b| {
            b.iter(|| plan(black_box(&set), Effort::default()).unwrap());
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benchmarks(&mut criterion);
    criterion.final_summary();
    let block = block();
    let core = Tables::open(&block).unwrap().named("cascadelakex").unwrap();
    let set = singles(&requests(&core));
    assert_eq!(set.requests.len(), REQUESTS);
    let took = || {
        let start = Instant::now();
        black_box(plan(&set, Effort::default()).unwrap());
        start.elapsed()
    };
    let least = (0..10).map(|_| took()).min().unwrap();
    println!("planning {REQUESTS} requests: {least:?} at best; the limit is {LIMIT:?}");
    assert!(least < LIMIT, "{least:?}");
}
