// The HDF5 runs of a cluster's builders. See builder_files.hpp.
#include "store/hdf5/builder_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "store/builder_name.hpp"
#include "store/cluster_run_account.hpp"
#include "store/file.hpp"
#include "store/hdf5/input_file.hpp"
#include "store/hdf5/layout_reader.hpp"
#include "store/hdf5/master_file.hpp"
#include "store/json_members.hpp"
#include "store/run_directory.hpp"

namespace weir::store::hdf5 {

namespace {

using nlohmann::json;

/// Which cluster a run is of.
struct ClusterIdentity {
    std::vector<ClusterNodeName> nodes;
    std::uint64_t block = 0;
    bool operator==(const ClusterIdentity&) const = default;
};

bool looks_like_a_run(const std::filesystem::path& folder) {
    return is_there(folder / master_name) || is_there(folder / data_name(0));
}

/// The `nexus` table of its hdf5 sink.
json nexus_of(const json& start) {
    const json& sinks = at_or_null(at_or_null(start, "config"), "sink");
    if (sinks.is_array())
        for (const json& sink : sinks)
            if (text_at(sink, "kind") == "hdf5") return at_or_null(sink, "nexus");
    return {};
}

class BuilderFilesFinder {
public:
    explicit BuilderFilesFinder(const std::filesystem::path& folder) { found_.folder = folder; }

    BuilderFiles find() {
        if (looks_like_a_run(found_.folder))
            throw core::RunError(
                fmt::format("{0} is itself one run, and {0}/{1} shows all of it: give the folder that the builders' "
                            "runs are in",
                            found_.folder.string(), master_name));
        list(found_.folder, 2);
        if (folders_.empty())
            throw core::RunError(
                fmt::format("{} has no runs as HDF5 files of a cluster's builders", found_.folder.string()));
        std::ranges::sort(folders_);
        for (const std::filesystem::path& path : folders_) add_run(path);
        for (const ClusterNodeName& node : cluster_->nodes)
            if (node.role == "builder" &&
                std::ranges::find(found_.runs, node.name, &BuilderRun::node) == found_.runs.end())
                found_.without_run.push_back(node.name);
        return std::move(found_);
    }

private:
    void list(const std::filesystem::path& folder, int levels) {
        std::error_code error;
        for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            std::error_code ignored;
            if (!entry->is_directory(ignored)) continue;
            if (looks_like_a_run(entry->path()))
                folders_.push_back(entry->path());
            else if (levels > 1)
                list(entry->path(), levels - 1);
        }
        if (error) throw core::RunError(system_error_text("cannot list", folder, error.value()));
    }

    void add_run(const std::filesystem::path& path) {
        refuse_unfinished(path);
        if (!is_there(path / master_name))
            throw core::RunError(fmt::format("{} is missing", (path / master_name).string()));
        const InputFile master(path / master_name);
        BuilderRun run;
        run.name = path.lexically_relative(found_.folder).string();
        run.path = path;
        run.start_json = master.text("/entry/weir/start");
        const json start = json::parse(run.start_json, nullptr, false);
        if (!start.is_object())
            throw core::RunError(fmt::format("{}: no master of a run of weir", master.path().string()));
        take_cluster(master, start, run);
        run.interrupted = master.has_attribute("/entry", "weir_interrupted");
        if (run.interrupted)
            found_.notes.push_back(
                fmt::format("{} was interrupted: its events are those that were flushed before", run.name));
        note_other_nexus(start, run.name);
        read_data_files(master, describe(start, {}), run);
        found_.runs.push_back(std::move(run));
    }

    static void refuse_unfinished(const std::filesystem::path& path) {
        if (final_name_of(path) == path.string()) return;
        throw core::RunError(
            fmt::format("{} is not finished: {}", path.string(),
                        is_being_written(path)
                            ? "it is being written; wait for its end"
                            : "its builder was ended by force. The next start of that builder closes it; or move "
                              "it away, to do without its events"));
    }

