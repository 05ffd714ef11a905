//! Benchmarks of every form, run as programs run them.

use barecount::expansion::entries;
use barecount::{Arena, bench};
use std::sync::Mutex;

#[global_allocator]
static HEAP: Arena<{ 1 << 16 }> = Arena::new();

/// What happened.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn see(text: String) {
    SEEN.lock().unwrap().push(text);
}

/// Tells when it is dropped.
struct Told(u32);

impl Drop for Told {
    fn drop(&mut self) {
        see(format!("dropped {}", self.0));
    }
}

const SIZES: [usize; 2] = [3, 5];

bench! {
    fn plain() { see("plain".to_string()) }
    fn input(told: Told = Told(100)) { told.0 += 1 }
    fn parameters(n: usize in SIZES, made: Vec<usize> = (0..n).collect()) {
        made.push(n);
        see(format!("{made:?}"));
    }
    fn parameter(n: u8 in [200, 7]) { see(format!("{n}")) }
    fn early(n: u32 in [0]) {
        if n == 0 {
            return;
        }
        see("late".to_string());
    }
}

#[test]
fn each_form_is_set_up_run_and_cleared_away() {
    let mut entries: Vec<_> = entries().iter().collect();
    entries.sort_by_key(|entry| entry.name());
    let names: Vec<_> = entries.iter().map(|entry| entry.name()).collect();
    let expected = [
        ("registered::early", Some(0)),
        ("registered::input", None),
        ("registered::parameter", Some(7)),
        ("registered::parameter", Some(200)),
        ("registered::parameters", Some(3)),
        ("registered::parameters", Some(5)),
        ("registered::plain", None),
    ];
    assert_eq!(names, expected);
    entries.iter().for_each(|entry| assert!(entry.is_valid()));
    entries.iter().for_each(|entry| entry.run());
    let seen = SEEN.lock().unwrap().join("; ");
    assert_eq!(seen, "dropped 101; 7; 200; [0, 1, 2, 3]; [0, 1, 2, 3, 4, 5]; plain");
}
