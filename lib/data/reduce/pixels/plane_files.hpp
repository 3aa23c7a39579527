// Files of one value per pixel, module by module: pedestals, gains, masks. Raw little-endian arrays, whose type is told
// by the file's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace weir::reduce {

class PlaneFiles {
public:
    /// One file with all modules, or one for each, in order; a module has one of the numbers of `planes` of arrays of
    /// 512 x 1024, an element one of the sizes of `element_bytes` (1: bytes, 4 and 8: floats). Where several fit, the
    /// first in the lists. `key` is for errors: core::UsageError "KEY: FILE: found N bytes; accepted: ...".
    PlaneFiles(std::string key, std::vector<std::filesystem::path> files, std::uint32_t modules,
               const std::vector<std::uint32_t>& planes, const std::vector<std::size_t>& element_bytes);

    [[nodiscard]] std::uint32_t planes() const noexcept { return planes_; }
    /// The values of one array. Throws core::UsageError if the file cannot be read.
    [[nodiscard]] std::vector<double> read(std::uint32_t module, std::uint32_t plane) const;

private:
    [[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) const;

    std::string key_;
    std::vector<std::filesystem::path> files_;
    std::uint32_t planes_ = 1;
    std::size_t element_bytes_ = 4;
};

}  // namespace weir::reduce
