//! Records written by hand out of Linux' structures.

use super::super::{Drain, Store, decode};
use super::*;
use crate::msr::{Absent, Msr};
use crate::pmu::access::Registers;
use crate::pmu::pebs::Snapshot;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

/// A header of so many words: its groups by their bits.
fn header(bits: &[u32], words: usize) -> [u64; 2] {
    [bits.iter().fold(8 * words as u64, |sum, bit| sum | 1 << bit), 0]
}

fn basic(ip: u64) -> [u64; 6] {
    [ip, 0b10, 0x75c, 1 << 16 | 9, 0, 0]
}

/// A record with every group in the order in which Linux reads them, each word its own number.
fn whole() -> Vec<u64> {
    let sizes = [8, 20, 2 + 32, 32, 8, 64, 128, 6 + 3 * 2, 2 + 3 + 2];
    let count = 8 + sizes.iter().sum::<usize>();
    let bits = [63, 62, 61, 49, 50, 53, 54, 55, 41, 40, 36, 37, 38, 30];
    let mut words: Vec<u64> = header(&bits, count + count % 2).to_vec();
    words.extend(basic(0x401000));
    words.extend((words.len() as u64..count as u64).map(|n| 0x1000 + n));
    if count % 2 != 0 {
        words.push(0);
    }
    let branches = 8 + 8 + 20 + 34 + 32 + 8 + 64 + 128;
    words[branches + 2] = 2;
    let counters = branches + 12;
    words[counters] = 1 << 32 | 0b101;
    words[counters + 1] = 3;
    words
}

#[test]
fn s1_every_group_of_an_architectural_record_is_where_linux_has_it() {
    let words = whole();
    let (seen, count) = Architectural::decode(&words).unwrap();
    let seen = seen.unwrap();
    assert_eq!(count, words.len());
    let common = seen.common;
    assert_eq!((common.ip, common.counters, common.tsc), (0x401000, 0b10, 0x75c));
    assert_eq!(common.retire_latency, Some(9));
    let at = |n: usize| 0x1000 + n as u64;
    let access = Access { address: at(8), source: at(13), latency: at(14), transaction: at(15) };
    assert_eq!(common.access, Some(access));
    let general = common.general.unwrap();
    assert_eq!((general.flags, general.next, seen.shadow_stack), (at(16), at(17), Some(at(34))));
    assert_eq!(general.registers, core::array::from_fn(|n| at(18 + n)));
    // After two words of XSTATE.
    assert_eq!(common.vectors.unwrap()[..], (38..70).map(at).collect::<Vec<_>>());
    assert_eq!(seen.beyond.ymm_upper.unwrap()[..], (70..102).map(at).collect::<Vec<_>>());
    assert_eq!(seen.beyond.masks.unwrap()[..], (102..110).map(at).collect::<Vec<_>>());
    assert_eq!(seen.beyond.zmm_upper.unwrap()[..], (110..174).map(at).collect::<Vec<_>>());
    assert_eq!(seen.beyond.zmm_high.unwrap()[..], (174..302).map(at).collect::<Vec<_>>());
    let branches = [[at(308), at(309), at(310)], [at(311), at(312), at(313)]];
    assert_eq!(common.branches, branches);
    let snapshot = common.snapshot.unwrap();
    assert_eq!((snapshot.general, snapshot.fixed), (0b101, 1));
    assert_eq!(snapshot.values, [at(316), at(317), at(318)]);
    assert_eq!(snapshot.metrics, Some([at(319), at(320)]));
    assert_eq!(decode(Format::Architectural, &words).unwrap().0, common.record());
}

#[test]
fn s1_a_latency_that_is_not_valid_is_none() {
    let mut words = [&header(&[63], 8)[..], &basic(1)[..]].concat();
    words[5] = 9;
    assert_eq!(Architectural::decode(&words).unwrap().0.unwrap().common.retire_latency, None);
}

