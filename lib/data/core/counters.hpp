// What every room's counters are made of: an enumeration, a table that says of each of its values what it is called,
// what it means and what becomes of what it counts, and tallies. A counter is declared in the room that adds to it;
// observe/counter_sections.hpp has them all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/one_writer.hpp"

namespace weir::core {

/// How the values of several lcores become one.
enum class Merge : std::uint8_t { sum, maximum };

/// What has become of the packets, messages or events that a counter counts. Whoever asks whether data was lost asks
/// this, never a counter's name.
enum class Fate : std::uint8_t {
    none,     ///< says nothing of that: a level, an effort, how many were begun
    open,     ///< not known yet
    kept,     ///< in the data; or complete, and carries none
    partial,  ///< an event that lacks data, and goes on
    foreign,  ///< no data of a stream, as far as this counter knows
    spared,   ///< data that nobody misses: it is there already, comes again, or was left out on request
    refused,  ///< lost as a whole before it was begun
    lost,
    unread,  ///< a packet that was lost before its number was read, so that numbers miss it, too
};

/// Where what is lost was lost.
enum class Place : std::uint8_t { none, way, device, kernel, weir };
constexpr std::string_view name_of(Place place) {
    constexpr std::array<std::string_view, 5> names{"", "way", "device", "kernel", "weir"};
    return names[static_cast<std::size_t>(place)];
}

/// Counters whose sum means something, too: one metric, in which a label tells them apart.
struct CounterFamily {
    std::string_view metric;  ///< without "weir_" and "_total": "packets_dropped"
    std::string_view label;   ///< "cause"
    std::string_view help;    ///< of the metric
};

struct CounterInfo {
    std::string_view name;  ///< as in the report, dotted: "dropped.late"
    Merge merge = Merge::sum;
    std::string_view help;  ///< what a non-zero value usually means, and what to do
    Fate fate = Fate::none;
    Place place = Place::none;              ///< of losses
    const CounterFamily* family = nullptr;  ///< null: a metric of its own
    bool falls = false;                     ///< may become less within a run

    static constexpr CounterInfo summed(std::string_view name, std::string_view help, Place place = Place::none) {
        return {.name = name, .help = help, .fate = place == Place::none ? Fate::none : Fate::lost, .place = place};
    }
    static constexpr CounterInfo highest(std::string_view name, std::string_view help) {
        return {.name = name, .merge = Merge::maximum, .help = help};
    }
    [[nodiscard]] constexpr CounterInfo in(const CounterFamily& of) const {
        CounterInfo info = *this;
        info.family = &of;
        return info;
    }
    /// The name within its family: "late".
    [[nodiscard]] constexpr std::string_view label_value() const {
        return name.substr(name.find('.') + 1);  // the whole where there is no dot
    }
};

template <class E>
inline constexpr std::size_t count_of = static_cast<std::size_t>(E::count_);

template <class E>
struct CounterEntry {
    E counter;
    std::string_view name;
    std::string_view help;
    Fate fate = Fate::none;
    const CounterFamily* family = nullptr;
    bool falls = false;
};

/// What is lost in packets, messages or events of a table was lost in weir.
constexpr Place place_of(Fate fate) {
    return fate == Fate::lost || fate == Fate::unread || fate == Fate::refused ? Place::weir : Place::none;
}

/// The table in the order of the enumeration. An entry that is missing, misplaced or without a text does not compile.
template <class E, std::size_t N>
consteval std::array<CounterInfo, N> make_counter_table(const CounterEntry<E> (&entries)[N]) {
    static_assert(N == count_of<E>, "every counter has exactly one entry");
    std::array<CounterInfo, N> table{};
    for (std::size_t i = 0; i < N; ++i) {
        const CounterEntry<E>& entry = entries[i];
        if (static_cast<std::size_t>(entry.counter) != i) throw "entries must be in the order of the enumeration";
        if (entry.name.empty() || entry.help.empty()) throw "every counter has a name and a text";
        table[i] = {.name = entry.name,
                    .help = entry.help,
                    .fate = entry.fate,
                    .place = place_of(entry.fate),
                    .family = entry.family,
                    .falls = entry.falls};
    }
    return table;
}

/// Counters of one kind, written by one lcore and read by any thread. Values wrap: a packet that joins on one lcore and
/// whose fate is learnt on another leaves +1 here and -1 there, and only the sum over lcores means something.
template <class E>
class alignas(64) Tally {
public:
    void add(E counter, std::uint64_t n = 1) noexcept {
        core::add(std::atomic_ref<std::uint64_t>(values_[static_cast<std::size_t>(counter)]), n);
    }
    void subtract(E counter, std::uint64_t n) noexcept { add(counter, ~n + 1); }
    /// A packet that was in flight has found its place.
    void account(E counter, std::uint64_t n) noexcept requires(requires { E::in_flight; }) {
        subtract(E::in_flight, n);
        add(counter, n);
    }
    [[nodiscard]] std::uint64_t get(E counter) const noexcept {
        return std::atomic_ref<std::uint64_t>(values_[static_cast<std::size_t>(counter)])
            .load(std::memory_order_relaxed);
    }

private:
    mutable std::array<std::uint64_t, count_of<E>> values_{};
};

}  // namespace weir::core
