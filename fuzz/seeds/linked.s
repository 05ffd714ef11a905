# The program with which the targets `program` and `entries` begin: a function, data that it uses, a constructor, and an entry that
# registers the function as `f/3`. The fields of an entry are in bench/src/entry.rs. Made by:
#
#   as linked.s -o linked.o
#   ld -n --build-id=none -T linked.ld -e f linked.o -o program/linked
#   cp program/linked entries/linked
    .globl f, g
    .text
    .type f, @function
f:  call g
    mov data(%rip), %eax
    ret
    .size f, . - f
    .type g, @function
g:  ret
    .size g, . - g
name: .ascii "f"
    .data
data: .long 7
    .section .init_array, "aw"
    .quad g
    .section barecount, "aw"
    .ascii "barecnt\1"
    .quad name, 1, 3, f, 0, g, 1
