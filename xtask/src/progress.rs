//! Signs of life for whatever takes longer than a second.

use crate::text::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Work that shows itself when it has lasted a second: moving on a terminal, one line elsewhere.
pub struct Work {
    bar: ProgressBar,
    message: String,
    start: Instant,
    said: bool,
}

const QUIET: Duration = Duration::from_secs(1);

impl Work {
    /// Work of unknown length.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::with(ProgressBar::hidden(), message, "{spinner} {msg} [{elapsed}]")
    }

    /// Work of `total` steps.
    #[must_use]
    pub fn of(total: u64, message: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        Self::with(bar, message, "{spinner} {msg} {wide_bar} {pos}/{len} [{elapsed}]")
    }

    fn with(bar: ProgressBar, message: impl Into<String>, template: &str) -> Self {
        bar.set_style(ProgressStyle::with_template(template).expect("a constant template"));
        Self {
            bar,
            message: printable(&message.into()).into_owned(),
            start: Instant::now(),
            said: false,
        }
    }

    /// Call this now and then; `done` steps are behind us.
    pub fn tick(&mut self, done: u64) {
        if self.start.elapsed() < QUIET {
            return;
        }
        if !std::io::stderr().is_terminal() {
            if !self.said {
                crate::output::say(&format!("{} ...", self.message));
            }
        } else if !self.said {
            self.bar.set_message(self.message.clone());
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.said = true;
        self.bar.set_position(done);
        self.bar.tick();
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
