// Events lie in a run in the order in which workers finished them, which depends on how many there are. What is said of
// them is said in the order of epoch and number, which does not.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/run_reader.hpp"

namespace weir::app {

class EventOrder {
public:
    /// Called in the order of epoch and number.
    using Say = std::function<void(const std::string& text, bool complete)>;

    /// Where the run has a good index it says what is still to come, and little has to wait: events are out of order by
    /// what workers have in hand, and of several runs by all that is in those before. Without one, and with `index`
    /// false, everything is kept until finish().
    EventOrder(const store::RunReader& run, bool index, Say say);

    /// What there is to say of an event; empty: nothing.
    void put(const store::EventInfo& event, std::string text);
    /// No more events come.
    void finish();

private:
    struct Key {
        std::uint32_t epoch = 0;
        std::uint64_t id = 0;
        std::uint32_t segment = 0;
        std::uint64_t offset = 0;
        auto operator<=>(const Key&) const = default;
    };
    struct Text {
        std::string text;
        bool complete = false;
    };

    void say_first();

    Say say_;
    bool known_ = false;         ///< expected_ is what comes
    std::vector<Key> expected_;  ///< of the index, sorted
    std::size_t next_ = 0;
    std::map<Key, Text> waiting_;
};

}  // namespace weir::app
