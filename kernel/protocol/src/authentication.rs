//! Which lines the firmware wrote: a keyed code on each.
//!
//! The host tool makes a [`Key`] for each boot and hands it over in the ramdisk; the firmware takes it out of there before
//! any code of a job runs. Code of ring 3 can neither reach the serial port nor read the key. Code of ring 0 can read all
//! memory: against that code the key raises the effort and no more, see `docs/guide/trust.md`.

use core::fmt;
use siphasher::sip::SipHasher24;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Hexadecimal digits of a code.
pub(crate) const TAG_DIGITS: usize = 16;

/// The key of one boot.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// A key of these bytes, which should be random.
    #[must_use]
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, for the ramdisk.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The code of `covered`: SipHash-2-4 (Aumasson and Bernstein, 2012), 64 bits. It takes the same instructions
    /// whatever the key is, so that runs repeat exactly with a new key in each.
    #[must_use]
    pub fn tag(&self, covered: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(covered)
    }
}

impl fmt::Debug for Key {
    /// Without its bytes.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// `value` as `N` lower-case hexadecimal digits, in the same instructions for each value.
pub(crate) fn digits<const N: usize>(value: u64) -> [u8; N] {
    core::array::from_fn(|index| {
        b"0123456789abcdef"[(value >> (4 * (N - 1 - index)) & 0xf) as usize]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last vector of the authors' test program: the key 00 to 0f, and 63 bytes from 00 on.
    #[test]
    fn x1_the_code_is_siphash_2_4() {
        let key = Key::new(core::array::from_fn(|index| index as u8));
        let text: [u8; 63] = core::array::from_fn(|index| index as u8);
        assert_eq!(key.tag(&text), 0x958a_324c_eb06_4572);
        assert_eq!(alloc::format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn digits_are_those_of_the_formatter() {
        for value in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(digits::<16>(value), alloc::format!("{value:016x}").as_bytes());
        }
        assert_eq!(digits::<8>(0xab), *b"000000ab");
    }
}
