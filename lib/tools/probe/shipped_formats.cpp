#include "probe/shipped_formats.hpp"

#include <utility>

#include "config/format_text.hpp"

namespace weir::probe {

const std::vector<wire::DeclaredSpec>& shipped_formats() {
    static const std::vector<wire::DeclaredSpec> all = [] {
        std::vector<wire::DeclaredSpec> out;
        for (const ShippedFile& file : shipped_files())
            for (wire::DeclaredSpec& spec : config::parse_formats(file.text, file.name)) out.push_back(std::move(spec));
        return out;
    }();
    return all;
}

}  // namespace weir::probe
