// Opens a run directory, finished or not, or several that are one run together, lists and verifies the events, and
// gives their payload back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/event_scanner.hpp"
#include "store/format.hpp"
#include "store/payload_placer.hpp"
#include "store/run_check.hpp"
#include "store/run_contents.hpp"

namespace weir::store {

class RunReader {
public:
    /// Throws core::RunError when `path` is not a directory with a run in it.
    explicit RunReader(const std::filesystem::path& path);
    /// The runs of `folder` as one, in this order: segments are counted on from one to the next. One at least.
    RunReader(std::filesystem::path folder, const std::vector<const RunReader*>& runs);

    /// The run was closed: it has a manifest that verifies. Of several: all were.
    [[nodiscard]] bool closed() const noexcept;
    /// It has no manifest yet, and a program of this machine is writing to it.
    [[nodiscard]] bool being_written() const noexcept;
    /// The manifest's members; an empty object if there is none. Of several: what is true of all of them.
    [[nodiscard]] const nlohmann::json& manifest() const noexcept { return manifest_; }
    /// What was known when the run started: {"name": …, "start": {…}}, from the first segment; null if that is damaged.
    [[nodiscard]] const nlohmann::json& start() const noexcept { return runs_.front().start; }
    /// Its number; nothing if it has none, or several differ.
    [[nodiscard]] std::optional<std::uint32_t> run() const noexcept;
    [[nodiscard]] core::TimeNs created_ns() const noexcept;
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    /// Of the format: 1 or 2; nothing if neither the manifest nor the first block can be read.
    [[nodiscard]] std::optional<std::uint16_t> version() const noexcept;

    /// Reads every byte of the run and checks that segments, index, manifest and ledger are whole and agree. The hooks
    /// see the events on the way.
    Verification scan(const ScanHooks& hooks) const;
    /// Reads and checks all but the payload: manifest, index, the first block of every segment, and that events lie
    /// there without gaps as the index says; of the first `heads_max` events also what comes before their payload,
    /// which hooks.end sees. A run without a good manifest is read whole, as by scan().
    Verification scan_index(const ScanHooks& hooks, std::uint64_t heads_max) const;

    using EntryFilter = std::function<bool(const IndexEntry&)>;
    /// Where the wanted events lie, in the order of epoch and number: from the index where that is good (32 bytes of
    /// memory each), else by scanning, which finds whole events only. Of an event that several runs have one copy
    /// counts: one that can be read, then a complete one, then that with most payload, then one of a run that its
    /// writer closed, then the first. `left_out`: how many others there are.
    [[nodiscard]] std::vector<IndexEntry> entries(const EntryFilter& wanted, std::uint64_t* left_out = nullptr) const;
    /// Reads the event there, and gives its payload to hooks.payload. Throws core::RunError if it is damaged.
    EventInfo read(const IndexEntry& entry, const ScanHooks& hooks) const;
    /// All of the event there but its payload, which is neither read nor checked. Throws core::RunError.
    [[nodiscard]] EventInfo read_head(const IndexEntry& entry) const;
    /// Of all segment files that are there.
    [[nodiscard]] std::uint64_t stored_bytes() const;
    /// How many segments there are.
    [[nodiscard]] std::uint32_t segments() const noexcept;

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
    [[nodiscard]] std::optional<std::vector<IndexEntry>> from_index(std::size_t run, const EntryFilter& wanted) const;
    [[nodiscard]] std::vector<IndexEntry> by_scanning(std::size_t run) const;
    [[nodiscard]] std::uint64_t leave_out_copies(std::vector<IndexEntry>& entries) const;
    [[nodiscard]] std::size_t run_of(std::uint32_t segment) const noexcept;
    [[nodiscard]] ScanHooks counted_on(const ScanHooks& hooks, std::size_t run) const;
    EventInfo read_at(const IndexEntry& entry, const ScanHooks& caller_hooks, bool head_only) const;

    std::filesystem::path path_;
    std::vector<RunContents> runs_;
    std::vector<std::uint32_t> first_segment_;  ///< of each run, as all are counted
    nlohmann::json manifest_;
};

}  // namespace weir::store
