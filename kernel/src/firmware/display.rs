//! The screen, if the boot loader set one up.

use super::boot::Handed;
use arch::memory::layout;
use bootloader_api::info::{FrameBufferInfo, PixelFormat};
use kernel::screen::{Canvas, Format, Header, Status, draw_header, draw_status};

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
        Some(display)
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
