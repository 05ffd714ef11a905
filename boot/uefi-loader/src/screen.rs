//! Which of several graphics outputs the firmware draws on.

/// The order of a pixel's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// Red first.
    Rgb,
    /// Blue first.
    Bgr,
}

/// The order that masks of red, green and blue state, if each is a byte.
#[must_use]
pub const fn order_of_masks(red: u32, green: u32, blue: u32) -> Option<Order> {
    match (red, green, blue) {
        (0xff, 0xff00, 0xff_0000) => Some(Order::Rgb),
        (0xff_0000, 0xff00, 0xff) => Some(Order::Bgr),
        _ => None,
    }
}

/// Whose output it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// Nothing is known of it.
    Other,
    /// A device that the console writes to.
    ConsoleDevice,
    /// The console itself.
    Console,
}

/// A graphics output with its present mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Output {
    /// Whose it is.
    pub role: Role,
    /// Of pixels in memory; `None`: no byte order that can be drawn in, or the output takes blocks only.
    pub order: Option<Order>,
    /// Physical address of the frame buffer.
    pub base: u64,
    /// Its bytes.
    pub bytes: usize,
    /// Pixels.
    pub width: usize,
    /// Lines.
    pub height: usize,
    /// Pixels from one line to the next.
    pub stride: usize,
}

/// Bytes of a pixel in all modes of UEFI that have a frame buffer.
pub const PIXEL_BYTES: usize = 4;
/// Four-level paging maps one to one below this address.
const TOP: u64 = 1 << 47;

impl Output {
    /// Whether all of the picture lies in memory.
    #[must_use]
    pub fn is_drawable(&self) -> bool {
        let needed = self.stride.checked_mul(self.height).and_then(|p| p.checked_mul(PIXEL_BYTES));
        let end = self.base.checked_add(self.bytes as u64);
        self.order.is_some()
            && self.base != 0
            && self.width > 0
            && self.height > 0
            && self.stride >= self.width
            && needed.is_some_and(|needed| needed <= self.bytes)
            && end.is_some_and(|end| end <= TOP)
    }
}

/// The output to draw on: the console's own, else one that the console writes to, else the first; each only if it can be drawn on.
#[must_use]
pub fn choose(outputs: impl Iterator<Item = Output>) -> Option<Output> {
    let drawable = outputs.filter(Output::is_drawable);
    // Of equals the first.
    drawable.reduce(|best, next| if next.role > best.role { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: Output = Output {
        role: Role::Other,
        order: Some(Order::Bgr),
        base: 0x8000_0000,
        bytes: 1280 * 800 * 4,
        width: 1280,
        height: 800,
        stride: 1280,
    };

    fn at(base: u64, role: Role) -> Output {
        Output { role, base, ..OUTPUT }
    }

    #[test]
    fn x3_of_several_outputs_the_consoles_is_drawn_on() {
        use Role::{Console, ConsoleDevice, Other};
        let chosen = |outputs: &[Output]| choose(outputs.iter().copied()).map(|one| one.base);
        let (first, second, third) = (at(1, Other), at(2, ConsoleDevice), at(3, Console));
        assert_eq!(chosen(&[first, second, third]), Some(3));
        assert_eq!(chosen(&[first, second, at(4, ConsoleDevice)]), Some(2), "the first of equals");
        assert_eq!(chosen(&[first, at(5, Other)]), Some(1));
        // The console's own may take blocks only: it stands for several devices then.
        let blocks = Output { order: None, base: 0, bytes: 0, ..third };
        assert_eq!(chosen(&[blocks, first, second]), Some(2));
        assert_eq!(chosen(&[blocks]), None);
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn x3_an_output_without_a_whole_picture_in_memory_is_not_drawn_on() {
        assert!(OUTPUT.is_drawable());
        for (why, output) in [
            ("blocks only", Output { order: None, ..OUTPUT }),
            ("no address", Output { base: 0, ..OUTPUT }),
            ("no screen", Output { width: 0, ..OUTPUT }),
            ("no lines", Output { height: 0, ..OUTPUT }),
            ("lines overlap", Output { stride: 1279, ..OUTPUT }),
            ("too small", Output { bytes: OUTPUT.bytes - 1, ..OUTPUT }),
            ("out of reach", Output { base: TOP - 4096, ..OUTPUT }),
            ("nonsense", Output { stride: usize::MAX, ..OUTPUT }),
            ("beyond the end", Output { base: u64::MAX, ..OUTPUT }),
        ] {
            assert!(!output.is_drawable(), "{why}");
        }
    }

    /// UEFI specification 12.9.2: the masks of formats that have names.
    #[test]
    fn x3_masks_of_whole_bytes_are_an_order() {
        assert_eq!(order_of_masks(0xff, 0xff00, 0xff_0000), Some(Order::Rgb));
        assert_eq!(order_of_masks(0xff_0000, 0xff00, 0xff), Some(Order::Bgr));
        assert_eq!(order_of_masks(0xf800, 0x7e0, 0x1f), None, "16 bits");
    }
}
