//! Checks of the PMU, and bring-ups, which end with them. Their record is [`crate::record::Suite`], which no job judges.

use super::JobPart;
use crate::job::Conformance;
use crate::limits::{self, LimitError};

impl<'a> JobPart<'a> for Conformance<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_conformance(self)
    }
}
