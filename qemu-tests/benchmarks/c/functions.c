/* Functions in C, compiled by each compiler at each level: VARIANT tells their names apart. */
#include "barecount.h"

#define JOIN_(name, variant) name##_##variant
#define JOIN(name, variant) JOIN_(name, variant)
#define NAME(name) JOIN(name, VARIANT)
#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)
#define FULL(name) TEXT(VARIANT) " " name

static volatile uint64_t sink;
static uint8_t from[256], to[256];
static uint32_t numbers[64];
static double a[8][8], b[8][8], c[8][8];

static void NAME(prepare)(uint64_t n) {
    uint32_t mixed = (uint32_t)n;
    for (int i = 0; i < 256; i++) from[i] = (uint8_t)(i * 7 + 1);
    for (int i = 0; i < 64; i++) numbers[i] = mixed = mixed * 1664525u + 1013904223u;
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) a[y][x] = x + y, b[y][x] = x - y;
}

static void NAME(crc32)(uint64_t n) {
    uint32_t crc = ~0u;
    for (uint64_t i = 0; i < n; i++) {
        crc ^= from[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    sink = ~crc;
}

static void NAME(partition)(uint32_t *low, uint32_t *high) {
    if (low >= high) return;
    uint32_t *store = low, pivot = *high;
    for (uint32_t *at = low; at < high; at++)
        if (*at < pivot) {
            uint32_t other = *store;
            *store++ = *at;
            *at = other;
        }
    *high = *store;
    *store = pivot;
    NAME(partition)(low, store - 1);
    NAME(partition)(store + 1, high);
}

static void NAME(quicksort)(uint64_t n) {
    NAME(partition)(numbers, numbers + n - 1);
    sink = numbers[0];
}

static void NAME(matrix)(uint64_t n) {
    for (uint64_t y = 0; y < n; y++)
        for (uint64_t x = 0; x < n; x++) {
            double sum = 0;
            for (uint64_t i = 0; i < n; i++) sum += a[y][i] * b[i][x];
            c[y][x] = sum;
        }
    sink = (uint64_t)c[1][2];
}

static void NAME(newton)(uint64_t n) {
    double root = (double)n;
    for (int i = 0; i < 20; i++) root = 0.5 * (root + (double)n / root);
    sink = (uint64_t)(root * 1e6);
}

static void NAME(format)(uint64_t n) {
    uint8_t *end = to + sizeof to;
    do {
        *--end = (uint8_t)('0' + n % 10);
        n /= 10;
    } while (n);
    sink = *end;
}

static void NAME(parse)(uint64_t n) {
    static const char digits[] = "12345678901234567890";
    uint64_t number = 0;
    for (uint64_t i = 0; i < n && digits[i]; i++) number = number * 10 + (uint64_t)(digits[i] - '0');
    sink = number;
}

static void NAME(copy_with_rep)(uint64_t n) {
    uint8_t *target = to;
    const uint8_t *source = from;
    __asm__ volatile("rep movsb" : "+c"(n), "+D"(target), "+S"(source) : : "memory");
    sink = to[1];
}

static void NAME(copy_without_rep)(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) ((volatile uint8_t *)to)[i] = from[i];
    sink = to[1];
}

static void NAME(collatz)(uint64_t n) {
    uint64_t steps = 0;
    for (; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    sink = steps;
}

BARECOUNT_BENCH_WITH(FULL("crc32"), NAME(crc32), 100, NAME(prepare), 0)
BARECOUNT_BENCH_WITH(FULL("quicksort"), NAME(quicksort), 64, NAME(prepare), 0)
BARECOUNT_BENCH_WITH(FULL("matrix"), NAME(matrix), 8, NAME(prepare), 0)
BARECOUNT_BENCH(FULL("newton"), NAME(newton), 2)
BARECOUNT_BENCH(FULL("format"), NAME(format), 1234567890123)
BARECOUNT_BENCH(FULL("parse"), NAME(parse), 20)
BARECOUNT_BENCH_WITH(FULL("copy with rep"), NAME(copy_with_rep), 200, NAME(prepare), 0)
BARECOUNT_BENCH_WITH(FULL("copy without rep"), NAME(copy_without_rep), 200, NAME(prepare), 0)
BARECOUNT_BENCH(FULL("collatz"), NAME(collatz), 27)
