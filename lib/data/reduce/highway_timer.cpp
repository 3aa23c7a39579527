// Highway's library has a benchmark's timer in it, whose resolution it measures whenever it is loaded: more than 3 ms
// of every start. It asks for it by this name, and takes the program's own before its own; nobody here uses the timer.
#include <hwy/nanobenchmark.h>

std::uint64_t hwy::platform::TimerResolution() {
    return 1;
}
