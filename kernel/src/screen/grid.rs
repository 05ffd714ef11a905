//! The screen as lines of characters, as large as the resolution allows.
//!
//! A stick's screen is read by somebody who stands. Characters that take a fiftieth of the width and an eighteenth of the height are
//! 7 mm high on a 15-inch screen and 11 mm on a 24-inch one, whatever its resolution: ISO 9241-303, 5.5.4, wants 16 minutes of arc,
//! which is 9 mm at two metres.

use alloc::string::String;
use core::convert::Infallible;
use embedded_graphics::Pixel;
use embedded_graphics::mono_font::ascii::FONT_10X20;
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::{DrawTarget, Drawable, OriginDimensions, Point, Size};
use embedded_graphics::primitives::Rectangle;
use embedded_graphics::text::{Baseline, Text};

const FONT: MonoFont = FONT_10X20;
const WIDTH: u32 = FONT.character_size.width;
const HEIGHT: u32 = FONT.character_size.height;

/// How often the font's pixels are repeated in both directions, on a screen of this size.
#[must_use]
pub fn scale(width: u32, height: u32) -> u32 {
    (width / (51 * WIDTH)).min(height / (18 * HEIGHT)).max(1)
}

/// A screen as lines of characters. What is beyond its edges is not drawn.
pub(super) struct Grid<'a, D> {
    target: &'a mut D,
    pub scale: u32,
    /// Characters of a line.
    pub columns: usize,
    /// Lines that fit.
    pub lines: i32,
    pub size: Size,
}

impl<'a, D> Grid<'a, D>
where
    D: DrawTarget<Color = Rgb888, Error = Infallible>,
{
    pub fn new(target: &'a mut D) -> Self {
        let size = target.bounding_box().size;
        let scale = scale(size.width, size.height);
        let columns = (size.width / (WIDTH * scale)).saturating_sub(1) as usize;
        let lines = (size.height / (HEIGHT * scale)) as i32;
        Self { target, scale, columns, lines, size }
    }

    /// Upper edge of a line, in pixels.
    pub fn y(&self, line: i32) -> i32 {
        line * self.line_height()
    }

    pub fn line_height(&self) -> i32 {
        (HEIGHT * self.scale) as i32
    }

    /// Left edge of a column, in pixels: half a character from the screen's edge.
    pub fn x(&self, column: usize) -> i32 {
        ((2 * column as u32 + 1) * WIDTH * self.scale / 2) as i32
    }

    /// Draws a text, cut where the screen ends.
    pub fn text(&mut self, column: usize, line: i32, color: Rgb888, text: &str) {
        let at = Point::new(self.x(column), self.y(line));
        let room = self.columns.saturating_sub(column);
        self.place(at, self.scale, color, cut(text, room));
    }

    /// Draws a text that ends with the line.
    pub fn right(&mut self, line: i32, color: Rgb888, text: &str) {
        let text = cut(text, self.columns);
        self.text(self.columns - text.chars().count(), line, color, text);
    }

    /// Draws a text at twice the size, so many pixels below the upper edge of `line`.
    pub fn large(&mut self, line: i32, lower: i32, color: Rgb888, text: &str) {
        let at = Point::new(self.x(0), self.y(line) + lower);
        self.place(at, 2 * self.scale, color, cut(text, self.columns / 2));
    }

    fn place(&mut self, at: Point, factor: u32, color: Rgb888, text: &str) {
        let mut magnified = Magnified { target: self.target, at, factor };
        let style = MonoTextStyle::new(&FONT, color);
        let (mut rest, mut at) = (text, Point::zero());
        // What follows a line end would be drawn in a line that is somebody else's: control characters are blanks.
        loop {
            let end = rest.bytes().position(|byte| byte.is_ascii_control());
            let part = &rest[..end.unwrap_or(rest.len())];
            let Ok(next) = Text::with_baseline(part, at, style, Baseline::Top).draw(&mut magnified);
            let Some(end) = end else { return };
            (rest, at.x) = (&rest[end + 1..], next.x + WIDTH as i32);
        }
    }

    /// Fills the whole width from one height to another, in pixels.
    pub fn fill(&mut self, top: i32, bottom: i32, color: Rgb888) {
        let size = Size::new(self.size.width, (bottom - top).max(0) as u32);
        self.rectangle(Rectangle::new(Point::new(0, top), size), color);
    }

    pub fn rectangle(&mut self, area: Rectangle, color: Rgb888) {
        let Ok(()) = self.target.fill_solid(&area, color);
    }
}

