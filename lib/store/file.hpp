// Files and directories as owned descriptors, with errors as exceptions that name the path and the system's reason. For
// ordinary threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

private:
    int release() noexcept;
    int fd_ = -1;
};

/// A regular file. All members throw core::RunError unless noexcept.
class File {
public:
    File() = default;
    /// Creates `path`; an existing file is refused.
    static File create(const std::filesystem::path& path);
    static File open_to_read(const std::filesystem::path& path);

    /// Writes all of `bytes` at `offset`, however many calls that takes.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    /// Reads up to `bytes.size()` from `offset`; less only at the end of the file.
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
    void sync();
    bool truncate(std::uint64_t bytes) noexcept;
    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }
    void close() noexcept { descriptor_.reset(); }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    Descriptor descriptor_;
    std::filesystem::path path_;
};

/// A directory, for making names durable.
class Directory {
public:
    Directory() = default;
    explicit Directory(const std::filesystem::path& path);
    void sync();

private:
    Descriptor descriptor_;
    std::filesystem::path path_;
};

/// Renames without ever replacing something that exists.
void rename_new(const std::filesystem::path& from, const std::filesystem::path& to);

/// "WHAT PATH: system's text for errno".
std::string system_error_text(const std::string& what, const std::filesystem::path& path, int error_number);

}  // namespace weir::store
