// A file of the HDF5 library that is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/hdf5/handle.hpp"

namespace weir::store::hdf5 {

/// Objects are named by their paths in the file. Every call throws core::RunError that names the file, and the object
/// where it is that one's fault.
class InputFile {
public:
    explicit InputFile(const std::filesystem::path& path);

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return library_.path(); }
    [[nodiscard]] hid_t id() const noexcept { return file_.get(); }
    /// An object or a link; the target of the link need not be there.
    [[nodiscard]] bool has(const std::string& object) const;
    [[nodiscard]] bool has_attribute(const std::string& object, const std::string& name) const;
    /// Of an attribute that is one whole number.
    [[nodiscard]] std::uint64_t number(const std::string& object, const std::string& name) const;
    /// Of a dataset.
    [[nodiscard]] std::vector<hsize_t> shape(const std::string& dataset) const;
    [[nodiscard]] Handle type(const std::string& dataset) const;
    /// Empty if there is no such dataset.
    [[nodiscard]] std::string text(const std::string& dataset) const;
    /// All of a dataset; `type` is that of T in memory.
    template <class T>
    [[nodiscard]] std::vector<T> values(const std::string& dataset, hid_t type) const {
        std::vector<T> values(count(dataset, sizeof(T)));
        read(dataset, type, values.data());
        return values;
    }
    [[nodiscard]] std::vector<std::byte> bytes(const std::string& dataset, hid_t type) const;

private:
    [[nodiscard]] Handle open(const std::string& dataset) const;
    [[nodiscard]] std::size_t count(const std::string& dataset, std::size_t value_bytes) const;
    void read(const std::string& dataset, hid_t type, void* to) const;
    [[noreturn]] void fail(const std::string& object, const std::string& what) const;

    Library library_;
    Handle file_;
    std::uint64_t bytes_ = 0;
};

}  // namespace weir::store::hdf5
