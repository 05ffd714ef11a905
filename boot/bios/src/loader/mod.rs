//! The parts of the loader.

mod boot_sector;
mod buffer;
mod call;
mod console;
mod disk;
mod entry;
mod failure;
mod files;
mod memory;
mod screen;
mod start;

use bios::SECTOR;
use bios::fat::Volume;

/// Called by [`entry`] in long mode. `drive`: the BIOS's number of the disk.
extern "sysv64" fn main(drive: u8) -> ! {
    let mut disk = disk::Drive::new(drive);
    memory::enable_a20();
    let regions = memory::map();
    let mut sector = [0; SECTOR];
    bios::Disk::read(&mut disk, 0, &mut sector).unwrap_or_else(|error| panic!("{error}"));
    let first = bios::table::active(&sector).expect("the disk has no active partition");
    let mut volume = Volume::open(disk, first).unwrap_or_else(|error| panic!("{error}"));
    let files = files::load(&mut volume, regions);
    // Last, because nothing can be said on the text screen afterwards. On COM1 the report says whether there is a screen.
    let mode = screen::find();
    if mode.is_none() {
        console::show(format_args!(
            "barecount: the video BIOS has no usable graphics mode; the report goes only to COM1\n"
        ));
    }
    start::start(&files, regions, mode.filter(screen::set))
}
