//! Tests of the screen as a whole.

use super::*;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::{DrawTarget, OriginDimensions};
use embedded_graphics::primitives::Rectangle;
use protocol::digest::{Digest, text};
use protocol::hex::Hex;
use protocol::record::{
    Aggregates, Crash, CrashKind, End, Metric, Miss, Record, Registers, Series, SnippetResult,
    Verdict,
};
use std::convert::Infallible;

const SIZES: [(u32, u32); 4] = [(640, 480), (1024, 768), (1920, 1080), (3840, 2160)];
const GREEN: [u8; 3] = [20, 130, 50];
const RED: [u8; 3] = [180, 30, 30];

/// Memory as a screen.
struct Picture {
    memory: Vec<u8>,
    size: (u32, u32),
}

impl Picture {
    fn new(size: (u32, u32)) -> Self {
        Self { memory: vec![0; (size.0 * size.1 * 4) as usize], size }
    }

    fn canvas(&mut self) -> Canvas<'_> {
        Canvas::new(&mut self.memory, self.size, self.size.0 as usize, 4, Format::Rgb).unwrap()
    }

    fn first(&self) -> [u8; 3] {
        self.memory[..3].try_into().unwrap()
    }

    /// The character lines in which something differs.
    fn lines_that_differ(&self, other: &Self) -> Vec<usize> {
        let height = (20 * scale(self.size.0, self.size.1) * self.size.0 * 4) as usize;
        let both = self.memory.chunks(height).zip(other.memory.chunks(height));
        both.enumerate().filter(|(_, (one, other))| one != other).map(|(line, _)| line).collect()
    }
}

fn header() -> Header {
    Header {
        title: "barecount".to_string(),
        job: "job".to_string(),
        machine: vec!["a processor".to_string(), "a PMU".to_string()],
        ways: Ways { working: vec!["report: COM1".to_string()], trouble: None },
    }
}

fn result(item: u32, value: f64, max: Option<f64>) -> Record {
    let missed = max.is_some_and(|max| value > max);
    let miss = Miss { figure: "tsc".to_string(), min: None, max, value: Some(value), reason: None };
    Record::Result(SnippetResult {
        item,
        name: format!("item {item}"),
        verdict: if missed { Verdict::Fail } else { Verdict::None },
        misses: if missed { vec![miss] } else { vec![] },
        per: 1,
        runs: 10,
        metrics: vec![Metric {
            event: "tsc".to_string(),
            value: Aggregates { min: value, median: value, mean: value, max: value },
            deterministic: true,
            series: [Series::default(), Series::default()],
            counting: None,
            energy: None,
            retired: None,
        }],
        uncounted: vec![],
        planning: 0,
        controls: vec![],
        restored: vec![],
        unwatched: 0,
        smis: 0,
        emulated: false,
        tsc: [0, 1],
    })
}

fn shown(size: (u32, u32), records: &[Record], status: &Status) -> (Screen, Picture) {
    let (mut screen, mut picture) = (Screen::default(), Picture::new(size));
    screen.begin(&mut picture.canvas(), header());
    records.iter().for_each(|record| screen.note(record));
    screen.show(&mut picture.canvas(), status);
    (screen, picture)
}

#[test]
fn the_band_tells_pass_fail_and_running_apart() {
    let first = |status: Status| shown((1024, 768), &[], &status).1.first();
    let with = |outcome| Status { outcome, ..Status::default() };
    assert_eq!(first(with(Some(Outcome::Pass))), GREEN);
    assert_eq!(first(with(Some(Outcome::Fail))), RED);
    assert_eq!(first(with(None)), [40, 80, 160]);
    assert_eq!(first(Status { failed: 1, ..Status::default() }), RED);
}

#[test]
fn the_item_that_runs_has_a_line_of_its_own_and_leaves_no_trace() {
    for size in SIZES {
        let running =
            Status { running: Some("a rather long name".to_string()), ..Status::default() };
        let (mut screen, before) = shown(size, &[], &Status::default());
        let mut picture = Picture { memory: before.memory.clone(), size };
        screen.announce(&mut picture.canvas(), &running);
        assert_eq!(picture.lines_that_differ(&before), [3], "{size:?}");
        screen.announce(&mut picture.canvas(), &Status::default());
        assert!(picture.memory == before.memory);
    }
}

/// A target that counts the pixels that are filled.
struct Counting<'a>(Canvas<'a>, u64);

impl OriginDimensions for Counting<'_> {
    fn size(&self) -> embedded_graphics::prelude::Size {
        self.0.size()
    }
}

