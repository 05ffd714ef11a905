//! Event sets: requests that are put together first and bound to counters later.

use crate::encode::{EncodeError, Encoded, encode};
use crate::hybrid::{MixedCores, check_list};
use crate::processor::Processor;
use crate::request::{Item, Request};
use crate::tables::Core;
use alloc::vec;
use alloc::vec::Vec;

/// Requests to be counted, and which of them belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSet {
    /// All requests that the processor can count.
    pub requests: Vec<Encoded>,
    /// Numbers of requests that must be counted together; most items hold one.
    pub items: Vec<Vec<usize>>,
    /// Numbers of requests that are counted in every pass.
    pub correlates: Vec<usize>,
}

impl EventSet {
    /// The set of a whole list. What this processor cannot count is left out and reported; the rest
    /// continues, also the rest of a group.
    ///
    /// # Errors
    /// [`MixedCores`] if the list names different cores: then nothing of it can be meant for this
    /// one.
    pub fn from_list(
        items: &[Item],
        processor: &Processor,
        core: Option<&Core<'_>>,
    ) -> Result<(Self, Vec<EncodeError>), MixedCores> {
        check_list(items)?;
        let mut set = Self::default();
        let mut refused = Vec::new();
        for item in items {
            let mut members = Vec::new();
            for request in &item.requests {
                match encode(request, processor, core) {
                    Ok(encoded) => members.push(set.push(encoded)),
                    Err(error) => refused.push(error),
                }
            }
            if !members.is_empty() {
                set.items.push(members);
            }
        }
        Ok((set, refused))
    }

    /// Adds a request that is counted in every pass.
    ///
    /// # Errors
    /// The reason why this processor cannot count it.
    pub fn add_correlate(
        &mut self,
        request: &Request,
        processor: &Processor,
        core: Option<&Core<'_>>,
    ) -> Result<(), EncodeError> {
        let number = self.push(encode(request, processor, core)?);
        self.correlates.push(number);
        Ok(())
    }

    /// Adds a request by itself and returns its number.
    pub fn add(&mut self, request: Encoded) -> usize {
        let number = self.push(request);
        self.items.push(vec![number]);
        number
    }

    fn push(&mut self, request: Encoded) -> usize {
        self.requests.push(request);
        self.requests.len() - 1
    }
}

#[cfg(all(test, feature = "pack"))]
mod tests {
    use super::*;
    use crate::test_support::skx;

    #[test]
    fn c3_a_set_numbers_its_requests() {
        let mut set = EventSet::default();
        let numbers = ["cycles", "r20c4", "r02c4"].map(|text| set.add(skx(text).unwrap()));
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(set.items, [[0], [1], [2]]);
    }
}
