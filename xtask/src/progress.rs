//! Signs of life for whatever takes longer than a second.

use crate::text::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::process::{Command, Output, Stdio};
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

    /// Call this now and then; `done` steps are after us.
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

/// Runs a command to its end and takes what it says, while a line states that it works.
///
/// # Errors
/// It cannot be started.
///
/// # Panics
/// Never: the waiting thread does not.
pub fn output(command: &mut Command, message: &str) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let waiter = std::thread::spawn(move || child.wait_with_output());
    let mut work = Work::new(message);
    while !waiter.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        work.tick(0);
    }
    waiter.join().expect("the waiting thread does not panic")
}
