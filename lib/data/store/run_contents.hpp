// What a run says of itself before its events are read: its manifest, the head of its first segment, the files that are
// there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/event_scanner.hpp"

namespace weir::store {

struct RunContents {
    /// Throws core::RunError when `path` is not a directory with a run in it.
    explicit RunContents(const std::filesystem::path& path);

    /// Tells a scanner which blocks are this run's.
    void identify(EventScanner& scanner) const;

    std::filesystem::path path;
    bool closed = false;         ///< it has a manifest that verifies
    bool being_written = false;  ///< it has no manifest yet, and a program of this machine is writing to it
    std::string manifest_problem;
    nlohmann::json manifest = nlohmann::json::object();
    nlohmann::json start;  ///< from the first segment: what was known when the run started
    std::optional<std::uint32_t> run;
    std::optional<std::uint64_t> run_tag;
    std::optional<std::uint16_t> version;
    core::TimeNs created_ns = 0;
    std::vector<std::string> segments;  ///< file names, in order
    std::vector<std::string> unlisted;  ///< segment files that the manifest does not know

private:
    void list_segments();
    void read_manifest();
    void read_first_head();
};

}  // namespace weir::store
