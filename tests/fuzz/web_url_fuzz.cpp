// libFuzzer target: any bytes as an escaped path and as "HOST:PORT". What is accepted says the same when it is put
// together again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "web/url.hpp"

namespace {

using namespace weir::web;

std::string escaped(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
    return out;
}

void check_path(std::string_view text) {
    const auto decoded = percent_decoded(text);
    if (!decoded) return;
    if (decoded->size() > text.size() || decoded->find('\0') != std::string::npos) std::abort();
    if (percent_decoded(escaped(*decoded)) != decoded) std::abort();
    const auto parts = path_parts(*decoded);
    if (!parts) return;
    std::string joined;
    for (const std::string_view part : *parts) {
        if (part.empty() || part == "." || part == ".." || part.find('/') != std::string_view::npos) std::abort();
        joined.append("/").append(part);
    }
    if (path_parts(joined) != parts) std::abort();
}

void check_host_port(std::string_view text) {
    const auto place = parse_host_port(text);
    if (!place) return;
    if (place->host.find_first_of("[]/@ ") != std::string::npos) std::abort();
    std::string again = text.starts_with('[') ? "[" + place->host + "]" : place->host;
    if (place->port) again += ":" + std::to_string(*place->port);
    if (parse_host_port(again) != place) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto copy = std::make_unique<char[]>(size);
    std::copy_n(data, size, copy.get());
    check_path({copy.get(), size});
    check_host_port({copy.get(), size});
    return 0;
}
