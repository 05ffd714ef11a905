//! Frames of faults that say "resume without" (RFLAGS.RF) and lead back to an instruction on which the hypervisor has a
//! breakpoint: the IRET that takes them must be seen, and the instruction be stepped.

/// Frames that are remembered: faults within handlers of faults.
const FRAMES: usize = 8;
/// IRETs after which frames that nobody came back to are forgotten: their task may have ended.
const PATIENCE: u32 = 1 << 16;

/// The addresses to which such frames lead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Returns {
    list: [u64; FRAMES],
    count: usize,
    patience: u32,
}

impl Returns {
    /// Whether IRETs must be seen.
    #[must_use]
    pub const fn are_awaited(&self) -> bool {
        self.count > 0
    }

    /// A fault at `rip` is being delivered. The oldest frame is forgotten for it if there are too many.
    pub fn expect(&mut self, rip: u64) {
        if self.count == FRAMES {
            self.list.rotate_left(1);
            self.count -= 1;
        }
        self.list[self.count] = rip;
        self.count += 1;
        self.patience = PATIENCE;
    }

    /// An IRET led to `rip`.
    pub fn happened(&mut self, rip: u64) {
        let list = &mut self.list[..self.count];
        if let Some(place) = list.iter().rposition(|&awaited| awaited == rip) {
            list[place..].rotate_left(1);
            self.count -= 1;
        }
        self.patience = self.patience.saturating_sub(1);
        if self.patience == 0 {
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_awaited_once() {
        let mut returns = Returns::default();
        assert!(!returns.are_awaited());
        for rip in [1, 2, 1] {
            returns.expect(rip);
        }
        for rip in [1, 7, 2] {
            returns.happened(rip);
            assert!(returns.are_awaited(), "behind {rip}");
        }
        returns.happened(1);
        assert!(!returns.are_awaited());
    }

    #[test]
    fn the_oldest_gives_way_and_what_never_comes_is_forgotten() {
        let mut returns = Returns::default();
        (0..=FRAMES as u64).for_each(|rip| returns.expect(rip));
        (1..=FRAMES as u64).for_each(|rip| returns.happened(rip));
        assert!(!returns.are_awaited());
        returns.expect(5);
        (1..PATIENCE).for_each(|_| returns.happened(9));
        assert!(returns.are_awaited());
        returns.happened(9);
        assert!(!returns.are_awaited());
    }
}
