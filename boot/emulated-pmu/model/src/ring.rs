//! Privilege as the PMU sees it: ring 0 (OS) and everything above (USR).

/// Where an instruction ran. PERFEVTSEL has one bit for CPL 0 and one for CPL 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// CPL above 0; PERFEVTSEL.USR.
    User,
    /// CPL 0; PERFEVTSEL.OS.
    Kernel,
}

impl Ring {
    /// The ring of a CPL (0 to 3; anything above 0 is user).
    #[must_use]
    pub const fn of_cpl(cpl: u8) -> Self {
        if cpl == 0 { Self::Kernel } else { Self::User }
    }
}

/// A choice of rings: what a counter is told to count, or what a caller asks about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingMask {
    /// Ring 1 to 3 is in.
    pub user: bool,
    /// Ring 0 is in.
    pub kernel: bool,
}

impl RingMask {
    /// Neither ring: a counter that is stopped.
    pub const NONE: Self = Self::new(false, false);
    /// User only.
    pub const USER: Self = Self::new(true, false);
    /// Kernel only.
    pub const KERNEL: Self = Self::new(false, true);
    /// Both rings.
    pub const BOTH: Self = Self::new(true, true);

    pub(crate) const fn new(user: bool, kernel: bool) -> Self {
        Self { user, kernel }
    }

    /// What is in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self::new(self.user || other.user, self.kernel || other.kernel)
    }

    /// Whether `ring` is in.
    #[must_use]
    pub const fn contains(self, ring: Ring) -> bool {
        match ring {
            Ring::User => self.user,
            Ring::Kernel => self.kernel,
        }
    }

    /// Whether neither ring is in.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        !self.user && !self.kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cpl_0_is_the_kernel() {
        assert_eq!(Ring::of_cpl(0), Ring::Kernel);
        for cpl in 1..=3 {
            assert_eq!(Ring::of_cpl(cpl), Ring::User);
        }
    }

    #[test]
    fn mask_holds_what_it_names() {
        assert!(RingMask::USER.contains(Ring::User) && !RingMask::USER.contains(Ring::Kernel));
        assert!(RingMask::KERNEL.contains(Ring::Kernel) && !RingMask::KERNEL.contains(Ring::User));
        assert!(RingMask::BOTH.contains(Ring::User) && RingMask::BOTH.contains(Ring::Kernel));
        assert!(RingMask::NONE.is_empty() && !RingMask::USER.is_empty());
    }
}
