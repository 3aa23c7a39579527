// A new file that gets its name when all is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "store/file.hpp"

namespace weir::app {

/// Throws core::RunError if `path` or its hidden name exists.
void refuse_existing(const std::filesystem::path& path);

/// A new file under a hidden name that gets its own when all is in it, so that half an export does not look like one.
/// All throw core::RunError.
class OutputFile {
public:
    explicit OutputFile(std::filesystem::path path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    void append(std::span<const std::byte> bytes);
    void append(const std::string& text) { append(std::as_bytes(std::span(text))); }
    void append_zeros(std::uint64_t count);
    /// Overwrites what was appended before.
    void rewrite(std::uint64_t offset, const std::string& text);
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_ + buffer_.size(); }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    void finish();

private:
    void flush();
    std::filesystem::path path_;
    std::filesystem::path hidden_;
    store::File file_;
    std::vector<std::byte> buffer_;
    std::uint64_t bytes_ = 0;  ///< written
    bool finished_ = false;
};

}  // namespace weir::app
