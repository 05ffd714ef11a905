//! The last screen of a firmware that failed.

use super::layout::{BACKGROUND, BAND, FONT, LINE, MARGIN, RED, band, text};
use alloc::string::String;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::{DrawTarget, Point, Size};
use embedded_graphics::primitives::Rectangle;

/// What is known of it.
pub struct Failure<'a> {
    /// Program and version.
    pub title: &'a str,
    /// What happened and where, a paragraph each.
    pub said: &'a [String],
    /// Why the report is kept nowhere but on this screen, where that is so.
    pub unkept: Option<&'a str>,
}

/// Draws it over everything else.
///
/// # Errors
/// Those of the target.
pub fn draw_failure<D>(target: &mut D, failure: &Failure) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    target.clear(BACKGROUND)?;
    let (width, height) = (target.bounding_box().size.width, target.bounding_box().size.height);
    target.fill_solid(&Rectangle::new(Point::zero(), Size::new(width, BAND)), RED)?;
    band(target, "THE FIRMWARE FAILED", failure.unkept)?;
    let room = width.saturating_sub(2 * MARGIN as u32) / FONT.character_size.width;
    let lines = (height as i32 - BAND as i32 - MARGIN) / LINE;
    let mut line = 0;
    for paragraph in failure.said.iter().map(String::as_str).chain([failure.title]) {
        let mut rest = paragraph;
        while !rest.is_empty() && line < lines {
            let end =
                rest.char_indices().nth(room.max(1) as usize).map_or(rest.len(), |(at, _)| at);
            let (part, behind) = rest.split_at(end);
            text(target, line, RgbColor::WHITE, part)?;
            (rest, line) = (behind, line + 1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Canvas, Format};
    use super::*;
    use std::string::ToString;

    fn drawn(said: &[&str], (width, height): (u32, u32)) -> Vec<u8> {
        let mut memory = vec![0; (width * height * 4) as usize];
        let mut canvas =
            Canvas::new(&mut memory, (width, height), width as usize, 4, Format::Rgb).unwrap();
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        draw_failure(&mut canvas, &Failure { title: "t", said: &said, unkept: None }).unwrap();
        memory
    }

    #[test]
    fn the_band_is_red_and_long_text_goes_on_below() {
        let memory = drawn(&["x"], (640, 480));
        assert_eq!(memory[..3], [180, 30, 30]);
        let rows = |memory: &[u8]| {
            let is_lit = |row: &&[u8]| row.as_chunks::<4>().0.iter().any(|p| p[..3] == [255; 3]);
            memory.chunks(640 * 4).skip(BAND as usize).filter(is_lit).count()
        };
        let long = "x".repeat(100);
        assert!(rows(&drawn(&[&long], (640, 480))) > rows(&memory));
        // Of what has no room, nothing is drawn.
        drawn(&[&long.repeat(100)], (640, 480));
    }

    #[test]
    fn a_tiny_screen_does_no_harm() {
        for size in [(1, 1), (20, 10), (320, 200)] {
            drawn(&["something", "else"], size);
        }
    }
}
