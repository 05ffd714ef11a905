//! A QR code of the digest.

use super::grid::{Grid, wrapped};
use super::layout::{BACKGROUND, BAND};
use core::convert::Infallible;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::{DrawTarget, Point, Size};
use embedded_graphics::primitives::Rectangle;
use qrcodegen_no_heap::{QrCode, QrCodeEcc, Version};

/// The largest version that is drawn: 117 by 117 modules, of five pixels each on a screen of 1024 by 768.
const LARGEST: Version = Version::new(25);
/// A part of the digest has at most so many characters: what a code of that version holds in alphanumeric mode, with error
/// correction M (ISO/IEC 18004:2015, table 7).
pub const CHARACTERS: usize = 1451;
/// White modules around the code (ISO/IEC 18004:2015, 5.3.8).
const QUIET: i32 = 4;

/// Draws the code of `text` below the band, with words next to it.
pub(super) fn draw_code<D>(grid: &mut Grid<D>, text: &str, of: &str)
where
    D: DrawTarget<Color = Rgb888, Error = Infallible>,
{
    const BYTES: usize = LARGEST.buffer_len();
    let (mut scratch, mut modules) = ([0; BYTES], [0; BYTES]);
    let (top, bottom) = (grid.y(BAND), grid.size.height as i32);
    grid.fill(top, bottom, BACKGROUND);
    let encoded = QrCode::encode_text(
        text,
        &mut scratch,
        &mut modules,
        QrCodeEcc::Medium,
        Version::MIN,
        LARGEST,
        None,
        false,
    );
    // A text that is too long has no code; the parts are made so that there is none such.
    let Ok(code) = encoded else { return };
    let whole = code.size() + 2 * QUIET;
    let room = (bottom - top).min(grid.size.width as i32);
    let side = (room / whole).max(1);
    let at = |x: i32, y: i32| Point::new(x * side, top + y * side);
    let square = |modules: i32| Size::new((modules * side) as u32, (modules * side) as u32);
    grid.rectangle(Rectangle::new(at(0, 0), square(whole)), RgbColor::WHITE);
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|&x| code.get_module(x, y)) {
            let module = Rectangle::new(at(x + QUIET, y + QUIET), square(1));
            grid.rectangle(module, RgbColor::BLACK);
        }
    }
    let column = (whole * side) as usize / (grid.x(1) - grid.x(0)) as usize + 1;
    let words = [
        of,
        "",
        "Photograph each code, then on another machine:",
        "",
        "cargo xtask collect --qr PHOTO...",
    ];
    let mut line = BAND + 1;
    for words in words {
        for part in wrapped(words, grid.columns.saturating_sub(column), 0) {
            grid.text(column, line, RgbColor::WHITE, &part);
            line += 1;
        }
        line += i32::from(words.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Canvas, Format};
    use std::vec::Vec;

    /// Green of each pixel.
    fn drawn(text: &str) -> Vec<u8> {
        let (width, height) = (640, 480);
        let mut memory = vec![0; width * height * 4];
        let size = (width as u32, height as u32);
        let mut canvas = Canvas::new(&mut memory, size, width, 4, Format::Rgb).unwrap();
        draw_code(&mut Grid::new(&mut canvas), text, "code 1 of 1");
        memory.as_chunks::<4>().0.iter().map(|pixel| pixel[1]).collect()
    }

    #[test]
    fn a_part_of_the_greatest_length_has_a_code_and_a_longer_text_has_none() {
        let longest = "A1/".repeat(CHARACTERS)[..CHARACTERS].to_string();
        let picture = drawn(&longest);
        let read = |picture: &[u8]| {
            let brightness = |x, y| picture[y * 640 + x];
            let mut image = rqrr::PreparedImage::prepare_from_greyscale(640, 480, brightness);
            image.detect_grids().first().map(|grid| grid.decode().unwrap().1)
        };
        assert_eq!(read(&picture), Some(longest.clone()));
        assert_eq!(read(&drawn(&(longest + "A"))), None);
    }
}
