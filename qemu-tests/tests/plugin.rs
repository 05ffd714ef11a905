//! The plugin in QEMU's translator below a guest that calls it itself, without a hypervisor: each of its lines holds what was
//! counted and what was counted by hand.

use qemu_tests::{Guest, tree};
use std::path::PathBuf;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Ending;

/// Runs a group of cases with the plugin and holds each against its expectation. Returns how many there were.
fn cases(group: &str, stops: bool) -> usize {
    let plugin = tree().plugin();
    tree().build_plugin().unwrap_or_else(|error| panic!("{error}"));
    let kernel: PathBuf = tree().build_guest("pmu-guest").unwrap_or_else(|error| panic!("{error}"));
    let mut extra = Vec::new();
    let file = plugin.display();
    if stops {
        let line = [
            "-chardev",
            "socket,id=stop,fd=3",
            "-qtest",
            "chardev:stop",
            "-qtest-log",
            "/dev/null",
        ];
        extra.extend(line.map(String::from));
        extra.extend(["-plugin".to_string(), format!("file={file},stop=4")]);
    } else {
        extra.extend(["-plugin".to_string(), format!("file={file}")]);
    }
    let ran = Guest {
        kernel: Some(kernel),
        extra,
        timeout: Duration::from_secs(120),
        ..Guest::with_ramdisk(Boot::Direct, Some(format!("plugin.{group}").into()))
    }
    .run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert_eq!(ran.ending, Ending::Exited(Some(33)), "{text}");
    let cases: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("case "))
        .map(|case| case.split(' ').collect())
        .collect();
    let wrong: Vec<_> = cases.iter().filter(|case| case.len() != 3 || case[1] != case[2]).collect();
    assert!(wrong.is_empty(), "name, seen, expected: {wrong:#?}");
    cases.len()
}
