#include "store/cluster_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "store/builder_name.hpp"
#include "store/file.hpp"
#include "store/json_members.hpp"
#include "store/manifest.hpp"
#include "store/run_recovery.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

/// Null if the file is empty or is no JSON.
json read_report_file(const std::filesystem::path& path) {
    const File file = File::open_to_read(path);
    const std::uint64_t size = file.size();
    if (size > manifest_bytes_max) return {};
    std::string text(size, '\0');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
    return parse_json(text);
}

const json& run_config_of(const RunReader& run) {
    const json& config = at_or_null(run.manifest(), "config");
    return config.is_object() ? config : at_or_null(at_or_null(run.start(), "start"), "config");
}

RunState state_of(const RunReader& run) {
    if (run.closed()) return run.manifest().contains(interrupted_key) ? RunState::interrupted : RunState::closed;
    if (run.being_written()) return RunState::being_written;
    return is_there(run.path() / manifest_name) ? RunState::damaged : RunState::left;
}

bool looks_like_a_run(const std::filesystem::path& folder) {
    return is_there(folder / segment_name(0)) || is_there(folder / manifest_name) || is_there(folder / "master.h5");
}

/// Reads a folder: first the run directories, which say what cluster it is, then the reports.
class ClusterFinder {
public:
    explicit ClusterFinder(std::filesystem::path folder) { found_.path = std::move(folder); }

    std::optional<ClusterRun> find() {
        list(found_.path, 2);
        // Runs by their final names: an unfinished one stands where it will be when it is finished.
        std::ranges::sort(folders_, {}, [](const auto& path) { return std::filesystem::path(final_name_of(path)); });
        std::ranges::sort(files_);
        for (const std::filesystem::path& path : folders_) add_folder(path);
        if (found_.runs.empty()) return {};
        for (const std::filesystem::path& path : files_) add_report(path);
        name_runs();
        add_accounts();
        note_separate_runs();
        return std::move(found_);
    }

private:
    struct ReportFile {
        std::string name;
        json text;
        ClusterAccount account;
        bool used = false;
    };

