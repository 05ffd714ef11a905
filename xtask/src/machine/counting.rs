//! Who counts for the emulated PMU what QEMU's clock does not: the plugin where QEMU takes it, else the hypervisor, which
//! steps. Both give the same counts.

use super::MachineError;
use crate::cli::Counting;
use crate::setup::qemu::Found;
use std::path::{Path, PathBuf};

/// The decision.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counter {
    /// The plugin's file; without it, stepping.
    pub plugin: Option<PathBuf>,
    /// Why it is stepping although nobody requested that.
    pub note: Option<String>,
}

impl Counter {
    /// In words.
    #[must_use]
    pub fn what(&self) -> &'static str {
        if self.plugin.is_some() { "counting by plugin" } else { "counting by stepping" }
    }
}

/// Decides for a QEMU. `plugin` is the plugin's file, which need not be built yet.
///
/// # Errors
/// The plugin was requested, and QEMU does not take it.
pub fn choose(
    asked: Counting,
    plugin: &Path,
    qemu: Result<Found, String>,
) -> Result<Counter, MachineError> {
    if asked == Counting::Stepping {
        return Ok(Counter::default());
    }
    decide(asked, plugin, qemu.and_then(|found| found.plugins()))
}

fn decide(
    asked: Counting,
    plugin: &Path,
    taken: Result<(), String>,
) -> Result<Counter, MachineError> {
    match (asked, taken) {
        (Counting::Stepping, _) => Ok(Counter::default()),
        (_, Ok(())) => Ok(Counter { plugin: Some(plugin.to_path_buf()), note: None }),
        (Counting::Plugin, Err(why)) => {
            Err(MachineError::NoAccelerator(format!("--counting plugin: {why}")))
        }
        (Counting::Auto, Err(why)) => {
            let note = format!("the emulated PMU counts by stepping, which is slow: {why}");
            Ok(Counter { plugin: None, note: Some(note) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_plugins_auto_steps_and_says_why_and_plugin_is_refused() {
        let (file, why) = (Path::new("/p.so"), || Err("this QEMU has none".to_string()));
        let by_plugin = Counter { plugin: Some(file.to_path_buf()), note: None };
        assert_eq!(decide(Counting::Auto, file, Ok(())).unwrap(), by_plugin);
        assert_eq!(decide(Counting::Plugin, file, Ok(())).unwrap(), by_plugin);
        let auto = decide(Counting::Auto, file, why()).unwrap();
        assert_eq!((auto.plugin.as_deref(), auto.what()), (None, "counting by stepping"));
        assert!(auto.note.unwrap().ends_with(": this QEMU has none"));
        let refused = decide(Counting::Plugin, file, why()).unwrap_err();
        assert_eq!(refused.exit_code(), 77);
        for taken in [Ok(()), why()] {
            assert_eq!(decide(Counting::Stepping, file, taken).unwrap(), Counter::default());
        }
    }
}
