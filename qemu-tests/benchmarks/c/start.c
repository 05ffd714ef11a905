/* Makes the linked objects a program for Linux, so that Callgrind counts in the very file that the firmware runs: everything
 * thrice, and then once through `barecount_measured`, as the crate's programs do. */
#include "barecount.h"

extern struct barecount_entry __start_barecount[], __stop_barecount[];

static void around(barecount_function function, uint64_t parameter) {
    if (function) function(parameter);
}

__attribute__((noinline)) void barecount_measured(const struct barecount_entry *entry) {
    entry->function(entry->parameter);
    /* So that the call is no jump. */
    __asm__ volatile("");
}

__attribute__((used)) static void start(void) {
    for (struct barecount_entry *entry = __start_barecount; entry < __stop_barecount; entry++) {
        for (int i = 0; i < 4; i++) {
            around(entry->setup, entry->parameter);
            if (i < 3)
                around(entry->function, entry->parameter);
            else
                barecount_measured(entry);
            around(entry->teardown, entry->parameter);
        }
    }
    __asm__ volatile("syscall" : : "a"(60), "D"(0));
}

/* Compilers call it for fills, freestanding or not. */
void *memset(void *to, int byte, uint64_t bytes) {
    for (volatile uint8_t *at = to; bytes; bytes--) *at++ = (uint8_t)byte;
    return to;
}

__asm__(".globl _start\n_start: and $-16, %rsp\n call start\n ud2\n");
