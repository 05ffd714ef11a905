/* Registered in a position independent executable, whose addresses stand in relocations alone. */
#include "barecount.h"

static void spin(uint64_t n) {
    /* Two instructions a turn, in assembly so that every compiler has them. */
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}

static volatile uint64_t prepared;
static void prepare(uint64_t n) { prepared = n; }
static void checks(uint64_t n) {
    if (prepared != n) __builtin_trap();
}

BARECOUNT_BENCH("spin", spin, 10)
BARECOUNT_BENCH("spin", spin, 30)
BARECOUNT_BENCH_WITH("checks", checks, 4, prepare, 0)

/* Nobody calls it. */
void _start(void) {}