impl DrawTarget for Counting<'_> {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = embedded_graphics::Pixel<Rgb888>>,
    {
        self.0.draw_iter(pixels)
    }

    fn fill_solid(&mut self, area: &Rectangle, color: Rgb888) -> Result<(), Infallible> {
        self.1 += u64::from(area.size.width) * u64::from(area.size.height);
        self.0.fill_solid(area, color)
    }
}

/// While a run lasts, the firmware draws between measurements: what is there already stays as it is.
#[test]
fn figures_that_stand_there_are_not_drawn_again() {
    let size = (1024, 768);
    let (mut screen, mut picture) = (Screen::default(), Picture::new(size));
    screen.begin(&mut picture.canvas(), header());
    let mut costs = vec![];
    let mut page = vec![];
    for item in 0..12 {
        screen.note(&result(item, 1.0, None));
        let before = Picture { memory: picture.memory.clone(), size };
        let mut counting = Counting(picture.canvas(), 0);
        screen.show(&mut counting, &Status::default());
        costs.push(counting.1);
        page.push(picture.lines_that_differ(&before));
    }
    // A line each, the next page from its first line on.
    let lines: Vec<usize> = page.iter().map(|lines| *lines.last().unwrap()).collect();
    assert_eq!(lines[..10], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "{page:?}");
    assert_eq!((lines[10], page[10].contains(&5)), (14, true), "{page:?}");
    assert_eq!(page[11], [6], "{page:?}");
    let whole = u64::from(size.0 * size.1);
    assert!(costs[..10].iter().all(|&cost| cost < whole / 3), "{costs:?} of {whole}");
}

#[test]
fn at_the_end_the_largest_misses_come_first_and_pages_hold_all() {
    let bounds = [None, Some(10.0), None, Some(2.0), Some(30.0)];
    let mut records: Vec<Record> =
        (0..).zip(bounds).map(|(item, max)| result(item, 20.0, max)).collect();
    records.extend((5..40).map(|item| result(item, 20.0, None)));
    let status = Status { outcome: Some(Outcome::Fail), ..Status::default() };
    for size in SIZES {
        let (mut screen, mut picture) = shown(size, &records, &status);
        screen.finish(&End::without_items(Outcome::Fail), header().ways);
        let order: Vec<u32> = screen.board().items().take(4).map(|item| item.index).collect();
        assert_eq!(order, [3, 1, 0, 2], "{size:?}");
        let pages = screen.pages(&mut picture.canvas());
        let mut seen: Vec<Vec<u8>> = vec![];
        for page in 0..pages {
            screen.page(&mut picture.canvas(), page);
            assert!(!seen.contains(&picture.memory), "{size:?}: page {page} twice");
            seen.push(picture.memory.clone());
        }
        // Some pages of figures, and a code.
        assert!(pages >= 3, "{size:?}: {pages}");
    }
}

#[test]
fn a_full_board_keeps_what_went_wrong_and_counts_the_rest() {
    let mut board = Board::default();
    for item in 0..MAX_ITEMS as u32 + 5 {
        board.note(&result(item, 20.0, None));
    }
    board.note(&result(7777, 20.0, Some(1.0)));
    assert_eq!((board.items().count(), board.left_out()), (MAX_ITEMS, 6));
    board.sort();
    assert_eq!(board.items().next().unwrap().index, 7777);
}

/// The codes as a library that is none of ours reads them, from every screen.
#[test]
fn the_codes_hold_the_digest() {
    let records: Vec<Record> =
        (0..400).map(|item| result(item, f64::from(item) * 1.37, Some(500.0))).collect();
    let status = Status { outcome: Some(Outcome::Fail), ..Status::default() };
    // Larger ones take the reader long, and have the same modules.
    for size in [(640, 480), (1024, 768)] {
        let (mut screen, mut picture) = shown(size, &records, &status);
        let tables = screen.pages(&mut picture.canvas());
        let end = End { failed: 35, ..End::without_items(Outcome::Fail) };
        screen.finish(&end, header().ways);
        let mut read = String::new();
        let mut codes = 0;
        for page in tables..screen.pages(&mut picture.canvas()) {
            screen.page(&mut picture.canvas(), page);
            let (width, height) = (size.0 as usize, size.1 as usize);
            let brightness = |x, y| picture.memory[(y * width + x) * 4 + 1];
            let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, brightness);
            for grid in image.detect_grids() {
                read += &grid.decode().unwrap().1;
                codes += 1;
            }
        }
        assert!(codes >= 2, "{size:?}: {codes}");
        let digest = Digest::unpack(&text::join(&read).unwrap()).unwrap();
        assert_eq!((digest.failed, digest.items.len(), digest.left_out), (35, 400, 0));
        assert_eq!(digest.items[0].index, 399, "the largest miss");
        assert_eq!(digest.machine, header().machine);
    }
}

