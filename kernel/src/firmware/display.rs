//! The screen, if the boot loader set one up.

use super::boot::Handed;
use arch::memory::layout;
use arch::time::tsc;
use bootloader_api::info::{FrameBufferInfo, PixelFormat};
use core::hint::spin_loop;
use kernel::screen::{
    Canvas, Failure, Format, Header, Screen, Status, Ways, draw_failure, draw_step,
};
use protocol::record::{End, Record};
use spin::Mutex;

/// The screen once more, for a firmware that failed.
static LAST: Mutex<Option<FrameBufferInfo>> = Mutex::new(None);

/// Program and version.
pub const TITLE: &str = concat!("barecount ", env!("CARGO_PKG_VERSION"));

/// How long a page stands, in milliseconds: long enough to read ten lines, or to take a photograph.
const PAGE_MS: u64 = 6000;

/// The screen.
pub struct Display {
    info: FrameBufferInfo,
    screen: Screen,
}

impl Display {
    /// The screen that was handed over. `None` without one, or with pixels of an unknown form.
    pub fn open(handed: &Handed) -> Option<Self> {
        let (_, info) = handed.screen.filter(|_| handed.screen_mapped)?;
        canvas(&info)?;
        *LAST.lock() = Some(info);
        Some(Self { info, screen: Screen::default() })
    }

    /// Keeps the screen as soon as it is mapped, for a failure before it is opened.
    pub fn keep(handed: &Handed) {
        let mapped = handed.screen.filter(|_| handed.screen_mapped);
        *LAST.lock() = mapped.map(|(_, info)| info).filter(|info| canvas(info).is_some());
    }

    /// Draws what the firmware does now, and may hang in: nothing else is known of the machine yet. After the memory type of the
    /// screen was set.
    pub fn step(doing: &str) {
        let info = LAST.try_lock().and_then(|last| *last);
        if let Some(mut canvas) = info.as_ref().and_then(canvas) {
            draw_step(&mut canvas, TITLE, doing);
        }
    }

    /// The screen that was opened, taken from whoever draws on it.
    ///
    /// # Safety
    /// Nobody draws on it ever again.
    pub unsafe fn seize() -> Option<Self> {
        // Held only for a moment, when the screen is opened: if that is what failed, there is none.
        LAST.try_lock()?.map(|info| Self { info, screen: Screen::default() })
    }

    /// Draws what is known of a failure.
    pub fn failure(&mut self, failure: &Failure) {
        if let Some(mut canvas) = canvas(&self.info) {
            draw_failure(&mut canvas, failure);
        }
    }

    /// Draws which item runs.
    pub fn running(&mut self, status: &Status) {
        if let Some(mut canvas) = canvas(&self.info) {
            self.screen.announce(&mut canvas, status);
        }
    }

    /// Clears the screen and draws what does not change.
    pub fn header(&mut self, header: Header) {
        if let Some(mut canvas) = canvas(&self.info) {
            self.screen.begin(&mut canvas, header);
        }
    }

    /// Notes what an item came to.
    pub fn note(&mut self, record: &Record) {
        self.screen.note(record);
    }

    /// Draws how far the run is.
    pub fn status(&mut self, status: &Status) {
        if let Some(mut canvas) = canvas(&self.info) {
            self.screen.show(&mut canvas, status);
        }
    }

    /// The run has ended: sorts what came, and makes the codes.
    pub fn finish(&mut self, end: &End, ways: Ways) {
        self.screen.finish(end, ways);
    }

    /// Draws one page after the other, for ever. Returns if there is but one.
    pub fn page_for_ever(&mut self, tsc_hz: u64) {
        let Some(mut canvas) = canvas(&self.info) else { return };
        let pages = self.screen.pages(&mut canvas);
        for page in (0..pages).cycle() {
            self.screen.page(&mut canvas, page);
            if pages == 1 {
                return;
            }
            let begin = tsc::now();
            while tsc::now().wrapping_sub(begin) < tsc_hz / 1000 * PAGE_MS {
                spin_loop();
            }
        }
    }
}

fn canvas(info: &FrameBufferInfo) -> Option<Canvas<'static>> {
    let format = match info.pixel_format {
        PixelFormat::Rgb => Format::Rgb,
        PixelFormat::Bgr => Format::Bgr,
        PixelFormat::U8 => Format::Grey,
        _ => return None,
    };
    // SAFETY: mapped there by `Handed::map_screen`. Each caller holds the one display and lets go of the canvas before it returns;
    // a failure that takes the display from it never lets it go on.
    let memory =
        unsafe { core::slice::from_raw_parts_mut(layout::SCREEN as *mut u8, info.byte_len) };
    let size = (info.width as u32, info.height as u32);
    Canvas::new(memory, size, info.stride, info.bytes_per_pixel, format)
}
