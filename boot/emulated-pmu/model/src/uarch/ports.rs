//! Execution ports: which micro-operations an instruction has, on which ports each can go, and on which it goes.
//!
//! Without a map an instruction is one micro-operation that goes nowhere. With one, as `ports=alu:0156/load:23/div:0+2*015`, an
//! instruction has those of its class ([`UopClass`]) and of its data accesses. In the order of the code each goes to the port of its
//! set that has had the fewest, the lowest one among equals. A port takes one micro-operation a cycle, the front end `issue`
//! instructions a cycle; the cycles of a block of code are those of whichever has the most to do. A block starts with idle ports. What
//! the micro-operations wait for is not modelled: no instruction waits for another.

use core::fmt;

use strum::{EnumCount, VariantArray};

/// Ports, named 0 to 9, A and B.
pub const PORTS: usize = 12;
/// Classes of instructions.
pub const CLASSES: usize = UopClass::ALL.len();
/// Most micro-operations of a class.
pub const MOST_UOPS: usize = 4;
/// Most instructions of the front end in a cycle.
pub(super) const MOST_ISSUE: u8 = 16;
/// Names of ports.
const NAMES: &[u8; PORTS] = b"0123456789AB";

/// What an instruction is to the ports. An instruction that computes is of one of the first eleven classes, and has a `load` for each
/// access that reads, a `sta` (address) and a `std` (data) for each that writes. A plain move to or from memory has these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
#[repr(u8)]
#[allow(missing_docs, reason = "crate `step` has the rule, instruction by instruction")]
pub enum UopClass {
    Alu,
    Shift,
    Mul,
    Div,
    Lea,
    Bit,
    Vec,
    Shuffle,
    Fp,
    Fdiv,
    Branch,
    Load,
    StoreAddress,
    StoreData,
}

impl UopClass {
    /// All of them, in the order of the discriminant.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// Its name in a map.
    #[must_use]
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; CLASSES] = [
            "alu", "shift", "mul", "div", "lea", "bit", "vec", "shuffle", "fp", "fdiv", "branch",
            "load", "sta", "std",
        ];
        NAMES[self as usize]
    }
}

/// Which micro-operations each class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMap {
    /// Sets of ports as bits, one for each micro-operation; 0: none.
    uops: [[u16; MOST_UOPS]; CLASSES],
    /// Instructions that the front end gives in a cycle; 0: any number.
    pub issue: u8,
}

/// What is wrong with one.
pub(super) const MAP: &str = "ports are CLASS:UOPS with / between classes, and UOPS is N*PORTS with + between them, as alu:0156/div:0+2*015; the classes are alu, shift, mul, div, lea, bit, vec, shuffle, fp, fdiv, branch, load, sta and std, the ports 0 to 9, A and B, and no class has more than 4";

impl PortMap {
    /// What is not given: ports 0, 1, 5 and 6 for integers, 0, 1 and 5 for vectors, 2 and 3 for loads, 2, 3 and 7 for addresses and
    /// 4 for data of stores. Its looks are those of Skylake, its figures are not.
    pub const DEFAULT: Self = {
        const fn one(ports: u16) -> [u16; MOST_UOPS] {
            [ports, 0, 0, 0]
        }
        Self {
            uops: [
                one(0x63),
                one(0x41),
                one(0x02),
                [0x01, 0x63, 0x63, 0],
                one(0x22),
                one(0x02),
                one(0x23),
                one(0x20),
                one(0x03),
                [0x01, 0x01, 0, 0],
                one(0x41),
                one(0x0c),
                one(0x8c),
                one(0x10),
            ],
            issue: 0,
        }
    };

    /// Reads one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut map = Self::DEFAULT;
        for part in text.split('/') {
            let (name, uops) = part.split_once(':')?;
            let class = UopClass::ALL.into_iter().find(|class| class.name() == name)?;
            let mut all = [0; MOST_UOPS];
            let mut used = 0;
            for uop in uops.split('+') {
                let (count, ports) = uop.split_once('*').unwrap_or(("1", uop));
                let ports = ports_of(ports)?;
                for _ in 0..count.parse::<u8>().ok().filter(|count| *count > 0)? {
                    *all.get_mut(used)? = ports;
                    used += 1;
                }
            }
            map.uops[class as usize] = all;
        }
        Some(map)
    }

    /// The micro-operations of a class, as the sets of their ports.
    pub fn uops(&self, class: UopClass) -> impl Iterator<Item = u16> + '_ {
        self.uops[class as usize].iter().copied().filter(|ports| *ports != 0)
    }

    /// As words, of which none is 0.
    pub(super) fn words(&self) -> [u64; CLASSES] {
        self.uops.map(|uops| {
            let place = (0..).step_by(16).zip(uops);
            place.fold(0, |word, (shift, ports)| word | u64::from(ports) << shift)
        })
    }

    /// The same from words; `None`: they are not map.
    pub(super) fn of_words(words: &[u64], issue: u8) -> Option<Self> {
        let mut map = Self { uops: [[0; MOST_UOPS]; CLASSES], issue };
        for (uops, word) in map.uops.iter_mut().zip(words) {
            for (index, ports) in uops.iter_mut().enumerate() {
                *ports = (word >> (16 * index)) as u16;
            }
        }
        let sound = |uops: &[u16; MOST_UOPS]| {
            let gap = uops.windows(2).any(|two| two[0] == 0 && two[1] != 0);
            uops[0] != 0 && !gap && uops.iter().all(|ports| *ports < 1 << PORTS)
        };
        let sound = issue <= MOST_ISSUE && map.uops.iter().all(sound);
        (words.len() == CLASSES && sound).then_some(map)
    }
}

