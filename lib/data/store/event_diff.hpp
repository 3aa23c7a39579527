// What is not the same about two events that have one number: their fate, their sources, what is missing of them, and
// their payload, decoded. Pure: both are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/payload_info.hpp"
#include "store/run_reader.hpp"
#include "wire/image_shape.hpp"

namespace weir::store {

/// An event that has been read, with its payload.
class StoredEvent {
public:
    /// What of a message is there without a gap.
    struct Range {
        std::uint64_t begin = 0;  ///< in the message
        std::uint64_t end = 0;
        std::size_t at = 0;  ///< in bytes()
    };

    /// Throws core::RunError if it is damaged or has more than `bytes_max` of payload.
    StoredEvent(const RunReader& run, const IndexEntry& entry, std::uint64_t bytes_max);

    [[nodiscard]] const EventInfo& info() const noexcept { return info_; }
    /// Of the source with this place in info().sources, in order.
    [[nodiscard]] const std::vector<Range>& ranges(std::size_t source) const noexcept { return ranges_[source]; }
    [[nodiscard]] const std::byte* bytes() const noexcept { return bytes_.data(); }

private:
    void put(std::size_t source, std::uint64_t offset, std::span<const std::byte> piece);

    EventInfo info_;
    std::vector<std::vector<Range>> ranges_;
    std::vector<std::byte> bytes_;
};

/// Something that has a value in each of both, and not the same one.
struct Change {
    std::string_view what;
    nlohmann::json first;
    nlohmann::json second;
};

/// Of two messages, in what both of them have.
struct PayloadDifference {
    struct Pixel {
        std::uint64_t row = 0;  ///< of the source's own image
        std::uint32_t column = 0;
        double first = 0;  ///< NaN: no value, infinity: saturated
        double second = 0;
    };
    static constexpr std::size_t listed_max = 8;

    std::uint64_t compared = 0;              ///< bytes; of different pixel types those of the first
    std::uint64_t bytes = 0;                 ///< that differ; of pixels, those of the pixels that differ
    std::uint64_t first_offset = 0;          ///< where the first of them is, in the first one's message
    std::optional<std::uint8_t> first_byte;  ///< and what is there; only where bytes are compared
    std::optional<std::uint8_t> second_byte;
    // Where the payload is an image:
    std::uint64_t pixels = 0;   ///< that differ
    double largest = 0;         ///< difference between two values of a pixel, both of which are numbers
    std::vector<Pixel> listed;  ///< the first ones
};

struct SourceDifference {
    std::uint32_t id = 0;
    std::vector<Change> changes;
    std::optional<PayloadDifference> payload;
};

struct EventDifference {
    enum class In : std::uint8_t { both, first, second };
    In in = In::both;
    std::uint32_t epoch = 0;
    std::uint64_t id = 0;
    std::vector<Change> changes;
    std::vector<SourceDifference> sources;

    [[nodiscard]] bool none() const noexcept { return in == In::both && changes.empty() && sources.empty(); }
};

/// What payloads are, in each of both runs, and what about them may differ.
struct DiffRules {
    struct Payload {
        PayloadInfo info;          ///< of content `pixels`
        wire::ImageShape image{};  ///< of content `received`
    };
    Payload first;
    Payload second;
    double tolerance = 0;  ///< of pixels
    bool times = false;    ///< when packets came is compared too
};

[[nodiscard]] EventDifference compare_events(const StoredEvent& first, const StoredEvent& second,
                                             const DiffRules& rules);

}  // namespace weir::store
