//! QEMU's monitor, for looking at the screen.

use embedded_graphics::Pixel;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::FONT_10X20;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{DrawTarget, Drawable, OriginDimensions, Point, Size};
use embedded_graphics::text::{Baseline, Text};
use kernel::screen::scale;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection to QEMU's monitor protocol.
pub struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Argument for QEMU that opens the monitor at `socket`.
    #[must_use]
    pub fn arguments(socket: &Path) -> Vec<String> {
        vec!["-qmp".into(), format!("unix:{},server=on,wait=off", socket.display())]
    }

    /// Connects, waiting until QEMU has opened the socket. `None` after `patience`.
    #[must_use]
    pub fn connect(socket: &Path, patience: Duration) -> Option<Self> {
        let start = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(socket) {
                stream.set_read_timeout(Some(patience)).ok()?;
                let mut monitor = Self { reader: BufReader::new(stream) };
                monitor.command(r#"{"execute":"qmp_capabilities"}"#)?;
                return Some(monitor);
            }
            if start.elapsed() > patience {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a command and waits for its answer; greetings and events are passed over.
    pub fn command(&mut self, json: &str) -> Option<String> {
        writeln!(self.reader.get_mut(), "{json}").ok()?;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with(r#"{"return""#) || line.starts_with(r#"{"error""#) {
                return Some(line);
            }
        }
    }

    /// The screen, if there is one.
    pub fn screen(&mut self, file: &Path) -> Option<Picture> {
        let command = format!(
            r#"{{"execute":"screendump","arguments":{{"filename":"{}"}}}}"#,
            file.display()
        );
        self.command(&command).filter(|answer| answer.starts_with(r#"{"return""#))?;
        Picture::parse(&std::fs::read(file).ok()?)
    }
}

/// Where the text screen lies, 80 by 25 characters of two bytes.
const TEXT_SCREEN: &str = "xp /2000hx 0xb8000";

impl Monitor {
    /// What stands on the text screen, line after line without its ends.
    pub fn text_screen(&mut self) -> Option<String> {
        let command = format!(
            r#"{{"execute":"human-monitor-command","arguments":{{"command-line":"{TEXT_SCREEN}"}}}}"#
        );
        let answer = self.command(&command)?;
        // Lines of an address, a colon and numbers: character and attribute.
        let numbers = answer.split(|c: char| c.is_whitespace() || c == '\\' || c == '"');
        let words =
            numbers.filter_map(|word| u16::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        Some(words.map(|word| char::from(word as u8)).collect())
    }

    /// Ends QEMU.
    pub fn quit(&mut self) {
        // There is no answer where it was quick.
        let _ = self.command(r#"{"execute":"quit"}"#);
    }
}

/// A picture in the portable pixmap format that QEMU writes.
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.splitn(4, u8::is_ascii_whitespace);
        if fields.next()? != b"P6" {
            return None;
        }
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
        let (width, height) = (number()?, number()?);
        let rest = fields.next()?;
        // The greatest value, one white space, then the pixels.
        let start = rest.iter().position(u8::is_ascii_whitespace)? + 1;
        let pixels = rest.get(start..)?.to_vec();
        (pixels.len() >= width * height * 3).then_some(Self { width, height, pixels })
    }

    /// Whether `text` stands somewhere on the firmware's screen, in its font, at its size or twice as large, in a bright colour.
    #[must_use]
    pub fn shows(&self, text: &str) -> bool {
        let scale = scale(self.width as u32, self.height as u32) as usize;
        [scale, 2 * scale].iter().any(|&factor| self.shows_at(text, scale, factor))
    }

    /// The same for one factor by which the font is enlarged. Columns begin half a character from the left.
    fn shows_at(&self, text: &str, scale: usize, factor: usize) -> bool {
        let expected = Glyphs::draw(text);
        let columns = (scale * FONT_WIDTH / 2..).step_by(scale * FONT_WIDTH);
        let columns = columns.take_while(|x| x + expected.width * factor <= self.width);
        let lines = (0..=self.height.saturating_sub(FONT_HEIGHT * factor)).step_by(scale);
        let mut places = columns.flat_map(|x| lines.clone().map(move |y| (x, y)));
        places.any(|(x, y)| {
            expected.lit.iter().enumerate().all(|(index, &lit)| {
                let (dx, dy) = (index % expected.width, index / expected.width);
                let pixel = self.pixel(x + dx * factor, y + dy * factor);
                pixel.iter().all(|&value| value >= BRIGHT) == lit
            })
        })
    }

    /// The picture as a file.
    #[must_use]
    pub fn ppm(&self) -> Vec<u8> {
        let header = format!("P6\n{} {}\n255\n", self.width, self.height);
        [header.as_bytes(), &self.pixels].concat()
    }

    /// Brightness of a pixel, for readers of codes.
    #[must_use]
    pub fn brightness(&self, x: usize, y: usize) -> u8 {
        self.pixel(x, y)[1]
    }

    /// Red, green and blue of a pixel.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        self.pixels[at..at + 3].try_into().expect("three bytes")
    }
}

const FONT_WIDTH: usize = FONT_10X20.character_size.width as usize;
const FONT_HEIGHT: usize = FONT_10X20.character_size.height as usize;
/// Least red, green and blue of text: no background has all three.
const BRIGHT: u8 = 100;

/// A line of text as it has to look.
struct Glyphs {
    width: usize,
    lit: Vec<bool>,
}

impl Glyphs {
    fn draw(text: &str) -> Self {
        let width = text.chars().count() * FONT_WIDTH;
        let mut glyphs = Self { width, lit: vec![false; width * FONT_HEIGHT] };
        let style = MonoTextStyle::new(&FONT_10X20, BinaryColor::On);
        let text = Text::with_baseline(text, Point::zero(), style, Baseline::Top);
        let Ok(_) = text.draw(&mut glyphs);
        glyphs
    }
}

impl OriginDimensions for Glyphs {
    fn size(&self) -> Size {
        Size::new(self.width as u32, FONT_HEIGHT as u32)
    }
}

impl DrawTarget for Glyphs {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<BinaryColor>>,
    {
        for Pixel(Point { x, y }, color) in pixels {
            self.lit[y as usize * self.width + x as usize] = color.is_on();
        }
        Ok(())
    }
}
