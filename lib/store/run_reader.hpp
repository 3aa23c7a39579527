// Opens a run directory, finished or not, lists and verifies its events, and gives their payload back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/event_scanner.hpp"
#include "store/manifest.hpp"

namespace weir::store {

/// The result of reading everything.
struct Verification {
    bool verified = false;              ///< nothing is wrong and nothing is missing
    std::vector<std::string> problems;  ///< the first hundred, one sentence each
    std::uint64_t problem_count = 0;
    std::uint64_t events = 0;
    std::uint64_t complete = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t stored_bytes = 0;  ///< all segments
    std::uint64_t segments = 0;
    std::uint64_t heads = 0;  ///< events of which everything but the payload was read; `complete` counts among them
    /// What payload blocks have, by encoding; empty where the payload was not read.
    std::map<Encoding, EncodingTotals> encodings;
    bool payload_read = true;  ///< false: `verified` says nothing of the payload
};

/// Maps the compact payload of an event to places in the messages of its sources; where the payload is not what was
/// received, to places in their parts of it, which have no gaps.
class PayloadPlacer {
public:
    /// Called with the index of the source in the event, the offset in its message, and the bytes there. Where the size
    /// of a message was never learnt, offsets count what was received, apart from gaps that are known.
    using Sink = std::function<void(std::size_t source_index, std::uint64_t offset, std::span<const std::byte>)>;

    PayloadPlacer(const EventInfo& event, Sink sink) : event_(event), sink_(std::move(sink)) {}
    void take(std::span<const std::byte> payload);

private:
    const EventInfo& event_;
    Sink sink_;
    std::size_t source_ = 0;
    std::size_t gap_ = 0;
    std::uint64_t offset_ = 0;
    std::uint64_t taken_ = 0;
};

/// Reads the entries of an index file one by one.
class IndexReader {
public:
    IndexReader(const std::filesystem::path& path, std::uint64_t run_tag, std::optional<std::uint16_t> version);
    /// Nothing at the end, or at damage: then problem() is not empty.
    std::optional<IndexEntry> next();
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return reader_.blocks(); }
    [[nodiscard]] std::uint32_t headers_crc() const noexcept { return reader_.headers_crc(); }

private:
    FileSource file_;
    BlockReader reader_;
    Block block_;
    std::size_t at_ = 0;
    std::string problem_;
};

class RunReader {
public:
    /// Throws core::RunError when `path` is not a directory with a run in it.
    explicit RunReader(const std::filesystem::path& path);

    /// The run was closed: it has a manifest that verifies.
    [[nodiscard]] bool closed() const noexcept { return closed_; }
    /// It has no manifest yet, and a program of this machine is writing to it.
    [[nodiscard]] bool being_written() const noexcept { return being_written_; }
    /// The manifest's members; an empty object if there is none.
    [[nodiscard]] const nlohmann::json& manifest() const noexcept { return manifest_; }
    /// What was known when the run started: {"name": …, "start": {…}}, from the first segment; null if that is damaged.
    [[nodiscard]] const nlohmann::json& start() const noexcept { return start_; }
    [[nodiscard]] std::optional<std::uint32_t> run() const noexcept { return run_; }
    [[nodiscard]] core::TimeNs created_ns() const noexcept { return created_ns_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    /// Of the format: 1 or 2; nothing if neither the manifest nor the first block can be read.
    [[nodiscard]] std::optional<std::uint16_t> version() const noexcept { return version_; }

    /// Reads every byte of the run and checks that segments, index, manifest and ledger are whole and agree. The hooks
    /// see the events on the way.
    Verification scan(const ScanHooks& hooks) const;
    /// Reads and checks all but the payload: manifest, index, the first block of every segment, and that events lie
    /// there without gaps as the index says; of the first `heads_max` events also what comes before their payload,
    /// which hooks.end sees. A run without a good manifest is read whole, as by scan().
    Verification scan_index(const ScanHooks& hooks, std::uint64_t heads_max) const;

    using EntryFilter = std::function<bool(const IndexEntry&)>;
    /// Where the wanted events lie, in the order of epoch and number: from the index where that is good (32 bytes of
    /// memory each), else by scanning, which finds whole events only.
    [[nodiscard]] std::vector<IndexEntry> entries(const EntryFilter& wanted) const;
    /// Reads the event there, and gives its payload to hooks.payload. Throws core::RunError if it is damaged.
    EventInfo read(const IndexEntry& entry, const ScanHooks& hooks) const;
    /// All of the event there but its payload, which is neither read nor checked. Throws core::RunError.
    [[nodiscard]] EventInfo read_head(const IndexEntry& entry) const;
    /// Of all segment files that are there.
    [[nodiscard]] std::uint64_t stored_bytes() const;

    /// The event with this number: from the index where that is good, else by scanning. Nothing if there is none;
    /// throws core::RunError if `epoch` is not given and several epochs have one.
    [[nodiscard]] std::optional<EventInfo> find(std::optional<std::uint32_t> epoch, std::uint64_t id) const;

    /// Reads the payload of an event that scan() or find() gave. Throws core::RunError if it is damaged.
    void read_payload(const EventInfo& event, const PayloadPlacer::Sink& sink) const;
    /// The received bytes of one source of it, missing ranges left out.
    [[nodiscard]] std::vector<std::byte> payload(const EventInfo& event, std::uint32_t source) const;

    /// The index file as it is, in the order of the segments; nothing where there is none that can be trusted.
    [[nodiscard]] std::optional<std::vector<IndexEntry>> index() const;
    /// The index as scanning gives it, whether or not there is a file.
    [[nodiscard]] std::vector<IndexEntry> rebuild_index() const;

private:
    class Check;

    void read_manifest();
    void read_first_head();
    void list_segments();
    [[nodiscard]] std::optional<std::vector<IndexEntry>> from_index(const EntryFilter& wanted) const;
    /// Which blocks are this run's.
    void identify(EventScanner& scanner) const;
    EventInfo read_at(const IndexEntry& entry, const ScanHooks& caller_hooks, bool head_only) const;

    std::filesystem::path path_;
    bool closed_ = false;
    bool being_written_ = false;
    std::string manifest_problem_;
    nlohmann::json manifest_ = nlohmann::json::object();
    nlohmann::json start_;
    std::optional<std::uint32_t> run_;
    std::optional<std::uint64_t> run_tag_;
    std::optional<std::uint16_t> version_;
    core::TimeNs created_ns_ = 0;
    std::vector<std::string> segments_;   ///< file names, in order
    std::vector<std::string> strangers_;  ///< segment files that the manifest does not know
};

}  // namespace weir::store
