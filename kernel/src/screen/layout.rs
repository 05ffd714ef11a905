//! What stands where on the screen.

use super::grid::{Grid, wrapped};
use super::lines::{Kind, LEAST, Line, heading};
use super::{Header, Status};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::convert::Infallible;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::{DrawTarget, Point, Size};
use embedded_graphics::primitives::Rectangle;
use protocol::digest::Standing;
use protocol::record::Outcome;

/// Lines of the band that states how the run went.
pub(super) const BAND: i32 = 3;
/// The line of the item that runs.
const RUNNING_LINE: i32 = BAND;
const HEADING_LINE: i32 = RUNNING_LINE + 1;
const TABLE_LINE: i32 = HEADING_LINE + 1;
/// Lines about the machine and the ways out: on a screen of few lines, and of more.
const FOOT: [i32; 2] = [4, 7];
/// From so many lines on there are more.
const MANY_LINES: i32 = 22;
/// Blanks between two tables next to each other.
const GAP: usize = 2;

pub(super) const BACKGROUND: Rgb888 = Rgb888::new(16, 18, 24);
// Texts have 100 and more of each colour, no background has.
pub(super) const FAINT: Rgb888 = Rgb888::new(150, 155, 165);
const PLAIN: Rgb888 = Rgb888::new(205, 210, 220);
const PASSED: Rgb888 = Rgb888::new(140, 225, 150);
const MISSED: Rgb888 = Rgb888::new(255, 140, 130);
pub(super) const NOTE: Rgb888 = Rgb888::new(245, 205, 110);
const RUNNING: Rgb888 = Rgb888::new(40, 80, 160);
const GREEN: Rgb888 = Rgb888::new(20, 130, 50);
pub(super) const RED: Rgb888 = Rgb888::new(180, 30, 30);
const GREY: Rgb888 = Rgb888::new(90, 90, 90);

/// The table's place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Table {
    /// Tables next to each other.
    pub panes: usize,
    /// Characters of one of them.
    pub width: usize,
    /// Lines of one of them.
    pub rows: usize,
}

impl Table {
    /// Lines on a page.
    pub fn capacity(&self) -> usize {
        self.panes * self.rows
    }
}

