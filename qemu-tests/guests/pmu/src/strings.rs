//! Repeated string instructions: one instruction each, whatever they do.

use crate::case;
use crate::pmu::{INSTRUCTIONS, KERNEL, USER, Unit};
use core::arch::naked_asm;

#[repr(C, align(64))]
pub struct Buffer([u8; 8192]);
pub static mut BUFFER: Buffer = Buffer([0; 8192]);

macro_rules! string {
    ($name:ident, $count:literal, $($body:literal),*) => {
        mod $name {
            use super::*;
            pub const COUNT: u64 = $count;
            #[unsafe(naked)]
            pub extern "C" fn run() {
                naked_asm!(
                    "lea rdi, [rip + {buffer}]", "mov rsi, rdi", "xor eax, eax",
                    $($body,)* "ret",
                    buffer = sym BUFFER,
                )
            }
        }
    };
}

string!(none, 6, "xor ecx, ecx", "rep movsb");
string!(one, 6, "mov ecx, 1", "rep movsb");
string!(copy, 6, "mov ecx, 1000", "rep movsb");
string!(wide, 6, "mov ecx, 1000", "rep movsq");
string!(fill, 6, "mov ecx, 1024", "rep stosq");
string!(load, 6, "mov ecx, 77", "rep lodsb");
// All equal: until the count is used up.
string!(compare, 6, "mov ecx, 100", "repe cmpsb");
// Found at once, and never.
string!(scan_found, 6, "mov ecx, 100", "repne scasb");
string!(scan_all, 6, "mov ecx, 100", "repe scasb");
string!(
    many,
    2006,
    "mov r8d, 400",
    "2: mov ecx, 5",
    "mov rdi, rsi",
    "rep stosb",
    "dec r8d",
    "jnz 2b",
    "nop"
);
string!(two, 9, "mov ecx, 5", "rep movsb", "mov ecx, 6", "mov rdi, rsi", "rep stosw");
// More in one place than there are breakpoints.
string!(
    six,
    16,
    "mov ecx, 5",
    "rep movsb",
    "mov ecx, 6",
    "rep stosb",
    "mov ecx, 7",
    "rep lodsb",
    "mov ecx, 8",
    "rep movsb",
    "mov ecx, 9",
    "rep stosb",
    "mov ecx, 10",
    "rep lodsb"
);
// The prefix means something else.
string!(other, 8, "pause", "addsd xmm0, xmm1", "movsb", "rep nop");

pub fn run(unit: &Unit) {
    macro_rules! cases {
        ($($name:ident),*) => {
            $(case(stringify!($name), unit.over(INSTRUCTIONS | USER | KERNEL, $name::run), $name::COUNT);)*
        };
    }
    cases!(none, one, copy, wide, fill, load, compare, scan_found, scan_all, many, two, six, other);
    // Again: by now everything has been seen once.
    cases!(copy, many, two, six);
}
