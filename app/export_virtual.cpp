// `weir export --to hdf5 --virtual`. See export_virtual.hpp.
#include "export_virtual.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "output_file.hpp"
#include "run_text.hpp"
#include "store/file.hpp"
#include "store/hdf5/master_file.hpp"
#include "store/hdf5/virtual_master.hpp"
#include "store/run_path.hpp"

namespace weir::app {

namespace {

/// Not master.h5: a folder with that in it is taken for one run, and the event files of the builders beside it would
/// not be found any more.
constexpr const char* usual_name = "cluster.h5";

/// A file that goes if it does not become whole.
class HiddenFile {
public:
    explicit HiddenFile(const std::filesystem::path& final_path)
        : final_path_(final_path), path_(store::hidden_path(final_path)) {}
    ~HiddenFile() {
        std::error_code error;
        if (!finished_) std::filesystem::remove(path_, error);
    }
    HiddenFile(const HiddenFile&) = delete;
    HiddenFile& operator=(const HiddenFile&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    void finish() {
        store::rename_new(path_, final_path_);
        finished_ = true;
    }

private:
    std::filesystem::path final_path_;
    std::filesystem::path path_;
    bool finished_ = false;
};

/// Where the folder that the file goes to is the one with the runs.
void refuse_name_of_a_run(const std::filesystem::path& out, const std::filesystem::path& folder) {
    if (out.filename() != store::hdf5::master_name) return;
    std::error_code error;
    const std::filesystem::path parent = out.has_parent_path() ? out.parent_path() : ".";
    if (std::filesystem::equivalent(parent, folder, error))
        throw core::UsageError(
            fmt::format("export: --out: {}: a folder with a {} is taken for one run; take another "
                        "name, like {}",
                        out.string(), store::hdf5::master_name, usual_name));
}

std::size_t data_files(const store::hdf5::BuilderFiles& found) {
    std::size_t count = 0;
    for (const store::hdf5::BuilderRun& run : found.runs) count += run.files.size();
    return count;
}

}  // namespace

int export_virtual(const std::filesystem::path& folder, std::filesystem::path out, bool quiet) {
    if (out.empty()) out = folder / usual_name;
    refuse_name_of_a_run(out, folder);
    refuse_existing(out);
    const store::hdf5::BuilderFiles found = store::hdf5::find_builder_files(folder);
    const store::hdf5::MergedEvents events = store::hdf5::merge_events(found);
    HiddenFile file(out);
    store::hdf5::write_virtual_master(file.path(), out, found, events);
    file.finish();
    if (!quiet) {
        core::print_stderr("{} of {} in {}, which shows {} and has no copy of them: move them together\n",
                           count_text(events.places.size(), "event"), count_text(found.runs.size(), "run"),
                           out.string(), count_text(data_files(found), "data file"));
        if (events.copies > 0) core::print_stderr("{}\n", copies_text(events.copies));
    }
    for (const std::string& note : found.notes) core::print_stderr("weir: {}\n", note);
    for (const std::string& builder : found.without_run)
        core::print_stderr("weir: {} has no run of the builder {}: if it has written events, {} lacks them\n",
                           folder.string(), builder, out.string());
    return found.without_run.empty() ? 0 : 1;
}

}  // namespace weir::app
