// What all messages of one run have in common, and their heads: everything of a message but its pixels or bytes.
// docs/reference/STREAM.md has every key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.hpp"
#include "store/event_scanner.hpp"
#include "store/hdf5/layout.hpp"
#include "stream/cbor_writer.hpp"
#include "stream/element_type.hpp"

namespace weir::stream {

/// The only channel of weir's images.
inline constexpr std::string_view channel_name = "default";

struct Series {
    std::uint64_t id = 0;           ///< the run number
    std::string unique_id;          ///< the run's name and number
    std::string arm_date;           ///< when the run started, ISO 8601
    std::string start_json = "{}";  ///< as in the event file
    core::TimeNs date_ns = 0;       ///< of the first event: what times of images are counted from
};

[[nodiscard]] const ElementType& element_type_of(store::hdf5::Element element);

/// `layout`: of images; null if the events are none. `next_image`: the first one that comes after this message.
void put_start(CborWriter& to, const Series& series, const store::hdf5::Layout* layout, std::uint64_t next_image);

/// Up to the value of `data`, which the caller puts. `type`: "image", or "event" for what is none. `preview`: null, or
/// {every, bin}.
void put_event_head(CborWriter& to, std::string_view type, const Series& series, std::uint64_t image_id,
                    const store::EventInfo& event, const std::pair<std::uint32_t, std::uint32_t>* preview = nullptr);

/// {channel: an array of rows and columns, of which the bytes are to follow}. `compression`: of those bytes; empty:
/// none.
void put_image_data(CborWriter& to, std::uint64_t rows, std::uint64_t columns, const ElementType& type,
                    std::string_view compression, std::uint64_t bytes);

/// What became of the events of a run.
struct Totals {
    std::uint64_t events = 0;  ///< sent and dropped
    std::uint64_t sent = 0;
    std::span<const std::string_view> causes;
    std::span<const std::uint64_t> dropped;  ///< by cause
};
void put_end(CborWriter& to, const Series& series, const Totals& totals);

}  // namespace weir::stream
