//! Two hypervisors with a set of qualifiers each, whose guests run in turn.

use super::own;
use crate::case;
use core::arch::naked_asm;
use plugin_channel::{Mode, Parts};
use pmu_model::qualify::WORDS;

/// Bytes of [`code`] that pass, and how many instructions of them are executed: the multiplication, and the additions.
const SETS: [([u64; 2], u64); 2] = [([5, 8], 10), ([8, 14], 20)];

pub fn run() {
    let start = code as *const () as u64;
    for (number, ([from, to], _)) in (0..).zip(SETS) {
        own::use_page(number);
        own::set_up();
        let mut words = [0; WORDS];
        // Counter 0; a range of code.
        words[..4].copy_from_slice(&[1, 1, start + from, start + to]);
        own::qualify(words);
        own::mode(Mode::QUALIFIED | Mode::INSTRUCTIONS, Parts::empty());
    }
    for round in 0..3 {
        for (number, (_, expected)) in (0..).zip(SETS) {
            own::use_page(number);
            let counted = own::run(start, 0, &[]);
            case("own_set", counted.qualified, expected);
            case("instructions", counted.instructions, 1 + 5 * 10 + 1);
            if round == 1 {
                // The same guest once more, before the other's turn.
                case("again", own::run(start, 0, &[]).qualified, expected);
            }
        }
    }
}

#[unsafe(naked)]
extern "C" fn code() {
    naked_asm!(
        "mov ecx, 10",
        "2: imul eax, ecx",
        "add eax, 3",
        "add eax, 1",
        "dec ecx",
        "jnz 2b",
        "ret",
    )
}
