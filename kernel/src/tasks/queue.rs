//! The queue of tasks that are ready.

use alloc::boxed::Box;
use alloc::vec;

/// No task's number.
const NONE: u16 = u16::MAX;

/// Tasks that wait, the next one first: a list, as each is in it once at most.
#[derive(Debug)]
pub struct Queue {
    /// Of each task by its number: the one after it.
    behind: Box<[u16]>,
    first: u16,
    last: u16,
}

impl Queue {
    /// For tasks with numbers below `tasks`.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        Self { behind: vec![NONE; tasks].into(), first: NONE, last: NONE }
    }

    /// One more, as the last.
    #[inline]
    pub fn push_back(&mut self, task: u16) {
        if let Some(behind) = self.behind.get_mut(usize::from(task)) {
            *behind = NONE;
            let last = core::mem::replace(&mut self.last, task);
            match self.behind.get_mut(usize::from(last)) {
                Some(behind) => *behind = task,
                None => self.first = task,
            }
        }
    }

    /// One more, as the first.
    pub fn push_front(&mut self, task: u16) {
        if let Some(behind) = self.behind.get_mut(usize::from(task)) {
            *behind = self.first;
            self.first = task;
            if *behind == NONE {
                self.last = task;
            }
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<u16> {
        let first = self.first;
        self.first = *self.behind.get(usize::from(first))?;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(first)
    }

    /// Takes the first and puts `task` behind the last; if none waits, it is `task` itself.
    #[inline]
    pub fn rotate(&mut self, task: u16) -> u16 {
        let Some(behind) = self.behind.get_mut(usize::from(self.last)) else { return task };
        *behind = task;
        if let Some(behind) = self.behind.get_mut(usize::from(task)) {
            *behind = NONE;
        }
        // Behind the first is `task` now, if that was the last as well.
        let next = self.first;
        self.first = self.behind.get(usize::from(next)).copied().unwrap_or(task);
        self.last = task;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Whatever comes and goes, in the order of the library's own.
        #[test]
        fn t9_tasks_leave_the_queue_as_they_came(
            tasks in 1_u16..6, steps in prop::collection::vec((0..4, any::<u16>()), 0..100),
        ) {
            let (mut queue, mut expected) = (Queue::new(tasks.into()), VecDeque::new());
            for (step, task) in steps {
                let task = task % tasks;
                let waits = expected.contains(&task);
                match step {
                    0 if !waits => {
                        queue.push_back(task);
                        expected.push_back(task);
                    }
                    1 if !waits => {
                        queue.push_front(task);
                        expected.push_front(task);
                    }
                    2 if !waits => {
                        expected.push_back(task);
                        prop_assert_eq!(Some(queue.rotate(task)), expected.pop_front());
                    }
                    _ => prop_assert_eq!(queue.pop_front(), expected.pop_front()),
                }
            }
            while let Some(task) = expected.pop_front() {
                prop_assert_eq!(queue.pop_front(), Some(task));
            }
            prop_assert_eq!(queue.pop_front(), None);
        }
    }
}
