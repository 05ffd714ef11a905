//! What the emulated PMU's hypervisor said on QEMU's debug console.

use super::devices::PMU_LOG;
use pmu_model::Model;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// In front of each of its lines.
const PREFIX: &str = "emulated-pmu: ";
/// More than this of a log is not read: a guest may write to the console without end.
const MAX_BYTES: u64 = 1 << 20;

/// Its lines in the log of the run in `folder`, each once and in order, without the first one, which reports the
/// successful start of `model`. None if there is no log.
#[must_use]
pub fn read(folder: &Path, model: Model) -> Vec<String> {
    lines(&text(folder), model)
}

fn text(folder: &Path) -> String {
    let mut bytes = Vec::new();
    // No log, nothing said: QEMU makes the file when it starts.
    if let Ok(file) = File::open(folder.join(PMU_LOG)) {
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What stands after the model's name in the hypervisor's first line; `None` if it did not start.
#[must_use]
pub fn greeting(folder: &Path, model: Model) -> Option<String> {
    let start = format!("{PREFIX}{model:?}; ");
    let log = text(folder);
    log.lines().find_map(|line| line.trim().strip_prefix(&start)).map(str::to_string)
}

fn lines(log: &str, model: Model) -> Vec<String> {
    let start = format!("{model:?}; ");
    let mut lines: Vec<String> = Vec::new();
    for line in log.lines() {
        let line = line.strip_prefix(PREFIX).unwrap_or(line).trim();
        if !line.is_empty() && !line.starts_with(&start) && !lines.iter().any(|seen| seen == line) {
            lines.push(line.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_once_and_in_order_without_the_greeting() {
        let log = "emulated-pmu: Zen4; 2^0 ticks an instruction\nemulated-pmu: b\n\nemulated-pmu: a\n\
                   other\nemulated-pmu: b\nemulated-pmu: Zen2; not the greeting\n";
        assert_eq!(lines(log, Model::Zen4), ["b", "a", "other", "Zen2; not the greeting"]);
    }

    #[test]
    fn no_log_is_silence_and_a_long_one_is_read_in_part() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), Model::Zen4), [""; 0]);
        let long = "emulated-pmu: again\n".repeat(1 << 17) + "the end\n";
        std::fs::write(folder.path().join(PMU_LOG), long).unwrap();
        assert_eq!(greeting(folder.path(), Model::Zen4), None);
        let seen = read(folder.path(), Model::Zen4);
        assert_eq!(seen[0], "again");
        assert!(!seen.contains(&"the end".to_string()));
    }
}
