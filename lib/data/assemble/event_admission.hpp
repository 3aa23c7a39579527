// Whether a builder takes a new event when there is little room or none: the operator's choice, at the limits that all
// shards have in common.
#pragma once

#include <cstdint>

#include "assemble/event_room.hpp"
#include "assemble/message.hpp"
#include "assemble/overload.hpp"
#include "assemble/shard_board.hpp"

namespace weir::assemble {

class EventAdmission {
public:
    struct Config {
        std::uint32_t open_max = 64;  ///< as in EventBuilder::Config, and so are the others
        std::uint32_t queued_max = 16;
        bool wait = false;
        Overload overload = Overload::evict_oldest;
        std::uint32_t prescale = 1;
        unsigned number_bits = 64;              ///< of the narrowest event number
        const EventRoom* event_room = nullptr;  ///< may be null
    };
    explicit EventAdmission(const Config& config) noexcept
        : config_(config), prescaler_(config.prescale, config.number_bits) {}

    /// What becomes of a new event.
    enum class Ruling : std::uint8_t {
        admitted,
        admitted_for_oldest,  ///< the event that opened first has to make place for it
        wait,                 ///< ask again
        no_room,
        queue_full,
        prescaled,
    };
    /// How things stand when it asks.
    struct Standing {
        ShardBoard::Account own;
        ShardBoard::Account others;
        bool slot_free = true;
        bool held_back = false;  ///< a closed event cannot leave before the shards have agreed about its number
    };
    /// Whether an event of this number may open, and if not, why.
    [[nodiscard]] Ruling rule(const Descriptor& descriptor, std::uint64_t number, const Standing& standing) noexcept;
    /// An event opens.
    void admitted() noexcept {
        if (overloaded()) ++prescale_kept_;
    }
    /// Of what the rx lcores may hold: the fullest of them. Some other builder of the run is overloaded.
    void watch(Fill rx_fill, bool others_overloaded) noexcept {
        rx_fill_ = rx_fill;
        others_overloaded_ = others_overloaded;
    }
    /// Overload::prescale: how much there is, between events.
    void update(const Standing& standing) noexcept { prescaler_.update(fill(standing)); }

    /// Overload::prescale: this builder has too much; how often that began; events taken since, while it lasted.
    [[nodiscard]] const Prescaler& prescaler() const noexcept { return prescaler_; }
    [[nodiscard]] std::uint64_t prescale_kept() const noexcept { return prescale_kept_; }

private:
    [[nodiscard]] bool overloaded() const noexcept { return prescaler_.active() || others_overloaded_; }
    [[nodiscard]] Fill fill(const Standing& standing) const noexcept;

    Config config_;
    Prescaler prescaler_;
    Fill rx_fill_ = Fill::low;
    bool others_overloaded_ = false;
    std::uint64_t prescale_kept_ = 0;
};

}  // namespace weir::assemble
