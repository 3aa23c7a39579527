#include "reduce/pixels/plane_files.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "reduce/pixels/calibration.hpp"

namespace weir::reduce {

namespace {

template <class T>
std::vector<double> values_of(const std::vector<char>& bytes) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
        T value{};
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
        values[i] = static_cast<double>(value);
    }
    return values;
}

const char* type_of(std::size_t element_bytes) {
    if (element_bytes == 1) return "bytes";
    return element_bytes == 4 ? "32-bit floats" : "64-bit floats";
}

}  // namespace

void PlaneFiles::refuse(const std::filesystem::path& file, const std::string& why) const {
    throw core::UsageError(fmt::format("{}: {}: {}", key_, file.string(), why));
}

PlaneFiles::PlaneFiles(std::string key, std::vector<std::filesystem::path> files, std::uint32_t modules,
                       const std::vector<std::uint32_t>& planes, const std::vector<std::size_t>& element_bytes)
    : key_(std::move(key)), files_(std::move(files)) {
    if (files_.size() != 1 && files_.size() != modules)
        throw core::UsageError(fmt::format("{}: found {} files for {} modules; accepted: one for all, or one for each",
                                           key_, files_.size(), modules));
    const std::uint32_t in_file = files_.size() == 1 ? modules : 1;
    bool first = true;
    for (const std::filesystem::path& file : files_) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        if (error) refuse(file, "cannot be read: " + error.message());
        bool fits = false;
        std::string accepted;
        for (const std::uint32_t count : first ? planes : std::vector<std::uint32_t>{planes_})
            for (const std::size_t bytes : first ? element_bytes : std::vector<std::size_t>{element_bytes_}) {
                const std::size_t wanted = jungfrau_pixels * in_file * count * bytes;
                accepted += fmt::format("{}{} ({})", accepted.empty() ? "" : " or ", wanted, type_of(bytes));
                if (fits || wanted != size) continue;
                fits = true;
                planes_ = count;
                element_bytes_ = bytes;
            }
        if (!fits)
            refuse(file, fmt::format("found {} bytes; accepted: {}, arrays of 512 x 1024 for each of {} modules{}",
                                     size, accepted, in_file,
                                     planes.back() > 1 || planes.front() > 1 ? " and gains or storage cells" : ""));
        first = false;
    }
}

std::vector<double> PlaneFiles::read(std::uint32_t module, std::uint32_t plane) const {
    const std::filesystem::path& path = files_[files_.size() == 1 ? 0 : module];
    const std::size_t array = (files_.size() == 1 ? std::size_t{module} * planes_ : 0) + plane;
    std::vector<char> bytes(jungfrau_pixels * element_bytes_);
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(array * bytes.size()));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) refuse(path, "cannot be read");
    if (element_bytes_ == 1) return values_of<std::uint8_t>(bytes);
    return element_bytes_ == 4 ? values_of<float>(bytes) : values_of<double>(bytes);
}

}  // namespace weir::reduce
