mod counters;
mod names;
mod refusals;
mod tables;

use super::*;
use crate::test_support::{core, on, skx, skylakex};

/// Event select value and counters of the general-purpose choice.
fn general(encoded: &Encoded, vendor: Vendor) -> (u64, u64) {
    encoded
        .choices
        .iter()
        .find_map(|choice| match choice.counters {
            Counters::General { counters, select, .. } => Some((select.to_bits(vendor), counters)),
            Counters::Fixed { .. } | Counters::Metric { .. } => None,
        })
        .unwrap_or_else(|| panic!("{encoded:?}"))
}

fn intel(text: &str) -> (u64, u64) {
    general(&skx(text).unwrap_or_else(|error| panic!("{error}")), Vendor::Intel)
}

fn fixed(encoded: &Encoded) -> Option<(u8, u8)> {
    encoded.choices.iter().find_map(|choice| match choice.counters {
        Counters::Fixed { index, control } => Some((index, control.to_nibble())),
        Counters::General { .. } | Counters::Metric { .. } => None,
    })
}

fn refusal(result: Result<Encoded, EncodeError>) -> String {
    result.expect_err("refused").to_string()
}
