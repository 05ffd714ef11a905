//! The screen of a run, page after page.

use super::board::Board;
use super::code::{CHARACTERS, draw_code};
use super::grid::Grid;
use super::layout::{BACKGROUND, FAINT};
use super::lines::Line;
use super::{Header, Status, Ways};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::DrawTarget;
use protocol::digest::{Digest, text};
use protocol::record::{End, Record};

/// What stands on the screen of a run. While the run lasts, the page with the newest figures; then one after the other.
#[derive(Default)]
pub struct Screen {
    header: Header,
    status: Status,
    board: Board,
    /// The board's lines, for the table's width.
    lines: Vec<Line>,
    width: usize,
    /// Lines that stand on the screen, from the first page's first on.
    drawn: usize,
    /// The digest, a QR code each, when the run has ended.
    codes: Vec<String>,
}

impl Screen {
    /// Clears the screen and draws what does not change.
    pub fn begin<D>(&mut self, target: &mut D, header: Header)
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        let Ok(()) = target.clear(BACKGROUND);
        let mut grid = Grid::new(target);
        (self.header, self.drawn, self.width) = (header, 0, grid.table().width);
        grid.clear_table();
        grid.foot(&self.header);
    }

    /// Notes what an item came to. It is drawn with the next [`Screen::show`].
    pub fn note(&mut self, record: &Record) {
        if let Some(item) = self.board.note(record) {
            self.lines.extend(super::lines::lines(item, self.width));
        }
    }

    /// Draws how far the run is, and the figures that have come.
    pub fn show<D>(&mut self, target: &mut D, status: &Status)
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        self.status = status.clone();
        let mut grid = Grid::new(target);
        grid.band(status);
        grid.running(status);
        let capacity = grid.table().capacity();
        let page = |lines: usize| lines.saturating_sub(1) / capacity * capacity;
        let first = page(self.lines.len());
        if first != page(self.drawn) {
            grid.clear_table();
            self.drawn = first;
        }
        for at in self.drawn..self.lines.len() {
            grid.table_line(at % capacity, &self.lines[at]);
        }
        self.drawn = self.lines.len();
        if let (0, Some(_), Some(error)) = (self.lines.len(), status.outcome, &status.last_error) {
            grid.paragraph(error);
        }
    }

    /// Draws which item runs.
    pub fn announce<D>(&mut self, target: &mut D, status: &Status)
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        Grid::new(target).running(status);
    }

    /// The run has ended: the largest misses go first, and the digest is made.
    pub fn finish(&mut self, end: &End, ways: Ways) {
        self.header.ways = ways;
        self.board.sort();
        self.lines = self.board.lines(self.width).collect();
        let mut digest = Digest::new(&self.header.job, &self.header.machine, end);
        digest.items = self.board.items().cloned().collect();
        digest.left_out = self.board.left_out();
        let room = text::capacity(text::MAX_PARTS, CHARACTERS);
        let packed = digest.pack_what_fits(|packed| packed.len() <= room);
        self.codes = text::split(&packed, CHARACTERS).unwrap_or_default();
    }

    #[cfg(test)]
    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    /// Pages that there are then: figures, then codes.
    pub fn pages<D>(&self, target: &mut D) -> usize
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        self.tables(&Grid::new(target)) + self.codes.len()
    }

    fn tables<D>(&self, grid: &Grid<D>) -> usize
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        self.lines.len().div_ceil(grid.table().capacity()).max(1)
    }

    /// Draws a page, from 0 on.
    pub fn page<D>(&mut self, target: &mut D, page: usize)
    where
        D: DrawTarget<Color = Rgb888, Error = Infallible>,
    {
        let mut grid = Grid::new(target);
        let tables = self.tables(&grid);
        let pages = tables + self.codes.len();
        if let Some(code) = page.checked_sub(tables).and_then(|code| self.codes.get(code)) {
            let of = format!("code {} of {}", page - tables + 1, self.codes.len());
            draw_code(&mut grid, code, &of);
            return;
        }
        grid.band(&self.status);
        let codes = match self.codes.len() {
            0 => String::new(),
            1 => format!(", QR code on page {pages}"),
            _ => format!(", QR codes on pages {} to {pages}", tables + 1),
        };
        grid.below_band(FAINT, &format!("page {} of {pages}{codes}", page + 1));
        if self.lines.is_empty() {
            grid.paragraph(self.status.last_error.as_deref().unwrap_or_default());
        } else {
            grid.clear_table();
            let capacity = grid.table().capacity();
            let lines = self.lines.iter().skip(page * capacity).take(capacity);
            lines.enumerate().for_each(|(place, line)| grid.table_line(place, line));
        }
        grid.foot(&self.header);
    }
}
