//! The screen: VESA BIOS Extension core functions 3.0, 4.3 to 4.5.

use super::buffer;
use super::call::{Registers, bios};
use bios::video::{BLOCK_BYTES, Mode};
use multiboot::information::{ColorInfoRgb, ColorInfoType, FramebufferTable};

const VIDEO: u8 = 0x10;
const CONTROLLER: u32 = 0x4f00;
const MODE: u32 = 0x4f01;
const SET_MODE: u32 = 0x4f02;
/// AX of a call that succeeded.
const DONE: u32 = 0x004f;
/// Uses the linear frame buffer.
const LINEAR: u32 = 1 << 14;
const END_OF_LIST: u16 = 0xffff;
/// More modes than any BIOS has: a damaged list must end.
const MAX_MODES: usize = 512;
/// Where the information about a mode goes: after that about the controller, whose 512 bytes may hold the list.
const MODE_AT: usize = 1024;

fn call(eax: u32, ebx: u32, ecx: u32, offset: usize) -> bool {
    let (edi, es) = (offset as u32, buffer::SEGMENT);
    let registers = Registers { eax, ebx, ecx, edi, es, ..Registers::default() };
    // SAFETY: these calls write into the buffer, or set a mode.
    unsafe { bios(VIDEO, registers) }.eax & 0xffff == DONE
}

/// The mode to set, if there is one that can be drawn in.
pub fn find() -> Option<Mode> {
    // Asks for the information of VBE 2.0 and later.
    buffer::write(0, b"VBE2");
    if !call(CONTROLLER, 0, 0, 0) {
        return None;
    }
    let mut block = [0; 18];
    buffer::read(0, &mut block);
    let word = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    if &block[..4] != b"VESA" || word(4) < 0x200 {
        return None;
    }
    let list = usize::from(word(16)) * 16 + usize::from(word(14));
    let mut best: Option<Mode> = None;
    for at in 0..MAX_MODES {
        // SAFETY: a real-mode address, so below 1.1 MiB; mapped one to one.
        let number = unsafe { ((list + 2 * at) as *const u16).read_unaligned() };
        if number == END_OF_LIST {
            break;
        }
        buffer::write(MODE_AT, &[0; BLOCK_BYTES]);
        if !call(MODE, 0, number.into(), MODE_AT) {
            continue;
        }
        let mut block = [0; BLOCK_BYTES];
        buffer::read(MODE_AT, &mut block);
        if let Some(mode) = Mode::read(number, word(4), &block)
            && best.is_none_or(|best| mode.beats(&best))
        {
            best = Some(mode);
        }
    }
    best
}

/// Sets `mode`. Whether the BIOS did.
pub fn set(mode: &Mode) -> bool {
    call(SET_MODE, u32::from(mode.number) | LINEAR, 0, 0)
}

/// `mode` as a multiboot program is told of it.
pub fn table(mode: &Mode) -> FramebufferTable {
    let [red, green, blue] = mode.positions;
    let color = ColorInfoType::Rgb(ColorInfoRgb {
        red_field_position: red,
        red_mask_size: 8,
        green_field_position: green,
        green_mask_size: 8,
        blue_field_position: blue,
        blue_mask_size: 8,
    });
    FramebufferTable::new(
        mode.address.into(),
        mode.pitch,
        mode.width,
        mode.height,
        mode.bits,
        color,
    )
}
