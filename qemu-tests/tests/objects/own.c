/* Brings one of the functions that compilers call, and needs another one. */
#include <stddef.h>

static unsigned char filled[300], copied[300];

void *memset(void *, int, size_t);

void *memcpy(void *to, const void *from, size_t bytes) {
    volatile unsigned char *target = to;
    const unsigned char *source = from;
    while (bytes--) *target++ = *source++;
    return to;
}

void both(int byte) {
    memset(filled, byte, sizeof filled);
    memcpy(copied, filled, sizeof copied);
    if (copied[299] != (unsigned char)byte) __builtin_trap();
}
