//! Repeated string instructions: one instruction each, whatever they do. In two pages of their own: one with as many as
//! the hypervisor can watch by breakpoints, and one with more; so that no other code shares a page with them.

use crate::case;
use crate::pmu::{INSTRUCTIONS, KERNEL, USER, Unit};
use core::arch::global_asm;

#[repr(C, align(64))]
pub struct Buffer([u8; 8192]);
pub static mut BUFFER: Buffer = Buffer([0; 8192]);

/// Begins or ends a page.
macro_rules! page {
    ($page:literal) => {
        global_asm!(
            concat!(".pushsection .text.strings_", $page, ", \"ax\""),
            ".balign 4096",
            ".popsection"
        );
    };
}

/// A function in a page, and how many instructions it executes.
macro_rules! string {
    ($page:literal, $name:ident, $count:literal, $($body:literal),*) => {
        global_asm!(
            concat!(".pushsection .text.strings_", $page, ", \"ax\""),
            concat!(".globl ", stringify!($name)),
            concat!(stringify!($name), ":"),
            "lea rdi, [rip + {buffer}]", "mov rsi, rdi", "xor eax, eax",
            $($body,)* "ret",
            ".popsection",
            buffer = sym BUFFER,
        );
        mod $name {
            unsafe extern "C" {
                pub fn $name();
            }
            pub const COUNT: u64 = $count;
        }
    };
}

page!("few");
string!("few", few_copy, 6, "mov ecx, 1000", "rep movsb");
string!(
    "few",
    few_many,
    2006,
    "mov r8d, 400",
    "2: mov ecx, 5",
    "mov rdi, rsi",
    "rep stosb",
    "dec r8d",
    "jnz 2b",
    "nop"
);
string!("few", few_scan, 6, "mov ecx, 100", "repe scasb");
page!("few");

page!("more");
string!("more", none, 6, "xor ecx, ecx", "rep movsb");
string!("more", one, 6, "mov ecx, 1", "rep movsb");
string!("more", copy, 6, "mov ecx, 1000", "rep movsb");
string!("more", wide, 6, "mov ecx, 1000", "rep movsq");
string!("more", fill, 6, "mov ecx, 1024", "rep stosq");
string!("more", load, 6, "mov ecx, 77", "rep lodsb");
// All equal: until the count is used up.
string!("more", compare, 6, "mov ecx, 100", "repe cmpsb");
// Found at once, and never.
string!("more", scan_found, 6, "mov ecx, 100", "repne scasb");
string!("more", scan_all, 6, "mov ecx, 100", "repe scasb");
string!(
    "more",
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
string!("more", two, 9, "mov ecx, 5", "rep movsb", "mov ecx, 6", "mov rdi, rsi", "rep stosw");
// More in one function than there are breakpoints.
string!(
    "more",
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
string!("more", other, 8, "pause", "addsd xmm0, xmm1", "movsb", "rep nop");
page!("more");

pub fn run(unit: &Unit) {
    macro_rules! cases {
        ($($name:ident),*) => {
            $(case(
                stringify!($name),
                unit.over(INSTRUCTIONS | USER | KERNEL, $name::$name),
                $name::COUNT,
            );)*
        };
    }
    cases!(few_copy, few_many, few_scan);
    cases!(none, one, copy, wide, fill, load, compare, scan_found, scan_all, many, two, six, other);
    // Again: by now everything has been seen once.
    cases!(few_copy, few_many, copy, many, two, six);
}
