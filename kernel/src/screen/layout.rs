//! What stands where on the screen.

use super::Status;
use alloc::format;
use alloc::string::String;
use embedded_graphics::mono_font::ascii::FONT_10X20;
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::{DrawTarget, Drawable, Point, Primitive, Size};
use embedded_graphics::primitives::{PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Baseline, Text};
use protocol::record::Outcome;

/// What does not change during a run.
pub struct Header<'a> {
    /// Program and version.
    pub title: &'a str,
    /// Name of the job.
    pub job: &'a str,
    /// Lines about the machine.
    pub machine: &'a [String],
}

pub(super) const FONT: MonoFont = FONT_10X20;
pub(super) const LINE: i32 = 25;
pub(super) const MARGIN: i32 = 24;
/// Height of the band that tells how the run went.
pub(super) const BAND: u32 = 120;
pub(super) const BACKGROUND: Rgb888 = Rgb888::new(16, 18, 24);
const FAINT: Rgb888 = Rgb888::new(150, 155, 165);
const RUNNING: Rgb888 = Rgb888::new(40, 80, 160);
const GREEN: Rgb888 = Rgb888::new(20, 130, 50);
pub(super) const RED: Rgb888 = Rgb888::new(180, 30, 30);
const GREY: Rgb888 = Rgb888::new(90, 90, 90);

/// Lines between the band and the machine's description: counts, bar, the item that runs, error.
const STATUS_LINES: i32 = 5;
/// The line that names the item that runs.
const RUNNING_LINE: i32 = 2;

pub(super) fn text<D: DrawTarget<Color = Rgb888>>(
    target: &mut D,
    line: i32,
    color: Rgb888,
    content: &str,
) -> Result<(), D::Error> {
    let at = Point::new(MARGIN, BAND as i32 + MARGIN + line * LINE);
    let style = MonoTextStyle::new(&FONT, color);
    Text::with_baseline(content, at, style, Baseline::Top).draw(target)?;
    Ok(())
}

/// As many characters as fit on a line.
pub(super) fn cut<D: DrawTarget>(target: &D, content: &str) -> String {
    let width = target.bounding_box().size.width.saturating_sub(2 * MARGIN as u32);
    content.chars().take((width / FONT.character_size.width) as usize).collect()
}

/// Clears the screen and draws what does not change.
///
/// # Errors
/// Those of the target.
pub fn draw_header<D>(target: &mut D, header: &Header) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    target.clear(BACKGROUND)?;
    let first = STATUS_LINES + 1;
    text(target, first, RgbColor::WHITE, header.title)?;
    text(target, first + 1, FAINT, &cut(target, &format!("job: {}", header.job)))?;
    for (line, content) in (first + 2..).zip(header.machine) {
        text(target, line, FAINT, &cut(target, content))?;
    }
    Ok(())
}

/// Draws how far the run is, over what stood there.
///
/// # Errors
/// Those of the target.
pub fn draw_status<D>(target: &mut D, status: &Status) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    let (color, word) = match status.outcome {
        None if status.failed > 0 => (RED, "RUNNING, with failures"),
        None => (RUNNING, "RUNNING"),
        Some(Outcome::Pass) => (GREEN, "PASS"),
        Some(Outcome::Fail) => (RED, "FAIL"),
        Some(Outcome::BadJob) => (RED, "NO USABLE JOB"),
        Some(Outcome::Crash) => (RED, "THE FIRMWARE FAILED"),
        Some(Outcome::Skip) => (GREY, "NOTHING TO RUN"),
    };
    let width = target.bounding_box().size.width;
    let lines = Rectangle::new(
        Point::new(0, BAND as i32),
        Size::new(width, (MARGIN + STATUS_LINES * LINE) as u32),
    );
    target.fill_solid(&Rectangle::new(Point::zero(), Size::new(width, BAND)), color)?;
    target.fill_solid(&lines, BACKGROUND)?;
    band(target, word, status.unkept.as_deref())?;
    let counts = format!(
        "{} of {} items: {} passed, {} failed, {} measured",
        status.done, status.total, status.passed, status.failed, status.measured
    );
    text(target, 0, RgbColor::WHITE, &cut(target, &counts))?;
    bar(target, status, color)?;
    if let Some(error) = &status.last_error {
        text(target, 3, RgbColor::WHITE, &cut(target, &format!("last error: {error}")))?;
    }
    draw_running(target, status)
}

/// What stands on the band: `word`, and below it why nothing but the screen will tell.
pub(super) fn band<D>(target: &mut D, word: &str, unkept: Option<&str>) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    let middle = (BAND - FONT.character_size.height) as i32 / 2;
    let style = MonoTextStyle::new(&FONT, RgbColor::WHITE);
    let mut put = |content: &str, y: i32| {
        let at = Point::new(MARGIN, y);
        Text::with_baseline(content, at, style, Baseline::Top).draw(target).map(|_| ())
    };
    match unkept {
        None => put(word, middle),
        Some(reason) => {
            put(word, middle - LINE)?;
            put("NO SERIAL LINE: this report is kept nowhere but on this screen", middle)?;
            put(reason, middle + LINE)
        }
    }
}

