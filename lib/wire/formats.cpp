// The table of formats: the only file that names them all, and where each decoder becomes a loop over a burst.
#include <algorithm>
#include <array>
#include <concepts>

#include "wire/declared/declared.hpp"
#include "wire/dune/dune.hpp"
#include "wire/eiger/eiger.hpp"
#include "wire/ejfat/ejfat.hpp"
#include "wire/ess/ess.hpp"
#include "wire/format.hpp"
#include "wire/jungfrau/jungfrau.hpp"
#include "wire/message/message.hpp"
#include "wire/moench/moench.hpp"
#include "wire/spead/spead.hpp"

namespace weir::wire {
namespace {

template <class F>
concept Format = requires(const FormatContext& context, const FormatOptions& options, const Datagram& datagram,
                          Fragment& out) {
    { F::name } -> std::convertible_to<std::string_view>;
    { F::make_context(options) } -> std::same_as<FormatContext>;
    { F::decode(context, datagram, out) }
    noexcept->std::same_as<Verdict>;
};

template <Format F>
void decode_burst(const FormatContext& context, std::span<const Datagram> datagrams, Fragment* out,
                  Verdict* verdict) noexcept {
    for (std::size_t i = 0; i < datagrams.size(); ++i) verdict[i] = F::decode(context, datagrams[i], out[i]);
}

template <Format... F>
constexpr std::array<FormatEntry, sizeof...(F)> table{{{F::name, &decode_burst<F>, &F::make_context}...}};

constexpr auto& all_formats = table<Jungfrau, Moench, Eiger, Ejfat, Dune, Ess, Spead, WholeMessage, Declared>;

}  // namespace

FormatContext WholeMessage::make_context(const FormatOptions& options) {
    return {.message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default,
            .carries_number = false};
}

std::span<const FormatEntry> formats() noexcept {
    return all_formats;
}

const FormatEntry* find_format(std::string_view name) noexcept {
    const auto* found = std::ranges::find(all_formats, name, &FormatEntry::name);
    return found != all_formats.end() ? found : nullptr;
}

}  // namespace weir::wire
