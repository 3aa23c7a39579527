// Files and directories as owned descriptors, with errors as exceptions that name the path and the system's reason. For
// ordinary threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace weir::store {

/// A descriptor that closes itself.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    void reset() noexcept;
    [[nodiscard]] int release() noexcept;

private:
    int fd_ = -1;
};

/// Whether there is anything of this name, a link that leads nowhere included.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// A regular file. All members throw core::RunError unless noexcept. Calls that a signal interrupts are made again.
class File {
public:
    File() = default;
    /// Creates `path`; an existing file is refused.
    static File create(const std::filesystem::path& path);
    static File open_to_read(const std::filesystem::path& path);
    /// Opens a file that exists for reading and writing, or makes an empty one.
    static File open_to_mend(const std::filesystem::path& path);

    /// What the address, the length and the place in the file of a direct write must be a multiple of. Devices have 512
    /// or 4096.
    static constexpr std::size_t direct_alignment = 4096;
    /// From now on writes go past the page cache (O_DIRECT), or not. Says whether the file system takes that; some say
    /// so only at the first write, with EINVAL.
    bool set_direct(bool direct) noexcept;
    [[nodiscard]] bool is_direct() const noexcept { return direct_; }
    [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
    /// Makes the file `bytes` longer from `offset` on, of space that is set aside and reads as zeros, so that writes to
    /// it need not change its length. 0, or why not.
    [[nodiscard]] int extend(std::uint64_t offset, std::uint64_t bytes) noexcept;

    /// One write at the start of the file: 0, or the error.
    [[nodiscard]] int try_write(std::span<const std::byte> bytes) noexcept;
    /// Writes all of `bytes` at `offset`, however many calls that takes.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    /// Reads up to `bytes.size()` from `offset`; less only at the end of the file.
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
    /// fdatasync. Fails for good: the kernel reports an error of writing back once and then forgets the data, so a
    /// later call that succeeds would say nothing about it. Every call after a failed one fails as that one did.
    void sync();
    [[nodiscard]] bool sync_failed() const noexcept { return sync_error_ != 0; }
    bool truncate(std::uint64_t bytes) noexcept;
    [[nodiscard]] std::uint64_t size() const;
    /// It still has a name, and at least `bytes`: nobody has removed or shortened it.
    [[nodiscard]] bool is_whole(std::uint64_t bytes) const noexcept;
    /// Takes a write lock (of this open file, see fcntl(2), F_OFD_SETLK), which ends with it, however the process ends.
    /// Without effect where the file system has no locks.
    void lock() noexcept;
    /// The same, but says whether it could be had: not if another open file has it, or the file system has no locks.
    [[nodiscard]] bool try_lock() noexcept;
    /// Sets disk space aside. Nothing happens where the file system cannot; throws if it can and there is none.
    void allocate(std::uint64_t bytes);
    [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }
    /// Some file systems, NFS among them, tell of an error only here.
    void close();
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    Descriptor descriptor_;
    std::filesystem::path path_;
    int sync_error_ = 0;
    bool direct_ = false;
};

/// A directory, for making names durable.
class Directory {
public:
    Directory() = default;
    explicit Directory(const std::filesystem::path& path);
    /// Fails for good, as File::sync().
    void sync();
    /// Its path still leads to it.
    [[nodiscard]] bool is_in_place() const noexcept;
    /// It has a regular file of this name with at least `bytes`, wherever it is now.
    [[nodiscard]] bool has_file(const std::string& name, std::uint64_t bytes) const noexcept;
    /// What an ordinary user may still write on its file system; nothing if the system does not say. Quotas are not in
    /// it.
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept;

private:
    Descriptor descriptor_;
    std::filesystem::path path_;
    int sync_error_ = 0;
};

/// Whether another open file has the lock of `path`.
bool is_locked(const std::filesystem::path& path) noexcept;

/// Renames without ever replacing something that exists.
void rename_new(const std::filesystem::path& from, const std::filesystem::path& to);

/// "WHAT PATH: system's text for errno".
std::string system_error_text(const std::string& what, const std::filesystem::path& path, int error_number);
/// The same for something that could not be written, with what can be done about it.
std::string write_error_text(const std::string& what, const std::filesystem::path& path, int error_number);

}  // namespace weir::store
