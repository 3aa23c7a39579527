// A series that is received, as a run: an event file that `weir inspect` verifies. Images go in as they came, packed or
// not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reduce/pack/unpacker.hpp"
#include "store/aligned_bytes.hpp"
#include "store/block_writer.hpp"
#include "store/run_writer.hpp"
#include "stream/stream_message.hpp"

namespace weir::stream {

/// For one thread. Throws core::RunError when the disk fails.
class SeriesRun {
public:
    struct Config {
        std::filesystem::path path;
        std::string name;
        std::uint64_t series_id = 0;
        std::string start_json = "{}";
    };
    explicit SeriesRun(const Config& config);

    /// Writes an image or another event; `event` is what event_of() says of it. Empty, or what keeps it from being one;
    /// nothing of it is written then.
    [[nodiscard]] std::string add(const StreamMessage& message, const std::optional<store::EventInfo>& event);
    /// The run is whole. `manifest` goes with it.
    void close(const nlohmann::json& manifest);
    /// After one of these threw: ends the run with what stayed on the disk.
    void close_what_stayed(const nlohmann::json& manifest);
    /// Events that are in the file; others are in a buffer, or could not be written.
    [[nodiscard]] std::uint64_t stayed() const noexcept { return run_.stats().events; }

    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    [[nodiscard]] std::uint64_t incomplete() const noexcept { return incomplete_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return run_.path(); }

private:
    /// One stretch of an event's payload.
    struct Piece {
        std::span<const std::byte> bytes;
        std::uint64_t raw_bytes = 0;
        store::Encoding encoding = store::Encoding::raw;
        std::uint8_t element_bytes = 0;
    };

    [[nodiscard]] std::string add_foreign(const StreamMessage& message);
    [[nodiscard]] std::string add_own(const StreamMessage& message, const store::EventInfo& event);
    [[nodiscard]] std::string take_image(const StreamMessage& message, const store::EventInfo& event);
    [[nodiscard]] std::string take_byte_strings(const StreamMessage& message, const store::EventInfo& event);
    [[nodiscard]] std::string take_channel(const StreamedChannel& channel);
    [[nodiscard]] std::string unpack(const StreamedChannel& channel, std::vector<std::byte>& to);
    void add_pieces(std::span<const std::byte> bytes);
    void write(const store::EventInfo& event);
    void write_payload(const Piece& piece, bool last);
    void make_room(std::size_t bytes);
    void flush();

    store::RunWriter run_;
    store::AlignedBytes buffer_;
    store::BlockWriter blocks_;
    reduce::pack::Unpacker unpacker_;
    std::vector<Piece> pieces_;                     ///< of the event in hand
    std::vector<std::vector<std::byte>> unpacked_;  ///< what pieces point into
    std::uint64_t events_ = 0;
    std::uint64_t incomplete_ = 0;
};

}  // namespace weir::stream