#[test]
fn a_crash_has_a_red_band_and_long_text_goes_on_below() {
    for size in SIZES {
        let drawn = |said: &[&str], unkept| {
            let mut picture = Picture::new(size);
            let said: Vec<String> = said.iter().map(ToString::to_string).collect();
            draw_failure(&mut picture.canvas(), &Failure { title: "t", said: &said, unkept });
            picture
        };
        let short = drawn(&["x"], None);
        assert_eq!(short.first(), RED);
        let long = drawn(&[&"x".repeat(150)], None);
        assert!(long.lines_that_differ(&short).len() > 2, "{size:?}");
        let unkept = Trouble::NoLine("no UART".to_string());
        assert!(!drawn(&["x"], Some(&unkept)).lines_that_differ(&short).is_empty());
        // Of what has no room, nothing is drawn.
        drawn(&[&"x".repeat(15_000)], None);
    }
}

#[test]
fn a_crash_has_the_items_number_of_the_report_and_what_was_lost_has_its_own_words() {
    let crash = Crash {
        kind: CrashKind::Panic,
        text: "no".to_string(),
        location: Some("a.rs:1:2".to_string()),
        vector: None,
        error_code: None,
        item: Some(0),
        registers: Registers::default(),
        backtrace: vec![Hex(16), Hex(32)],
    };
    let lines = ["no", "at a.rs:1:2", "while item 0 ran: first", "return addresses: 0x10 0x20"];
    assert_eq!(said(&crash, "first"), lines);
    let crash = Crash { location: None, item: None, ..crash };
    assert_eq!(said(&crash, ""), [lines[0], lines[3]]);
    let why = || "why".to_string();
    let troubles = [Trouble::NoLine(why()), Trouble::NotAll(why())].map(|one| one.to_string());
    assert_eq!(troubles, ["NO SERIAL LINE: why", "NOT ALL WAS SENT: why"]);
}

/// As of a panic's comparison: each line of it has its own, and none is drawn over the next paragraph.
#[test]
fn line_ends_in_a_message_begin_lines_of_the_screen() {
    for size in SIZES {
        let crash = |text: &str| {
            let mut picture = Picture::new(size);
            let said = [text.to_string(), "at a place".to_string()];
            draw_failure(&mut picture.canvas(), &Failure { title: "t", said: &said, unkept: None });
            picture
        };
        // Two lines more, below the band: place and title go down by as many.
        let differ =
            crash("left == right\n  left: 1\n right: 2").lines_that_differ(&crash("left == right"));
        assert_eq!(differ, [4, 5, 6, 7], "{size:?}");
        // A line that goes on nowhere has a blank in its place.
        let running = |name: &str| {
            let status = Status { running: Some(name.to_string()), ..Status::default() };
            shown(size, &[], &status).1
        };
        assert!(running("one\ntwo\tthree").memory == running("one two three").memory, "{size:?}");
    }
}

#[test]
fn a_step_is_one_line_that_goes_over_the_one_before() {
    for size in SIZES {
        let drawn = |steps: &[&str]| {
            let mut picture = Picture::new(size);
            steps.iter().for_each(|step| draw_step(&mut picture.canvas(), "t", step));
            picture
        };
        let (one, other) = (drawn(&["reads a table"]), drawn(&["looks"]));
        assert_eq!(one.lines_that_differ(&other).len(), 1, "{size:?}");
        assert!(drawn(&["reads a table", "looks"]).lines_that_differ(&other).is_empty());
    }
}

#[test]
fn a_tiny_screen_does_no_harm() {
    let status = Status { last_error: Some("x".repeat(500)), ..Status::default() };
    for size in [(1, 1), (20, 10), (320, 200)] {
        let (mut screen, mut picture) = shown(size, &[result(0, 1.0, None)], &status);
        screen.finish(&End::without_items(Outcome::Pass), Ways::default());
        for page in 0..screen.pages(&mut picture.canvas()) {
            screen.page(&mut picture.canvas(), page);
        }
        draw_failure(
            &mut picture.canvas(),
            &Failure { title: "t", said: &["something".to_string()], unkept: None },
        );
    }
}
