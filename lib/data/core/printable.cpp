#include "core/printable.hpp"

namespace weir::core {

std::string printable(std::string_view text) {
    std::string clean;
    clean.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
        if (c == '\n' || c == '\t') {
            clean += ' ';
        } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F
            clean += '?';
            ++i;
        } else {
            clean += c < 0x20 || c == 0x7f ? '?' : text[i];
        }
    }
    return clean;
}

}  // namespace weir::core
