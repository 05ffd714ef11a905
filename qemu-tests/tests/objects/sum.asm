; Two instructions in front of and behind three for each turn.
section .text
global sums:function (sums.end - sums)
sums:
    xor eax, eax
.turn:
    add rax, [rel step]
    dec rdi
    jnz .turn
    ret
.end:

global gives_up:function (gives_up.end - gives_up)
gives_up:
    mov rax, [rel step]
    ud2
.end:

section .data
step: dq 3
