#include "store/hdf5/recovery.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "store/file.hpp"
#include "store/hdf5/handle.hpp"
#include "store/run_directory.hpp"

namespace weir::store::hdf5 {

namespace {

constexpr std::string_view master_file_name = "master.h5";

/// All but the master, which points to them.
std::vector<std::filesystem::path> data_files(const std::filesystem::path& hidden) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(hidden))
        if (entry.path().extension() == ".h5" && entry.path().filename() != master_file_name)
            files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

/// Opened for writing although it is marked as being written, and closed: what h5clear -s does.
void unmark(const std::filesystem::path& path, std::string_view interrupted) {
    const Session session;
    const Library library(path);
    const Handle access = library.own(h5().H5Pcreate(h5().H5P_CLS_FILE_ACCESS_ID_g), h5().H5Pclose);
    library.check(h5().H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
    library.check(h5().H5Pset_file_locking(access.get(), true, true));
    const hbool_t clear = 1;
    library.check(h5().H5Pset(access.get(), "clear_status_flags", &clear));
    Handle file = library.own(h5().H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), h5().H5Fclose);
    const Handle entry = library.own(h5().H5Gopen2(file.get(), "/entry", H5P_DEFAULT), h5().H5Gclose);
    if (!interrupted.empty() && h5().H5Aexists(entry.get(), "weir_interrupted") == 0)
        library.put_attribute(entry.get(), "weir_interrupted", interrupted);
    library.check(h5().H5Fflush(file.get(), H5F_SCOPE_LOCAL));
    if (!file.close()) throw_library_error("cannot close", path);
    File::open_to_mend(path).sync();
}

}  // namespace

std::optional<Recovered> recover_run(const std::filesystem::path& final_path, const ReadPace& pace) {
    std::optional<RunDirectory> adopted = RunDirectory::adopt(final_path, writing_name);
    if (!adopted) return {};
    RunDirectory& directory = *adopted;
    try {
        const std::vector<std::filesystem::path> files = data_files(directory.path());
        for (const std::filesystem::path& file : files) {
            keep_pace(pace, 1);
            unmark(file, "");
        }
        const std::filesystem::path master = directory.file(master_file_name);
        unmark(master, "the run was interrupted, and closed by the next start");
        directory.release_room();
        directory.publish_run(writing_name);
        directory.sync_parent();
        return Recovered{directory.path(), fmt::format("{} data file{}, up to what was flushed last", files.size(),
                                                       files.size() == 1 ? "" : "s")};
    } catch (const ReadingStopped&) {
        return {};
    } catch (const std::filesystem::filesystem_error& error) {
        throw core::RunError(error.what());
    }
}

}  // namespace weir::store::hdf5
