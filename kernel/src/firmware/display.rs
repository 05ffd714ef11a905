//! The screen, if the boot loader set one up.

use super::boot::Handed;
use arch::memory::layout;
use bootloader_api::info::{FrameBufferInfo, PixelFormat};
use kernel::screen::{
    Canvas, Failure, Format, Header, Status, draw_failure, draw_header, draw_running, draw_status,
};
use spin::Mutex;

/// The screen once more, for a firmware that failed.
static LAST: Mutex<Option<FrameBufferInfo>> = Mutex::new(None);

/// The screen.
pub struct Display {
    info: FrameBufferInfo,
}

impl Display {
    /// The screen that was handed over. `None` without one, or with pixels of an unknown form.
    pub fn open(handed: &Handed) -> Option<Self> {
        let (_, info) = handed.screen.filter(|_| handed.screen_mapped)?;
        let mut display = Self { info };
        display.canvas()?;
        *LAST.lock() = Some(info);
        Some(display)
    }

    /// The screen that was opened, taken from whoever draws on it.
    ///
    /// # Safety
    /// Nobody draws on it ever again.
    pub unsafe fn seize() -> Option<Self> {
        // Held only for a moment, when the screen is opened: if that is what failed, there is none.
        LAST.try_lock()?.map(|info| Self { info })
    }

    /// Draws what is known of a failure.
    pub fn failure(&mut self, failure: &Failure) {
        if let Some(mut canvas) = self.canvas() {
            let Ok(()) = draw_failure(&mut canvas, failure);
        }
    }

    /// Draws which item runs.
    pub fn running(&mut self, status: &Status) {
        if let Some(mut canvas) = self.canvas() {
            let Ok(()) = draw_running(&mut canvas, status);
        }
    }

    fn canvas(&mut self) -> Option<Canvas<'_>> {
        let info = &self.info;
        let format = match info.pixel_format {
            PixelFormat::Rgb => Format::Rgb,
            PixelFormat::Bgr => Format::Bgr,
            PixelFormat::U8 => Format::Grey,
            _ => return None,
        };
        // SAFETY: mapped there by `Handed::map_screen`; this is the only reference, borrowed from `self`.
        let memory =
            unsafe { core::slice::from_raw_parts_mut(layout::SCREEN as *mut u8, info.byte_len) };
        let size = (info.width as u32, info.height as u32);
        Canvas::new(memory, size, info.stride, info.bytes_per_pixel, format)
    }

    /// Clears the screen and draws what does not change.
    pub fn header(&mut self, header: &Header) {
        if let Some(mut canvas) = self.canvas() {
            let Ok(()) = draw_header(&mut canvas, header);
        }
    }

    /// Draws how far the run is.
    pub fn status(&mut self, status: &Status) {
        if let Some(mut canvas) = self.canvas() {
            let Ok(()) = draw_status(&mut canvas, status);
        }
    }
}
