// The HDF5 library behind owned handles: errors as exceptions that name the file and what the system said, nothing on
// standard error. For ordinary threads: the library allocates, locks and blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/hdf5/hdf5_library.hpp"

namespace weir::store::hdf5 {

/// Held around every use of the library: it may be built without its own lock, and it prints errors of a thread that
/// did not ask for silence.
class Session {
public:
    Session();
    ~Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

private:
    std::unique_lock<std::mutex> lock_;
};

/// A handle of the library that closes itself.
class Handle {
public:
    using Close = herr_t (*)(hid_t);
    Handle() = default;
    Handle(hid_t id, Close close) noexcept : id_(id), close_(close) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&& other) noexcept;
    ~Handle() { reset(); }

    [[nodiscard]] hid_t get() const noexcept { return id_; }
    [[nodiscard]] bool is_open() const noexcept { return id_ >= 0; }
    void reset() noexcept;
    /// Closes it and says whether that succeeded: for files an error of writing may show only here.
    [[nodiscard]] bool close() noexcept;
    /// Leaves it open for as long as the program lives: closing a file would write to it.
    void leave() noexcept { id_ = H5I_INVALID_HID; }

private:
    hid_t id_ = H5I_INVALID_HID;
    Close close_ = nullptr;
};

/// Throws core::RunError "WHAT PATH: why", with what can be done about it where the system has said why.
[[noreturn]] void throw_library_error(const std::string& what, const std::filesystem::path& path);

/// For what a file is needed for; every call throws core::RunError that names the file.
class Library {
public:
    /// `trouble`: how an error begins.
    explicit Library(std::filesystem::path path, const char* trouble = "cannot write")
        : path_(std::move(path)), trouble_(trouble) {}
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    /// `result` of a call that gives a handle, owned.
    [[nodiscard]] Handle own(hid_t result, Handle::Close close) const;
    void check(herr_t result) const;

    [[nodiscard]] Handle create_group(hid_t parent, const std::string& name, const std::string& nexus_class) const;
    /// A number or an array of numbers as an attribute or a dataset; `type` is a type of memory.
    void put_attribute(hid_t object, const std::string& name, hid_t type, std::span<const hsize_t> shape,
                       const void* values) const;
    void put_attribute(hid_t object, const std::string& name, std::string_view text) const;
    void put_attribute(hid_t object, const std::string& name, double value) const;
    void put_attribute(hid_t object, const std::string& name, std::uint64_t value) const;
    void put_texts(hid_t object, const std::string& name, const std::vector<std::string>& texts) const;
    [[nodiscard]] Handle put_dataset(hid_t parent, const std::string& name, hid_t type, std::span<const hsize_t> shape,
                                     const void* values) const;
    Handle put_text(hid_t parent, const std::string& name, std::string_view text) const;
    Handle put_number(hid_t parent, const std::string& name, double value, const std::string& units) const;

private:
    [[nodiscard]] Handle text_type(std::size_t bytes) const;
    std::filesystem::path path_;
    const char* trouble_;
};

}  // namespace weir::store::hdf5
