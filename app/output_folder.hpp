// A new folder that gets its name when all is in it.
#pragma once

#include <filesystem>

namespace weir::app {

/// As OutputFile, for a directory; what is in it goes, too, if the export ends early. All throw core::RunError.
class OutputFolder {
public:
    explicit OutputFolder(std::filesystem::path path);
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    /// Where the files of the folder are to be written until finish().
    [[nodiscard]] const std::filesystem::path& hidden() const noexcept { return hidden_; }
    void finish();

private:
    std::filesystem::path path_;
    std::filesystem::path hidden_;
    bool finished_ = false;
};

}  // namespace weir::app
