// What a message of a stream says, for who receives it: DECTRIS' Stream V2 of any sender, and weir's additions to it.
// Made for arbitrary bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reduce/pack/codec.hpp"
#include "store/event_scanner.hpp"
#include "stream/cbor_value.hpp"
#include "stream/element_type.hpp"

namespace weir::stream {

/// One entry of `data`: an image, or bytes.
struct StreamedChannel {
    std::string_view name;
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    const ElementType* type = nullptr;
    std::optional<reduce::pack::Codec> codec;  ///< nothing: `bytes` are as they are
    std::span<const std::byte> bytes;
    std::uint64_t raw_bytes = 0;  ///< decoded; at most channel_bytes_max
};
inline constexpr std::uint64_t channel_bytes_max = std::uint64_t{1} << 30;

/// `other`: of a type that nobody knows, to be passed over.
enum class MessageType : std::uint8_t { start, image, event, end, other };

/// Its texts and bytes are views into the message.
struct StreamMessage {
    MessageType type = MessageType::other;
    std::uint64_t series_id = 0;
    std::string_view series_unique_id;
    std::uint64_t image_id = 0;
    std::vector<StreamedChannel> channels;
    CborValue value;

    /// A member of `user_data`, or null.
    [[nodiscard]] const CborValue* extra(std::string_view key) const noexcept;
};

/// Nothing if `bytes` are no message that can be understood; `problem` then says why. The pixels of packed channels are
/// not unpacked: that they can be is not known.
[[nodiscard]] std::optional<StreamMessage> read_message(std::span<const std::byte> bytes, std::string& problem);

/// What weir says in `user_data` of an event. Nothing if it is another's, or if `problem` is not empty: it contradicts
/// itself.
[[nodiscard]] std::optional<store::EventInfo> event_of(const StreamMessage& message, std::string& problem);

}  // namespace weir::stream
