// What every room's counters are made of: an enumeration, a table that gives each of its values a name and a sentence
// for the operator, and tallies. A counter is declared in the room that adds to it; observe/counter_sections.hpp has
// them all.
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

struct CounterInfo {
    std::string_view name;  ///< as in the report, dotted: "dropped.late"
    Merge merge;
    std::string_view help;  ///< what a non-zero value usually means, and what to do

    static constexpr CounterInfo summed(std::string_view name, std::string_view help) {
        return {name, Merge::sum, help};
    }
    static constexpr CounterInfo highest(std::string_view name, std::string_view help) {
        return {name, Merge::maximum, help};
    }
};

template <class E>
inline constexpr std::size_t count_of = static_cast<std::size_t>(E::count_);

template <class E>
struct CounterEntry {
    E counter;
    std::string_view name;
    std::string_view help;
    Merge merge = Merge::sum;
};

/// The table in the order of the enumeration. An entry that is missing, misplaced or without a text does not compile.
template <class E, std::size_t N>
consteval std::array<CounterInfo, N> make_counter_table(const CounterEntry<E> (&entries)[N]) {
    static_assert(N == count_of<E>, "every counter has exactly one entry");
    std::array<CounterInfo, N> table{};
    for (std::size_t i = 0; i < N; ++i) {
        if (static_cast<std::size_t>(entries[i].counter) != i) throw "entries must be in the order of the enumeration";
        if (entries[i].name.empty() || entries[i].help.empty()) throw "every counter has a name and a text";
        table[i] = CounterInfo{entries[i].name, entries[i].merge, entries[i].help};
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
