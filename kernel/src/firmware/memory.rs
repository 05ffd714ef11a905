//! The memory that an item asks for.

use super::per_cpu::{AllProcessors, BOOT};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::cpu;
use arch::memory::areas::{Kind, Size, Type};
use arch::memory::requested::Requested;
use arch::memory::{Frames, Space, cache, layout};
use arch::smp;
use arch::time::tsc;
use core::ops::Range;
use kernel::heartbeat::Beat;
use kernel::memory::{fill, note};
use protocol::job::control::{MemoryType, PageSize};
use protocol::job::memory::{HIGH, LOW, Memory};
use protocol::record::{Applied, Unit, Within};

const _: () = {
    assert!(layout::REQUESTED.start == LOW.start && layout::REQUESTED.end == LOW.end);
    assert!(layout::HIGH_REQUESTED.start == HIGH.start && layout::HIGH_REQUESTED.end == HIGH.end);
};

/// The pages that memory is asked for in.
pub fn size(page: PageSize) -> Size {
    match page {
        PageSize::Small => Size::Small4K,
        PageSize::Large => Size::Large2M,
        PageSize::Giant => Size::Giant1G,
    }
}

/// The memory type that is asked for.
pub fn memory_type(asked: MemoryType) -> Type {
    match asked {
        MemoryType::WriteBack => Type::WriteBack,
        MemoryType::WriteThrough => Type::WriteThrough,
        MemoryType::Uncacheable => Type::Uncacheable,
        MemoryType::WriteCombining => Type::WriteCombining,
    }
}

/// What the item that runs has.
#[derive(Default)]
pub struct Provided {
    pieces: Vec<Requested>,
    /// The other processors have it as well.
    shared: bool,
}

impl Provided {
    /// Takes, maps and fills what an item asks for. Ring 3 may use it if `user`.
    ///
    /// # Errors
    /// What cannot be had, in a sentence; then nothing is kept.
    pub fn provide(
        &mut self,
        asked: &[&Memory],
        user: bool,
        (space, frames): (&mut Space, &mut Frames),
        heart: &dyn Beat,
    ) -> Result<Vec<Applied>, String> {
        for memory in asked {
            if let Err(why) = self.one(memory, user, space, frames) {
                self.release(space, frames, None);
                return Err(format!("memory `{}`: {why}", memory.name));
            }
        }
        let total = asked.iter().map(|memory| memory.bytes).sum();
        let mut done = 0;
        let filled = asked.iter().zip(&mut self.pieces).map(|(memory, piece)| {
            // SAFETY: mapped above, and the item has not begun.
            let words = unsafe { piece.words_mut() };
            fill(words, memory, &mut |bytes| {
                let done = (done + bytes).min(total);
                heart.beat(tsc::now(), Within { unit: Unit::Bytes, done, total });
            });
            done += memory.bytes;
            let option = format!("memory={}", memory.name);
            Applied { option, applied: true, note: note(memory) }
        });
        Ok(filled.collect())
    }

    fn one(
        &mut self,
        memory: &Memory,
        user: bool,
        space: &mut Space,
        frames: &mut Frames,
    ) -> Result<(), String> {
        let giant = memory.page_size == PageSize::Giant;
        if giant && !cpu::features::has_giant_pages(&cpu::native()) {
            return Err("the processor has no pages of 1 GiB".to_string());
        }
        let kind =
            Kind { size: size(memory.page_size), memory: memory_type(memory.memory_type), user };
        let piece = Requested::take(frames, memory.at, memory.bytes, kind).map_err(|short| {
            let page = memory.page_size.name();
            format!(
                "{} bytes are asked for, in pages of {page}; the machine has {} left",
                short.asked, short.there
            )
        })?;
        let mapped = piece.map(space, frames);
        self.pieces.push(piece);
        mapped.map_err(|error| error.to_string())
    }

    /// Lets the other processors have it.
    ///
    /// # Errors
    /// Out of memory for their page tables.
    pub fn share(&mut self, processors: &AllProcessors, frames: &mut Frames) -> Result<(), String> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        self.shared = true;
        let mut done = Ok(());
        processors.each_space(|space| {
            for piece in &self.pieces {
                if done.is_ok() {
                    done = piece.map(space, frames);
                }
            }
        });
        done.map_err(|error| error.to_string())
    }

    /// Takes everything back.
    pub fn release(
        &mut self,
        space: &mut Space,
        frames: &mut Frames,
        processors: Option<&AllProcessors>,
    ) {
        if self.pieces.is_empty() {
            return;
        }
        let pieces = core::mem::take(&mut self.pieces);
        pieces.iter().for_each(|piece| piece.unmap(space, frames));
        // SAFETY: ring 0.
        unsafe { cache::flush_tlb() };
        if let Some(processors) = processors.filter(|_| core::mem::take(&mut self.shared)) {
            processors
                .each_space(|space| pieces.iter().for_each(|piece| piece.unmap(space, frames)));
            // SAFETY: ring 0.
            smp::on_all(|_| unsafe { cache::flush_tlb() }).expect(BOOT);
        }
        pieces.into_iter().for_each(|piece| piece.give_back(frames));
    }

    /// Where it is.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.pieces.iter().map(Requested::range).collect()
    }
}