impl<D: DrawTarget<Color = Rgb888, Error = Infallible>> Grid<'_, D> {
    pub(super) fn table(&self) -> Table {
        let panes = ((self.columns + GAP) / (LEAST + GAP)).max(1);
        let width = (self.columns + GAP) / panes - GAP.min(self.columns);
        let rows = (self.lines - TABLE_LINE - self.foot_lines()).max(1) as usize;
        Table { panes, width, rows }
    }

    fn foot_lines(&self) -> i32 {
        FOOT[usize::from(self.lines >= MANY_LINES)]
    }

    /// What the band is coloured and says.
    pub(super) fn band(&mut self, status: &Status) {
        let (color, word) = match status.outcome {
            None if status.failed > 0 => (RED, "RUNNING"),
            None => (RUNNING, "RUNNING"),
            Some(Outcome::Pass) => (GREEN, "PASS"),
            Some(Outcome::Fail) => (RED, "FAIL"),
            Some(Outcome::BadJob) => (RED, "NO USABLE JOB"),
            Some(Outcome::Crash) => (RED, "THE FIRMWARE FAILED"),
            Some(Outcome::Skip) => (GREY, "NOTHING TO RUN"),
        };
        self.say(color, word);
        if status.outcome != Some(Outcome::BadJob) {
            let Status { done, total, passed, failed, measured, .. } = status;
            self.right(0, RgbColor::WHITE, &format!("{done} of {total} items"));
            self.right(1, RgbColor::WHITE, &format!("{passed} passed, {failed} failed"));
            self.right(2, RgbColor::WHITE, &format!("{measured} measured"));
        }
        let width = u64::from(self.size.width);
        let done = width * u64::from(status.done) / u64::from(status.total.max(1));
        let top = self.y(BAND) - self.line_height() / 8;
        let size = Size::new(done as u32, (self.line_height() / 8) as u32);
        self.rectangle(Rectangle::new(Point::new(0, top), size), RgbColor::WHITE);
    }

    /// A band with a word on it.
    pub(super) fn say(&mut self, color: Rgb888, word: &str) {
        self.fill(0, self.y(BAND), color);
        // In the middle of three lines.
        let lower = self.line_height() / 2;
        self.large(0, lower, RgbColor::WHITE, word);
    }

    /// The line below the band.
    pub(super) fn below_band(&mut self, color: Rgb888, text: &str) {
        self.fill(self.y(RUNNING_LINE), self.y(RUNNING_LINE + 1), BACKGROUND);
        self.text(0, RUNNING_LINE, color, text);
    }

    /// Which item runs. Little enough to be done before every item.
    pub(super) fn running(&mut self, status: &Status) {
        let text = match (&status.running, &status.last_error) {
            (Some(name), _) => format!("item {} of {}: {name}", status.done + 1, status.total),
            (None, Some(error)) => format!("last error: {error}"),
            (None, None) => String::new(),
        };
        self.below_band(RgbColor::WHITE, &text);
    }

    /// An empty table.
    pub(super) fn clear_table(&mut self) {
        self.fill(self.y(HEADING_LINE), self.y(self.lines - self.foot_lines()), BACKGROUND);
        let table = self.table();
        for pane in 0..table.panes {
            self.text(pane * (table.width + GAP), HEADING_LINE, FAINT, &heading(table.width));
        }
    }

    /// A line of the table, by its place on the page.
    pub(super) fn table_line(&mut self, place: usize, line: &Line) {
        let table = self.table();
        let color = match line.kind {
            Kind::Item(Standing::Measured) => RgbColor::WHITE,
            Kind::Item(Standing::Passed) => PASSED,
            Kind::Item(Standing::Missed | Standing::Error) => MISSED,
            Kind::Item(Standing::Skipped) => FAINT,
            Kind::Event => PLAIN,
            Kind::Note => NOTE,
        };
        let (pane, row) = (place / table.rows, place % table.rows);
        if pane < table.panes {
            self.text(pane * (table.width + GAP), TABLE_LINE + row as i32, color, &line.text);
        }
    }

    /// Text in the table's place, for a run that has no figures.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.fill(self.y(HEADING_LINE), self.y(self.lines - self.foot_lines()), BACKGROUND);
        for (line, part) in (HEADING_LINE..).zip(wrapped(text, self.columns, 0)) {
            self.text(0, line, RgbColor::WHITE, &part);
        }
    }

    /// What the machine is, and how the report leaves it.
    pub(super) fn foot(&mut self, header: &Header) {
        let count = self.foot_lines();
        let top = self.lines - count;
        self.fill(self.y(top), self.size.height as i32, BACKGROUND);
        self.fill(self.y(top), self.y(top) + (self.scale as i32), FAINT);
        let ways = ways(header);
        let about = Vec::from([format!("{}, job: {}", header.title, header.job)]);
        let machine = header.machine.iter().chain(&about).map(|text| (FAINT, text));
        let room = (count as usize).saturating_sub(ways.len());
        let lines = machine.take(room).chain(ways.iter().map(|(color, text)| (*color, text)));
        for (line, (color, text)) in (top..).zip(lines) {
            self.text(0, line, color, text);
        }
    }
}

/// What is said of the ways out: trouble first.
fn ways(header: &Header) -> Vec<(Rgb888, String)> {
    let trouble = header.ways.trouble.as_ref();
    let trouble = trouble.map(|why| (NOTE, why.to_string()));
    let working = header.ways.working.iter().map(|way| (RgbColor::WHITE, way.to_string()));
    trouble.into_iter().chain(working).take(2).collect()
}
