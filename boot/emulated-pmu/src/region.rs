//! Following code within a page.
//!
//! In a page with more string instructions than there are breakpoints, not every one can be watched. But from where the
//! guest stands, only part of the page can be reached without going through another page, a return, or an indirect jump.
//! If that part has few enough of such ends, and of string instructions, breakpoints on these are enough, as long as no
//! other page may be executed.

use crate::step::{self, Kind};
use iced_x86::{FlowControl, Instruction};

/// As many as there are breakpoints.
pub const MAX_STOPS: usize = 4;
/// More code than this is not looked at.
const MAX_INSTRUCTIONS: usize = 512;
const PAGE: usize = 4096;

/// Where the guest must be stopped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stops {
    addresses: [u64; MAX_STOPS],
    count: usize,
}

impl Stops {
    /// Linear addresses.
    #[must_use]
    pub fn addresses(&self) -> &[u64] {
        &self.addresses[..self.count]
    }

    fn add(&mut self, address: u64) -> Option<()> {
        *self.addresses.get_mut(self.count)? = address;
        self.count += 1;
        Some(())
    }
}

/// The instructions that are still to be looked at, and those that have been.
struct Seen {
    waiting: [u16; MAX_INSTRUCTIONS],
    count: usize,
    known: [u64; PAGE / 64],
}

impl Seen {
    /// `None` if there are too many.
    fn add(&mut self, offset: usize) -> Option<()> {
        let (word, bit) = (offset / 64, 1 << (offset % 64));
        if self.known[word] & bit == 0 {
            self.known[word] |= bit;
            *self.waiting.get_mut(self.count)? = offset as u16;
            self.count += 1;
        }
        Some(())
    }
}

/// Where code of `page`, which is at linear address `base`, must be stopped if it continues at `rip`. `None` if that
/// are too many places.
#[must_use]
pub fn stops(page: &[u8], base: u64, rip: u64, bits: u32) -> Option<Stops> {
    let mut stops = Stops::default();
    let mut seen = Seen { waiting: [0; MAX_INSTRUCTIONS], count: 0, known: [0; PAGE / 64] };
    let within = |address: u64| {
        let offset = address.wrapping_sub(base);
        (offset < page.len() as u64).then_some(offset as usize)
    };
    seen.add(within(rip)?)?;
    let mut next = 0;
    while next < seen.count {
        let offset = usize::from(seen.waiting[next]);
        next += 1;
        let address = base + offset as u64;
        let instruction = step::decode(&page[offset..], address, bits);
        // Nothing to decode: the instruction continues in the next page, or is none.
        let Some(instruction) = instruction.filter(|instruction| !ends(instruction)) else {
            stops.add(address)?;
            continue;
        };
        let flow = instruction.flow_control();
        if flow != FlowControl::Next
            && let Some(target) = within(instruction.near_branch_target())
        {
            seen.add(target)?;
        }
        // What a call comes back to is reached through a return.
        if matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch)
            && let Some(target) = within(instruction.next_ip())
        {
            seen.add(target)?;
        }
    }
    Some(stops)
}

