//! Options that need or exclude each other, and the help texts.

use super::Arguments;
use clap::{CommandFactory, Parser};

/// What is wrong with the words, and the exit status; `None`: nothing is.
fn refused(words: &str) -> Option<(i32, String)> {
    let words = ["xtask"].into_iter().chain(words.split_whitespace());
    let error = Arguments::try_parse_from(words).err()?;
    Some((error.exit_code(), error.to_string()))
}

#[test]
fn what_only_a_stick_has_is_refused_without_one() {
    for other in ["--serial a.log", "--qr a.png"] {
        for option in ["--copy DIR", "--report 2"] {
            let (code, text) = refused(&format!("collect {other} {option}")).expect("refused");
            assert_eq!(code, 2, "{text}");
            for name in [other, option].map(|one| one.split(' ').next().unwrap_or_default()) {
                assert!(text.contains(name), "{name}: {text}");
            }
            assert_eq!(refused(&format!("collect --image usb.img {option}")), None);
        }
        assert_eq!(refused(&format!("collect {other}")), None);
    }
}

#[test]
fn a_source_of_the_report_is_required_and_all_are_named() {
    let (code, text) = refused("collect").expect("refused");
    assert_eq!(code, 2);
    for name in ["--serial", "--qr", "--image"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let (code, text) = refused("collect --serial a.log --image usb.img").expect("refused");
    assert!(code == 2 && text.contains("--image"), "{text}");
}

/// How wide help texts may be: clap breaks longer lines, of examples as well.
const WIDTH: usize = 100;

/// The command and all below it.
fn all(command: &clap::Command) -> Vec<clap::Command> {
    let below = command.get_subcommands().flat_map(all);
    std::iter::once(command.clone()).chain(below).collect()
}

/// What of a text would be broken in the wrong place: an example that is too long, or a paragraph with breaks of its own,
/// whose lines would be broken again.
fn fragments(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_example = |line: &str| line.is_empty() || line.starts_with(' ');
    let wrong = |(index, line): (usize, &&str)| match lines.get(index + 1) {
        _ if line.starts_with(' ') => line.chars().count() > WIDTH,
        Some(next) => !line.is_empty() && !is_example(next),
        None => false,
    };
    let found = lines.iter().enumerate().filter(|&(index, line)| wrong((index, line)));
    found.map(|(_, line)| *line).collect()
}

#[test]
fn no_help_text_is_broken_by_hand_and_again() {
    assert_eq!(fragments("Examples:\n  a\n\nOne paragraph.\n\nAnother."), [""; 0]);
    assert_eq!(fragments("A paragraph that\nis broken."), ["A paragraph that"]);
    let [here, elsewhere] = [Arguments::command(), super::installed::described_as(true).0];
    for command in all(&here).into_iter().chain(all(&elsewhere)) {
        let name = command.get_name().to_string();
        let texts = [command.get_about(), command.get_long_about(), command.get_after_help()];
        for text in texts.into_iter().flatten().map(ToString::to_string) {
            assert_eq!(fragments(&text), [""; 0], "{name}");
        }
        let mut command = command.term_width(WIDTH);
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            // clap never breaks the line of usage.
            let mut lines = help.lines().filter(|line| !line.starts_with("Usage:"));
            let long = lines.find(|line| line.chars().count() > WIDTH);
            assert_eq!(long, None, "{name}");
        }
    }
}
