// The directory of a run that is being written. See run_directory.hpp.
#include "store/run_directory.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>

#include "core/error.hpp"
#include "store/creation_lock.hpp"
#include "store/manifest.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

constexpr std::string_view manifest_part_name = "manifest.json.part";

void refuse_existing(const std::filesystem::path& final_path) {
    if (is_there(final_path))
        throw core::RunError(
            fmt::format("{} exists already; choose another path, or move it away", final_path.string()));
}

/// Says whose the directory in the way is, and what can be done.
[[noreturn]] void throw_taken(const std::filesystem::path& hidden, const std::filesystem::path& final_path) {
    if (is_being_written(hidden))
        throw core::RunError(fmt::format("{} exists already: another weir is writing a run to {}; choose another path",
                                         hidden.string(), final_path.string()));
    if (is_there(hidden / manifest_name))
        throw core::RunError(fmt::format(
            "{0} exists already: a run to {1} that is complete and was ended by force before it got its name; "
            "`weir inspect {0}`, then rename it",
            hidden.string(), final_path.string()));
    if (is_there(hidden / writing_name))
        throw core::RunError(
            fmt::format("{0} exists already: a run to {1} that was ended by force; its master.h5 shows what is there; "
                        "move it away",
                        hidden.string(), final_path.string()));
    throw core::RunError(
        fmt::format("{0} exists already: a run to {1} that was ended by force; look at it with `weir inspect {0}`, "
                    "then move it away",
                    hidden.string(), final_path.string()));
}

std::filesystem::path without_slash(const std::filesystem::path& path) {
    return path.has_filename() ? path : path.parent_path();
}

}  // namespace

bool is_being_written(const std::filesystem::path& run_directory) {
    return is_locked(run_directory / index_name) || is_locked(run_directory / writing_name);
}

RunDirectory::RunDirectory(const std::filesystem::path& final_path, std::string_view locked_name)
    : final_path_(without_slash(final_path)), path_(hidden_path(final_path_)) {
    if (!final_path_.has_filename() || final_path_.filename() == "." || final_path_.filename() == "..")
        throw core::RunError(
            fmt::format("cannot write a run to \"{}\": not a name for a new directory", final_path_.string()));
    const CreationLock alone(final_path_.parent_path());
    refuse_existing(final_path_);
    create();
    try {
        // A run may have got its final name between the look and the mkdir; from now on none can.
        refuse_existing(final_path_);
        directory_ = Directory(path_);
        locked_ = File::create(file(locked_name));
        locked_.lock();
    } catch (const core::RunError&) {
        remove();
        throw;
    }
}

void RunDirectory::create() {
    if (::mkdir(path_.c_str(), 0755) == 0) return;
    const int error_number = errno;
    if (error_number == EEXIST) throw_taken(path_, final_path_);
    const std::filesystem::path folder =
        final_path_.has_parent_path() ? final_path_.parent_path() : std::filesystem::path(".");
    if (error_number == ENOENT && is_there(folder))  // as /proc and /sys say it
        throw core::RunError(fmt::format("cannot write a run to {}: the file system of {} takes no new directories",
                                         final_path_.string(), folder.string()));
    if (error_number == ENOENT)
        throw core::RunError(
            fmt::format("cannot write a run to {}: there is no directory {}; is its file system mounted?",
                        final_path_.string(), final_path_.parent_path().string()));
    throw core::RunError(write_error_text("cannot create", path_, error_number));
}

std::optional<RunDirectory> RunDirectory::adopt(const std::filesystem::path& final_path, std::string_view locked_name) {
    RunDirectory run;
    run.final_path_ = without_slash(final_path);
    run.path_ = hidden_path(run.final_path_);
    const CreationLock alone(run.final_path_.parent_path());
    if (alone.is_taken() || !is_there(run.path_)) return {};
    run.directory_ = Directory(run.path_);
    if (is_there(run.final_path_)) throw core::RunError(fmt::format("{} exists already", run.final_path_.string()));
    run.locked_ = File::open_to_mend(run.file(locked_name));
    if (!run.locked_.try_lock() || !run.locked_.is_whole(0)) return {};
    return run;
}

void RunDirectory::set_room_aside(std::uint64_t bytes) {
    File room = File::create(file(room_name));
    room.allocate(bytes);
    room.close();
}

void RunDirectory::release_room() noexcept {
    std::error_code error;
    std::filesystem::remove(file(room_name), error);
}

void RunDirectory::publish_manifest(const std::string& text) {
    const std::filesystem::path part = file(manifest_part_name);
    std::error_code error;
    std::filesystem::remove(part, error);  // left by a try that failed
    File manifest = File::create(part);
    manifest.write_at(0, std::as_bytes(std::span(text)));
    manifest.sync();
    manifest.close();
    std::filesystem::remove(file(manifest_name), error);
    rename_new(part, file(manifest_name));
    directory_.sync();
}

void RunDirectory::publish_run(std::string_view done_with) {
    const CreationLock alone(final_path_.parent_path());
    if (!done_with.empty()) {
        std::error_code error;
        std::filesystem::remove(file(done_with), error);
        directory_.sync();
    }
    rename_new(path_, final_path_);
    path_ = final_path_;
}

void RunDirectory::remove() noexcept {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
}

void RunDirectory::sync_parent() const {
    Directory(final_path_.parent_path()).sync();
}

}  // namespace weir::store
