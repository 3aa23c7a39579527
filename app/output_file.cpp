#include "output_file.hpp"

#include <fmt/core.h>

#include <array>

#include "core/error.hpp"
#include "store/run_path.hpp"

namespace weir::app {

void refuse_existing(const std::filesystem::path& path) {
    std::error_code error;
    if (!path.has_filename() || path.filename() == "." || path.filename() == "..")
        throw core::RunError(fmt::format("cannot export to \"{}\": not a name for something new", path.string()));
    for (const std::filesystem::path& name : {path, store::hidden_path(path)})
        if (std::filesystem::exists(std::filesystem::symlink_status(name, error)))
            throw core::RunError(
                fmt::format("{} exists already; choose another path (--out), or move it away", name.string()));
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), hidden_(store::hidden_path(path_)) {
    refuse_existing(path_);
    file_ = store::File::create(hidden_);
}

OutputFile::~OutputFile() {
    std::error_code error;
    if (!finished_) std::filesystem::remove(hidden_, error);
}

void OutputFile::append(std::span<const std::byte> bytes) {
    constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
    if (buffer_.size() + bytes.size() > buffer_bytes) flush();
    if (bytes.size() >= buffer_bytes) {
        file_.write_at(bytes_, bytes);
        bytes_ += bytes.size();
    } else {
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
}

void OutputFile::append_zeros(std::uint64_t count) {
    static constexpr std::array<std::byte, 65536> zeros{};
    for (; count > zeros.size(); count -= zeros.size()) append(zeros);
    append(std::span(zeros).first(count));
}

void OutputFile::rewrite(std::uint64_t offset, const std::string& text) {
    flush();
    file_.write_at(offset, std::as_bytes(std::span(text)));
}

void OutputFile::flush() {
    if (!buffer_.empty()) file_.write_at(bytes_, buffer_);
    bytes_ += buffer_.size();
    buffer_.clear();
}

void OutputFile::finish() {
    flush();
    file_.close();
    store::rename_new(hidden_, path_);
    finished_ = true;
}

}  // namespace weir::app
