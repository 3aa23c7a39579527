// A disk that fails when told to. See disk_model.hpp.
#include "disk_model.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <vector>

#include "store/run_directory.hpp"
#include "support.hpp"

namespace weir::store::test {

namespace {

DiskModel* model = nullptr;

}  // namespace

DiskModel::DiskModel(std::filesystem::path folder) : folder_(std::move(folder)) {
    model = this;
}

DiskModel::~DiskModel() {
    model = nullptr;
}

void DiskModel::fail_at(std::size_t at, const Fault& fault) {
    fault_at_ = at;
    fault_ = fault;
}

bool DiskModel::concerns(const std::string& path) const {
    return !inside_ && path.starts_with(folder_.string());
}

int DiskModel::enter(Call call, bool& half) {
    if (before_call) {
        inside_ = true;
        before_call();
        inside_ = false;
    }
    const std::size_t number = calls_++;
    if (number == fault_at_) {
        met_ = true;
        met_call_ = call;
        half = fault_.kind == Fault::Kind::short_write && call == Call::write;
        if (half) return 0;
        // A descriptor is closed whatever close() says, and a name is there or not: these are not interrupted.
        const bool can_be_interrupted = call != Call::close && call != Call::rename && call != Call::mkdir;
        if (fault_.kind != Fault::Kind::error) return can_be_interrupted ? EINTR : 0;
        return fault_.error_number;
    }
    const bool again = met_ && fault_.for_good && number > fault_at_ && (call == met_call_ || call == Call::write);
    return again ? fault_.error_number : 0;
}

void DiskModel::opened(int fd, const std::string& path, bool created) {
    if (fd >= 0) paths_[fd] = path;
    if (created) durable_[path] = {};
    if (created && fd >= 0) files_.insert(fd);
}

const std::string* DiskModel::path_of(int fd) const {
    if (inside_) return nullptr;
    const auto found = paths_.find(fd);
    return found == paths_.end() ? nullptr : &found->second;
}

void DiskModel::synced(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) == 0) durable_[paths_.at(fd)].bytes = static_cast<std::uint64_t>(status.st_size);
}

void DiskModel::directory_synced(int fd) {
    const std::filesystem::path directory = paths_.at(fd);
    for (auto& [path, durable] : durable_) {
        if (std::filesystem::path(path).parent_path() != directory) continue;
        durable.name = true;
        durable.older_name.clear();
    }
}

void DiskModel::renamed(const std::string& from, const std::string& to) {
    std::map<std::string, Durable> now;
    for (const auto& [path, durable] : durable_) {
        if (path != from && !path.starts_with(from + "/")) {
            now[path] = durable;
            continue;
        }
        Durable& moved = now[to + path.substr(from.size())] = durable;
        if (path == from) {
            moved.older_name = durable.name ? from : "";
            moved.name = false;
        }
    }
    for (auto& [fd, path] : paths_)
        if (path == from || path.starts_with(from + "/")) path = to + path.substr(from.size());
    durable_ = std::move(now);
}

