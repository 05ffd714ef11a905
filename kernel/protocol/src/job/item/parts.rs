//! What the job part of each kind says of itself.

use super::JobPart;
use crate::job::facts::{BYTES, SMIS, THRESHOLD_NS, WATCH_MS};
use crate::job::limits::{self, LimitError};
use crate::job::workload::{self, Workload};
use crate::job::{
    Conformance, Count, Exact, Facts, History, Processors, Sampling, Snippet, Tasks, history,
};

impl<'a> JobPart<'a> for Snippet<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_only(self)?;
        limits::check_snippet(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(self)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(self)
    }

    fn lists_values(&self) -> bool {
        true
    }
}

impl<'a> JobPart<'a> for Exact<'a> {
    fn name(&self) -> &str {
        &self.snippet.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_exact(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(&self.snippet)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(&mut self.snippet)
    }
}

impl<'a> JobPart<'a> for History<'a> {
    fn name(&self) -> &str {
        &self.snippet.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_none(&self.snippet)?;
        limits::check_snippet(&self.snippet)?;
        history::check(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(&self.snippet)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(&mut self.snippet)
    }
}

impl<'a> JobPart<'a> for Tasks<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        workload::check_tasks(self)
    }

    fn workload(&self) -> Option<&Workload<'a>> {
        Some(&self.workload)
    }
}

impl<'a> JobPart<'a> for Count<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_count(self)
    }

    fn workload(&self) -> Option<&Workload<'a>> {
        Some(&self.workload)
    }
}

impl<'a> JobPart<'a> for Processors<'a> {
    fn name(&self) -> &str {
        &self.snippet.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_processors(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(&self.snippet)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(&mut self.snippet)
    }

    fn lists_values(&self) -> bool {
        true
    }
}

impl<'a> JobPart<'a> for Sampling<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_sampling(self)
    }

    fn workload(&self) -> Option<&Workload<'a>> {
        Some(&self.workload)
    }
}

impl JobPart<'_> for Facts<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::name(&self.name)?;
        let watch = &self.watch;
        for (field, value, range) in [
            ("window-ms", watch.ms, WATCH_MS),
            ("threshold-ns", watch.threshold_ns, THRESHOLD_NS),
            ("smis", watch.smis, SMIS),
        ] {
            limits::range(field, value.into(), (*range.start()).into(), (*range.end()).into())?;
        }
        let has_size = BYTES.contains(&self.bytes) && self.bytes.is_power_of_two();
        match has_size || !self.parts.memory && self.bytes == 0 {
            true => Ok(()),
            false => Err(LimitError::FactBytes(self.bytes)),
        }
    }
}

impl<'a> JobPart<'a> for Conformance<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_conformance(self)
    }
}
