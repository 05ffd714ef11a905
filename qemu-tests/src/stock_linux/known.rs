//! What the programs of `guests/linux-known` execute in user mode, counted by hand from their source.
//!
//! A SYSCALL instruction begins in user mode and is counted there, as a branch as well; what it leads to is the kernel's.

/// A program and its rounds: from 1 to 10^19.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Program {
    /// The kind of program.
    pub kind: Kind,
    /// How often its loop is executed.
    pub rounds: u64,
}

/// What a round does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// MOV from memory, DEC, JNZ.
    Loop,
    /// CALL, RET, DEC, JNZ.
    Calls,
    /// LEA, AND, MOV, REP STOSB of 256 bytes, DEC, JNZ.
    Strings,
}

/// The numbers of one execution.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counts {
    /// Retired instructions; a repeated one once.
    pub instructions: u64,
    /// Retired branches.
    pub branches: u64,
    /// Of these, the taken ones.
    pub taken: u64,
    /// Reads of data.
    pub loads: u64,
    /// Writes of data. The emulated PMU counts a repeated string instruction's by cache lines.
    pub stores: u64,
}

/// Cache lines of a string.
const STRING_LINES: u64 = 4;

impl Program {
    /// The command for the guest's shell.
    #[must_use]
    pub fn command(self) -> String {
        let name = match self.kind {
            Kind::Loop => "loop",
            Kind::Calls => "calls",
            Kind::Strings => "strings",
        };
        format!("known {name} {}", self.rounds)
    }

    /// What one execution has to count.
    #[must_use]
    pub fn counts(self) -> Counts {
        let digits = self.rounds.to_string().len() as u64;
        // Up to the name's first letter: two pointers and XOR; seven instructions for each digit, with JS and JMP among
        // them; and MOVZX, SUB and JS at the text's end, where JS is taken; MOV of the letter.
        let before = Counts {
            instructions: 3 + 7 * digits + 3 + 1,
            branches: 2 * digits + 1,
            taken: digits + 1,
            loads: 2 + digits + 1 + 1,
            stores: 0,
        };
        // From there to the loop.
        let to_loop = match self.kind {
            // CMP and JE, taken.
            Kind::Loop => Counts { instructions: 2, branches: 1, taken: 1, loads: 0, stores: 0 },
            // Twice; the second one is taken.
            Kind::Calls => Counts { instructions: 4, branches: 2, taken: 1, loads: 0, stores: 0 },
            // Twice, neither taken; MOV.
            Kind::Strings => Counts { instructions: 5, branches: 2, taken: 0, loads: 0, stores: 0 },
        };
        let round = match self.kind {
            Kind::Loop => Counts { instructions: 3, branches: 1, taken: 1, loads: 1, stores: 0 },
            Kind::Calls => Counts { instructions: 4, branches: 3, taken: 3, loads: 1, stores: 1 },
            Kind::Strings => {
                Counts { instructions: 6, branches: 1, taken: 1, loads: 0, stores: STRING_LINES }
            }
        };
        // JMP, but not for the last of the three; MOV, XOR, SYSCALL. The loop's last JNZ is not taken.
        let jump = u64::from(self.kind != Kind::Calls);
        let sum = |of: fn(Counts) -> u64| of(before) + of(to_loop) + self.rounds * of(round);
        Counts {
            instructions: sum(|part| part.instructions) + jump + 3,
            branches: sum(|part| part.branches) + jump + 1,
            taken: sum(|part| part.taken) - 1 + jump + 1,
            loads: sum(|part| part.loads),
            stores: sum(|part| part.stores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rounds of each, instruction by instruction as the source has them.
    #[test]
    fn two_rounds_counted_one_by_one() {
        let of = |kind| Program { kind, rounds: 2 }.counts();
        // MOV MOV XOR, MOVZX SUB JS IMUL ADD INC JMP, MOVZX SUB JS, MOV CMP JE.
        let begin = 3 + 7 + 3 + 3;
        // MOV DEC JNZ MOV DEC JNZ JMP MOV XOR SYSCALL.
        let expected =
            Counts { instructions: begin + 10, branches: 8, taken: 6, loads: 7, stores: 0 };
        assert_eq!(of(Kind::Loop), expected);
        // CMP JE, CALL RET DEC JNZ CALL RET DEC JNZ MOV XOR SYSCALL.
        let expected =
            Counts { instructions: begin + 13, branches: 12, taken: 9, loads: 7, stores: 2 };
        assert_eq!(of(Kind::Calls), expected);
        // CMP JE MOV, LEA AND MOV STOSB DEC JNZ LEA AND MOV STOSB DEC JNZ JMP MOV XOR SYSCALL.
        let expected =
            Counts { instructions: begin + 19, branches: 9, taken: 5, loads: 5, stores: 8 };
        assert_eq!(of(Kind::Strings), expected);
    }

    #[test]
    fn each_digit_and_each_round_costs_its_instructions() {
        let of = |rounds| Program { kind: Kind::Loop, rounds }.counts().instructions;
        assert_eq!(of(10) - of(9), 3 + 7);
        assert_eq!(of(1_000_000) - of(999_999), 3 + 7);
        assert_eq!(of(99) - of(98), 3);
    }
}
