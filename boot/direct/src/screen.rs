//! The frame buffer, if the multiboot loader set one up.

use bootloader_api::info::{FrameBufferInfo, PixelFormat};
use bootloader_x86_64_common::RawFrameBufferInfo;
use multiboot::information::{ColorInfoType, Multiboot};
use x86_64::PhysAddr;

/// Reads the frame buffer's place and form. Palettes and text modes count as none.
pub fn find(information: &Multiboot) -> Option<RawFrameBufferInfo> {
    let table = information.framebuffer_table()?;
    let Some(ColorInfoType::Rgb(color)) = table.color_info() else {
        return None;
    };
    let pixel_format = match (color.red_field_position, color.blue_field_position) {
        (0, 16) => PixelFormat::Rgb,
        (16, 0) => PixelFormat::Bgr,
        _ => return None,
    };
    let bytes_per_pixel = usize::from(table.bpp.div_ceil(8));
    // Lines are drawn a whole number of pixels apart.
    if bytes_per_pixel < 3 || !(table.pitch as usize).is_multiple_of(bytes_per_pixel) {
        return None;
    }
    let info = FrameBufferInfo {
        byte_len: table.pitch as usize * table.height as usize,
        width: table.width as usize,
        height: table.height as usize,
        pixel_format,
        bytes_per_pixel,
        stride: table.pitch as usize / bytes_per_pixel,
    };
    Some(RawFrameBufferInfo { addr: PhysAddr::new(table.addr), info })
}
