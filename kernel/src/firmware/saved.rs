//! The report, left where it survives a reset, for the UEFI application that saves it: see the crate `stick`.

use super::boot::Handed;
use super::heap;
use alloc::vec::Vec;
use arch::memory::{Space, cache, layout};
use protocol::job::OnEnd;
use spin::Mutex;
use stick::region::{self, After, Writer};
use stick::variables::{self, Index, OVERHEAD_BYTES, PART_BYTES};
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::PhysFrame;
use x86_64::{PhysAddr, VirtAddr};

/// The memory, and the way to the machine's firmware.
struct Saved {
    writer: Writer<'static>,
    /// Root of page tables that map memory one to one, besides everything of ours.
    identity: Option<PhysAddr>,
}

static SAVED: Mutex<Option<Saved>> = Mutex::new(None);

/// Takes the memory that was handed over for it, if there is some.
pub fn open(handed: &mut Handed, space: &mut Space) {
    let mut pieces = handed.may_be_kept.iter().flatten();
    let found =
        pieces.find_map(|piece| region::find(piece.start..piece.end, |at| Some(first_page(at))));
    let Some((at, bytes)) = found else { return };
    // SAFETY: the application reserved this memory for the report; the map of physical memory covers it, and nothing else
    // uses it.
    let region =
        unsafe { core::slice::from_raw_parts_mut((layout::PHYSICAL + at) as *mut u8, bytes) };
    let Some(writer) = Writer::open(region, write_back) else { return };
    let gib = writer.terms.mapped_gib;
    let is_asked = writer.terms.set_variable != 0 && gib != 0;
    let identity =
        (is_asked && arch::cpu::features::has_giant_pages(&arch::cpu::native())).then(|| {
            let mut identity = space.fork(&mut handed.frames, VirtAddr::new(0)).ok()?;
            identity.map_first_gib(&mut handed.frames, gib).ok()?;
            Some(identity.root())
        });
    *SAVED.lock() = Some(Saved { writer, identity: identity.flatten() });
}

/// The page at a physical address within a piece that the firmware's map has.
fn first_page(at: u64) -> &'static [u8] {
    let page = (layout::PHYSICAL + at) as *const u8;
    // SAFETY: the map of physical memory covers what lies below 4 GiB, and nothing here writes to memory of this type but
    // the writer of the report, which does not exist yet.
    unsafe { core::slice::from_raw_parts(page, region::HEADER_BYTES) }
}

/// Whether the report is kept.
pub fn is_on() -> bool {
    SAVED.lock().is_some()
}

/// Adds to the report.
pub fn push(bytes: &[u8]) {
    if let Some(saved) = &mut *SAVED.lock() {
        saved.writer.push(bytes);
    }
}

/// Notes which item runs, for whoever finds the report of a machine that was reset in it.
pub fn running(index: u32, name: &str) {
    if let Some(saved) = &mut *SAVED.lock() {
        saved.writer.running(index, name);
    }
}

fn write_back(bytes: &[u8]) {
    let range = bytes.as_ptr_range();
    // SAFETY: a slice is mapped, and every processor with 64-bit mode has CLFLUSH.
    unsafe { cache::flush(range.start as u64..range.end as u64) };
}

/// The report is out. Returns whether it is kept, and the machine is to be reset for it.
pub fn finish(on_end: OnEnd) -> bool {
    let Some(mut saved) = SAVED.lock().take() else { return false };
    let after = match on_end {
        OnEnd::Halt => After::Show,
        OnEnd::Reboot => After::Leave,
        OnEnd::PowerOff => After::PowerOff,
    };
    saved.writer.finish(after);
    if let Some(identity) = saved.identity.filter(|_| heap::is_usable() && saved.writer.is_whole())
    {
        let _ = Variables::of(&saved.writer, identity).save(&saved.writer, after);
    }
    // Further than the cache lines of the report: a reset drops what is in caches alone.
    // SAFETY: ring 0.
    unsafe { cache::write_back_all() };
    true
}

type SetVariable = extern "efiapi" fn(*const u16, *const [u8; 16], u32, usize, *const u8) -> usize;
type QueryVariableInfo = extern "efiapi" fn(u32, *mut u64, *mut u64, *mut u64) -> usize;

/// The two of the firmware's runtime services (UEFI specification 8.2) that this takes.
struct Variables {
    set: SetVariable,
    query: QueryVariableInfo,
    identity: PhysAddr,
}

impl Variables {
    fn of(writer: &Writer, identity: PhysAddr) -> Self {
        let terms = &writer.terms;
        // SAFETY: the application took both addresses from the table of runtime services; the region's checksum covers them.
        unsafe {
            Self {
                set: core::mem::transmute::<u64, SetVariable>(terms.set_variable),
                query: core::mem::transmute::<u64, QueryVariableInfo>(terms.query_variables),
                identity,
            }
        }
    }

    /// Runs `call` as the firmware wants to be called: memory mapped one to one.
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        x86_64::instructions::interrupts::disable();
        let (own, flags) = Cr3::read();
        // SAFETY: these tables have everything that is mapped now, too.
        unsafe { Cr3::write(PhysFrame::containing_address(self.identity), flags) };
        let answer = call();
        // SAFETY: the tables from before.
        unsafe { Cr3::write(own, flags) };
        answer
    }

    fn write(&self, name: &str, content: &[u8]) -> Option<()> {
        let name: Vec<u16> = name.encode_utf16().chain([0]).collect();
        let (bytes, at) = (content.len(), content.as_ptr());
        let set =
            || (self.set)(name.as_ptr(), &variables::VENDOR, variables::ATTRIBUTES, bytes, at);
        (self.call(set) == 0).then_some(())
    }

    /// Writes the report, if there is room for it: the index last. `None`: there is nothing of it.
    fn save(&self, writer: &Writer, after: After) -> Option<()> {
        let (mut all, mut left, mut most) = (0, 0, 0);
        let query =
            || (self.query)(variables::ATTRIBUTES, &raw mut all, &raw mut left, &raw mut most);
        (self.call(query) == 0).then_some(())?;
        let report = writer.report();
        let packed = variables::pack(report);
        let part = PART_BYTES.min((most as usize).checked_sub(OVERHEAD_BYTES)?);
        let index = Index::new(writer.terms.image, report, &packed, part, after)?;
        // Half of what is free stays free: firmware that runs out of room has been known not to start again.
        let needed = packed.len() + (index.parts as usize + 1) * OVERHEAD_BYTES;
        (part > 0 && needed <= left as usize / 2).then_some(())?;
        let mut parts = packed.chunks(part).enumerate();
        let written =
            parts.try_for_each(|(number, part)| self.write(&variables::part(number), part));
        let written = written.and_then(|()| self.write(variables::INDEX, &index.to_bytes()));
        if written.is_none() {
            for number in variables::to_delete(|number| number < index.parts as usize) {
                // Those that were not written are not there.
                let _ = self.write(&variables::part(number), &[]);
            }
        }
        written
    }
}
