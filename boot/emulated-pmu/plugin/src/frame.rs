//! The frame that an interrupt or a page fault leaves on the stack in long mode: SDM vol. 3, 6.14.2; AMD APM vol. 2, 8.9.3.

use crate::facts::OFFSET;
use plugin_channel::STACK_WORDS;

/// The words at RSP. An interrupt leaves RIP, CS, RFLAGS, RSP and SS, a page fault its error code below them.
pub type Stack = [u64; STACK_WORDS];
/// Words of a frame without an error code.
pub const FRAME_WORDS: usize = STACK_WORDS - 1;

/// Bit 1 of RFLAGS is always 1, and no bit is defined from 22 on: SDM vol. 1, 3.4.3.
const FLAG_1: u64 = 1 << 1;
const FLAGS_END: u64 = 1 << 22;
/// Of a selector, and of a page fault's error code (SDM vol. 3, 4.7).
const MAX_16: u64 = 0xffff;
/// I/D in a page fault's error code (SDM vol. 3, 4.7).
const FETCH: u64 = 1 << 4;

/// The offset in its page at which an interrupt or a page fault came, if these words are its frame and that is one of the places.
pub fn interrupted(words: &Stack, is_place: impl Fn(u16) -> bool) -> Option<u16> {
    let offset = |rip: u64| (rip & OFFSET) as u16;
    let has_code = words[0] <= MAX_16;
    let frames = [saved(&words[..FRAME_WORDS]), saved(&words[1..]).filter(|_| has_code)];
    frames.into_iter().flatten().map(offset).find(|at| is_place(*at))
}

/// Whether these words are the frame of a page fault of an instruction at this offset in a page, which began.
pub fn faulted(words: &Stack, at: u16) -> bool {
    page_fault(words).is_some_and(|fault| fault.began && fault.rip & OFFSET == u64::from(at))
}

/// What the frame of a page fault says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageFault {
    /// Where it came.
    pub rip: u64,
    /// RFLAGS then.
    pub rflags: u64,
    /// The instruction there began. It did not if it could not be fetched, which a processor reports if NX or SMEP is enabled.
    pub began: bool,
}

/// The page fault whose frame these words are.
pub fn page_fault(words: &Stack) -> Option<PageFault> {
    let has_code = words[0] <= MAX_16;
    let rip = saved(&words[1..]).filter(|_| has_code)?;
    Some(PageFault { rip, rflags: words[3], began: words[0] & FETCH == 0 })
}

/// RIP, if these are RIP, CS, RFLAGS, RSP and SS.
fn saved(frame: &[u64]) -> Option<u64> {
    let &[rip, cs, rflags, _, ss] = frame else { return None };
    let selectors = (1..=MAX_16).contains(&cs) && ss <= MAX_16;
    (selectors && rflags & FLAG_1 != 0 && rflags < FLAGS_END).then_some(rip)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIP: u64 = 0xffff_ffff_8112_3456;
    const FRAME: [u64; FRAME_WORDS] = [RIP, 0x10, 0x1_0246, 0xffff_c900_0000_3f58, 0x18];

    fn with_code(code: u64) -> Stack {
        let [rip, cs, rflags, rsp, ss] = FRAME;
        [code, rip, cs, rflags, rsp, ss]
    }

    fn without_code(beyond: u64) -> Stack {
        let [rip, cs, rflags, rsp, ss] = FRAME;
        [rip, cs, rflags, rsp, ss, beyond]
    }

    #[test]
    fn e1_a_frame_says_where_the_interrupt_came() {
        let at = |place: u16| move |offset| offset == place;
        for words in [without_code(0), without_code(u64::MAX), with_code(2), with_code(0)] {
            assert_eq!(interrupted(&words, at(0x456)), Some(0x456), "{words:x?}");
            assert_eq!(interrupted(&words, at(0x455)), None, "{words:x?}");
        }
        // From ring 3, of a program of 32 bits, which has no null SS.
        let user = [0x0804_8456, 0x23, 0x202, 0xffff_d000, 0x2b, 0];
        assert_eq!(interrupted(&user, at(0x456)), Some(0x456));
    }

    #[test]
    fn e1_only_a_page_fault_leaves_an_error_code() {
        assert!(faulted(&with_code(6), 0x456) && !faulted(&without_code(0), 0x456));
        assert!(!faulted(&with_code(1 << 16), 0x456), "no page fault's code");
        assert!(!faulted(&with_code(6), 0x457));
        let fault = |began| Some(PageFault { rip: RIP, rflags: 0x1_0246, began });
        assert_eq!(page_fault(&with_code(6)), fault(true));
        // Nothing began where nothing could be fetched.
        assert_eq!(page_fault(&with_code(0x14)), fault(false));
        assert!(!faulted(&with_code(0x14), 0x456));
    }

    #[test]
    fn e1_what_is_no_frame_is_not_taken_for_one() {
        let at = |offset| offset == 0x456;
        for (word, value) in [(1, 0), (1, 1 << 16), (2, 0x244), (2, 1 << 22 | 2), (4, 1 << 16)] {
            let mut words = without_code(0);
            words[word] = value;
            assert_eq!(interrupted(&words, at), None, "{word}: {value:#x}");
        }
        assert_eq!(interrupted(&[0; STACK_WORDS], |_| true), None, "nothing could be read");
    }
}
