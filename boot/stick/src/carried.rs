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

    /// The fields of an image by which its volume is found.
    #[derive(Clone, Debug)]
    struct Fields {
        sections: u16,
        optional_header_bytes: u16,
        directories: u32,
        address: u32,
        bytes: u32,
    }

    /// Where the volume is in [`image`], and its length.
    const VOLUME_AT: u32 = 512;
    const VOLUME_BYTES: u32 = 40;
    const GOOD: Fields = Fields {
        sections: 2,
        optional_header_bytes: 240,
        directories: 16,
        address: VOLUME_AT,
        bytes: VOLUME_BYTES,
    };

    /// An image with a section of code and one of the volume, which is all sevens (PE format, "File Headers", "Section Table").
    fn image(fields: &Fields) -> Vec<u8> {
        const NEW_HEADER: usize = 64;
        const OPTIONAL: usize = NEW_HEADER + 24;
        const SECTIONS: usize = OPTIONAL + 240;
        let mut image = vec![0; VOLUME_AT as usize];
        image.extend([7; VOLUME_BYTES as usize]);
        image.extend([0; 60]);
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(60, &[NEW_HEADER as u8]);
        put(NEW_HEADER, b"PE\0\0");
        put(NEW_HEADER + 4, &0x8664_u16.to_le_bytes());
        put(NEW_HEADER + 6, &fields.sections.to_le_bytes());
        put(NEW_HEADER + 20, &fields.optional_header_bytes.to_le_bytes());
        put(OPTIONAL, &0x20b_u16.to_le_bytes());
        put(OPTIONAL + 108, &fields.directories.to_le_bytes());
        put(SECTIONS, b".text");
        put(SECTIONS + 40, &crate::VOLUME_SECTION);
        put(SECTIONS + 48, &fields.bytes.to_le_bytes());
        put(SECTIONS + 52, &fields.address.to_le_bytes());
        image
    }

    #[test]
    fn what_is_no_image_carries_nothing() {
        assert_eq!(volume(b""), None);
        assert_eq!(volume(&[0; 4096]), None);
    }

    #[test]
    fn the_volume_is_the_section_of_its_name_where_it_is_loaded() {
        let good = image(&GOOD);
        assert_eq!(volume(&good), Some(&[7; VOLUME_BYTES as usize][..]));
        // Neither the section, nor an image of 32 bits, nor all of the volume.
        assert_eq!(volume(&image(&Fields { sections: 1, ..GOOD })), None);
        let mut narrow = good.clone();
        narrow[88] = 0x0b;
        narrow[89] = 0x01;
        assert_eq!(volume(&narrow), None);
        assert_eq!(volume(&good[..(VOLUME_AT + VOLUME_BYTES) as usize - 1]), None);
    }

    /// A good value more often than another one.
    fn mostly<T: Clone + std::fmt::Debug + 'static>(
        good: T,
        any: impl Strategy<Value = T> + 'static,
    ) -> impl Strategy<Value = T> {
        prop_oneof![3 => Just(good), 1 => any]
    }

    proptest! {
        /// Whatever the fields say, and wherever the file ends: what is found is a part of it, of the length that is stated.
        #[test]
        fn no_image_makes_it_panic(
            sections in mostly(GOOD.sections, any::<u16>()),
            optional_header_bytes in mostly(GOOD.optional_header_bytes, any::<u16>()),
            directories in mostly(GOOD.directories, any::<u32>()),
            address in prop_oneof![0u32..700, any::<u32>()],
            bytes in prop_oneof![0u32..700, any::<u32>()],
            changes in prop::collection::vec((0usize..512, any::<u8>()), 0..3),
            end in prop::option::of(0usize..612),
        ) {
            let fields = Fields { sections, optional_header_bytes, directories, address, bytes };
            let mut image = image(&fields);
            for (at, to) in changes.iter().copied() {
                image[at] = to;
            }
            image.truncate(end.unwrap_or(image.len()));
            let seen = volume(&image);
            if changes.is_empty() && (sections, optional_header_bytes, directories) == (2, 240, 16) {
                let part = image.get(address as usize..address as usize + bytes as usize);
                prop_assert_eq!(seen, part.filter(|_| image.len() >= 408));
            }
        }
    }
}
