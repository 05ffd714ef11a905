// What C++ does before and around a function: static objects, those of functions, virtual destructors.
#include <stdint.h>

namespace {

struct Counter {
    virtual uint64_t next() = 0;
    virtual ~Counter() {}
};

struct Steps : Counter {
    uint64_t value;
    uint64_t step;
    explicit Steps(uint64_t width) : value(100), step(width) {}
    uint64_t next() override { return value += step; }
    ~Steps() override { value = 0; }
};

// Constructed before the first run.
Steps global(7);

// Constructed when it is first called.
Steps &local() {
    static Steps steps(5);
    return steps;
}

} // namespace

namespace counted {

// Ends the item if an object is not there, or is made twice.
void objects(uint64_t turns) {
    const uint64_t first = global.value, second = local().value;
    for (uint64_t i = 0; i < turns; i++) {
        Counter *all[] = {&global, &local()};
        all[i % 2]->next();
    }
    const bool right = global.value == first + 7 * ((turns + 1) / 2) && local().value == second + 5 * (turns / 2);
    if (!right || first < 100 || second < 100) __builtin_trap();
}

} // namespace counted
