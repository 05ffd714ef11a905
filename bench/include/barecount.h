/* Registers functions of C as benchmarks, which `cargo xtask run --object FILE` then finds by itself.
 *
 *     #include "barecount.h"
 *     static void copy(uint64_t bytes) { ... }
 *     BARECOUNT_BENCH("copy", copy, 64)
 *
 * For gcc and clang, as C11 or C++. The entries are those of `bench/src/entry.rs`.
 */
#ifndef BARECOUNT_H
#define BARECOUNT_H

#include <stdint.h>

typedef void (*barecount_function)(uint64_t);

struct barecount_entry {
    uint64_t magic;
    const char *name;
    uint64_t name_bytes;
    uint64_t parameter;
    barecount_function function;
    barecount_function setup;    /* 0: none */
    barecount_function teardown; /* 0: none */
    uint64_t flags;              /* bit 0: the parameter is a part of the name */
};

/* `barecnt` and the version of this layout, as bytes. */
#define BARECOUNT_MAGIC UINT64_C(0x01746e6365726162)

#define BARECOUNT_JOIN_(a, b) a##b
#define BARECOUNT_JOIN(a, b) BARECOUNT_JOIN_(a, b)

/* Linkers that drop what nothing refers to keep it, where the compiler can say so. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define BARECOUNT_RETAIN , retain
#endif
#endif
#ifndef BARECOUNT_RETAIN
#define BARECOUNT_RETAIN
#endif

/* `name` is a string literal; the benchmark is called `name/arg`. `setup` and `teardown` get `arg` too, run before and behind
 * each run, and are not measured. */
#define BARECOUNT_BENCH_WITH(name, function, arg, setup, teardown)                                  \
    __attribute__((used, section("barecount"), aligned(8) BARECOUNT_RETAIN)) static struct          \
        barecount_entry BARECOUNT_JOIN(barecount_entry_, __COUNTER__) = {                           \
            BARECOUNT_MAGIC, name, sizeof(name) - 1, (arg), (function), (setup), (teardown), 1};

#define BARECOUNT_BENCH(name, function, arg) BARECOUNT_BENCH_WITH(name, function, arg, 0, 0)

#endif