fn ports_of(text: &str) -> Option<u16> {
    let bit = |name: u8| NAMES.iter().position(|one| *one == name).map(|port| 1 << port);
    let bits = text.bytes().try_fold(0, |bits, name| Some(bits | bit(name)?))?;
    (bits != 0).then_some(bits)
}

impl fmt::Display for PortMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, class) in UopClass::ALL.into_iter().enumerate() {
            write!(f, "{}{}:", if index > 0 { "/" } else { "" }, class.name())?;
            for (index, ports) in self.uops(class).enumerate() {
                f.write_str(if index > 0 { "+" } else { "" })?;
                for (port, name) in NAMES.iter().enumerate() {
                    if ports >> port & 1 != 0 {
                        write!(f, "{}", char::from(*name))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Gives the micro-operations of a block their ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLoads {
    taken: [u32; PORTS],
    instructions: u32,
    cycles: u32,
}

impl PortLoads {
    /// The next micro-operation, which can go to each of `ports`, not none: the port that it goes to.
    pub fn uop(&mut self, ports: u16) -> usize {
        let can = (0..PORTS).filter(|port| ports >> port & 1 != 0);
        let port = can.min_by_key(|port| self.taken[*port]).unwrap_or(0);
        self.taken[port] += 1;
        port
    }

    /// All of an instruction has its ports: the cycles that the block has become longer by.
    pub fn instruction(&mut self, issue: u8) -> u32 {
        self.instructions += 1;
        let most = self.taken.iter().copied().max().unwrap_or(0);
        let front = self.instructions.checked_next_multiple_of(u32::from(issue).max(1));
        let front = if issue == 0 { 0 } else { front.unwrap_or(0) / u32::from(issue) };
        let cycles = most.max(front);
        cycles - core::mem::replace(&mut self.cycles, cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_a_map_leads_back_by_text_and_by_words() {
        let map = PortMap::parse("alu:0156/div:0+2*015/load:23/fdiv:B").unwrap();
        assert_eq!(map.uops(UopClass::Div).collect::<Vec<_>>(), [1, 0x23, 0x23]);
        assert_eq!(map.uops(UopClass::Fdiv).collect::<Vec<_>>(), [0x800]);
        assert_eq!(map.uops(UopClass::Shift).collect::<Vec<_>>(), [0x41], "the default");
        for map in [map, PortMap::DEFAULT] {
            assert_eq!(PortMap::parse(&map.to_string()), Some(map));
            assert_eq!(PortMap::of_words(&map.words(), 0), Some(map));
        }
        let wrong = ["", "alu", "alu:", "alu:C", "alu:0*1", "alu:5*1", "x:1", "alu:1/", "alu:1+"];
        for wrong in wrong {
            assert_eq!(PortMap::parse(wrong), None, "{wrong}");
        }
        assert_eq!(PortMap::of_words(&[0; CLASSES], 0), None);
        assert_eq!(PortMap::of_words(&[0x1000; CLASSES], 0), None);
    }

    #[test]
    fn d2_each_goes_to_the_port_that_has_had_the_fewest() {
        let mut loads = PortLoads::default();
        let ports: Vec<_> = [0b11, 0b11, 0b01, 0b11, 0b110].map(|set| loads.uop(set)).into();
        assert_eq!(ports, [0, 1, 0, 1, 2]);
        assert_eq!((loads.instruction(0), loads.instruction(0)), (2, 0));
    }

    #[test]
    fn d2_the_front_end_gives_so_many_instructions_a_cycle() {
        let mut loads = PortLoads::default();
        let each: Vec<_> = (0..6).map(|_| loads.instruction(2)).collect();
        assert_eq!(each, [1, 0, 1, 0, 1, 0]);
    }
}