/// Whether it must be stepped over, or goes where nobody knows.
fn ends(instruction: &Instruction) -> bool {
    let known = matches!(
        instruction.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::Call
    );
    let plain = matches!(
        step::kind(instruction),
        Kind::Plain | Kind::PushFlags | Kind::PopFlags | Kind::Shadow
    );
    let far = instruction.is_jmp_far() || instruction.is_call_far();
    !known || !plain || far
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 0x40_0000;

    fn at(code: &[u8], rip: usize) -> Option<Vec<u64>> {
        let mut page = vec![0xcc; PAGE];
        page[..code.len()].copy_from_slice(code);
        let stops = stops(&page, BASE, BASE + rip as u64, 64)?;
        let mut offsets: Vec<u64> = stops.addresses().iter().map(|stop| stop - BASE).collect();
        offsets.sort_unstable();
        Some(offsets)
    }

    #[test]
    fn a_loop_ends_at_its_return() {
        // dec ecx; jnz -4; ret
        assert_eq!(at(&[0xff, 0xc9, 0x75, 0xfc, 0xc3], 0), Some(vec![4]));
        // The same from its middle.
        assert_eq!(at(&[0xff, 0xc9, 0x75, 0xfc, 0xc3], 2), Some(vec![4]));
    }

    #[test]
    fn string_instructions_system_calls_and_indirect_jumps_are_stops() {
        // jz +2; rep movsb; syscall
        assert_eq!(at(&[0x74, 0x02, 0xf3, 0xa4, 0x0f, 0x05], 0), Some(vec![2, 4]));
        assert_eq!(at(&[0x90, 0xff, 0xe0], 0), Some(vec![1]));
        assert_eq!(at(&[0x90, 0x0f, 0x0b], 0), Some(vec![1]));
    }

    #[test]
    fn calls_are_followed_and_their_returns_are_not() {
        // call +1; int3; ret: the INT3 is reached through the return.
        assert_eq!(at(&[0xe8, 1, 0, 0, 0, 0xcc, 0xc3], 0), Some(vec![6]));
    }

    #[test]
    fn code_that_leaves_the_page_needs_no_stop_but_an_instruction_across_its_end_does() {
        let mut page = vec![0x90; PAGE];
        assert_eq!(stops(&page, BASE, BASE + 4000, 64).unwrap().addresses(), []);
        page[PAGE - 1] = 0xe8;
        let found = stops(&page, BASE, BASE + 4000, 64).unwrap();
        assert_eq!(found.addresses(), [BASE + PAGE as u64 - 1]);
    }

    #[test]
    fn too_many_stops_and_too_much_code_are_refused() {
        let five = [0x74, 8, 0x74, 7, 0x74, 6, 0x74, 5, 0xc3, 0x90, 0xc3, 0xc3, 0xc3, 0xc3];
        assert_eq!(at(&five, 0), None);
        assert_eq!(at(&five, 2), Some(vec![8, 11, 12, 13]));
        let many: Vec<u8> = (0..6).flat_map(|_| [0x74, 1, 0xc3]).collect();
        assert_eq!(at(&many, 0), None);
        let page = vec![0x90; PAGE];
        assert_eq!(stops(&page, BASE, BASE, 64), None, "4,096 instructions");
    }

    proptest! {
        /// Whoever follows the code instruction by instruction, in whatever direction conditions send him, meets a
        /// stop before a string instruction.
        #[test]
        fn no_path_misses_a_stop(
            code in prop::collection::vec(
                prop::sample::select(&[0x74u8, 0x75, 0xeb, 0xf3, 0xa4, 0x90, 0xc3, 2, 3, 5, 0xe8, 0, 0xff][..]), 8..60,
            ),
            turns in prop::collection::vec(any::<bool>(), 200),
        ) {
            let mut page = vec![0xcc; PAGE];
            page[..code.len()].copy_from_slice(&code);
            let Some(stops) = stops(&page, BASE, BASE, 64) else { return Ok(()) };
            let mut rip = BASE;
            for turn in turns {
                if stops.addresses().contains(&rip) {
                    break;
                }
                let offset = (rip - BASE) as usize;
                let instruction = step::decode(&page[offset..], rip, 64);
                prop_assert!(instruction.is_some(), "undecodable at {offset}");
                let instruction = instruction.unwrap();
                prop_assert!(!matches!(step::kind(&instruction), Kind::Repeated(_)), "at {offset}");
                rip = match instruction.flow_control() {
                    FlowControl::Next => instruction.next_ip(),
                    FlowControl::ConditionalBranch if !turn => instruction.next_ip(),
                    FlowControl::ConditionalBranch
                    | FlowControl::UnconditionalBranch
                    | FlowControl::Call => instruction.near_branch_target(),
                    other => panic!("{other:?} at {offset}"),
                };
                if !(BASE..BASE + PAGE as u64).contains(&rip) {
                    break;
                }
            }
        }
    }
}
