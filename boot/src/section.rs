//! A further section in a UEFI program's file, which the firmware loads with the others ("PE Format", sections 3 and 4).

use anyhow::{Context, Result};
use object::LittleEndian as LE;
use object::pe::{self, IMAGE_DIRECTORY_ENTRY_DEBUG, ImageDosHeader, ImageNtHeaders64};
use object::read::pe::ImageNtHeaders;
use object::write::pe::{NtHeaders, Writer};

/// `program` with the section `name` of `content` after its own.
pub(crate) fn add(program: &[u8], name: [u8; 8], content: &[u8]) -> Result<Vec<u8>> {
    let dos = ImageDosHeader::parse(program).context("it is not a UEFI program")?;
    let mut at = dos.nt_headers_offset().into();
    let (nt, directories) = ImageNtHeaders64::parse(program, &mut at)?;
    let sections = nt.sections(program, at)?;
    let (file, optional) = (&nt.file_header, &nt.optional_header);
    let mut out = Vec::new();
    let alignment = (optional.section_alignment.get(LE), optional.file_alignment.get(LE));
    let mut writer = Writer::new(true, alignment.0, alignment.1, &mut out);
    writer.reserve_dos_header_and_stub();
    writer.reserve_nt_headers(directories.len());
    for (index, directory) in directories.iter().enumerate() {
        // Of all directories, only that one has places in the file, and they change.
        if index != IMAGE_DIRECTORY_ENTRY_DEBUG {
            let (address, bytes) = (directory.virtual_address.get(LE), directory.size.get(LE));
            writer.set_data_directory(index, address, bytes);
        }
    }
    writer.reserve_section_headers(u16::try_from(sections.len() + 1)?);
    let mut places = Vec::new();
    for section in sections.iter() {
        // Where the linker put it: its code refers to it.
        writer.reserve_virtual_until(section.virtual_address.get(LE));
        let data = section.pe_data(program)?;
        let kind = section.characteristics.get(LE);
        let bytes = section.virtual_size.get(LE);
        let range = writer.reserve_section(section.name, kind, bytes, data.len() as u32);
        places.push((range.file_offset, data));
    }
    let kind = pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ;
    let bytes = u32::try_from(content.len())?;
    let range = writer.reserve_section(name, kind, bytes, bytes);
    places.push((range.file_offset, content));
    writer.write_dos_header_and_stub()?;
    writer.write_nt_headers(NtHeaders {
        machine: file.machine.get(LE),
        time_date_stamp: file.time_date_stamp.get(LE),
        characteristics: file.characteristics.get(LE),
        major_linker_version: optional.major_linker_version,
        minor_linker_version: optional.minor_linker_version,
        address_of_entry_point: optional.address_of_entry_point.get(LE),
        image_base: optional.image_base.get(LE),
        major_operating_system_version: optional.major_operating_system_version.get(LE),
        minor_operating_system_version: optional.minor_operating_system_version.get(LE),
        major_image_version: optional.major_image_version.get(LE),
        minor_image_version: optional.minor_image_version.get(LE),
        major_subsystem_version: optional.major_subsystem_version.get(LE),
        minor_subsystem_version: optional.minor_subsystem_version.get(LE),
        subsystem: optional.subsystem.get(LE),
        dll_characteristics: optional.dll_characteristics.get(LE),
        size_of_stack_reserve: optional.size_of_stack_reserve.get(LE),
        size_of_stack_commit: optional.size_of_stack_commit.get(LE),
        size_of_heap_reserve: optional.size_of_heap_reserve.get(LE),
        size_of_heap_commit: optional.size_of_heap_commit.get(LE),
    });
    writer.write_section_headers();
    for (offset, data) in places {
        writer.write_section(offset, data);
    }
    Ok(out)
}
