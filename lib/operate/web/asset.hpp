// A file of the page, which is part of the program: what is served never comes from a file system.
#pragma once

#include <span>
#include <string_view>

namespace weir::web {

struct Asset {
    std::string_view path;  ///< as it is asked for: "/", "/assets/page.js"
    std::string_view type;  ///< "text/html; charset=utf-8"
    std::string_view bytes;
};

/// All of them; generated from lib/operate/web/page.
[[nodiscard]] std::span<const Asset> page_assets();

}  // namespace weir::web