/// Linux, `arch_pebs_record_continued`: by bit 31, and after a header without groups.
#[test]
fn s1_fragments_are_put_together() {
    let mut words = [&header(&[63, 31], 8)[..], &basic(7)[..]].concat();
    words.extend(header(&[], 4));
    words.extend([0xbad, 0xbad]);
    words.extend(header(&[62, 31], 10));
    words.extend([0xda7a, 0, 0, 0, 0, 1, 2, 3]);
    words.extend(header(&[41], 2 + 6 + 48));
    words.extend([0; 6]);
    words.extend(1..=48);
    let end = words.len();
    words.extend(header(&[63], 8));
    words.extend(basic(8));
    let (seen, count) = Architectural::decode(&words).unwrap();
    let seen = seen.unwrap();
    assert_eq!((count, seen.fragments), (end, 3));
    assert_eq!((seen.common.ip, seen.common.access.unwrap().address), (7, 0xda7a));
    assert_eq!(seen.common.branches.len(), 16, "two in the field are 16");
    assert_eq!(Architectural::skip(&words), end);
    let (next, _) = Architectural::decode(&words[end..]).unwrap();
    assert_eq!(next.unwrap().common.ip, 8);
    // Cut off after the first fragment.
    let short = Malformed::Short { format: 15, needed: 2, there: 0 };
    assert_eq!(Architectural::decode(&words[..8]), Err(short));
    assert_eq!(Architectural::skip(&words[..8]), 8);
}

#[test]
fn s1_a_header_that_is_none_is_told_by_name() {
    let of = |head: u64, rest: usize| {
        let words = [&[head, 0][..], &vec![0; rest]].concat();
        Architectural::decode(&words).unwrap_err()
    };
    let basic = 1 << 63;
    assert_eq!(of(basic, 6), Malformed::Size { bytes: 0 });
    assert_eq!(of(basic | 65, 6), Malformed::Size { bytes: 65 });
    assert_eq!(of(basic | 64, 5), Malformed::Short { format: 15, needed: 8, there: 7 });
    assert_eq!(of(basic | 56, 5), Malformed::Contents { contents: basic | 56 });
    // A group that nobody knows, and a word too many for padding.
    let unknown = basic | 1 << 56 | 64;
    assert_eq!(of(unknown, 6), Malformed::Contents { contents: unknown });
    assert_eq!(of(basic | 128, 14), Malformed::Contents { contents: basic | 128 });
    let alone = 1 << 62 | 80;
    assert_eq!(of(alone, 8), Malformed::Fragment { contents: alone });
    // Branches that would be more than there is memory.
    let branches = basic | 3 << 40 | 112;
    let mut words = vec![0; 14];
    (words[0], words[10]) = (branches, u64::MAX);
    assert_eq!(Architectural::decode(&words), Err(Malformed::Contents { contents: branches }));
}

/// An index with so many bytes written.
struct Written(u64);

impl Registers for Written {
    fn cpuid(&self, _: u32, _: u32) -> raw_cpuid::CpuIdResult {
        raw_cpuid::CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
    }
    fn rdmsr(&mut self, _: Msr) -> Result<u64, Absent> {
        Ok(self.0)
    }
    fn wrmsr(&mut self, _: Msr, value: u64) -> Result<(), Absent> {
        self.0 = value;
        Ok(())
    }
    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}

/// Drains a buffer with those words: the addresses, and records, times full, what was none.
fn drained(words: &[u64], index: u64) -> (Vec<u64>, [u64; 3]) {
    let mut store = Store::new(Format::Architectural, 20, 4);
    let mut drain = Drain::new(&mut store, 0b11);
    // SAFETY: the buffer is larger.
    unsafe {
        let base = store.base().unwrap().bits() & !0xfff;
        core::ptr::copy_nonoverlapping(words.as_ptr(), base as *mut u64, words.len());
    }
    let mut port = Written(index | (8 * words.len() as u64));
    let mut seen = Vec::new();
    while drain.fetch(&mut port as &mut dyn Registers) {
        drain.run(|taken| seen.push(taken.record.ip));
    }
    assert_eq!(port.0 & 0x8fff_ffff, 0);
    (seen, [drain.records, drain.full, drain.malformed])
}

