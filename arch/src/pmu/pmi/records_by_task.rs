//! Branch records of several tasks, kept apart at each switch.

use super::ControlBlock;
use super::service::Raw;
use crate::msr::Msr;
use crate::pmu::capabilities::LbrKind;
use crate::pmu::lbr::{self, Saved};
use core::convert::Infallible;

/// Nobody's records.
const NOBODY: u32 = u32::MAX;

/// The records of the tasks that do not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordsByTask {
    /// The task whose records are in the registers.
    owner: u32,
    places: *mut Saved,
    len: usize,
}

impl RecordsByTask {
    fn at(&mut self, task: u32) -> Option<&mut Saved> {
        let index = usize::try_from(task).ok().filter(|&index| index < self.len)?;
        // SAFETY: `keep_apart` took the places as a slice of this length. The block's holder promised that they live as long as
        // it is used, and one processor alone uses them.
        Some(unsafe { &mut *self.places.add(index) })
    }

    pub(super) fn clear(&mut self) {
        self.owner = NOBODY;
        for task in 0..self.len {
            if let Some(place) = self.at(task as u32) {
                *place = Saved::EMPTY;
            }
        }
    }

    fn switch(&mut self, kind: LbrKind, raw: &mut impl Raw, task: u32) -> Result<(), Infallible> {
        if let Some(place) = self.at(self.owner) {
            *place = lbr::save::<Infallible>(kind, &mut |msr: Msr| Ok(raw.rdmsr(msr.0)))?;
        }
        self.owner = task;
        let Some(saved) = self.at(task).copied() else {
            return lbr::empty(kind, &mut |msr: Msr, value| {
                raw.wrmsr(msr.0, value);
                Ok(())
            });
        };
        // One of the two closures at a time has the registers.
        let raw = core::cell::RefCell::new(raw);
        lbr::restore(
            kind,
            &saved,
            &mut |msr: Msr| Ok(raw.borrow_mut().rdmsr(msr.0)),
            &mut |msr: Msr, value| {
                raw.borrow_mut().wrmsr(msr.0, value);
                Ok(())
            },
        )
    }
}

impl ControlBlock {
    /// Keeps the records of tasks apart: each has its own back from its place, which has to outlive the block's use. Where there is
    /// no place they are emptied at a switch, as Linux does with all but stacks of calls.
    pub fn keep_apart(&mut self, places: &mut [Saved]) {
        let (len, places) = (places.len(), places.as_mut_ptr());
        let mut by_task = RecordsByTask { owner: NOBODY, places, len };
        by_task.clear();
        self.by_task = Some(by_task);
    }
}

/// The block's task continues, and branches are not recorded yet: the registers get its records.
#[inline]
pub(super) fn switch(block: &mut ControlBlock, raw: &mut impl Raw) {
    let (Some(edges), Some(mut by_task)) = (block.edges(), block.by_task) else { return };
    if by_task.owner != block.task {
        let Ok(()) = by_task.switch(edges.kind(), raw, block.task);
        block.by_task = Some(by_task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::pmi::{Edge, Edges};
    use std::collections::BTreeMap;

    /// Registers that hold what is written.
    struct Plain(BTreeMap<u32, u64>);

    impl Raw for Plain {
        fn rdmsr(&mut self, msr: u32) -> u64 {
            self.0.get(&msr).copied().unwrap_or(0)
        }
        fn wrmsr(&mut self, msr: u32, value: u64) {
            self.0.insert(msr, value);
        }
        fn unmask(&mut self) {}
        fn end(&mut self) {}
        fn tsc(&mut self) -> u64 {
            0
        }
    }

    /// Where AMD's newest record comes from (PPR, MSRC001_0300).
    const FROM: u32 = 0xc001_0300;

    #[test]
    fn t5_s2_a_block_that_starts_again_has_nobodys_records() {
        let (mut places, mut saved) = ([Edge::default(); 1], [Saved::EMPTY; 2]);
        let kind = LbrKind::AmdV2 { entries: 16 };
        let mut block = ControlBlock::EMPTY;
        block.count_edges(Edges::new(kind, (Msr(0x1d9), 1, 0), &mut places).unwrap());
        block.keep_apart(&mut saved);
        let mut raw = Plain(BTreeMap::new());
        let run = |block: &mut ControlBlock, task, raw: &mut Plain| {
            block.task = task;
            switch(block, raw);
            raw.0[&FROM]
        };
        assert_eq!(run(&mut block, 0, &mut raw), 0);
        raw.0.insert(FROM, 0x1000);
        assert_eq!(run(&mut block, 1, &mut raw), 0, "another task's");
        assert_eq!(run(&mut block, 0, &mut raw), 0x1000, "its own come back");
        assert_eq!(run(&mut block, 1, &mut raw), 0);
        block.clear();
        raw.0.insert(FROM, 0x2000);
        assert_eq!(run(&mut block, 1, &mut raw), 0, "what is in the registers is nobody's");
        assert_eq!(run(&mut block, 0, &mut raw), 0, "and no task has any");
    }
}