    void list(const std::filesystem::path& folder, int levels) {
        std::error_code error;
        for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            std::error_code ignored;
            if (entry->is_directory(ignored))
                looks_like_a_run(entry->path()) ? folders_.push_back(entry->path()) : list_below(entry->path(), levels);
            else if (entry->path().extension() == ".json" && entry->is_regular_file(ignored))
                files_.push_back(entry->path());
        }
        if (error && folder == found_.path)
            throw core::RunError(system_error_text("cannot list", folder, error.value()));
        if (error) found_.notes.push_back(system_error_text("cannot list", folder, error.value()));
    }

    void list_below(const std::filesystem::path& folder, int levels) {
        if (levels > 1) list(folder, levels - 1);
    }

    [[nodiscard]] std::string name_of(const std::filesystem::path& path) const {
        return path.lexically_relative(found_.path).string();
    }

    void add_folder(const std::filesystem::path& path) {
        const std::string name = name_of(path);
        if (is_there(path / "master.h5")) {
            found_.notes.push_back(fmt::format(
                "{} is a run as HDF5 files, which is not read here; weir export --virtual joins them", name));
            return;
        }
        std::optional<RunReader> run;
        try {
            run.emplace(path);
        } catch (const core::RunError& error) {
            found_.notes.push_back(fmt::format("{} is not read: {}", name, error.what()));
            return;
        }
        add_run({*std::move(run), name, RunState::closed, 0, false});
    }

    void add_run(ClusterRun::Run run) {
        const json& config = run_config_of(run.reader);
        std::optional<ClusterAccount> account = read_cluster_account(at_or_null(run.reader.manifest(), "cluster"));
        const json& cluster = at_or_null(config, "cluster");
        if (!account && !cluster.is_object()) {
            found_.notes.push_back(fmt::format("{} is a run of no cluster, and is not read", run.name));
            return;
        }
        const auto nodes = account ? account->nodes : read_cluster_nodes(at_or_null(config, "node"));
        const std::uint64_t block = account ? account->block : number_at(cluster, "block").value_or(0);
        if (found_.runs.empty()) {
            begin(nodes, block);
        } else if (nodes != nodes_ || block != found_.block) {
            throw_different(run.name);
        }
        mark_members(at_or_null(config, "node"));
        run.state = state_of(run.reader);
        run.has_account = account.has_value();
        if (is_second_sink(run)) return;
        accounts_.push_back(std::move(account));
        found_.runs.push_back(std::move(run));
    }

    void begin(const std::vector<ClusterNodeName>& nodes, std::uint64_t block) {
        nodes_ = nodes;
        found_.block = block;
        for (const ClusterNodeName& node : nodes) found_.members.push_back({.name = node.name, .role = node.role});
    }

    [[noreturn]] void throw_different(const std::string& name) const {
        throw core::RunError(
            fmt::format("{} holds runs of different clusters: {} and {} have other nodes or blocks. Inspect them apart",
                        found_.path.string(), found_.runs.front().name, name));
    }

    void mark_members(const json& list) {
        if (!list.is_array()) return;
        for (const json& node : list)
            if (ClusterRun::Member* const member = member_of(text_at(node, "name"))) {
                member->may_manage |= at_or_null(node, "manages") == true || member->role == "manager";
                member->is_spare |= at_or_null(node, "spare") == true;
            }
    }

    /// Two sinks of one builder have the same account, and the same events.
    bool is_second_sink(const ClusterRun::Run& run) {
        if (!run.has_account) return false;
        const json& account = run.reader.manifest()["cluster"];
        for (const ClusterRun::Run& other : found_.runs) {
            if (!other.has_account || at_or_null(other.reader.manifest(), "cluster") != account) continue;
            found_.notes.push_back(
                fmt::format("{} is of another sink of the builder of {}, and is not read", run.name, other.name));
            return true;
        }
        return false;
    }

    void add_report(const std::filesystem::path& path) {
        const std::string name = name_of(path);
        json text;
        try {
            text = read_report_file(path);
        } catch (const core::RunError& error) {
            found_.notes.push_back(fmt::format("{} is not read: {}", name, error.what()));
            return;
        }
        if (text.is_null()) {
            std::error_code error;
            const bool empty = std::filesystem::file_size(path, error) == 0;
            found_.notes.push_back(empty ? fmt::format("{} is empty: who was to write it was ended before that", name)
                                         : fmt::format("{} is no JSON, and is not read", name));
            return;
        }
        std::optional<ClusterAccount> account = read_cluster_account(at_or_null(text, "cluster"));
        if (!account) return;
        ClusterRun::Member* const member = member_of(account->node);
        if (member == nullptr || account->nodes != nodes_ || account->block != found_.block) {
            found_.notes.push_back(fmt::format("{} is a report of another cluster, and is not read", name));
            return;
        }
        member->reports.push_back(said_by(name, text));
        reports_.push_back({name, std::move(text), *std::move(account)});
    }

    static ClusterRun::Report said_by(const std::string& name, const json& text) {
        ClusterRun::Report report{name, text_at(text, "lossless"), {}};
        const json& evidence = at_or_null(text, "evidence");
        if (evidence.is_array())
            for (const json& line : evidence)
                if (line.is_string()) report.evidence.push_back(line.get<std::string>());
        return report;
    }

    ClusterRun::Member* member_of(const std::string& name) {
        const auto found = std::ranges::find(found_.members, name, &ClusterRun::Member::name);
        return found == found_.members.end() ? nullptr : &*found;
    }

    /// Which builder each run is of.
    void name_runs() {
        std::vector<std::size_t> unnamed;
        for (std::size_t i = 0; i < found_.runs.size(); ++i) {
            const std::string name = accounts_[i] ? accounts_[i]->node : guess_builder(found_.runs[i]);
            if (member_of(name) != nullptr && !name.empty())
                give_run(i, name);
            else
                unnamed.push_back(i);
        }
        if (unnamed.empty()) return;
        // One run without a name, and one builder without a run.
        std::vector<std::string> idle;
        for (const ClusterRun::Member& member : found_.members)
            if (member.is_builder() && member.runs.empty()) idle.push_back(member.name);
        if (unnamed.size() == 1 && idle.size() == 1) return give_run(unnamed.front(), idle.front());
        found_.members.push_back({.name = "", .role = "builder"});
        for (const std::size_t run : unnamed) give_run(run, "");
    }

    void give_run(std::size_t run, const std::string& name) {
        ClusterRun::Member& member = *member_of(name);
        found_.runs[run].member = static_cast<std::size_t>(&member - found_.members.data());
        member.runs.push_back(run);
    }

    /// A run that was not closed does not say whose it is: the name of its directory does, where {node} was part of the
    /// path, or a folder of the node's; or the report of its builder, if there is one. Empty: nobody knows.
    std::string guess_builder(const ClusterRun::Run& run) const {
        std::string best = builder_in_name(nodes_, run.name);
        if (!best.empty()) return best;
        for (const ReportFile& report : reports_)
            if (is_report_of(report, run)) return report.account.node;
        return {};
    }

    static bool is_report_of(const ReportFile& report, const ClusterRun::Run& run) {
        const std::filesystem::path path(text_at(report.text, "path"));
        const auto last = [](const std::filesystem::path& of) { return final_name_of(of.filename()); };
        return !path.empty() && last(path) == last(run.name);
    }

    void add_accounts() {
        for (std::size_t i = 0; i < found_.runs.size(); ++i)
            if (accounts_[i]) add_account(found_.members[found_.runs[i].member], *accounts_[i]);
        for (ReportFile& report : reports_) use_report(report);
        for (ClusterRun::Member& member : found_.members)
            member.account_is_whole = member.account && std::ranges::all_of(member.runs, [&](std::size_t run) {
                                          return found_.runs[run].has_account;
                                      });
    }

    /// A builder's manifest says the same as its report; the report stands for a run that has no good manifest.
    void use_report(ReportFile& report) {
        ClusterRun::Member& member = *member_of(report.account.node);
        if (member.is_builder() && !member.runs.empty()) {
            std::vector<ClusterRun::Run*> without;
            for (const std::size_t run : member.runs)
                if (!found_.runs[run].has_account) without.push_back(&found_.runs[run]);
            const auto its = std::ranges::find_if(without, [&](const auto* run) { return is_report_of(report, *run); });
            if (its == without.end()) return;
            (*its)->has_account = true;
        }
        // The same report may lie there under two names.
        for (const ReportFile& other : reports_)
            if (other.used && other.text["cluster"] == report.text["cluster"]) return;
        report.used = true;
        add_account(member, report.account);
        const auto written = number_at(at_or_null(report.text, "events"), "written");
        if (member.is_readout() && written) member.events_sent = member.events_sent.value_or(0) + *written;
    }

    static void add_account(ClusterRun::Member& member, const ClusterAccount& account) {
        if (member.account)
            *member.account += account;
        else
            member.account = account;
    }

    /// A builder that came back has a second run. So has one that took part in two runs of the cluster.
    void note_separate_runs() {
        for (const ClusterRun::Member& member : found_.members)
            for (const std::size_t first : member.runs)
                for (const std::size_t second : member.runs) {
                    const ClusterRun::Run& a = found_.runs[first];
                    const ClusterRun::Run& b = found_.runs[second];
                    const auto closed_ns = number_at(a.reader.manifest(), "closed_ns");
                    if (first == second || a.state != RunState::closed || !closed_ns) continue;
                    if (b.reader.created_ns() <= static_cast<core::TimeNs>(*closed_ns)) continue;
                    found_.notes.push_back(
                        fmt::format("{} has closed {} before it began {}: if these are two runs of the cluster, "
                                    "inspect them apart",
                                    member.name, a.name, b.name));
                }
    }

    ClusterRun found_;
    std::vector<ClusterNodeName> nodes_;
    std::vector<std::filesystem::path> folders_;
    std::vector<std::filesystem::path> files_;
    std::vector<std::optional<ClusterAccount>> accounts_;  ///< by run, of its manifest
    std::vector<ReportFile> reports_;
};

}  // namespace

RunReader ClusterRun::reader() const {
    std::vector<const RunReader*> readers;
    readers.reserve(runs.size());
    for (const Run& run : runs) readers.push_back(&run.reader);
    return {path, readers};
}

std::optional<ClusterRun> find_cluster_run(const std::filesystem::path& folder) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error) || looks_like_a_run(folder)) return {};
    return ClusterFinder(folder.has_filename() ? folder : folder.parent_path()).find();
}

RunReader open_run(const std::filesystem::path& path) {
    const std::optional<ClusterRun> cluster = find_cluster_run(path);
    return cluster ? cluster->reader() : RunReader(path);
}

}  // namespace weir::store
