#include "serve/time_text.hpp"

#include <fmt/format.h>
#include <time.h>

namespace weir::serve {

std::string time_text(core::TimeNs ns) {
    const auto seconds = static_cast<std::time_t>(ns / core::ns_per_s);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, ns % core::ns_per_s / core::ns_per_ms);
}

}  // namespace weir::serve
