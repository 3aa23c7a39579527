#include "store/write_method.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/aligned_bytes.hpp"
#include "store/file.hpp"

namespace weir::store {

namespace {

std::string and_then(const std::string& text, const std::string& more) {
    return text.empty() ? more : text + "; " + more;
}

}  // namespace

/// 0, or why the file system does not take a direct write. A full disk is not a reason.
int WriteMethod::try_direct(const std::filesystem::path& path) {
    int error_number = 0;
    {
        File file = File::create(path);
        AlignedBytes zeros(File::direct_alignment);
        std::fill(zeros.span().begin(), zeros.span().end(), std::byte{0});
        error_number = file.set_direct(true) ? file.try_write(zeros.span()) : errno;
    }
    std::error_code error;
    std::filesystem::remove(path, error);
    return error_number == ENOSPC ? 0 : error_number;
}

WriteMethod::WriteMethod(const Config& config, const RunDirectory& directory)
    : queue_depth_(config.queue_depth), files_(config.files) {
    if (config.direct != Toggle::off) {
        const int error_number = try_direct(directory.file("direct-write"));
        direct_ = error_number == 0;
        if (!direct_) {
            note_ =
                fmt::format("O_DIRECT is refused ({}): writes go through the page cache", std::strerror(error_number));
            if (config.direct == Toggle::on)
                throw core::RunError(
                    fmt::format("{}: O_DIRECT is refused: {}; take direct = \"on\" out of the configuration, "
                                "or choose another file system",
                                directory.path().string(), std::strerror(error_number)));
        }
    }
    if (config.uring != Toggle::on && !(config.uring == Toggle::automatic && direct_)) return;
    try {
        queue_ = WriteQueue(std::max(config.queue_depth, 1U), config.tamper);
    } catch (const core::RunError& error) {
        if (config.uring == Toggle::on)
            throw core::RunError(
                fmt::format("{}: {}; take uring = \"on\" out of the configuration, or allow the process io_uring",
                            directory.path().string(), error.what()));
        note_ = and_then(note_, fmt::format("{}: one write after the other", error.what()));
    }
}

nlohmann::json WriteMethod::how() const {
    nlohmann::json how = {{"direct", direct_},
                          {"uring", queue_.is_asynchronous()},
                          {"files", files_},
                          {"queue_depth", queue_.is_asynchronous() ? queue_depth_ : 1}};
    if (!note_.empty()) how["note"] = note_;
    return how;
}

std::string WriteMethod::how_text() const {
    std::string text = direct_ ? "O_DIRECT" : "";
    if (queue_.is_asynchronous()) text += fmt::format("{}io_uring, {} at once", text.empty() ? "" : ", ", queue_depth_);
    if (files_ > 1) text += fmt::format("{}{} files", text.empty() ? "" : ", ", files_);
    return note_.empty() ? text : and_then(text, note_);
}

}  // namespace weir::store
