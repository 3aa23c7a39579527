// A run that is spread over the nodes of a cluster: a folder with a run directory of each builder, and the reports of
// readout nodes and others; or with a folder of these for each node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/cluster_run_account.hpp"
#include "store/run_reader.hpp"

namespace weir::store {

/// How the writing of a run directory ended.
enum class RunState : std::uint8_t {
    closed,         ///< by its writer
    interrupted,    ///< its writer was ended by force, and a later start closed it
    left,           ///< its writer was ended by force, and nobody has closed it
    being_written,  ///< by a program of this machine
    damaged,        ///< it has a manifest that does not verify
};

struct ClusterRun {
    struct Run {
        RunReader reader;
        std::string name;  ///< of its directory, from the folder on
        RunState state = RunState::closed;
        std::size_t member = 0;
        bool has_account = false;  ///< its manifest or its builder's report says what the builder has counted
    };
    struct Report {
        std::string name;  ///< of its file
        std::string lossless;
        std::vector<std::string> evidence;
    };
    struct Member {
        std::string name;  ///< empty: of a builder whose run does not say which it is
        std::string role;
        bool may_manage = false;
        bool is_spare = false;  ///< it may have been absent
        std::vector<std::size_t> runs{};
        std::vector<Report> reports{};
        std::optional<ClusterAccount> account{};     ///< of all its starts that have left one
        bool account_is_whole = false;               ///< no start is known that has left none
        std::optional<std::uint64_t> events_sent{};  ///< of a readout node: events that it had for the builders

        [[nodiscard]] bool is_builder() const { return role == "builder"; }
        [[nodiscard]] bool is_readout() const { return role == "readout"; }
        [[nodiscard]] bool is_found() const { return !runs.empty() || !reports.empty(); }
    };

    std::filesystem::path path;
    std::uint64_t block = 0;         ///< event numbers of a block
    std::vector<Member> members;     ///< as their list has them
    std::vector<Run> runs;           ///< in the order of their names
    std::vector<std::string> notes;  ///< what else lies there, and what is doubtful: a sentence each

    /// All runs as one.
    [[nodiscard]] RunReader reader() const;
};

/// Nothing if the folder is itself a run, or none of a cluster is in it. Throws core::RunError if it holds runs of
/// different clusters.
[[nodiscard]] std::optional<ClusterRun> find_cluster_run(const std::filesystem::path& folder);

/// The run there, or those of a cluster's builders in that folder as one. Throws core::RunError if there is neither.
[[nodiscard]] RunReader open_run(const std::filesystem::path& path);

}  // namespace weir::store
