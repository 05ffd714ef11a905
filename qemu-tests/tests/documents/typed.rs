//! The console's page as somebody follows it who sits at a terminal.

use super::blocks::{blocks, commands};
use super::{PASS, SCRIPT, user_folder};
use qemu_tests::{Started, pseudo_terminal};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

/// What a terminal shows.
struct Screen {
    text: Arc<Mutex<String>>,
    /// How much of it has been looked at.
    seen: usize,
}

impl Screen {
    /// That of the terminal whose other side `machine` is.
    fn of(mut machine: File) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&text);
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            // The end is an error: nobody has the terminal open any more.
            while let Ok(count @ 1..) = machine.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { text, seen: 0 }
    }

    /// Waits for `part` behind what was looked at.
    fn wait_for(&mut self, part: &str, called: &mut Started) {
        let end = || {
            let text = self.text.lock().unwrap();
            text[self.seen..].find(part).map(|at| self.seen + at + part.len())
        };
        called.wait_for(part, |_| end().is_some());
        self.seen = end().expect("it is there");
    }
}

/// Each line of the page's script is typed when the answer to the one before is on the screen.
#[test]
fn a_console_is_typed_at() {
    let all = blocks();
    let mut lines = all.iter().flat_map(commands);
    let line = lines.find(|line| line.contains(" --console")).expect("an example");
    let script = all.iter().find(|one| one.text.starts_with(SCRIPT)).expect("a script");
    let job = all.iter().find(|one| one.is_job() && one.text.contains("int 0x88"));
    let folder = user_folder();
    fs::write(folder.path().join("job.toml"), &job.expect("the page's job").text).unwrap();
    let words = shlex::split(&line).expect("quotes");
    let words: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();

    let (mut keyboard, device) = pseudo_terminal();
    let terminal = File::options().read(true).write(true).open(device).unwrap();
    let mut called = Started::at_terminal(folder.path(), &words, &terminal);
    drop(terminal);
    let mut screen = Screen::of(keyboard.try_clone().unwrap());
    for line in script.text.lines() {
        if line == "wait" {
            screen.wait_for("waits for `go`", &mut called);
        } else {
            keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
            // What the terminal echoes has no colon before it.
            screen.wait_for(&format!(": {line}"), &mut called);
        }
    }
    let called = called.wait();
    let last = called.out.lines().last().unwrap_or_default();
    assert!(called.code == 0 && last.starts_with(PASS), "{called:#?}");
}
