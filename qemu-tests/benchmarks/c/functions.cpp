/* Functions in C++ with classes, templates and virtual functions, compiled by each compiler at each level. */
#include "barecount.h"

#define JOIN_(name, variant) name##_##variant
#define JOIN(name, variant) JOIN_(name, variant)
#define NAME(name) JOIN(name, VARIANT)
#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)
#define FULL(name) TEXT(VARIANT) " " name

namespace {

volatile uint64_t sink;

/* A heap whose order is a type. */
template <typename Value, unsigned capacity, typename Before> class Heap {
    Value values[capacity];
    unsigned count = 0;

    void swap(unsigned one, unsigned other) {
        Value kept = values[one];
        values[one] = values[other];
        values[other] = kept;
    }

public:
    void push(Value value) {
        unsigned at = count++;
        values[at] = value;
        for (; at > 0 && Before()(values[at], values[(at - 1) / 2]); at = (at - 1) / 2) swap(at, (at - 1) / 2);
    }

    Value pop() {
        Value first = values[0];
        values[0] = values[--count];
        for (unsigned at = 0;;) {
            unsigned best = at;
            for (unsigned child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
                if (Before()(values[child], values[best])) best = child;
            if (best == at) return first;
            swap(at, best);
            at = best;
        }
    }
};

struct Less {
    bool operator()(uint32_t one, uint32_t other) const { return one < other; }
};

void NAME(heap)(uint64_t n) {
    Heap<uint32_t, 64, Less> heap;
    uint32_t mixed = 1;
    for (uint64_t i = 0; i < n; i++) heap.push(mixed = mixed * 1664525u + 1013904223u);
    for (uint64_t i = 0; i < n; i++) sink = heap.pop();
}

struct Shape {
    uint64_t *ended;
    explicit Shape(uint64_t *counter) : ended(counter) {}
    virtual uint64_t area() const = 0;
    virtual ~Shape() { ++*ended; }
};

struct Square : Shape {
    uint64_t side;
    Square(uint64_t *counter, uint64_t length) : Shape(counter), side(length) {}
    uint64_t area() const override { return side * side; }
};

struct Frame : Square {
    uint64_t hole;
    Frame(uint64_t *counter, uint64_t length, uint64_t inner) : Square(counter, length), hole(inner) {}
    uint64_t area() const override { return Square::area() - hole * hole; }
    ~Frame() override { *ended += hole; }
};

__attribute__((noinline)) uint64_t sum(const Shape *const *shapes, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += shapes[i % 2]->area();
    return sum;
}

void NAME(virtuals)(uint64_t n) {
    uint64_t ended = 0;
    {
        Square square(&ended, 3);
        Frame frame(&ended, 5, 2);
        const Shape *shapes[] = {&square, &frame};
        sink = sum(shapes, n);
    }
    sink = ended;
}

template <unsigned n> struct Power {
    static uint64_t of(uint64_t base) { return base * Power<n - 1>::of(base); }
};
template <> struct Power<0> {
    static uint64_t of(uint64_t) { return 1; }
};

void NAME(templates)(uint64_t n) { sink = Power<9>::of(n); }

/* A lambda that is handed on, and references to it. */
template <typename Each> void walk(uint64_t n, const Each &each) {
    for (uint64_t i = 0; i < n; i++) each(i);
}

void NAME(lambdas)(uint64_t n) {
    uint64_t total = 0;
    walk(n, [&total, n](uint64_t i) { total += i * n; });
    sink = total;
}

} // namespace

BARECOUNT_BENCH(FULL("heap"), NAME(heap), 40)
BARECOUNT_BENCH(FULL("virtuals"), NAME(virtuals), 30)
BARECOUNT_BENCH(FULL("templates"), NAME(templates), 3)
BARECOUNT_BENCH(FULL("lambdas"), NAME(lambdas), 50)
