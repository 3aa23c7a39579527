// What it costs to hand things from lcore to lcore through port::Ring: nanoseconds per element on one core (the
// instructions), from core to core (the cache lines as well), and the one-way latency of a single element, before and
// after, because guests' cores move apart and together. handoff [--seconds S] [--json FILE]
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "assemble/event.hpp"
#include "assemble/message.hpp"
#include "port/buffers.hpp"
#include "port/eal.hpp"
#include "port/ring.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using weir::port::Ring;

constexpr std::uint32_t capacity = 1024;
constexpr int repetitions = 7;
double seconds_per_case = 0.1;

void pin(std::uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

double ns_since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

struct Spread {
    double median = 0;
    double least = 0;
    double most = 0;
};

template <class Measure>
Spread repeated(Measure measure) {
    std::vector<double> found;
    for (int i = 0; i < repetitions; ++i) found.push_back(measure());
    std::ranges::sort(found);
    return {found[found.size() / 2], found.front(), found.back()};
}

/// In bursts of `burst`, in and out again on one core.
template <class T>
double one_core(Ring<T>& ring, std::uint32_t burst) {
    std::vector<T> items(burst);
    std::uint64_t count = 0;
    const auto start = Clock::now();
    do {
        for (int i = 0; i < 256; ++i) {
            ring.push(items);
            count += ring.pop(items);
        }
    } while (ns_since(start) < seconds_per_case * 1e9);
    return ns_since(start) / static_cast<double>(count);
}

/// From a producer on one core to a consumer on another, both as fast as they can.
template <class T>
double two_cores(Ring<T>& ring, std::uint32_t burst, const std::array<std::uint32_t, 2>& cpus) {
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        pin(cpus[0]);
        std::vector<T> items(burst);
        while (!stop.load(std::memory_order_relaxed)) ring.push(items);
    });
    std::vector<T> items(burst);
    while (ring.pop(items) == 0) {
    }
    std::uint64_t count = 0;
    const auto start = Clock::now();
    do {
        for (int i = 0; i < 256; ++i) count += ring.pop(items);
    } while (ns_since(start) < seconds_per_case * 1e9);
    const double ns = ns_since(start) / static_cast<double>(std::max<std::uint64_t>(count, 1));
    stop.store(true, std::memory_order_relaxed);
    producer.join();
    while (ring.pop(items) > 0) {
    }
    return ns;
}

/// Half a round trip of one element.
double latency(Ring<void*>& there, Ring<void*>& back, const std::array<std::uint32_t, 2>& cpus) {
    std::atomic<bool> stop{false};
    std::thread mirror([&] {
        pin(cpus[0]);
        std::array<void*, 1> item{};
        while (!stop.load(std::memory_order_relaxed))
            if (there.pop(item) == 1) back.push(item[0]);
    });
    std::array<void*, 1> item{};
    std::uint64_t trips = 0;
    const auto start = Clock::now();
    do {
        for (int i = 0; i < 64; ++i) {
            there.push(item[0]);
            while (back.pop(item) == 0) {
            }
            ++trips;
        }
    } while (ns_since(start) < seconds_per_case * 1e9);
    const double ns = ns_since(start) / static_cast<double>(trips) / 2;
    stop.store(true, std::memory_order_relaxed);
    mirror.join();
    return ns;
}

class Table {
public:
    void add(const std::string& name, const Spread& ns) {
        fmt::print("{:44} {:7.1f} ns ({:.1f} to {:.1f})\n", name, ns.median, ns.least, ns.most);
        json_.push_back({{"case", name}, {"ns", ns.median}, {"ns_min", ns.least}, {"ns_max", ns.most}});
    }
    void write(const std::string& file) const {
        if (!file.empty()) std::ofstream(file) << json_.dump(1) << '\n';
    }

private:
    nlohmann::json json_ = nlohmann::json::array();
};

template <class T>
void measure(Table& table, const char* what, const std::vector<std::uint32_t>& cpus) {
    Ring<T> ring(fmt::format("bench.{}", what), capacity);
    for (const std::uint32_t burst : {1U, 32U}) {
        const std::string name = fmt::format("{} of {} B, bursts of {}", what, sizeof(T), burst);
        table.add(name + ", one core", repeated([&] { return one_core(ring, burst); }));
        if (cpus.size() > 1)
            table.add(name + ", core to core", repeated([&] { return two_cores(ring, burst, {cpus[1], cpus[0]}); }));
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string json_file;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--json") json_file = argv[i + 1];
        if (std::string(argv[i]) == "--seconds") seconds_per_case = std::stod(argv[i + 1]);
    }
    try {
        const std::vector<std::uint32_t> cpus = weir::port::usable_cpus();
        weir::port::EalConfig eal;
        eal.memory_bytes = 32U << 20U;
        eal.pin = false;
        weir::port::start_eal(eal);
        pin(cpus[0]);
        Table table;
        {
            Ring<void*> there("bench.there", 64);
            Ring<void*> back("bench.back", 64);
            const auto trip = [&] { return latency(there, back, {cpus[1], cpus[0]}); };
            if (cpus.size() > 1) table.add("one way, one element, before", repeated(trip));
            measure<weir::port::Packet>(table, "packet", cpus);
            measure<weir::assemble::Descriptor>(table, "descriptor", cpus);
            measure<weir::assemble::Event*>(table, "event", cpus);
            if (cpus.size() > 1) table.add("one way, one element, after", repeated(trip));
        }
        table.write(json_file);
        weir::port::stop_eal();
    } catch (const std::exception& error) {
        fmt::print(stderr, "handoff: {}\n", error.what());
        return 1;
    }
}
