//! The machine's graphics outputs.

use bootloader_api::info::{FrameBufferInfo, PixelFormat as Format};
use bootloader_boot_config::LevelFilter;
use bootloader_x86_64_common::{RawFrameBufferInfo, init_logger};
use core::slice;
use uefi::boot::{self, OpenProtocolAttributes, OpenProtocolParams, ScopedProtocol};
use uefi::proto::console::gop::{GraphicsOutput, PixelFormat};
use uefi::proto::{ProtocolPointer, unsafe_protocol};
use uefi::{Handle, table};
use uefi_loader::screen::{Order, Output, PIXEL_BYTES, Role, choose, order_of_masks};
use x86_64::PhysAddr;

/// By which the machine's firmware marks the devices that its console writes to (EDK II, `gEfiConsoleOutDeviceGuid`).
#[unsafe_protocol("d3b36f2c-d551-11d4-9a46-0090273fc14d")]
#[derive(Debug)]
struct ConsoleOutDevice(());

/// Opens a protocol without taking it from whoever has it: the console goes on.
fn open<P: ProtocolPointer + ?Sized>(handle: Handle) -> Option<ScopedProtocol<P>> {
    let agent = boot::image_handle();
    let parameters = OpenProtocolParams { handle, agent, controller: None };
    // SAFETY: nothing is connected or disconnected while it is open, and it is only read.
    unsafe { boot::open_protocol::<P>(parameters, OpenProtocolAttributes::GetProtocol) }.ok()
}

fn role(handle: Handle) -> Role {
    let console = table::system_table_raw().and_then(|table| {
        // SAFETY: the table is the machine's.
        let raw = unsafe { table.as_ref() }.stdout_handle;
        // SAFETY: it is a handle, or null.
        unsafe { Handle::from_ptr(raw) }
    });
    let agent = boot::image_handle();
    let parameters = OpenProtocolParams { handle, agent, controller: None };
    let is_device = boot::test_protocol::<ConsoleOutDevice>(parameters).unwrap_or(false);
    match (console == Some(handle), is_device) {
        (true, _) => Role::Console,
        (_, true) => Role::ConsoleDevice,
        _ => Role::Other,
    }
}

fn look(handle: Handle) -> Option<Output> {
    let mut output = open::<GraphicsOutput>(handle)?;
    let mode = output.current_mode_info();
    let order = match mode.pixel_format() {
        PixelFormat::Rgb => Some(Order::Rgb),
        PixelFormat::Bgr => Some(Order::Bgr),
        PixelFormat::Bitmask => {
            mode.pixel_bitmask().and_then(|mask| order_of_masks(mask.red, mask.green, mask.blue))
        }
        PixelFormat::BltOnly => None,
    };
    // There is no frame buffer to be asked for else.
    order?;
    let mut memory = output.frame_buffer();
    let (base, bytes) = (memory.as_mut_ptr() as u64, memory.size());
    let (width, height) = mode.resolution();
    Some(Output { role: role(handle), order, base, bytes, width, height, stride: mode.stride() })
}

/// The output to draw on. This program's own last words go there, too.
pub fn find() -> Option<RawFrameBufferInfo> {
    let handles = boot::find_handles::<GraphicsOutput>().unwrap_or_default();
    let output = choose(handles.into_iter().filter_map(look))?;
    let info = FrameBufferInfo {
        byte_len: output.bytes,
        width: output.width,
        height: output.height,
        pixel_format: if output.order == Some(Order::Rgb) { Format::Rgb } else { Format::Bgr },
        bytes_per_pixel: PIXEL_BYTES,
        stride: output.stride,
    };
    // SAFETY: the frame buffer is mapped one to one; what the console draws there in the meantime is overwritten.
    let pixels = unsafe { slice::from_raw_parts_mut(output.base as *mut u8, output.bytes) };
    // The serial line is the records'.
    init_logger(pixels, info, LevelFilter::Error, true, false);
    Some(RawFrameBufferInfo { addr: PhysAddr::new(output.base), info })
}
