//! The volume that the application carries within its own file when a boot server gives it out: a section of its image.

use object::LittleEndian as LE;
use object::pe::{ImageDosHeader, ImageNtHeaders64};
use object::read::pe::ImageNtHeaders;

/// The volume in `image`, the application as the firmware has loaded it; `None` if it carries none.
#[must_use]
pub fn volume(image: &[u8]) -> Option<&[u8]> {
    let dos = ImageDosHeader::parse(image).ok()?;
    let mut at = dos.nt_headers_offset().into();
    let (headers, _) = ImageNtHeaders64::parse(image, &mut at).ok()?;
    let sections = headers.sections(image, at).ok()?;
    let section = sections.iter().find(|section| section.name == crate::VOLUME_SECTION)?;
    let start = section.virtual_address.get(LE) as usize;
    image.get(start..start.checked_add(section.virtual_size.get(LE) as usize)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_image_carries_nothing() {
        assert_eq!(volume(b""), None);
        assert_eq!(volume(&[0; 4096]), None);
    }

    proptest! {
        #[test]
        fn no_image_makes_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 64..600), at: u8) {
            bytes[..2].copy_from_slice(b"MZ");
            bytes[60..64].copy_from_slice(&[at, 0, 0, 0]);
            let _ = volume(&bytes);
        }
    }
}