#[test]
fn s1_what_is_no_architectural_record_is_passed_over_and_counted() {
    let record = |ip| [&header(&[63], 8)[..], &basic(ip)[..]].concat();
    let mut words = record(1);
    // A fragment of nobody; a group that is not known; a header of nothing, and a record after it.
    words.extend(header(&[62], 10));
    words.extend([0; 8]);
    words.extend(header(&[63, 57], 8));
    words.extend([0; 6]);
    words.extend(header(&[], 2));
    words.extend(record(2));
    assert_eq!(drained(&words, 0), (vec![1, 2], [2, 0, 2]));
    assert_eq!(drained(&words, 1 << 31), (vec![1, 2], [2, 1, 2]), "full");
    // A size that is none leaves no way to continue.
    words.extend([1 << 63, 0]);
    words.extend(record(3));
    assert_eq!(drained(&words, 0), (vec![1, 2], [2, 0, 3]));
}

fn any_record() -> impl Strategy<Value = Vec<u64>> {
    let words = || prop::collection::vec(any::<u64>(), 0..40);
    let bits = prop::sample::subsequence(
        vec![30, 31, 35, 36, 37, 38, 40, 41, 49, 50, 53, 54, 55, 61, 62, 63],
        0..12,
    );
    let one = (bits, words())
        .prop_map(|(bits, rest)| [&header(&bits, 2 + rest.len())[..], &rest].concat());
    prop::collection::vec(prop_oneof![one, words()], 1..8).prop_map(|all| all.concat())
}

proptest! {
    /// Whatever is in memory is a record, a header of nothing, or an error; and reading continues and ends.
    #[test]
    fn s1_any_words_are_records_or_errors(words in any_record(), mut at in 0usize..3) {
        at = at.min(words.len());
        while at < words.len() {
            let rest = &words[at..];
            let count = match Architectural::decode(rest) {
                Ok((Some(seen), count)) => {
                    let again = seen.encode();
                    let whole = Architectural { fragments: 1, ..seen };
                    if again.len() * 8 <= 0xffff {
                        prop_assert_eq!(Architectural::decode(&again), Ok((Some(whole), again.len())));
                    }
                    count
                }
                Ok((None, count)) => count,
                Err(_) => Architectural::skip(rest),
            };
            prop_assert!(count > 0 && count <= rest.len());
            at += count;
        }
    }

    /// What is encoded is decoded, and nothing of it is left over.
    #[test]
    fn s1_what_is_encoded_is_decoded_with_any_groups(
        ip: u64,
        latency: Option<u16>,
        access: Option<[u64; 4]>,
        general: Option<[u64; 19]>,
        vectors: Option<[u64; 32]>,
        upper: Option<[u64; 32]>,
        masks: Option<[u64; 8]>,
        zmm: Option<[u64; 32]>,
        high: Option<[u64; 32]>,
        branches in prop::collection::vec(any::<[u64; 3]>(), 0..40),
        counters: Option<[u64; 3]>,
        metrics: Option<[u64; 2]>,
    ) {
        let values = counters.map_or(vec![], |all| all.to_vec());
        let mask = if counters.is_some() { 1 << 7 } else { 0 };
        let snapshot = Snapshot { general: mask | mask >> 3, fixed: mask >> 6, values: &values, metrics };
        let snapshot = (counters.is_some() || metrics.is_some()).then_some(snapshot);
        // Arrays of 64 and 128 have no strategy of their own.
        let zmm: Option<[u64; 64]> = zmm.map(|half| core::array::from_fn(|n| half[n % 32] ^ n as u64));
        let high: Option<[u64; 128]> = high.map(|part| core::array::from_fn(|n| part[n % 32] ^ n as u64));
        let seen = Architectural {
            common: Adaptive {
                ip,
                counters: 1,
                tsc: 2,
                retire_latency: latency,
                access: access.map(|[address, source, latency, transaction]| Access {
                    address, source, latency, transaction,
                }),
                general: general.map(|all| General {
                    flags: all[0],
                    next: all[1],
                    registers: core::array::from_fn(|n| all[2 + n]),
                }),
                vectors: vectors.as_ref(),
                branches: &branches,
                snapshot,
            },
            shadow_stack: general.map(|all| all[18]),
            beyond: BeyondXmm {
                ymm_upper: upper.as_ref(),
                masks: masks.as_ref(),
                zmm_upper: zmm.as_ref(),
                zmm_high: high.as_ref(),
            },
            fragments: 1,
        };
        let words = seen.encode();
        prop_assert_eq!(words.len() % 2, 0);
        prop_assert_eq!(Architectural::decode(&words), Ok((Some(seen), words.len())));
        prop_assert_eq!(Architectural::skip(&words), words.len());
    }
}

