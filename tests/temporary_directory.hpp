// A folder for the files of a test, which goes with it.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace weir::test {

class TemporaryDirectory {
public:
    /// In `parent`, or where temporary files go. Throws std::system_error.
    explicit TemporaryDirectory(std::filesystem::path parent = {}) {
        if (parent.empty()) parent = std::filesystem::temp_directory_path();
        std::string name = (parent / "weir-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
        path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    operator const std::filesystem::path&() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

}  // namespace weir::test
