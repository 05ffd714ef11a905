//! The processor time that a machine has taken, of which a busy host changes less than of the time that passes.

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use std::process::Child;
use std::time::Duration;

/// The clock of a process and all of its threads, in user mode and in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(Option<ClockId>);

impl CpuClock {
    /// Of a process that has not been waited for.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        let process = i32::try_from(child.id()).map(Pid::from_raw);
        Self(process.ok().and_then(|process| clock_getcpuclockid(process).ok()))
    }

    /// What it says; `None` if the system has no such clock.
    #[must_use]
    pub fn now(&self) -> Option<Duration> {
        self.0?.now().ok().map(Duration::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn work_takes_time_and_waiting_none() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; read line"]);
        let mut child = busy.stdin(Stdio::piped()).spawn().unwrap();
        let clock = CpuClock::of(&child);
        let mut last = clock.now().unwrap();
        // Until it waits.
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = clock.now().unwrap();
            if now == last && !now.is_zero() {
                break;
            }
            last = now;
        }
        assert!(last > Duration::from_millis(1), "{last:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(clock.now(), None, "it was waited for");
    }
}
