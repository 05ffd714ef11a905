//! The firmware's own image in memory: which pages are code, which are data.

use object::LittleEndian as Little;
use object::elf::{FileHeader64, PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use x86_64::structures::paging::PageTableFlags;

/// One loadable segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// First byte, as a virtual address.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// Readable is implied.
    pub flags: PageTableFlags,
}

unsafe extern "C" {
    /// Made by the linker: the image's ELF header, which is its first byte in memory.
    static __ehdr_start: FileHeader64<Little>;
}

/// How much of the image's beginning is read: the header and its program headers.
const HEADERS_BYTES: usize = 4096;

/// Address of the image's first byte.
#[must_use]
pub fn base() -> u64 {
    (&raw const __ehdr_start) as u64
}

/// Addresses of the whole image.
#[must_use]
pub fn range() -> core::ops::Range<u64> {
    unsafe extern "C" {
        /// Made by the linker: the end of the last segment.
        static _end: u8;
    }
    base()..(&raw const _end) as u64
}

/// The image's segments, in the order of the program headers, then the part that is read-only but
/// for a loader: mapping them in this order lets the last one win.
///
/// # Safety
/// The ELF header must be in memory at its place, as boot loaders put it.
pub unsafe fn segments() -> impl Iterator<Item = Segment> {
    // SAFETY: the caller promises that the header is there; the page that it begins is mapped whole.
    let bytes = unsafe { core::slice::from_raw_parts(base() as *const u8, HEADERS_BYTES) };
    let headers = FileHeader64::<Little>::parse(bytes)
        .and_then(|header| header.program_headers(Little, bytes))
        .unwrap_or_default();
    let of_kind = |kind| headers.iter().filter(move |h| h.p_type(Little) == kind);
    of_kind(PT_LOAD).chain(of_kind(PT_GNU_RELRO)).map(segment)
}

/// The image lies where it was linked, so that the header's addresses are those in memory.
fn segment(header: &ProgramHeader64<Little>) -> Segment {
    let (kind, rights) = (header.p_type(Little), header.p_flags(Little).0);
    let mut flags = PageTableFlags::PRESENT | PageTableFlags::GLOBAL;
    if kind == PT_GNU_RELRO || rights & PF_X.0 == 0 {
        flags |= PageTableFlags::NO_EXECUTE;
    }
    if kind == PT_LOAD && rights & PF_W.0 != 0 {
        flags |= PageTableFlags::WRITABLE;
    }
    let start = header.p_vaddr(Little);
    Segment { start, end: start + header.p_memsz(Little), flags }
}
