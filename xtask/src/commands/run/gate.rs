//! Baselines of a run: one to compare with, one to keep.

use crate::cli::{CompareFormat, Confidence, Format, Gate, Output};
use crate::collect::Report;
use crate::commands::compare::{judged, limits_of};
use crate::compare::Comparison;
use crate::compare::baseline::Baselines;
use crate::compare::limits::LimitsFile;
use crate::compare::render::render;
use crate::compare::saved::{self, Saved};
use crate::context::Context;
use crate::document::Document;
use crate::primitives::table::Width;
use crate::{Failure, Result, kinds, output, page};

/// What a run was asked to do with baselines, ready before anything boots.
#[derive(Default)]
pub(super) struct Ready {
    keep: Option<(Baselines, crate::compare::baseline::Name)>,
    old: Option<Old>,
}

/// What a run is compared with.
struct Old {
    saved: Saved,
    limits: LimitsFile,
    /// The same as it is drawn on a page, if the run is.
    document: Option<Document>,
}

impl Ready {
    /// Reads what the run is to be compared with, and makes sure that it can be kept.
    /// `drawn`: the run's report is to be a page.
    pub(super) fn of(gate: &Gate, drawn: bool) -> Result<Self> {
        let mut ready = Self::default();
        if let Some(name) = &gate.baseline {
            let limits = limits_of(gate.limits.as_deref())?;
            let baselines = Baselines::find()?;
            let saved = baselines.read(name)?;
            let path = baselines.path(name);
            let bytes = drawn.then(|| std::fs::read(&path).map_err(Failure::file("read", &path)));
            let read = |bytes: Vec<u8>| page::read(&bytes, &name.to_string());
            let document = bytes.transpose()?.map(read).transpose()?;
            ready.old = Some(Old { saved, limits, document });
        }
        if let Some(name) = &gate.save_baseline {
            let baselines = Baselines::find()?;
            baselines.check(name)?;
            ready.keep = Some((baselines, name.clone()));
        }
        Ok(ready)
    }

    /// The whole report as it is kept, if it is to be kept or compared.
    pub(super) fn text(&self, report: &Report, context: &Context) -> Option<String> {
        let wanted = self.keep.is_some() || self.old.is_some();
        wanted.then(|| crate::render::render(report, context, Format::Json))
    }

    /// The page of the run together with its baseline; `None`: there is none, the run did not end, or the two cannot be
    /// compared, which [`Self::close`] says once the report is written.
    ///
    /// # Errors
    /// The report cannot be read.
    pub(super) fn page(&mut self, text: &str, code: u8) -> Result<Option<String>> {
        let Some(old) = self.old.as_mut().filter(|_| code <= 1) else { return Ok(None) };
        let Some(document) = old.document.take() else { return Ok(None) };
        let Ok(comparison) = old.compared(text) else { return Ok(None) };
        let both = [document, page::read(text.as_bytes(), "this run")?];
        Ok(Some(page::render(&both, Some(&comparison))))
    }

    /// Keeps and compares a report that the run ended with `code`. Returns the exit code of all.
    ///
    /// # Errors
    /// It cannot be saved or compared; it does both as far as it can.
    pub(super) fn close(self, text: &str, code: u8, wanted: &Output) -> Result<u8> {
        if code > 1 {
            output::say("the run did not finish, so its report is neither compared nor saved");
            return Ok(code);
        }
        // Before anything that may fail: a run is not lost because it cannot be compared. The old report was read before.
        let saved = self.keep.map(|(baselines, name)| -> Result<String> {
            baselines.save(&name, text)?;
            Ok(format!("baseline {name}: saved in {}", baselines.path(&name).display()))
        });
        let compared = self.old.map_or(Ok(0), |old| old.show(text, wanted));
        if let Some(line) = saved.transpose()? {
            output::say(&line);
        }
        compared.map(|all| all.max(code))
    }
}

impl Old {
    /// Prints the comparison with a report. Returns its exit code.
    fn show(&self, text: &str, wanted: &Output) -> Result<u8> {
        let comparison = self.compared(text)?;
        // After a document of another form it would be a part of that.
        let beside = wanted.format == Format::Table || wanted.out.is_some();
        let width = if beside { Width::of_output() } else { Width::default() };
        let shown = render(&comparison, CompareFormat::Table, false, width);
        if beside {
            output::print(&shown)?;
        } else {
            output::say_styled(shown.trim_end());
        }
        Ok(comparison.exit_code())
    }

    fn compared(&self, text: &str) -> Result<Comparison> {
        let new = saved::parse(text.as_bytes(), "this run")?;
        judged(&self.saved, &new, self.limits.clone(), Confidence::default().0)
    }
}

/// Takes the values of the runs out of the results of items that were not requested them.
pub(super) fn without_values(report: &mut Report, unasked: &[u32]) {
    for numbered in &mut report.records {
        let Some(result) = kinds::shown_mut(&mut numbered.record) else { continue };
        if unasked.contains(&result.head().item) {
            let metrics = result.metrics_mut().into_iter();
            metrics.flat_map(|metric| &mut metric.series).for_each(|series| series.values = None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report of a snippet of that name.
    fn report(name: &str) -> String {
        let series = r#"{"min":7,"max":7,"distinct":1}"#;
        format!(
            r#"{{"report":1,"run":{{"source":"qemu","ticks_per_instruction":1}},"exit_code":0,"problems":[],"notes":[],
            "foreign":[],"records":[{{"seq":0,"type":"result","item":0,"name":"{name}","verdict":"none","per":1,"runs":1,
            "metrics":[{{"event":"tsc","min":1.0,"median":1.0,"mean":1.0,"max":1.0,"deterministic":true,
            "series":[{series},{series}]}}],"tsc":[0,1]}}]}}"#
        )
    }

    fn ready(folder: &std::path::Path) -> (Ready, std::path::PathBuf) {
        let text = report("old");
        let saved = saved::parse(text.as_bytes(), "old").unwrap();
        let document = Some(page::read(text.as_bytes(), "old").unwrap());
        let old = Some(Old { saved, limits: LimitsFile::default(), document });
        let (baselines, name) = (Baselines::in_folder(folder), "new".parse().unwrap());
        let path = baselines.path(&name);
        (Ready { keep: Some((baselines, name)), old }, path)
    }

    #[test]
    fn x4_a_run_that_cannot_be_compared_is_written_and_saved_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (mut ready, path) = ready(folder.path());
        let text = report("other");
        assert!(ready.page(&text, 0).unwrap().is_none());
        let error = ready.close(&text, 0, &Output::default()).unwrap_err().to_string();
        assert!(error.contains("other"), "{error}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn x4_a_run_that_can_be_compared_is_drawn_beside_its_baseline() {
        let folder = tempfile::tempdir().unwrap();
        let (mut ready, path) = ready(folder.path());
        let text = report("old");
        assert!(ready.page(&text, 0).unwrap().is_some_and(|page| page.contains("this run")));
        assert_eq!(ready.close(&text, 0, &Output::default()).unwrap(), 0);
        assert!(path.exists());
    }
}
