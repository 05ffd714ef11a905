//! Who descends from whom, among the tasks that are there.

use alloc::vec;
use alloc::vec::Vec;

/// Parents of the tasks that are there. The children of one that is gone descend from its heir.
#[derive(Clone, Debug)]
pub struct Family {
    /// By task: whether it is there.
    there: Vec<bool>,
    parents: Vec<Option<u16>>,
}

impl Family {
    /// No task is there yet, of so many.
    #[must_use]
    pub fn new(tasks: u16) -> Self {
        let tasks = usize::from(tasks);
        Self { there: vec![false; tasks], parents: vec![None; tasks] }
    }

    /// A task has begun.
    pub fn created(&mut self, task: u16, parent: Option<u16>) {
        if let Some(there) = self.there.get_mut(usize::from(task)) {
            *there = true;
            self.parents[usize::from(task)] = parent;
        }
    }

    /// A task is gone, and its children are its heir's.
    pub fn gone(&mut self, task: u16, heir: Option<u16>) {
        if let Some(there) = self.there.get_mut(usize::from(task)) {
            *there = false;
        }
        for parent in self.parents.iter_mut().filter(|parent| **parent == Some(task)) {
            *parent = heir;
        }
    }

    /// The descendants of a task that are there.
    pub fn descendants(&self, of: u16) -> impl Iterator<Item = u16> + '_ {
        let all = (0..).zip(&self.there).filter(|(_, there)| **there);
        all.map(|(task, _)| task).filter(move |&task| self.descends(task, of))
    }

    fn descends(&self, task: u16, from: u16) -> bool {
        let parent = |task: u16| self.parents.get(usize::from(task)).copied().flatten();
        let mut ancestors = core::iter::successors(parent(task), |&task| parent(task));
        // A parent stands before its children, so this ends; a line that does not is cut off.
        ancestors.by_ref().take(self.parents.len()).any(|ancestor| ancestor == from)
    }
}

#[cfg(test)]
mod tests {
    use super::Family;
    use proptest::prelude::*;

    #[test]
    fn i8_children_of_one_that_is_gone_are_its_heirs() {
        let mut family = Family::new(4);
        for (task, parent) in [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(2))] {
            family.created(task, parent);
        }
        let of = |family: &Family, task| family.descendants(task).collect::<Vec<u16>>();
        assert_eq!((of(&family, 0), of(&family, 2)), (vec![1, 2, 3], vec![3]));
        family.gone(1, Some(0));
        assert_eq!((of(&family, 0), of(&family, 1)), (vec![2, 3], vec![]));
        family.gone(0, None);
        assert_eq!((of(&family, 0), of(&family, 2)), (vec![], vec![3]));
    }

    proptest! {
        /// Whoever goes when: the descendants are those that a walk over the first parents finds, past those that are gone.
        #[test]
        fn i8_descendants_are_found_past_those_that_are_gone(
            parents in prop::collection::vec(any::<prop::sample::Index>(), 1..10),
            going in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let tasks = parents.len();
            let parents: Vec<Option<u16>> = parents.iter().enumerate().map(|(task, index)| {
                // One in so many has none.
                let at = index.index(task + 1);
                (at < task).then_some(at as u16)
            }).collect();
            let mut family = Family::new(tasks as u16);
            for (task, &parent) in (0..).zip(&parents) {
                family.created(task, parent);
            }
            let mut there = vec![true; tasks];
            for index in going {
                let task = index.index(tasks);
                if std::mem::replace(&mut there[task], false) {
                    let mut heir = parents[task];
                    while let Some(gone) = heir.filter(|&heir| !there[usize::from(heir)]) {
                        heir = parents[usize::from(gone)];
                    }
                    family.gone(task as u16, heir);
                }
            }
            for of in 0..tasks as u16 {
                let expected: Vec<u16> = (0..tasks as u16).filter(|&task| {
                    let mut at = parents[usize::from(task)];
                    while let Some(parent) = at {
                        if parent == of {
                            return there[usize::from(task)] && there[usize::from(of)];
                        }
                        at = parents[usize::from(parent)];
                    }
                    false
                }).collect();
                if there[usize::from(of)] {
                    prop_assert_eq!(family.descendants(of).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}
