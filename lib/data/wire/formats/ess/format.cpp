#include "options/option.hpp"
#include "wire/formats/entry.hpp"
#include "wire/formats/ess/ess.hpp"

namespace weir::wire {
namespace {

options::OptionTable<FormatOptions> ess_keys() {
    options::OptionTable<FormatOptions> out;
    const auto packets = [](auto& format) -> auto& {
        return format.ess.packets_per_pulse;
    };
    out.integer("packets_per_pulse", {0, Ess::packets_per_pulse_max}, packets,
                "ess only: packets that one source sends for each pulse. 0: any number; a pulse is whole when the next "
                "one has begun. Otherwise as soon as that many have come; a further one is a `conflict`");
    return out;
}

}  // namespace

FormatEntry ess_format() {
    static constexpr std::array<std::string_view, 1> keys{"packets_per_pulse"};
    FormatEntry entry = entry_of_format<Ess>();
    entry.source_id = "output queue";
    entry.keys = keys;
    entry.describe = ess_keys;
    entry.page = "reference/formats/ess.md";
    return entry;
}

}  // namespace weir::wire
