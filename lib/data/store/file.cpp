// Files and directories as owned descriptors. See file.hpp.
#include "store/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace weir::store {

bool is_there(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

namespace {

[[noreturn]] void throw_system(const std::string& what, const std::filesystem::path& path, int error_number) {
    throw core::RunError(system_error_text(what, path, error_number));
}

[[noreturn]] void throw_unwritten(const std::string& what, const std::filesystem::path& path, int error_number) {
    throw core::RunError(write_error_text(what, path, error_number));
}

/// Calls until no signal interrupts.
template <class Call>
auto uninterrupted(Call call) {
    for (;;) {
        const auto result = call();
        if (result != -1 || errno != EINTR) return result;
    }
}

/// What somebody can do about it; nothing where the system's own words are all there is.
std::string_view advice(int error_number) {
    switch (error_number) {
        case ENOSPC:
            return "the disk is full: make room on it";
        case EDQUOT:
            return "the quota is used up: make room, or have it raised";
        case EFBIG:
            return "larger than a file may be (the file system, or ulimit -f); a sink has segment_bytes for that";
        case EROFS:
            return "it can only be read; a file system that becomes so while it is used has met an error: see dmesg";
        case EIO:
        case ENXIO:
        case ENODEV:
            return "the device failed: see dmesg, and do not trust it before it is checked";
        case EACCES:
        case EPERM:
            return "give the user that weir runs as the permission, or choose another path";
        case ENOENT:
            return "it was moved or removed, or its file system is not mounted";
        case ESTALE:
        case ETIMEDOUT:
        case ENOTCONN:
        case EHOSTDOWN:
        case EHOSTUNREACH:
            return "the file server is gone or has forgotten it: see that it answers, and mount it again";
        case EMFILE:
        case ENFILE:
            return "too many files are open: raise the limit (ulimit -n)";
        default:
            return {};
    }
}

}  // namespace

std::string write_error_text(const std::string& what, const std::filesystem::path& path, int error_number) {
    const std::string_view more = advice(error_number);
    return fmt::format("{}{}{}", system_error_text(what, path, error_number), more.empty() ? "" : "; ", more);
}

std::string system_error_text(const std::string& what, const std::filesystem::path& path, int error_number) {
    return fmt::format("{} {}: {}", what, path.string(), std::strerror(error_number));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.release();
    }
    return *this;
}

void Descriptor::reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

int Descriptor::release() noexcept {
    return std::exchange(fd_, -1);
}

File File::create(const std::filesystem::path& path) {
    File file;
    file.path_ = path;
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    file.descriptor_ = Descriptor(uninterrupted([&] { return ::open(path.c_str(), flags, 0644); }));
    if (!file.is_open()) throw_unwritten("cannot create", path, errno);
    return file;
}

File File::open_to_read(const std::filesystem::path& path) {
    File file;
    file.path_ = path;
    // A FIFO or a device under a segment's name must neither block nor be read.
    file.descriptor_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) throw_system("cannot open", path, errno);
    struct stat status {};
    if (::fstat(file.descriptor_.get(), &status) != 0) throw_system("cannot examine", path, errno);
    if (!S_ISREG(status.st_mode)) throw core::RunError(fmt::format("{} is not a regular file", path.string()));
    return file;
}

File File::open_to_mend(const std::filesystem::path& path) {
    File file;
    file.path_ = path;
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
    file.descriptor_ = Descriptor(uninterrupted([&] { return ::open(path.c_str(), flags, 0644); }));
    if (!file.is_open()) throw_unwritten("cannot open", path, errno);
    struct stat status {};
    if (::fstat(file.descriptor_.get(), &status) != 0) throw_system("cannot examine", path, errno);
    if (!S_ISREG(status.st_mode)) throw core::RunError(fmt::format("{} is not a regular file", path.string()));
    return file;
}

bool File::set_direct(bool direct) noexcept {
    const int flags = ::fcntl(descriptor_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor_.get(), F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) != 0)
        return false;
    direct_ = direct;
    return true;
}

int File::extend(std::uint64_t offset, std::uint64_t bytes) noexcept {
    const int rc = uninterrupted(
        [&] { return ::fallocate(descriptor_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)); });
    return rc == 0 ? 0 : errno;
}

