use super::*;

#[test]
fn every_command_has_a_page_with_its_options() {
    let pages = pages().unwrap();
    assert_eq!(pages[0].0, "cargo-xtask");
    let page = |name: &str| {
        let found = pages.iter().find(|(one, _)| one == name);
        &found.unwrap_or_else(|| panic!("no page {name}")).1
    };
    assert!(page("cargo-xtask").contains(".SH SUBCOMMANDS"));
    assert!(page("cargo-xtask").contains("Exit codes"));
    let run = page("cargo-xtask-run");
    for part in [".TH cargo-xtask-run 1", ".SH NAME", "SYNOPSIS", "\\-\\-pmu", "zen4"] {
        assert!(run.contains(part), "{part}\n{run}");
    }
    let (command, _) = cli::described();
    for one in command.get_subcommands() {
        let _ = page(&format!("cargo-xtask-{}", one.get_name()));
    }
}
