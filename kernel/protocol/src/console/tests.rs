use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use proptest::prelude::*;

fn read(bytes: &[u8]) -> Vec<Result<String, WrongLine>> {
    let mut lines = Lines::new();
    bytes.iter().filter_map(|&byte| lines.take(Received::Byte(byte))).collect()
}

#[test]
fn m7_every_command_is_read_and_help_lists_it() {
    let set = || "a".to_string();
    for (line, command) in [
        ("help", Command::Help),
        (" list ", Command::List),
        ("status", Command::Status(None)),
        ("status a", Command::Status(Some(set()))),
        ("read", Command::Read(None)),
        ("read\ta", Command::Read(Some(set()))),
        ("start a", Command::Start(set())),
        ("stop \"a\"", Command::Stop(set())),
        ("next a", Command::Next(set())),
        ("terminate a", Command::Terminate(set())),
        ("go", Command::Go),
        ("quit", Command::Quit),
    ] {
        assert_eq!(parse(line), Ok(command), "{line}");
        let word = line.split_whitespace().next().unwrap();
        assert!(HELP.iter().any(|(form, _)| form.split(' ').next() == Some(word)), "{word}");
    }
    let change = Change {
        set: "set 1".into(),
        event: "inst \"x\"\\:u".into(),
        to: Some("r00c0".into()),
        every: Some(1_000),
        preset: Some(u64::MAX),
    };
    let line = "modify \"set 1\" \"inst \\\"x\\\"\\\\:u\" every=1_000 event=r00c0 preset=18446744073709551615";
    assert_eq!(parse(line), Ok(Command::Modify(change)));
    let every = Change { set: set(), event: "2".into(), every: Some(0), ..Change::default() };
    assert_eq!(parse("modify a 2 every=0"), Ok(Command::Modify(every)));
}

#[test]
fn m7_what_is_no_command_is_refused_with_its_column() {
    for (line, part) in [
        ("  ", "the line is empty"),
        ("xyzzy", "column 1: `xyzzy` is no command; `help` lists them"),
        ("  Read a", "column 3: `Read` is no command"),
        ("\"\"", "column 1: `` is no command"),
        ("start", "column 6: `start` needs the name of a set"),
        ("modify a", "column 9: `modify` needs an event of the set"),
        ("modify a b", "`modify` needs event=, every= or preset="),
        ("go on", "column 4: `on` is one word too many"),
        ("read set 1", "column 10: `1` is one word too many; names with blanks stand in double"),
        ("read \"set 1", "column 6: the quote is not closed"),
        ("read \"x\\", "column 6: the quote is not closed"),
        ("modify a b every=many", "column 12: `many` is no number from 0 to 2^64-1"),
        ("modify a b every=", "column 12: `` is no number"),
        ("modify a b every=18446744073709551616", "is no number"),
        ("modify a b preset=-1", "column 12: `-1` is no number"),
        ("modify ä b fast", "column 12: `fast` is none of event=, every= and preset="),
        ("modify a b every=1 every=2", "column 20: `every=2` is the second of its kind"),
    ] {
        let error = parse(line).unwrap_err().to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn m7_lines_end_by_cr_lf_or_both_and_backspace_takes_a_character_back() {
    let ok = |text: &str| Ok(text.to_string());
    assert_eq!(read(b"go\rlist\n\r\n  \nread a\r\n"), [ok("go"), ok("list"), ok("read a")]);
    assert_eq!(read("lx\x08isä\x7ft\n\x08\x08\n".as_bytes()), [ok("list")]);
    assert_eq!(read(b"go"), [], "it has not ended");
}

#[test]
fn m7_a_wrong_line_is_told_once_and_the_next_one_is_read() {
    let ok = |text: &str| Ok(text.to_string());
    let mut long = Vec::from([b'x'; MAX_COMMAND_BYTES + 1]);
    long.extend_from_slice(b"\ngo\n");
    assert_eq!(read(&long), [Err(WrongLine::TooLong), ok("go")]);
    assert_eq!(read(&long[1..]), [ok(&"x".repeat(MAX_COMMAND_BYTES)), ok("go")]);
    assert_eq!(read(b"go\x1b[A\ngo\n"), [Err(WrongLine::NoText(3)), ok("go")]);
    assert_eq!(read(b"ab\xff\ngo\n"), [Err(WrongLine::NoText(3)), ok("go")]);
    let mut lines = Lines::new();
    for (wrong, said) in
        [(Received::Overrun, WrongLine::Overrun), (Received::Damaged, WrongLine::Damaged)]
    {
        let all = [Received::Byte(b'g'), wrong, Received::Byte(b'o'), Received::Byte(b'\n')];
        let told: Vec<_> = all.into_iter().filter_map(|one| lines.take(one)).collect();
        assert_eq!(told, [Err(said)]);
    }
    assert_eq!("go\n".bytes().find_map(|byte| lines.take(Received::Byte(byte))), Some(ok("go")));
}

/// A word as it has to be written.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

proptest! {
    /// Nothing that comes in makes the reader fail, and each line is told of once at most.
    #[test]
    fn m7_whatever_comes_in_is_a_command_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let ends = bytes.iter().filter(|byte| [b'\r', b'\n'].contains(byte)).count();
        let lines = read(&bytes);
        prop_assert!(lines.len() <= ends);
        for line in lines.into_iter().flatten() {
            prop_assert!(line.len() <= MAX_COMMAND_BYTES);
            if let Err(error) = parse(&line) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// Any names can be said, and what is read is what was said.
    #[test]
    fn m7_names_of_any_characters_can_be_said(
        set in ".{0,20}", event in ".{0,20}", to in prop::option::of("[^=]{0,20}"),
        every in prop::option::of(any::<u64>()), preset in prop::option::of(any::<u64>()),
    ) {
        let change = Change { set, event, to, every, preset };
        let mut line = format!("modify {} {}", quoted(&change.set), quoted(&change.event));
        let mut said = false;
        for (key, value) in [("every", change.every), ("preset", change.preset)] {
            if let Some(value) = value {
                line += &format!(" {key}={value}");
                said = true;
            }
        }
        if let Some(to) = &change.to {
            line += &format!(" event={}", quoted(to));
            said = true;
        }
        match said {
            true => prop_assert_eq!(parse(&line), Ok(Command::Modify(change))),
            false => prop_assert!(parse(&line).is_err()),
        }
    }

    /// Lines come out as they went in, however they end.
    #[test]
    fn m7_lines_come_out_as_they_went_in(
        lines in prop::collection::vec(("[^\\p{C}]{0,90}", prop::sample::select(alloc::vec!["\r", "\n", "\r\n"])), 0..9),
    ) {
        let whole: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        let expected = lines.iter().map(|(line, _)| line).filter(|line| !line.trim().is_empty());
        let expected: Vec<_> = expected.map(|line| Ok(line.clone())).collect();
        prop_assert_eq!(read(whole.as_bytes()), expected);
    }
}
