//! A disk for the firmware that is a piece of memory, read only. The firmware's own driver makes a file system of it (UEFI
//! specification 13.9, EFI_BLOCK_IO_PROTOCOL). Its EFI_RAM_DISK_PROTOCOL would do the same, but came with 2.6 and is left out by many.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;
use uefi::proto::device_path::DevicePath;
use uefi::proto::device_path::build::{DevicePathBuilder, hardware};
use uefi::{Guid, Handle, Identify, Status, boot, guid};
use uefi_raw::Boolean;
use uefi_raw::protocol::block::{BlockIoMedia, BlockIoProtocol, Lba};

/// Of a FAT volume made by the image maker.
const BLOCK: usize = 512;
/// Names the disk in device paths; made for this purpose by chance.
const VENDOR: Guid = guid!("6f2f3c1c-5f0a-4d0b-9b7e-2a8d1c7be053");

#[repr(C)]
struct Disk {
    /// First, so that its address is the disk's.
    protocol: BlockIoProtocol,
    media: BlockIoMedia,
    content: &'static [u8],
}

/// Gives the firmware `content` as a disk without partitions; returns it with the firmware's drivers connected.
pub fn install(content: &'static [u8]) -> uefi::Result<Handle> {
    let media = BlockIoMedia {
        media_id: 0,
        removable_media: false.into(),
        media_present: true.into(),
        // A partition, as far as the driver of partitions is concerned: it has no table.
        logical_partition: true.into(),
        read_only: true.into(),
        write_caching: false.into(),
        block_size: BLOCK as u32,
        io_align: 0,
        last_block: (content.len() / BLOCK).saturating_sub(1) as Lba,
        lowest_aligned_lba: 0,
        logical_blocks_per_physical_block: 0,
        optimal_transfer_length_granularity: 0,
    };
    let protocol = BlockIoProtocol {
        revision: BlockIoProtocol::REVISION,
        media: core::ptr::null(),
        reset,
        read_blocks,
        write_blocks,
        flush_blocks,
    };
    // The firmware keeps both for as long as it is there.
    let disk = Box::leak(Box::new(Disk { protocol, media, content }));
    disk.protocol.media = &raw const disk.media;
    let mut path = Vec::new();
    let node = hardware::Vendor { vendor_guid: VENDOR, vendor_defined_data: &[] };
    let builder = DevicePathBuilder::with_vec(&mut path).push(&node);
    builder.and_then(DevicePathBuilder::finalize).map_err(|_| Status::INVALID_PARAMETER)?;
    let path: *const c_void = path.leak().as_ptr().cast();
    // SAFETY: a device path that stays where it is.
    let handle = unsafe { boot::install_protocol_interface(None, &DevicePath::GUID, path) }?;
    let interface: *const c_void = (&raw const *disk).cast();
    // SAFETY: begins with the protocol's table, and stays where it is.
    unsafe { boot::install_protocol_interface(Some(handle), &BlockIoProtocol::GUID, interface) }?;
    boot::connect_controller(handle, &[], None, true)?;
    Ok(handle)
}

unsafe extern "efiapi" fn reset(_: *mut BlockIoProtocol, _: Boolean) -> Status {
    Status::SUCCESS
}

unsafe extern "efiapi" fn read_blocks(
    this: *const BlockIoProtocol,
    media: u32,
    first: Lba,
    bytes: usize,
    to: *mut c_void,
) -> Status {
    // SAFETY: the firmware gives back what was installed, the first field of a `Disk`.
    let disk = unsafe { &*this.cast::<Disk>() };
    if media != disk.media.media_id {
        return Status::MEDIA_CHANGED;
    }
    if !bytes.is_multiple_of(BLOCK) {
        return Status::BAD_BUFFER_SIZE;
    }
    let start = usize::try_from(first).ok().and_then(|first| first.checked_mul(BLOCK));
    let end = start.and_then(|start| start.checked_add(bytes));
    let part = start.zip(end).and_then(|(start, end)| disk.content.get(start..end));
    let Some(part) = part else { return Status::INVALID_PARAMETER };
    // SAFETY: the caller's buffer has `bytes` bytes, and is its own.
    unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), to.cast(), bytes) };
    Status::SUCCESS
}

unsafe extern "efiapi" fn write_blocks(
    _: *mut BlockIoProtocol,
    _: u32,
    _: Lba,
    _: usize,
    _: *const c_void,
) -> Status {
    Status::WRITE_PROTECTED
}

unsafe extern "efiapi" fn flush_blocks(_: *mut BlockIoProtocol) -> Status {
    Status::SUCCESS
}
