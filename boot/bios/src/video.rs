//! Modes of the video BIOS: VESA BIOS Extension (VBE) core functions 3.0, 4.4, the mode's information block.

/// Bytes of the block.
pub const BLOCK_BYTES: usize = 256;
/// Largest picture that is chosen: the text does not get larger with it, and drawing takes time.
const MAX: (u32, u32) = (1280, 800);
/// Supported, in colour, graphics, with a linear frame buffer: bits 0, 3, 4 and 7 of the attributes.
const ATTRIBUTES: u16 = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 7;
/// Memory model of modes whose pixels hold red, green and blue.
const DIRECT_COLOUR: u8 = 6;

/// A mode with a linear frame buffer of 24 or 32 bits a pixel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mode {
    /// Its number.
    pub number: u16,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Bytes from one line to the next.
    pub pitch: u32,
    /// Bits of a pixel.
    pub bits: u8,
    /// First bit of red, green and blue.
    pub positions: [u8; 3],
    /// Physical address of the frame buffer.
    pub address: u32,
}

impl Mode {
    /// Reads the information block of mode `number`. `None` for a mode that cannot be drawn in. `version` is the VBE's:
    /// from 3.0 on linear modes have fields of their own.
    #[must_use]
    pub fn read(number: u16, version: u16, block: &[u8; BLOCK_BYTES]) -> Option<Self> {
        let word = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        let linear = version >= 0x300 && word(50) != 0;
        // Three pairs of size and position.
        let masks = if linear { &block[54..60] } else { &block[31..37] };
        let mode = Self {
            number,
            width: word(18).into(),
            height: word(20).into(),
            pitch: if linear { word(50) } else { word(16) }.into(),
            bits: block[25],
            positions: [masks[1], masks[3], masks[5]],
            address: u32::from_le_bytes([block[40], block[41], block[42], block[43]]),
        };
        let bytes_per_pixel = u32::from(mode.bits / 8);
        let usable = word(0) & ATTRIBUTES == ATTRIBUTES
            && block[27] == DIRECT_COLOUR
            && matches!(mode.bits, 24 | 32)
            && [masks[0], masks[2], masks[4]] == [8; 3]
            && matches!(mode.positions, [16, 8, 0] | [0, 8, 16])
            && mode.address != 0
            && mode.width > 0
            && mode.height > 0
            && mode.pitch >= mode.width * bytes_per_pixel
            // Lines are drawn a whole number of pixels apart.
            && mode.pitch.is_multiple_of(bytes_per_pixel);
        usable.then_some(mode)
    }

    /// Whether this mode is to be preferred to `other`: the larger one of those that are not too large, else the
    /// smaller; with 32 bits a pixel, where both have the same size, because those are drawn faster.
    #[must_use]
    pub fn beats(&self, other: &Self) -> bool {
        let fits = |mode: &Self| mode.width <= MAX.0 && mode.height <= MAX.1;
        let area = |mode: &Self| u64::from(mode.width) * u64::from(mode.height);
        match (fits(self), fits(other)) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => (area(self), self.bits) > (area(other), other.bits),
            (false, false) => area(self) < area(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(width: u16, height: u16, bits: u8) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[..2].copy_from_slice(&0x9bu16.to_le_bytes());
        block[16..18].copy_from_slice(&(width * u16::from(bits / 8)).to_le_bytes());
        block[18..20].copy_from_slice(&width.to_le_bytes());
        block[20..22].copy_from_slice(&height.to_le_bytes());
        (block[25], block[27]) = (bits, DIRECT_COLOUR);
        block[31..37].copy_from_slice(&[8, 16, 8, 8, 8, 0]);
        block[40..44].copy_from_slice(&0xfd00_0000u32.to_le_bytes());
        block
    }

    fn mode(width: u16, height: u16, bits: u8) -> Mode {
        Mode::read(1, 0x200, &block(width, height, bits)).unwrap()
    }

    #[test]
    fn the_linear_fields_count_from_vbe_3_on_where_they_are_filled_in() {
        let mut block = block(800, 600, 32);
        assert_eq!(Mode::read(7, 0x300, &block).unwrap().pitch, 3200);
        block[50..52].copy_from_slice(&4096u16.to_le_bytes());
        block[54..60].copy_from_slice(&[8, 0, 8, 8, 8, 16]);
        assert_eq!(Mode::read(7, 0x200, &block).unwrap().pitch, 3200);
        let mode = Mode::read(7, 0x300, &block).unwrap();
        assert_eq!((mode.pitch, mode.positions), (4096, [0, 8, 16]));
    }

    #[test]
    fn modes_that_cannot_be_drawn_in_are_none() {
        let changes: [(usize, u8); 6] = [(0, 0x1b), (27, 4), (25, 16), (31, 5), (32, 10), (43, 0)];
        for (at, value) in changes {
            let mut block = block(800, 600, 32);
            block[at] = value;
            assert_eq!(Mode::read(1, 0x300, &block), None, "byte {at} is {value}");
        }
        let mut narrow = block(800, 600, 32);
        narrow[16..18].copy_from_slice(&3199u16.to_le_bytes());
        assert_eq!(Mode::read(1, 0x300, &narrow), None);
        // Lines of 24 bits a pixel that begin at powers of two.
        let mut skewed = block(800, 600, 24);
        skewed[16..18].copy_from_slice(&4096u16.to_le_bytes());
        assert_eq!(Mode::read(1, 0x200, &skewed), None);
        skewed[16..18].copy_from_slice(&4098u16.to_le_bytes());
        assert!(Mode::read(1, 0x200, &skewed).is_some());
    }

    #[test]
    fn the_largest_that_is_not_too_large_wins_and_then_the_deeper() {
        let order = [
            mode(1280, 800, 32),
            mode(1280, 800, 24),
            mode(1024, 768, 32),
            mode(640, 480, 24),
            mode(1920, 1080, 24),
            mode(2560, 1600, 24),
        ];
        for (at, better) in order.iter().enumerate() {
            for worse in &order[at + 1..] {
                assert!(better.beats(worse) && !worse.beats(better), "{better:?} {worse:?}");
            }
        }
    }
}
