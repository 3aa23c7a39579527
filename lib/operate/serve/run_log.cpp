#include "serve/run_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "pipeline/wall_clock.hpp"
#include "serve/time_text.hpp"

namespace weir::serve {

RunLog::RunLog(const std::string& path) : path_(path) {
    if (path_.empty()) return;
    constexpr mode_t readable = 0644;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, readable);
    if (fd_ < 0) throw core::RunError(fmt::format("serve.run_log: {}: {}", path_, std::strerror(errno)));
}

RunLog::~RunLog() {
    if (fd_ >= 0) ::close(fd_);
}

std::string RunLog::add(nlohmann::json line) {
    if (fd_ < 0) return {};
    line["time"] = time_text(pipeline::wall_ns());
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    struct stat before {};
    const bool known = ::fstat(fd_, &before) == 0;
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && known && ::ftruncate(fd_, before.st_size) != 0)
        return fmt::format("the run log {}: {}, and it has half a line now", path_, std::strerror(reason));
    return fmt::format("the run log {}: {}", path_, std::strerror(reason));
}

}  // namespace weir::serve
