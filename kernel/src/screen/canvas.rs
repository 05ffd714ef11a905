//! A frame buffer that embedded-graphics can draw on.

use core::convert::Infallible;
use embedded_graphics::Pixel;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::{DrawTarget, OriginDimensions, Point, Size};
use embedded_graphics::primitives::Rectangle;

/// Order of the colours in a pixel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// Red in the lowest byte.
    Rgb,
    /// Blue in the lowest byte.
    Bgr,
    /// One byte of brightness.
    Grey,
}

/// Memory that is shown.
pub struct Canvas<'a> {
    memory: &'a mut [u8],
    width: u32,
    height: u32,
    /// Pixels from one line to the next.
    stride: usize,
    pixel_bytes: usize,
    format: Format,
}

impl<'a> Canvas<'a> {
    /// A canvas of `width` by `height` pixels in `memory`. `None` if the memory does not hold them all.
    pub fn new(
        memory: &'a mut [u8],
        (width, height): (u32, u32),
        stride: usize,
        pixel_bytes: usize,
        format: Format,
    ) -> Option<Self> {
        let least_pixel = if format == Format::Grey { 1 } else { 3 };
        let needed = stride.checked_mul(height as usize)?.checked_mul(pixel_bytes)?;
        let fits = pixel_bytes >= least_pixel && stride >= width as usize && needed <= memory.len();
        fits.then_some(Self { memory, width, height, stride, pixel_bytes, format })
    }

    /// Bytes of a pixel; the first `pixel_bytes` of the result count.
    fn encode(&self, color: Rgb888) -> [u8; 4] {
        let (r, g, b) = (color.r(), color.g(), color.b());
        match self.format {
            Format::Rgb => [r, g, b, 0],
            Format::Bgr => [b, g, r, 0],
            // Weights of ITU-R BT.601, in 256ths.
            Format::Grey => {
                let sum = 77 * u32::from(r) + 150 * u32::from(g) + 29 * u32::from(b);
                [(sum >> 8) as u8; 4]
            }
        }
    }

    fn offset(&self, x: u32, y: u32) -> usize {
        (y as usize * self.stride + x as usize) * self.pixel_bytes
    }
}

impl OriginDimensions for Canvas<'_> {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas<'_> {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(Point { x, y }, color) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
                continue;
            };
            if x < self.width && y < self.height {
                let (at, bytes, length) = (self.offset(x, y), self.encode(color), self.pixel_bytes);
                self.memory[at..at + length.min(4)].copy_from_slice(&bytes[..length.min(4)]);
            }
        }
        Ok(())
    }

    /// Fills line by line; the default goes pixel by pixel through bounds checks.
    fn fill_solid(&mut self, area: &Rectangle, color: Rgb888) -> Result<(), Infallible> {
        let area = area.intersection(&Rectangle::new(Point::zero(), self.size()));
        let (left, top) = (area.top_left.x as u32, area.top_left.y as u32);
        let (bytes, length) = (self.encode(color), self.pixel_bytes);
        for y in top..top + area.size.height {
            let (start, end) = (self.offset(left, y), self.offset(left + area.size.width, y));
            let line = &mut self.memory[start..end];
            // The usual pixel as one store: a loop over slices of unknown length is ten times as slow.
            if length == 4 {
                line.as_chunks_mut::<4>().0.fill(bytes);
            } else {
                let bytes = &bytes[..length.min(4)];
                line.chunks_exact_mut(length).for_each(|p| p[..bytes.len()].copy_from_slice(bytes));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_lie_where_the_format_says_and_the_padding_stays() {
        let mut memory = [9u8; 2 * 4 * 4];
        let mut canvas = Canvas::new(&mut memory, (3, 2), 4, 4, Format::Bgr).unwrap();
        let all = Rectangle::new(Point::new(-5, 1), Size::new(100, 100));
        canvas.fill_solid(&all, Rgb888::new(1, 2, 3)).unwrap();
        canvas.draw_iter([Pixel(Point::new(0, 0), Rgb888::new(7, 8, 6))]).unwrap();
        canvas.draw_iter([Pixel(Point::new(3, 0), Rgb888::WHITE)]).unwrap();
        assert_eq!(memory[..8], [6, 8, 7, 0, 9, 9, 9, 9]);
        assert_eq!(memory[16..32], [3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 9, 9, 9, 9]);
    }

    #[test]
    fn a_buffer_that_is_too_small_is_refused() {
        assert!(Canvas::new(&mut [0; 31], (3, 2), 4, 4, Format::Rgb).is_none());
        assert!(Canvas::new(&mut [0; 100], (5, 2), 4, 4, Format::Rgb).is_none());
        assert!(Canvas::new(&mut [0; 100], (2, 2), 2, 2, Format::Rgb).is_none());
        assert!(Canvas::new(&mut [0; 100], (2, 2), usize::MAX, 4, Format::Rgb).is_none());
    }
}
