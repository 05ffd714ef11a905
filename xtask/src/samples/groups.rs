//! Vector registers, and values of counters, that records of single samples have.

use crate::collect::Report;
use protocol::job::sampling::VectorRegisters;
use protocol::record::{SampleResult, Samples};
use std::collections::BTreeSet;

/// The values of one counter at the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueRow {
    /// What it counts.
    pub event: String,
    /// Samples that have its value.
    pub samples: u64,
    /// The first and the last value.
    pub ends: [u64; 2],
    /// Least, mean and greatest difference from one sample to the next; `None` if there is one sample.
    pub steps: Option<(u64, f64, u64)>,
}

/// The values of one vector register at the samples.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct VectorRow {
    /// Its name.
    pub name: String,
    /// How many different values.
    pub different: usize,
    /// The first and the last, in words, the lowest one first.
    pub ends: [Vec<u64>; 2],
}

/// The counters whose values the item's samples have, in the job's order.
#[must_use]
pub fn values(report: &Report, result: &SampleResult) -> Vec<ValueRow> {
    let count = result.values.len();
    let all: Vec<u64> = words(report, result, |chunk| &chunk.values).copied().collect();
    let row = |(n, event): (usize, &String)| {
        let one: Vec<u64> = all.chunks_exact(count).map(|sample| sample[n]).collect();
        let steps: Vec<u64> = one.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let sum: u128 = steps.iter().map(|&step| u128::from(step)).sum();
        let bounds = steps.iter().min().zip(steps.iter().max());
        Some(ValueRow {
            event: event.clone(),
            samples: one.len() as u64,
            ends: [*one.first()?, *one.last()?],
            steps: bounds.map(|(&least, &most)| (least, sum as f64 / steps.len() as f64, most)),
        })
    };
    result.values.iter().enumerate().filter_map(row).collect()
}

/// The vector registers that are not 0 in every sample, kind by kind; the first one alone of a kind that is 0.
#[must_use]
pub fn vectors(report: &Report, result: &SampleResult) -> Vec<VectorRow> {
    VectorRegisters::ALL.into_iter().flat_map(|kind| of_kind(report, result, kind)).collect()
}

fn of_kind(report: &Report, result: &SampleResult, kind: VectorRegisters) -> Vec<VectorRow> {
    let chunks = report.samples(result.item);
    let all: Vec<u64> =
        chunks.flat_map(|chunk| chunk.vectors_of(kind)).map(|word| word.0).collect();
    let ((count, each), (name, first)) = (kind.shape(), kind.register());
    let row = |register: usize| {
        let place = each * register;
        let mut values = all.chunks_exact(count * each).map(|sample| &sample[place..place + each]);
        let different = values.clone().collect::<BTreeSet<_>>().len();
        let ends = [values.clone().next()?.to_vec(), values.next_back()?.to_vec()];
        Some(VectorRow { name: format!("{name}{}", first + register), different, ends })
    };
    let rows: Vec<VectorRow> = (0..count).filter_map(row).collect();
    let idle = |row: &VectorRow| row.different == 1 && row.ends[0].iter().all(|&word| word == 0);
    match rows.iter().all(idle) {
        true => rows.into_iter().take(1).collect(),
        false => rows.into_iter().filter(|row| !idle(row)).collect(),
    }
}

/// A list of each chunk, all in one.
fn words<'a, T: 'a>(
    report: &'a Report,
    result: &SampleResult,
    list: fn(&Samples) -> &Vec<T>,
) -> impl Iterator<Item = &'a T> {
    report.samples(result.item).flat_map(list)
}

impl ValueRow {
    /// Rows of CSV: a name and a figure.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, u64)> {
        let name = |what: &str| format!("value of {} {what}", self.event);
        let [first, last] = self.ends;
        let mut rows =
            vec![(name("at the first sample"), first), (name("at the last sample"), last)];
        if let Some((least, _, most)) = self.steps {
            rows.push((name("from sample to sample, least"), least));
            rows.push((name("from sample to sample, most"), most));
        }
        rows
    }

    /// The cells of a table, after the event.
    #[must_use]
    pub fn cells(&self) -> [String; 6] {
        let [first, last] = self.ends.map(|value| value.to_string());
        let [least, mean, most] = match self.steps {
            Some((least, mean, most)) => {
                [least.to_string(), format!("{mean:.1}"), most.to_string()]
            }
            None => [const { String::new() }; 3],
        };
        [self.samples.to_string(), first, last, least, mean, most]
    }
}

/// What the columns of tables of values are.
pub const VALUE_COLUMNS: [&str; 7] =
    ["counter at samples", "samples", "first", "last", "least step", "mean step", "most"];

/// Those of vector registers.
pub const VECTOR_COLUMNS: [&str; 4] = ["vector register", "values", "first", "last"];

impl VectorRow {
    /// The cells of a table.
    #[must_use]
    pub fn cells(&self) -> [String; 4] {
        let hex = |words: &Vec<u64>| {
            let digits = words.iter().rev().map(|word| format!("{word:016x}"));
            format!("0x{}", digits.collect::<String>())
        };
        let [first, last] = [hex(&self.ends[0]), hex(&self.ends[1])];
        [self.name.clone(), self.different.to_string(), first, last]
    }
}
