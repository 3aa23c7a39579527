// The directory of a run that is being written: hidden until the run is complete, taken by one writer, with room set
// aside for the end of a run on a full disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/file.hpp"

namespace weir::store {

/// Only takes up space, until a run ends.
inline constexpr std::string_view room_name = "room-for-the-end";

/// Of sinks that have no index: empty, and locked for as long as the run is written.
inline constexpr std::string_view writing_name = ".writing";

/// Whether somebody writes to the run in this directory at this moment. The writer holds a lock on the index, or on the
/// file that stands for it, for as long as it lives; on file systems without locks this is always false.
bool is_being_written(const std::filesystem::path& run_directory);

class RunDirectory {
public:
    /// Creates `.NAME.part` beside `final_path`, and in it the file that is locked for as long as the run is written.
    /// Throws core::RunError if that or the final path exists, however close another program may come, or if it cannot
    /// be created.
    RunDirectory(const std::filesystem::path& final_path, std::string_view locked_name);
    /// The hidden directory of a run to `final_path` that somebody left, with its lock; nothing if another program has
    /// that, or has dealt with it. Throws core::RunError if the final path exists.
    [[nodiscard]] static std::optional<RunDirectory> adopt(const std::filesystem::path& final_path,
                                                           std::string_view locked_name);

    /// That file, for whoever writes the run: the lock ends with it.
    [[nodiscard]] File take_locked() { return std::move(locked_); }
    /// Sets room aside for what close() needs. Throws core::RunError if the disk is full already.
    void set_room_aside(std::uint64_t bytes);
    /// Gives that room back to the file system.
    void release_room() noexcept;

    /// Gives the manifest its name, which says that everything else is there and synced.
    void publish_manifest(const std::string& text);
    /// Gives the run its own name. `done_with`: a file in it that goes first.
    void publish_run(std::string_view done_with = {});
    /// The run is over before it began: takes everything away again.
    void remove() noexcept;

    /// Makes names in the directory durable, or the directory's own.
    void sync() { directory_.sync(); }
    void sync_parent() const;

    [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }
    [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
    /// Where the run is now: hidden, or under its final name.
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    RunDirectory() = default;
    void create();

    std::filesystem::path final_path_;
    std::filesystem::path path_;
    Directory directory_;
    File locked_;
};

}  // namespace weir::store
