// Files and directories as owned descriptors. See file.hpp.
#include "store/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace weir::store {

namespace {

[[noreturn]] void throw_system(const std::string& what, const std::filesystem::path& path, int error_number) {
    throw core::RunError(system_error_text(what, path, error_number));
}

}  // namespace

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
    file.descriptor_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.is_open()) throw_system("cannot create", path, errno);
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

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw_system("cannot write", path_, errno);
        if (n == 0) throw_system("cannot write", path_, ENOSPC);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
}

std::size_t File::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n =
            ::pread(descriptor_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw_system("cannot read", path_, errno);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

void File::sync() {
    if (::fdatasync(descriptor_.get()) != 0) throw_system("cannot sync", path_, errno);
}

bool File::truncate(std::uint64_t bytes) noexcept {
    return ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) == 0;
}

std::uint64_t File::size() const {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) throw_system("cannot examine", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
}

Directory::Directory(const std::filesystem::path& path)
    : descriptor_(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path_(path) {
    if (!descriptor_.is_open()) throw_system("cannot open directory", path, errno);
}

void Directory::sync() {
    // Some file systems cannot sync a directory and say EINVAL; there is nothing more to be done on those.
    if (::fsync(descriptor_.get()) != 0 && errno != EINVAL) throw_system("cannot sync directory", path_, errno);
}

void rename_new(const std::filesystem::path& from, const std::filesystem::path& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
    // File systems without RENAME_NOREPLACE (NFS) say EINVAL: look first, then rename. A directory with something in it
    // is never replaced either way.
    if (errno == EINVAL || errno == ENOSYS) {
        std::error_code error;
        if (std::filesystem::exists(std::filesystem::symlink_status(to, error)))
            throw_system("cannot rename to", to, EEXIST);
        if (::rename(from.c_str(), to.c_str()) == 0) return;
    }
    throw_system(fmt::format("cannot rename {} to", from.string()), to, errno);
}

}  // namespace weir::store