    void take_cluster(const InputFile& master, const json& start, BuilderRun& run) {
        const json& config = at_or_null(start, "config");
        const json& cluster = at_or_null(config, "cluster");
        const json section = json::parse(master.text("/entry/weir/cluster"), nullptr, false);
        const std::optional<ClusterAccount> account = read_cluster_account(section);
        if (!account && !cluster.is_object())
            throw core::RunError(fmt::format("{} is a run of no cluster: move it away", run.path.string()));
        ClusterIdentity identity{account ? account->nodes : read_cluster_nodes(at_or_null(config, "node")),
                                 account ? account->block : number_at(cluster, "block").value_or(0)};
        if (!cluster_)
            cluster_ = std::move(identity);
        else if (*cluster_ != identity)
            throw core::RunError(
                fmt::format("{} holds runs of different clusters: {} and {} have other nodes or blocks",
                            found_.folder.string(), found_.runs.front().name, run.name));
        run.node = account ? account->node : builder_in_name(cluster_->nodes, run.name);
    }

    void note_other_nexus(const json& start, const std::string& name) {
        json nexus = nexus_of(start);
        if (!nexus_)
            nexus_ = std::move(nexus);
        else if (*nexus_ != nexus)
            found_.notes.push_back(
                fmt::format("{} has another table nexus than {}, whose is taken", name, found_.runs.front().name));
    }

    void read_data_files(const InputFile& master, const Description& description, BuilderRun& run) {
        RunPosition next;
        const std::uint64_t count = count_data_files(master, run);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::filesystem::path path = run.path / data_name(i);
            if (!is_there(path))
                throw core::RunError(fmt::format("{} is missing: {} is made of {} data file{}", path.string(),
                                                 master.path().string(), count, count == 1 ? "" : "s"));
            run.files.push_back(read_data_file(path, description, run));
            const BuilderDataFile& file = run.files.back();
            if (file.begin.events != next.events)
                throw core::RunError(fmt::format("{}: damaged: its first event is number {} of the run, and not {}",
                                                 path.string(), file.begin.events, next.events));
            next.events += file.events;
        }
        if (run.interrupted || count == 0) return;
        const std::vector<hsize_t> all = master.shape("/entry/events/number");
        if (all.size() != 1 || all.front() != next.events)
            throw core::RunError(fmt::format("{}: its data files have {} events, and it has {}", master.path().string(),
                                             next.events, all.empty() ? 0 : all.front()));
    }

    /// The master links to each. That of an interrupted run may not know of the last one yet.
    static std::uint64_t count_data_files(const InputFile& master, const BuilderRun& run) {
        std::uint64_t linked = 0;
        while (master.has(fmt::format("/entry/data/data_{:06}", linked)) ||
               master.has(fmt::format("/entry/data/payload_{:06}", linked)))
            ++linked;
        if (!is_there(run.path / data_name(linked))) return linked;
        if (run.interrupted) return linked + 1;
        throw core::RunError(fmt::format("{} is of another run: {} does not name it",
                                         (run.path / data_name(linked)).string(), master.path().string()));
    }

    BuilderDataFile read_data_file(const std::filesystem::path& path, const Description& description,
                                   const BuilderRun& run) {
        const InputFile file(path);
        if (file.text("/entry/weir/start") != run.start_json)
            throw core::RunError(fmt::format("{} is of another run than the {} beside it", path.string(), master_name));
        Layout layout = read_layout(file, description);
        if (!found_.layout) {
            first_ = path;
            found_.layout = layout;
        } else if (layout_text(*found_.layout) != layout_text(layout)) {
            throw core::RunError(fmt::format("{} does not fit {}: it has {}; that has {}", path.string(),
                                             first_.string(), layout_text(layout), layout_text(*found_.layout)));
        }
        const RowCounts rows = count_rows(file, layout, run.interrupted);
        BuilderDataFile content{path, {}, rows.events, rows.missing, 0};
        content.begin.events = file.number("/entry", "weir_first_event");
        content.begin.missing = file.number("/entry", "weir_first_missing");
        if (layout.image) return content;
        content.begin.payload_bytes = file.number("/entry", "weir_first_payload_byte");
        content.payload_bytes = file.shape("/entry/data/payload").front();
        return content;
    }

    BuilderFiles found_;
    std::vector<std::filesystem::path> folders_;
    std::optional<ClusterIdentity> cluster_;
    std::optional<json> nexus_;
    std::filesystem::path first_;  ///< the file that layout is of
};

}  // namespace

BuilderFiles find_builder_files(const std::filesystem::path& folder) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
        throw core::RunError(fmt::format("{} is no folder", folder.string()));
    const Session session;
    return BuilderFilesFinder(folder.has_filename() ? folder : folder.parent_path()).find();
}

}  // namespace weir::store::hdf5