/// Draws which item runs, over what stood there. Little enough to be done before every item.
///
/// # Errors
/// Those of the target.
pub fn draw_running<D>(target: &mut D, status: &Status) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    let width = target.bounding_box().size.width;
    let top = BAND as i32 + MARGIN + RUNNING_LINE * LINE;
    let line = Rectangle::new(Point::new(0, top), Size::new(width, LINE as u32));
    target.fill_solid(&line, BACKGROUND)?;
    let Some(name) = &status.running else { return Ok(()) };
    let content = format!("running item {} of {}: {name}", status.done + 1, status.total);
    text(target, RUNNING_LINE, RgbColor::WHITE, &cut(target, &content))
}

fn bar<D>(target: &mut D, status: &Status, color: Rgb888) -> Result<(), D::Error>
where
    D: DrawTarget<Color = Rgb888>,
{
    let whole = target.bounding_box().size.width.saturating_sub(2 * MARGIN as u32);
    let done = u64::from(whole) * u64::from(status.done) / u64::from(status.total.max(1));
    let at = Point::new(MARGIN, BAND as i32 + MARGIN + LINE);
    let frame = PrimitiveStyle::with_stroke(FAINT, 1);
    target.fill_solid(&Rectangle::new(at, Size::new(done as u32, 12)), color)?;
    Rectangle::new(at, Size::new(whole, 12)).into_styled(frame).draw(target)
}

#[cfg(test)]
mod tests {
    use super::super::{Canvas, Format};
    use super::*;

    fn first_pixel(status: &Status, size: (u32, u32)) -> [u8; 3] {
        let mut memory = vec![0; (size.0 * size.1 * 4) as usize];
        let mut canvas = Canvas::new(&mut memory, size, size.0 as usize, 4, Format::Rgb).unwrap();
        let machine = ["a processor".to_string()];
        let header = Header { title: "barecount", job: "j", machine: &machine };
        draw_header(&mut canvas, &header).unwrap();
        draw_status(&mut canvas, status).unwrap();
        [memory[0], memory[1], memory[2]]
    }

    #[test]
    fn the_band_tells_pass_fail_and_running_apart() {
        let with = |outcome| Status { outcome, ..Status::default() };
        assert_eq!(first_pixel(&with(Some(Outcome::Pass)), (800, 600)), [20, 130, 50]);
        assert_eq!(first_pixel(&with(Some(Outcome::Fail)), (800, 600)), [180, 30, 30]);
        assert_eq!(first_pixel(&with(None), (800, 600)), [40, 80, 160]);
    }

    /// Rows of pixels of a picture that differ between two screens.
    fn rows_that_differ(one: &Status, other: &Status) -> Vec<u32> {
        let draw = |status: &Status| {
            let mut memory = vec![0; 640 * 480 * 4];
            let mut canvas = Canvas::new(&mut memory, (640, 480), 640, 4, Format::Rgb).unwrap();
            draw_status(&mut canvas, &Status { running: None, ..status.clone() }).unwrap();
            draw_running(&mut canvas, status).unwrap();
            memory
        };
        let (one, other) = (draw(one), draw(other));
        let row = |memory: &[u8], y: usize| memory[y * 640 * 4..(y + 1) * 640 * 4].to_vec();
        (0..480).filter(|&y| row(&one, y as usize) != row(&other, y as usize)).collect()
    }

    #[test]
    fn the_item_that_runs_has_a_line_of_its_own_and_leaves_no_trace() {
        let running = |name: &str| Status { running: Some(name.into()), ..Status::default() };
        let line = BAND + MARGIN as u32 + (RUNNING_LINE * LINE) as u32;
        let rows = rows_that_differ(&running("a rather long name"), &Status::default());
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| (line..line + LINE as u32).contains(row)), "{rows:?}");
        let mut memory = vec![0; 640 * 480 * 4];
        let mut canvas = Canvas::new(&mut memory, (640, 480), 640, 4, Format::Rgb).unwrap();
        draw_status(&mut canvas, &Status::default()).unwrap();
        for status in [running("a rather long name"), Status::default()] {
            draw_running(&mut canvas, &status).unwrap();
        }
        let behind = memory.clone();
        let mut canvas = Canvas::new(&mut memory, (640, 480), 640, 4, Format::Rgb).unwrap();
        draw_status(&mut canvas, &Status::default()).unwrap();
        assert!(memory == behind);
    }

    #[test]
    fn a_report_that_is_not_kept_is_said_on_the_band() {
        let unkept = Status { unkept: Some("no UART answers".into()), ..Status::default() };
        let rows = rows_that_differ(&unkept, &Status::default());
        assert!(!rows.is_empty() && rows.iter().all(|&row| row < BAND), "{rows:?}");
    }

    #[test]
    fn a_tiny_screen_does_no_harm() {
        let status = Status { last_error: Some("x".repeat(500)), ..Status::default() };
        for size in [(1, 1), (20, 10), (320, 200)] {
            first_pixel(&status, size);
        }
    }
}