/// The first characters of a text, at most so many.
pub(super) fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// A text broken into lines of so many characters, at its line ends, and at blanks where there are some; the second and all others
/// are indented.
pub(super) fn wrapped(
    text: &str,
    characters: usize,
    indent: usize,
) -> impl Iterator<Item = String> {
    let (mut rest, mut indented) = (text, 0);
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let room = characters.saturating_sub(indented).max(1);
        let line_end = rest.bytes().position(|byte| byte == b'\n').unwrap_or(rest.len());
        let part = cut(&rest[..line_end], room);
        let end = if part.len() == line_end {
            part.len()
        } else {
            part.rfind(' ').filter(|&at| at > 0).unwrap_or(part.len())
        };
        let mut line: String = core::iter::repeat_n(' ', indented).collect();
        line.push_str(&rest[..end]);
        (rest, indented) = (rest[end..].trim_start(), indent);
        Some(line)
    })
}

/// Draws each pixel as a square.
struct Magnified<'a, D> {
    target: &'a mut D,
    at: Point,
    factor: u32,
}

impl<D: DrawTarget> OriginDimensions for Magnified<'_, D> {
    fn size(&self) -> Size {
        self.target.bounding_box().size
    }
}

impl<D: DrawTarget> DrawTarget for Magnified<'_, D> {
    type Color = D::Color;
    type Error = D::Error;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), D::Error>
    where
        I: IntoIterator<Item = Pixel<D::Color>>,
    {
        let square = Size::new(self.factor, self.factor);
        for Pixel(at, color) in pixels {
            let at = self.at + at * self.factor as i32;
            self.target.fill_solid(&Rectangle::new(at, square), color)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn characters_grow_with_the_resolution() {
        let sizes = [
            (640, 480),
            (800, 600),
            (1024, 768),
            (1280, 800),
            (1920, 1080),
            (2560, 1440),
            (3840, 2160),
        ];
        let scales: Vec<u32> = sizes.iter().map(|&(width, height)| scale(width, height)).collect();
        assert_eq!(scales, [1, 1, 2, 2, 3, 4, 6]);
        assert_eq!(scale(1, 1), 1);
        // At two metres, in millimetres: a capital letter has 13 of the font's 20 rows. Widths of usual screens.
        for (width, height, millimetres) in
            [(1024, 768, 304.0), (1920, 1080, 531.0), (3840, 2160, 597.0)]
        {
            let pitch: f64 = millimetres / f64::from(width);
            let letter = f64::from(13 * scale(width, height)) * pitch;
            assert!(letter > 7.0, "{width}x{height}: {letter} mm");
        }
    }

    #[test]
    fn long_texts_go_on_below_at_blanks() {
        let lines = |text, room| wrapped(text, room, 2).collect::<Vec<_>>();
        assert_eq!(lines("one two three", 8), ["one two", "  three"]);
        assert_eq!(lines("abcdefghij", 4), ["abcd", "  ef", "  gh", "  ij"]);
        assert_eq!(lines("ÄÖÜäöü", 4), ["ÄÖÜä", "  öü"]);
        assert_eq!(lines("", 4), [""; 0]);
        // Messages of several lines, as of a failed comparison.
        let several = lines("no:\n left: 1\nright: 234\n", 9);
        assert_eq!(several, ["no:", "  left: 1", "  right:", "  234"]);
        assert_eq!(lines("\n\nx", 4), ["", "  x"]);
        // However narrow, there is an end.
        assert_eq!(lines("ab", 0).len(), 2);
    }
}
