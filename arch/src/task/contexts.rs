//! The contexts of a run: those of one processor, or those that several hand to each other.

use super::Context;
use crate::smp::{Handover, Processor};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Contexts of tasks that move between processors. Each has a [`Handover`] of the same place, which says who may touch it.
pub struct MovingContexts(Box<[UnsafeCell<Context>]>);

// SAFETY: a context is touched by the processor that has its handover alone, as `run_moving`'s caller promises; the handover
// orders what one does before what the next one does.
unsafe impl Sync for MovingContexts {}

impl MovingContexts {
    /// Takes them over. No processor has one.
    #[must_use]
    pub fn new(contexts: Vec<Context>) -> Self {
        Self(contexts.into_iter().map(UnsafeCell::new).collect())
    }

    /// The contexts, when no processor runs tasks any more.
    #[must_use]
    pub fn into_inner(self) -> Vec<Context> {
        self.0.into_iter().map(UnsafeCell::into_inner).collect()
    }

    /// Of cells, so what it points to may be written.
    fn first(&self) -> NonNull<Context> {
        NonNull::from(&*self.0).cast()
    }
}

/// What a processor needs to take over a context.
struct Taker<'a> {
    handovers: &'a [Handover],
    processor: &'static Processor,
    /// The end of the stack of its handlers.
    stack: u64,
}

/// Contexts as one processor sees them.
pub(super) struct Contexts<'a> {
    first: NonNull<Context>,
    count: usize,
    /// How many of them no other processor takes over: all or none.
    stay: usize,
    taker: Option<Taker<'a>>,
    used: PhantomData<&'a mut [Context]>,
}

impl<'a> Contexts<'a> {
    /// They are this processor's alone.
    pub(super) fn own(
        contexts: &'a mut [Context],
        processor: &'static Processor,
        stack: u64,
    ) -> Self {
        for context in contexts.iter_mut() {
            context.belongs_to(processor, stack);
        }
        let (first, count) = (NonNull::from(&mut *contexts).cast(), contexts.len());
        Self { first, count, stay: count, taker: None, used: PhantomData }
    }

    /// They go from one processor to another.
    pub(super) fn moving(
        contexts: &'a MovingContexts,
        handovers: &'a [Handover],
        processor: &'static Processor,
        stack: u64,
    ) -> Self {
        let (first, count) = (contexts.first(), contexts.0.len().min(handovers.len()));
        let taker = Some(Taker { handovers, processor, stack });
        Self { first, count, stay: 0, taker, used: PhantomData }
    }

    /// Whether others may take one of these over.
    pub(super) fn move_away(&self) -> bool {
        self.taker.is_some()
    }

    /// Those at two places, if both are there and no other processor takes one over.
    #[inline(always)]
    pub(super) fn both_that_stay(&self, one: usize, other: usize) -> Option<(&Context, &Context)> {
        if one >= self.stay || other >= self.stay {
            return None;
        }
        // SAFETY: within the slice. This processor asks for those that it has: the running one, and the one that is to run.
        Some(unsafe { (self.first.add(one).as_ref(), self.first.add(other).as_ref()) })
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&Context> {
        // SAFETY: within the slice. This processor asks for those that it has: the running one, and the one that is to run.
        (place < self.count).then(|| unsafe { self.first.add(place).as_ref() })
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Context> {
        // SAFETY: as above.
        (place < self.count).then(|| unsafe { self.first.add(place).as_mut() })
    }

    /// This processor has taken the one at `place`, which another one may have had.
    pub(super) fn arrive(&mut self, place: usize) {
        let Some(Taker { processor, stack, .. }) = self.taker else { return };
        if let Some(context) = self.get_mut(place) {
            context.belongs_to(processor, stack);
        }
    }

    /// Nothing of the one at `place` is in this processor any more: the next one may take it.
    pub(super) fn leave(&self, place: usize) {
        let handovers = self.taker.as_ref().map(|taker| taker.handovers);
        if let Some(handover) = handovers.and_then(|all| all.get(place)) {
            handover.give_up();
        }
    }
}
