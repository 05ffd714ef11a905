//! Exact mode: a snippet stepped instruction by instruction.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{ExactResult, ItemRecord, Uncounted, digest};
use alloc::vec::Vec;

impl ItemRecord for ExactResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Exact(_))
    }

    // Counts and mnemonics have no name in common: the former are plurals.
    fn figures(&self) -> Vec<Figure> {
        let all = self.counts.iter().chain(&self.opcodes);
        all.map(|count| figure(&*count.event, count.value)).collect()
    }

    // Opcodes stand in the record if they were executed, and widths if some code was of 32 bits. The host has seen to it that a name is one
    // of these.
    fn absent(&self, name: &str) -> Option<f64> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.bytes().all(is_word) || self.uncounted.iter().any(|one| one.event == name) {
            return None;
        }
        match name {
            "instructions_64" => {
                self.counts.iter().find(|one| one.event == "instructions").map(|one| one.value)
            }
            _ => Some(0.0),
        }
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }

    fn digest(&self) -> Vec<digest::Figure> {
        self.counts.iter().map(|count| digest::single(&count.event, Some(count.value))).collect()
    }

    // With `verify`: what was stepped agrees with what the PMU counted.
    fn agrees(&self) -> Option<bool> {
        let all = &self.comparisons;
        (!all.is_empty()).then(|| all.iter().all(|comparison| comparison.agrees))
    }
}