int File::try_write(std::span<const std::byte> bytes) noexcept {
    return uninterrupted([&] { return ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), 0); }) < 0 ? errno : 0;
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = uninterrupted(
            [&] { return ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
        if (n < 0) throw_unwritten("cannot write", path_, errno);
        // Not an error by the letter, but nothing says that another call would do better.
        if (n == 0) throw_unwritten("cannot write", path_, ENOSPC);
        auto done = static_cast<std::size_t>(n);
        // A direct write goes on where the last whole unit of the disk ended; one that is not even that long goes on
        // through the page cache.
        if (direct_ && done < bytes.size()) {
            if (done >= direct_alignment)
                done -= done % direct_alignment;
            else
                set_direct(false);
        }
        bytes = bytes.subspan(done);
        offset += done;
    }
}

std::size_t File::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = uninterrupted([&] {
            return ::pread(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                           static_cast<off_t>(offset + done));
        });
        if (n < 0) throw_system("cannot read", path_, errno);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

void File::sync() {
    if (sync_error_ == 0 && uninterrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0) sync_error_ = errno;
    if (sync_error_ != 0) throw_unwritten("cannot sync", path_, sync_error_);
}

bool File::truncate(std::uint64_t bytes) noexcept {
    return uninterrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)); }) == 0;
}

bool File::is_whole(std::uint64_t bytes) const noexcept {
    struct stat status {};
    return ::fstat(descriptor_.get(), &status) == 0 && status.st_nlink > 0 &&
           static_cast<std::uint64_t>(status.st_size) >= bytes;
}

bool File::try_lock() noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return ::fcntl(descriptor_.get(), F_OFD_SETLK, &lock) == 0;
}

void File::lock() noexcept {
    static_cast<void>(try_lock());
}

void File::allocate(std::uint64_t bytes) {
    int error_number = EINTR;
    while (error_number == EINTR) error_number = ::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(bytes));
    if (error_number == ENOSPC || error_number == EDQUOT) throw_unwritten("cannot write", path_, error_number);
}

void File::close() {
    // Linux has closed the descriptor whatever it says, so there is no second try; an interruption is no error.
    if (is_open() && ::close(descriptor_.release()) != 0 && errno != EINTR)
        throw_unwritten("cannot close", path_, errno);
}

std::uint64_t File::size() const {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) throw_system("cannot examine", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
}

Directory::Directory(const std::filesystem::path& path)
    : descriptor_(
          uninterrupted([&] { return ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })),
      path_(path) {
    if (!descriptor_.is_open()) throw_system("cannot open directory", path, errno);
}

void Directory::sync() {
    // Some file systems cannot sync a directory and say EINVAL; there is nothing more to be done on those.
    if (sync_error_ == 0 && uninterrupted([&] { return ::fsync(descriptor_.get()); }) != 0 && errno != EINVAL)
        sync_error_ = errno;
    if (sync_error_ != 0) throw_unwritten("cannot sync directory", path_, sync_error_);
}

bool Directory::is_in_place() const noexcept {
    struct stat here {};
    struct stat there {};
    return ::fstat(descriptor_.get(), &here) == 0 && ::stat(path_.c_str(), &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool Directory::has_file(const std::string& name, std::uint64_t bytes) const noexcept {
    struct stat status {};
    return ::fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           static_cast<std::uint64_t>(status.st_size) >= bytes;
}

std::optional<std::uint64_t> Directory::free_bytes() const noexcept {
    struct statvfs space {};
    if (::fstatvfs(descriptor_.get(), &space) != 0) return {};
    return std::uint64_t{space.f_bavail} * space.f_frsize;
}

bool is_locked(const std::filesystem::path& path) noexcept {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct flock lock {};
    lock.l_type = F_WRLCK;  // asks whether it could be had; nothing is taken, so this needs no permission to write
    lock.l_whence = SEEK_SET;
    return file.is_open() && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void rename_new(const std::filesystem::path& from, const std::filesystem::path& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
    // File systems without RENAME_NOREPLACE (NFS) say EINVAL: look first, then rename. A directory with something in it
    // is never replaced either way.
    if (errno == EINVAL || errno == ENOSYS) {
        std::error_code error;
        if (std::filesystem::exists(std::filesystem::symlink_status(to, error)))
            throw_unwritten("cannot rename to", to, EEXIST);
        if (::rename(from.c_str(), to.c_str()) == 0) return;
    }
    throw_unwritten(fmt::format("cannot rename {} to", from.string()), to, errno);
}

}  // namespace weir::store
