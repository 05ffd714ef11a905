//! Which processor reads a register of energy, and whose energy it is: one register counts a whole package, so it is read once for all
//! processors in it.

use super::Domain;
use alloc::vec::Vec;

/// A register: a domain's, as one processor reads it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place {
    /// The domain.
    pub domain: Domain,
    /// The number of the processor that reads it.
    pub processor: u32,
}

impl From<Domain> for Place {
    /// As the boot processor reads it.
    fn from(domain: Domain) -> Self {
        Self { domain, processor: 0 }
    }
}

/// Where a processor is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Located {
    /// Its number.
    pub number: u32,
    /// Its core, which no core of another package has.
    pub core: u32,
    /// Its package.
    pub package: u32,
}

/// Processors that share a register.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shared {
    /// Who reads it: the boot processor if it shares it, else the first of them.
    pub reader: u32,
    /// Those that it was asked of.
    pub processors: Vec<u32>,
}

/// The registers that count a domain's energy of these processors, of the `members` among `all`; the boot processor is the first of
/// `all`. A register is of a package, but AMD's of cores is of one core (PPR, MSRC001_029A), and that of the platform is one for all
/// packages (SDM vol. 4, MSR_PLATFORM_ENERGY_COUNTER), which the boot processor's is taken to have.
#[must_use]
pub fn shared((domain, amd): (Domain, bool), all: &[Located], members: &[u32]) -> Vec<Shared> {
    let of = |one: &Located| match domain {
        Domain::Cores if amd => one.core,
        Domain::Platform => 0,
        _ => one.package,
    };
    let mut found: Vec<(u32, Shared)> = Vec::new();
    for member in members {
        let Some(one) = all.iter().find(|one| one.number == *member) else { continue };
        match found.iter_mut().find(|(part, _)| *part == of(one)) {
            Some((_, shared)) => shared.processors.push(one.number),
            None => {
                let boot = all.first().filter(|boot| of(boot) == of(one));
                let reader = boot.unwrap_or(one).number;
                found.push((of(one), Shared { reader, processors: Vec::from([one.number]) }));
            }
        }
    }
    found.into_iter().map(|(_, shared)| shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two cores with two threads each.
    fn machine() -> Vec<Located> {
        (0..8).map(|number| Located { number, core: number / 2, package: number / 4 }).collect()
    }

    fn told(domain: (Domain, bool), members: &[u32]) -> Vec<(u32, Vec<u32>)> {
        let all = shared(domain, &machine(), members).into_iter();
        all.map(|one| (one.reader, one.processors)).collect()
    }

    #[test]
    fn s4_a_register_is_read_once_for_all_processors_that_share_it() {
        let package = (Domain::Package, false);
        assert_eq!(told(package, &[0, 1, 2, 3]), [(0, vec![0, 1, 2, 3])]);
        // The boot processor reads it, though it has no part in it.
        assert_eq!(told(package, &[2, 3]), [(0, vec![2, 3])]);
        assert_eq!(told(package, &[1, 5, 6]), [(0, vec![1]), (5, vec![5, 6])]);
        assert_eq!(told((Domain::Package, true), &[1, 5]), [(0, vec![1]), (5, vec![5])]);
        assert_eq!(told((Domain::Cores, false), &[0, 2]), [(0, vec![0, 2])]);
        assert_eq!(told((Domain::Platform, false), &[1, 5]), [(0, vec![1, 5])]);
        // AMD's of cores is each core's own.
        assert_eq!(
            told((Domain::Cores, true), &[1, 2, 3, 6]),
            [(0, vec![1]), (2, vec![2, 3]), (6, vec![6])]
        );
        assert_eq!(told(package, &[9]), []);
    }
}
