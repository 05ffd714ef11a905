use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::prelude::v1::*;
use std::sync::Mutex;

/// What is still to come in, and what was said.
#[derive(Default)]
struct Wire {
    input: Mutex<VecDeque<Received>>,
    /// On another line; the two take turns.
    other: Mutex<VecDeque<Received>>,
    said: Mutex<Vec<ConsoleRecord>>,
}

impl Wire {
    fn of(text: &[u8]) -> Self {
        let input = Mutex::new(text.iter().map(|&byte| Received::Byte(byte)).collect());
        Self { input, ..Self::default() }
    }

    fn said(&self) -> Vec<(ConsoleWhat, String)> {
        let said = self.said.lock().unwrap();
        said.iter().map(|one| (one.what, one.text.join("; "))).collect()
    }
}

impl Terminal for Wire {
    fn receive(&self) -> Option<(usize, Received)> {
        let (mut first, mut other) = (self.input.lock().unwrap(), self.other.lock().unwrap());
        let of = |place, received: Option<Received>| Some((place, received?));
        match first.len() > other.len() {
            true => of(0, first.pop_front()),
            false => of(3, other.pop_front()).or_else(|| of(0, first.pop_front())),
        }
    }

    fn send(&self, record: &Record) {
        let Record::Console(record) = record else { panic!("{record:?}") };
        self.said.lock().unwrap().push(record.clone());
    }
}

/// Notes what it is told, and knows no set `x`.
#[derive(Default)]
struct Noted(Vec<Command>);

impl Controlled for Noted {
    fn now(&mut self) -> u64 {
        self.0.len() as u64
    }

    fn obey(&mut self, command: &Command) -> Result<Vec<ConsoleSet>, String> {
        self.0.push(command.clone());
        match command {
            Command::Start(set) if set == "x" => Err("no such set".to_string()),
            _ => Ok(vec![ConsoleSet { set: 7, ..ConsoleSet::default() }]),
        }
    }
}

#[test]
fn m7_what_comes_on_one_line_spoils_nothing_on_another() {
    let wire = Wire::of(b"list\nread a\n");
    let mut noise = [Received::Damaged, Received::Byte(b'x'), Received::Overrun].repeat(3);
    noise.push(Received::Byte(b'\n'));
    *wire.other.lock().unwrap() = noise.into();
    let mut noted = Noted::default();
    Console::open(4, &wire).listen(&mut noted);
    assert_eq!(noted.0, [Command::List, Command::Read(Some("a".into()))]);
    let refused = wire.said().iter().filter(|(what, _)| *what == ConsoleWhat::Refused).count();
    assert_eq!(refused, 1, "{:?}", wire.said());
}

#[test]
fn m7_each_line_has_one_answer_and_a_wrong_one_changes_nothing() {
    let wire = Wire::of(b"list\nxyzzy\nstart x\ngo\n\x01\nread a\nhelp\n");
    wire.input.lock().unwrap().push_front(Received::Overrun);
    wire.input.lock().unwrap().push_front(Received::Byte(b'z'));
    wire.input.lock().unwrap().insert(2, Received::Byte(b'\n'));
    let mut noted = Noted::default();
    let mut console = Console::open(4, &wire);
    (0..9).for_each(|_| console.listen(&mut noted));
    let read = Command::Read(Some("a".into()));
    assert_eq!(noted.0, [Command::List, Command::Start("x".into()), read]);
    use ConsoleWhat::{Done, Open, Refused};
    let said = wire.said();
    let expected = [
        (Open, ""),
        (Refused, "bytes of the line were lost"),
        (Done, ""),
        (Refused, "column 1: `xyzzy` is no command"),
        (Refused, "no such set"),
        (Refused, "no task waits"),
        (Refused, "byte 1 of the line is no text"),
        (Done, ""),
        (Done, "list: the sets"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (one, (what, text)) in said.iter().zip(expected) {
        assert!(one.0 == what && one.1.starts_with(text), "{one:?}");
    }
    let records = wire.said.lock().unwrap();
    assert_eq!(
        records.iter().map(|one| one.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
    assert!(records.iter().all(|one| one.item == 4));
    assert_eq!((records[2].line.as_deref(), records[2].sets[0].set), (Some("list"), 7));
    assert_eq!((records[6].line.as_deref(), records[7].tsc), (None, 3));
}

#[test]
fn m7_a_task_waits_until_somebody_says_go_and_behind_quit_nobody_does() {
    let wire = Wire::default();
    let say = |text: &[u8]| {
        wire.input.lock().unwrap().extend(text.iter().map(|&byte| Received::Byte(byte)));
    };
    let mut noted = Noted::default();
    let mut console = Console::open(0, &wire);
    assert!(console.begin_wait(3, &mut noted) && console.is_waiting());
    say(b"read\n");
    console.listen(&mut noted);
    assert!(console.is_waiting());
    say(b"go\nstop a\n");
    console.listen(&mut noted);
    assert!(!console.is_waiting());
    assert!(console.begin_wait(1, &mut noted));
    console.is_late(&mut noted);
    assert!(!console.is_waiting());
    assert!(console.begin_wait(2, &mut noted));
    say(b"quit\nstop b\n");
    console.listen(&mut noted);
    assert!(!console.is_waiting() && !console.begin_wait(3, &mut noted));
    console.listen(&mut noted);
    assert_eq!(noted.0, [Command::Read(None), Command::Stop("a".into())], "the rest is not read");
    use ConsoleWhat::{Done, Late, Open, Waits};
    let said: Vec<_> = wire.said.lock().unwrap().iter().map(|one| (one.what, one.task)).collect();
    let (first, second, third) = (Some(3), Some(1), Some(2));
    let expected = [
        (Open, None),
        (Waits, first),
        (Done, None),
        (Done, first),
        (Done, None),
        (Waits, second),
        (Late, second),
        (Waits, third),
        (Done, third),
    ];
    assert_eq!(said, expected);
}

#[test]
fn m7_tasks_get_on_however_much_comes_in() {
    let wire = Wire::of(&[b'\n'; 1_000]);
    let (mut noted, mut console) = (Noted::default(), Console::open(0, &wire));
    console.listen(&mut noted);
    assert_eq!(wire.input.lock().unwrap().len(), 1_000 - MOST_AT_ONCE);
}

proptest! {
    /// Whatever comes in, records are numbered without a gap and there is one for each line at most.
    #[test]
    fn m7_whatever_comes_in_is_answered_once(text in prop::collection::vec(any::<u8>(), 0..600)) {
        let wire = Wire::of(&text);
        let (mut noted, mut console) = (Noted::default(), Console::open(0, &wire));
        while !wire.input.lock().unwrap().is_empty() && !console.closed {
            console.listen(&mut noted);
        }
        let ends = text.iter().filter(|byte| [b'\r', b'\n'].contains(byte)).count();
        let numbers: Vec<u32> = wire.said.lock().unwrap().iter().map(|one| one.number).collect();
        prop_assert!(numbers.len() <= 1 + ends);
        prop_assert_eq!(&numbers, &(1..=numbers.len() as u32).collect::<Vec<_>>());
    }
}
