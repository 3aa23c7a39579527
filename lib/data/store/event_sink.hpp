// What takes events in the event file's blocks and keeps them: the event file itself, and whatever else stores events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::store {

/// Used by one ordinary thread (but see free_bytes); may block. Made ready by its constructor, which throws
/// core::RunError; all that it creates is path() or lies in it.
class EventSink {
public:
    static constexpr std::size_t drop_causes_max = 4;
    struct Stats {
        std::uint64_t bytes = 0;          ///< stored
        std::uint64_t blocks = 0;         ///< stored
        std::uint64_t events = 0;         ///< whole events stored: the ledger's `written`
        std::uint64_t payload_bytes = 0;  ///< of those events, before encoding
        std::uint64_t synced_bytes = 0;   ///< of `bytes`, on the device if the system told the truth
        std::uint64_t synced_events = 0;
        std::uint64_t segments = 0;
        std::uint64_t interrupted = 0;                         ///< times that who takes them went away in the middle
        std::array<std::uint64_t, drop_causes_max> dropped{};  ///< events that were left out, as causes_of_drops()
    };

    EventSink() = default;
    /// Without close() what is there stays under its hidden name, readable as far as the kind of sink allows.
    virtual ~EventSink() = default;
    EventSink(const EventSink&) = delete;
    EventSink& operator=(const EventSink&) = delete;

    /// Takes the blocks of one buffer, in BlockWriter's order; may change what they leave open for the sink (sequence,
    /// run_tag, header_crc), which the next sink does not rely on. Buffers that share an event follow each other.
    /// Throws core::RunError on an error: failed() is then true, nothing more is taken (further calls throw), and
    /// stats().events is the number of events that stayed; all others that were handed over are lost.
    virtual void append(std::span<std::byte> blocks) = 0;
    /// So many of the latest buffers given to append() are still being read; the older ones are free. 0 once failed()
    /// or finish_data(). A sink that writes without waiting lets go of them in collect().
    [[nodiscard]] virtual std::size_t held() const noexcept { return 0; }
    /// Looks what has been finished since, without waiting. Throws as append().
    virtual void collect() {}
    /// Syncs if that is due by bytes or time; an idle thread calls it.
    virtual void sync_if_due() = 0;

    /// Nothing more comes: afterwards stats().events are the events that are on the device, and they do not change any
    /// more. Throws core::RunError if this finds an error and there was none before. Before the account is drawn up.
    virtual void finish_data() = 0;
    /// Completes what is stored and gives it its final name; calls finish_data() before, if that was not done.
    /// `manifest_extra` ("ledger", "config", "machine", …) is kept with it. Throws core::RunError.
    virtual void close(const nlohmann::json& manifest_extra) = 0;

    [[nodiscard]] virtual const Stats& stats() const noexcept = 0;
    [[nodiscard]] virtual bool failed() const noexcept = 0;
    /// Where it is now: under its hidden name, after close() the final one. Empty: it writes no files.
    [[nodiscard]] virtual const std::filesystem::path& path() const noexcept = 0;
    /// What may still be written on its file system; nothing if the system does not say. May block as a write does.
    [[nodiscard]] virtual std::optional<std::uint64_t> free_bytes() const noexcept = 0;

    /// Where it is, for people: its path, or addresses.
    [[nodiscard]] virtual std::string place() const { return path().string(); }
    /// Why it leaves events out, apart from errors; at most drop_causes_max, always the same.
    [[nodiscard]] virtual std::span<const std::string_view> causes_of_drops() const noexcept { return {}; }
    /// It was told to leave out what it cannot take in time: beside a sink that was not, this is no loss of the run.
    [[nodiscard]] virtual bool may_leave_out() const noexcept { return false; }
    /// Whoever it is for is there, or need not be waited for any more: the run may begin.
    [[nodiscard]] virtual bool is_ready() { return true; }
    /// The run is being stopped: a sink that waits for others does not wait for ever any more, or, `at_once`, not at
    /// all. Any thread.
    virtual void stopping(bool /*at_once*/) noexcept {}

    /// Buffers have to be whole multiples of this, in their memory's address too, to be taken as they are: 4096 where
    /// the sink goes past the page cache. Known once the sink is made.
    [[nodiscard]] virtual std::size_t alignment() const noexcept { return 64; }
    /// How it writes, for the report and the manifest; and in words, for the start of a run. Empty: there is nothing to
    /// say.
    [[nodiscard]] virtual nlohmann::json how() const;
    [[nodiscard]] virtual std::string how_text() const { return {}; }
};

}  // namespace weir::store