/// A port that notes what is written to the index.
struct Noted(u64, Vec<u64>);

impl super::super::Port for &mut Noted {
    fn index(&mut self) -> crate::pmu::pebs::BufferIndex {
        crate::pmu::pebs::BufferIndex(self.0)
    }
    fn set_index(&mut self, index: crate::pmu::pebs::BufferIndex) {
        self.0 = index.0;
        self.1.push(index.0);
    }
}

/// Records that come while others are taken out are taken at the next look; and an index is written where there were any.
#[test]
fn s1_m11_records_that_come_meanwhile_are_taken_once() {
    let mut store = Store::new(Format::Architectural, 20, 4);
    let mut drain = Drain::new(&mut store, 0b11);
    let words: Vec<u64> =
        (1..=5).flat_map(|ip| [&header(&[63], 8)[..], &basic(ip)[..]].concat()).collect();
    // SAFETY: the buffer is larger.
    unsafe {
        let base = store.base().unwrap().bits() & !0xfff;
        core::ptr::copy_nonoverlapping(words.as_ptr(), base as *mut u64, words.len());
    }
    let mut port = Noted(1 << 32, Vec::new());
    assert!(!drain.fetch(&mut port));
    assert_eq!(port.1, [], "nothing was there");
    let mut seen = Vec::new();
    for records in [2, 5] {
        let bytes = 64 * records;
        port.0 = 1 << 32 | bytes;
        assert!(drain.fetch(&mut port));
        drain.run(|taken| seen.push(taken.record.ip));
    }
    assert_eq!((&seen[..], drain.records, drain.malformed), (&[1, 2, 3, 4, 5][..], 5, 0));
    assert!(!drain.fetch(&mut port));
    assert_eq!(port.1, [1 << 32]);
}

/// An index beyond the buffer, which no processor should have: what is read ends with the buffer.
#[test]
fn s1_no_more_is_taken_than_the_buffer_has() {
    let mut store = Store::new(Format::Architectural, 20, 4);
    let bytes = store.base().unwrap().bytes();
    let mut drain = Drain::new(&mut store, 0b11);
    let mut port = Noted(1 << 32 | bytes, Vec::new());
    assert!(drain.fetch(&mut port));
    let mut index = Noted(1 << 32 | (bytes + 64), Vec::new());
    drain.take_architectural(&mut |_| ());
    assert!(!drain.fetch(&mut index), "there is nothing after its end");
}

#[test]
fn s1_a_header_of_nothing_in_front_of_a_record_counts_with_it() {
    let mut words = header(&[], 2).to_vec();
    words.extend(header(&[63], 8));
    words.extend(basic(5));
    let (record, count) = decode(Format::Architectural, &words).unwrap();
    assert_eq!((record.ip, count), (5, 10));
}

#[test]
fn s1_a_record_is_filled_up_to_a_unit_of_eight_words_at_most() {
    for (padding, fits) in [(7, true), (8, false)] {
        let words = [&header(&[63], 8 + padding)[..], &basic(1)[..], &vec![0; padding]].concat();
        assert_eq!(Architectural::decode(&words).is_ok(), fits, "{padding}");
    }
}

#[test]
fn s1_a_record_states_the_kinds_of_counters_that_it_has() {
    let encoded = |general, fixed| {
        let snapshot = Snapshot { general, fixed, values: &[7], metrics: None };
        let common = Adaptive { snapshot: Some(snapshot), ..Adaptive::default() };
        Architectural { common, ..Architectural::default() }.encode()
    };
    assert_eq!([encoded(1, 0), encoded(0, 1)].map(|words| words[0] >> 36 & 7), [0b01, 0b10]);
    let words = encoded(1, 0);
    let (seen, _) = Architectural::decode(&words).unwrap();
    assert_eq!(seen.unwrap().groups(), crate::pmu::pebs::Groups::COUNTERS);
}
