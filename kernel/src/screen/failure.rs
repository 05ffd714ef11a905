//! The last screen of a firmware that failed.

use super::Trouble;
use super::grid::{Grid, wrapped};
use super::layout::{BACKGROUND, BAND, FAINT, NOTE, RED};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::DrawTarget;
use protocol::record::Crash;

/// What is known of it.
pub struct Failure<'a> {
    /// Program and version.
    pub title: &'a str,
    /// What happened and where, a paragraph each.
    pub said: &'a [String],
    /// Why the report is kept nowhere but on this screen, where that is so.
    pub unkept: Option<&'a Trouble>,
}

/// What somebody in front of the screen has to know of a crash, and may have to copy. `name`: that of the item that ran, which is
/// numbered as in the report.
#[must_use]
pub fn said(crash: &Crash, name: &str) -> Vec<String> {
    let mut said = Vec::from([crash.text.clone()]);
    said.extend(crash.location.as_ref().map(|location| format!("at {location}")));
    said.extend(crash.item.map(|item| format!("while item {item} ran: {name}")));
    let trace = crash.backtrace.iter().map(|address| format!(" {address}"));
    said.push(format!("return addresses:{}", trace.collect::<String>()));
    said
}

/// Draws it over everything else.
pub fn draw_failure<D>(target: &mut D, failure: &Failure)
where
    D: DrawTarget<Color = Rgb888, Error = Infallible>,
{
    let Ok(()) = target.clear(BACKGROUND);
    let mut grid = Grid::new(target);
    grid.say(RED, "THE FIRMWARE FAILED");
    let unkept = failure
        .unkept
        .map(|why| format!("{why}. This is kept nowhere but on this screen: photograph it."));
    let said = failure.said.iter().map(|text| (RgbColor::WHITE, text.as_str()));
    let unkept = unkept.iter().map(|text| (NOTE, text.as_str()));
    let mut line = BAND;
    for (color, paragraph) in said.chain(unkept).chain([(FAINT, failure.title)]) {
        for part in wrapped(paragraph, grid.columns, 2) {
            grid.text(0, line, color, &part);
            line += 1;
        }
    }
}

/// Draws one line at the top of a screen that nothing else was drawn on yet: the program, and what it is doing. It goes over the
/// line before.
pub fn draw_step<D>(target: &mut D, title: &str, doing: &str)
where
    D: DrawTarget<Color = Rgb888, Error = Infallible>,
{
    let mut grid = Grid::new(target);
    let height = grid.line_height();
    grid.fill(0, height, BACKGROUND);
    grid.text(0, 0, FAINT, title);
    grid.text(title.len() + 1, 0, RgbColor::WHITE, doing);
}
