use super::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// What bash offers for the words, the last of which is being typed.
fn offered(words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (current, before) = (words[words.len() - 1], words[words.len() - 2]);
    // Cargo's own function, as the toolchain's file defines it.
    let script = format!(
        "_cargo() {{ COMPREPLY=(cargo-was-asked); }}\n{}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n\
         function=$(complete -p {} | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
         $function {} '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        script(Shell::Bash),
        quoted.join(" "),
        words.len() - 1,
        words[0],
        words[0],
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-s"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = bash.spawn().expect("bash starts");
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}

#[test]
fn bash_offers_commands_options_and_values() {
    for begin in [&["cargo-xtask"][..], &["cargo", "xtask"]] {
        let of = |rest: &[&str]| offered(&[begin, rest].concat());
        assert_eq!(of(&["col"]), ["collect"]);
        let commands = of(&[""]);
        for command in ["run", "vm", "image", "schema", "completions", "man"] {
            assert!(commands.iter().any(|one| one == command), "{command}: {commands:?}");
        }
        assert_eq!(of(&["run", "--format", "t"]), ["table", "tap"]);
        assert!(of(&["run", "--pm"]).contains(&"--pmu".to_string()));
        assert!(of(&["run", "--pmu", "z"]).contains(&"zen4".to_string()));
    }
    // The rest is cargo's.
    assert_eq!(offered(&["cargo", "bu"]), ["cargo-was-asked"]);
    assert_eq!(offered(&["cargo", "build", "--"]), ["cargo-was-asked"]);
    assert_eq!(offered(&["cargo", "xt"]), ["xtask"]);
}

#[test]
fn every_shell_has_a_script_with_every_command() {
    for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
        let script = script(shell);
        for command in ["run", "collect", "compare", "events"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}
