// What the headers of a SPEAD stream do not say of themselves: keys of [[stream]].
#include <fmt/format.h>

#include "options/option.hpp"
#include "wire/formats/spead/spead_keys.hpp"

namespace weir::wire {

options::OptionTable<FormatOptions> spead_keys() {
    using options::TableReader;
    using options::value_of;
    constexpr std::uint64_t heap_bytes_max = (std::uint64_t{1} << 32) - 1;
    const auto of = [](auto member) {
        return [member](auto& format) -> auto& {
            return format.spead.*member;
        };
    };
    options::OptionTable<FormatOptions> out;
    const auto item = [&](std::string_view key, std::uint32_t SpeadOptions::*member, std::string_view meaning) {
        return out.add(key, "item id", meaning)
            .written(options::hex_text)
            .shows([member](const FormatOptions& format) { return value_of(format.spead.*member); })
            .reads([key = std::string(key), member](TableReader& table, FormatOptions& format) {
                const std::uint32_t width = 63 - format.spead.address_bits.value_or(40);
                const auto id = static_cast<std::uint32_t>(*table.integer(key, {1, (std::uint64_t{1} << width) - 1}));
                if (id >= 2 && id <= 6)
                    table.wrong(key, fmt::format("item {}", id),
                                "1, the heap counter, or an item of the sender's own: 2 to 6 say how the heap is sent");
                format.spead.*member = id;
            });
    };
    out.integer("address_bits", {40, 48}, of(&SpeadOptions::address_bits),
                "spead only: take only SPEAD-64-48 or only SPEAD-64-40; the width of the event number")
        .kind("48, 40")
        .unset("48 or 40, as each packet says")
        .usually("either")
        .check([](TableReader& table, const FormatOptions& format) {
            const std::uint32_t bits = *format.spead.address_bits;
            if (bits != 40 && bits != 48)
                table.wrong("address_bits", std::to_string(bits), "48 (SPEAD-64-48) or 40 (SPEAD-64-40)");
        });
    item("event_item", &SpeadOptions::event_item,
         "spead only: the immediate item whose value is the event number, as `0x1600`")
        .unset(SpeadOptions{}.event_item, "the heap counter")
        .usually("1, the heap counter");
    item("source_item", &SpeadOptions::source_item,
         "spead only: the immediate item whose value is the source id, as `0x4101`; `source_by = \"header\"` needs it")
        .unset(0, "");
    out.size("heap_bytes", {1, heap_bytes_max}, of(&SpeadOptions::heap_bytes),
             "spead only: the size of every heap, for streams whose packets do not say it")
        .unset(0, "as the packets say")
        .usually("none");
    return out;
}

}  // namespace weir::wire