void DiskModel::power_cut(const std::filesystem::path& to, std::mt19937_64& random) const {
    std::filesystem::remove_all(to);
    std::filesystem::create_directory(to);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
        const std::filesystem::path copy = to / std::filesystem::relative(entry.path(), folder_);
        if (entry.is_directory())
            std::filesystem::create_directory(copy);
        else if (entry.path().filename() != room_name)  // large, and nobody reads it
            std::filesystem::copy(entry.path(), copy);
    }
    const auto there = [&](const std::string& path) { return to / std::filesystem::relative(path, folder_); };
    std::vector<std::pair<std::string, std::string>> renames;
    for (const auto& [path, durable] : durable_) {
        const std::filesystem::path file = there(path);
        if (!durable.name && durable.older_name.empty() && random() % 2 == 0) {
            std::filesystem::remove_all(file);
            continue;
        }
        if (!durable.older_name.empty() && random() % 2 == 0) renames.emplace_back(path, durable.older_name);
        if (!std::filesystem::is_regular_file(file)) continue;
        const std::uint64_t size = std::filesystem::file_size(file);
        if (size <= durable.bytes) continue;
        const std::uint64_t tail = size - durable.bytes;
        const std::uint64_t kept = durable.bytes + random() % (tail + 1);
        if (random() % 4 == 0) {
            std::filesystem::resize_file(file, kept);
            continue;
        }
        // The size is there and what belongs after `kept` is not: zeros, something old, or pieces of both.
        std::vector<std::byte> bytes = read_file(file);
        const bool zeros = random() % 2 == 0;
        for (std::uint64_t at = kept; at < size; ++at) {
            if (random() % 512 == 0) at += random() % 2048;
            if (at < size) bytes[at] = zeros ? std::byte{0} : static_cast<std::byte>(random());
        }
        write_file(file, bytes);
    }
    for (const auto& [path, older] : renames)
        if (std::filesystem::exists(there(path))) std::filesystem::rename(there(path), there(older));
}

}  // namespace weir::store::test

// --- the C library's functions -------------------------------------------------------------------------------------

using weir::store::test::Call;
using weir::store::test::model;

namespace {

/// Whether a call on this descriptor shall not be made, because it fails; errno is set.
bool fails(Call call, bool& half) {
    const int error_number = model->enter(call, half);
    errno = error_number;
    return error_number != 0;
}

bool is_tracked(int fd) {
    return model != nullptr && model->path_of(fd) != nullptr;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    const bool tracked = model != nullptr && model->concerns(path) && (flags & (O_CREAT | O_DIRECTORY)) != 0;
    bool half = false;
    if (tracked && fails(Call::open, half)) return -1;
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    if (tracked && fd >= 0) model->opened(fd, path, (flags & O_CREAT) != 0);
    return fd;
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    bool half = false;
    if (is_tracked(fd) && fails(Call::write, half)) return -1;
    return ::syscall(SYS_pwrite64, fd, bytes, half ? (count + 1) / 2 : count, offset);
}

int fdatasync(int fd) {
    if (!is_tracked(fd)) return static_cast<int>(::syscall(SYS_fdatasync, fd));
    bool half = false;
    if (fails(Call::sync, half)) return -1;
    model->synced(fd);
    return 0;
}

int fsync(int fd) {
    if (!is_tracked(fd)) return static_cast<int>(::syscall(SYS_fsync, fd));
    bool half = false;
    if (fails(Call::sync_directory, half)) return -1;
    model->directory_synced(fd);
    return 0;
}

int ftruncate(int fd, off_t bytes) noexcept {
    bool half = false;
    if (is_tracked(fd) && fails(Call::truncate, half)) return -1;
    return static_cast<int>(::syscall(SYS_ftruncate, fd, bytes));
}

int close(int fd) {
    if (!is_tracked(fd)) return static_cast<int>(::syscall(SYS_close, fd));
    bool half = false;
    // Nothing can be lost by closing a directory, or a file that was only read.
    const bool failed = model->was_created(fd) && fails(Call::close, half);
    const int error_number = errno;
    model->closed(fd);
    ::syscall(SYS_close, fd);
    errno = error_number;
    return failed ? -1 : 0;
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
    const bool tracked = model != nullptr && model->concerns(from);
    bool half = false;
    if (tracked && fails(Call::rename, half)) return -1;
    const int result = static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
    if (tracked && result == 0) model->renamed(from, to);
    return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
    const bool tracked = model != nullptr && model->concerns(path);
    bool half = false;
    if (tracked && fails(Call::mkdir, half)) return -1;
    const int result = static_cast<int>(::syscall(SYS_mkdir, path, mode));
    if (tracked && result == 0) model->opened(-1, path, true);
    return result;
}
}
