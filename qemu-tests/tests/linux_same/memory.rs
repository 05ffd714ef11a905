//! `perf mem record` beside `mem-loads` and `mem-stores`: of each sample its address, that of its data, where that was, and how long it
//! took.

use super::{By, Cell};
use protocol::record::{SampleResult, Samples};
use qemu_tests::Ran;
use qemu_tests::stock_linux::data::{self, Access};
use qemu_tests::stock_linux::work::Work;
use std::collections::BTreeSet;
use std::ops::Range;

/// Of `perf script`.
pub(crate) const FIELDS: &str = "event,addr,data_src,weight,ip";

/// In each turn a load and a store walk over 16 pages, whose lines share a set of the first level, which has 8 ways: none is there when it
/// comes again, and all are in the last level. Others are of the same lines always, and one of a line that was flushed just before. None of
/// them shares a set with another. The store comes first, as Linux gives a page a frame of its own only then.
pub(crate) const WALK: Work = Work {
    name: "walk",
    // Both begin with none of it in the caches.
    init: "xor r15d, r15d; mov r14d, 0x800c0000; xor ecx, ecx; \
           1: mov [r14+rcx+0x440], rcx; clflush [r14+rcx]; clflush [r14+rcx+0x440]; add ecx, 0x1000; cmp ecx, 0x10000; jb 1b; \
           xor ecx, ecx; clflush [r14+0x140]; mov esi, 0x80080020; clflush [rsi]",
    asm: "mov [r14+rcx+0x440], rdx; mov rdx, [r14+rcx]; mov rdx, [r14+0x140]; clflush [r14+0x240]; mov rbx, [r14+0x240]; \
          mov [r14+0x340], rbx; add ecx, 0x1000; and ecx, 0xf000",
    turns: 2_000,
};

const fn cell(name: &'static str, perf: &'static str, own: &'static str, period: u64) -> Cell {
    Cell { name, perf, own, precise: true, period, by: By::Source, work: &WALK }
}

/// Every load that takes more than 3 cycles, which all do; those out of memory alone; stores.
pub(super) const CELLS: [Cell; 3] = [
    cell("mem-loads", "-t load record -q --all-user --ldlat=3", "mem-loads:u:ldlat=3", 100),
    cell("mem-slow", "-t load record -q --all-user --ldlat=30", "mem-loads:u:ldlat=30", 13),
    cell("mem-stores", "-t store record -q --all-user -W", "mem-stores:u", 100),
];

pub(super) fn compare(name: &str, output: &str, own: &SampleResult, ran: &Ran, code: &Range<u64>) {
    let linux: Vec<Access> =
        data::accesses(output).into_iter().filter(|one| code.contains(&one.at)).collect();
    let ours: Vec<Access> = ran
        .report
        .samples(own.item)
        .flat_map(accesses)
        .filter(|one| code.contains(&one.at))
        .collect();
    assert!(ours.len() > 20, "{name}: {ours:x?}");
    let differ = |n: &usize| linux.get(*n) != ours.get(*n);
    let different = (0..linux.len().max(ours.len())).filter(differ);
    let different: Vec<_> = different.map(|n| (n, linux.get(n), ours.get(n))).collect();
    assert!(different.is_empty(), "{name}: {different:x?}");
    let kinds: BTreeSet<_> = ours.iter().map(|one| (one.at, &*one.source, one.latency)).collect();
    eprintln!("{name}: {} samples: {kinds:x?}", ours.len());
}

/// Of a record of barecount's.
pub(crate) fn accesses(chunk: &Samples) -> impl Iterator<Item = Access> {
    let of = |n: usize| match chunk.sources.get(n).copied().unwrap_or(0) {
        0 => String::new(),
        source => chunk.source_names[source as usize - 1].clone(),
    };
    chunk.iter().enumerate().map(move |(n, (at, ..))| Access {
        at,
        data: chunk.data.get(n).map_or(0, |data| data.0),
        source: of(n),
        latency: chunk.latencies.get(n).copied().unwrap_or(0).into(),
    })
}
