// For the formats' own files: how a decoder of one packet becomes an entry of the table.
#pragma once

#include <concepts>

#include "wire/format.hpp"

namespace weir::wire {

template <class F>
concept Format = requires(const FormatContext& context, const FormatOptions& options, const Datagram& datagram,
                          Fragment& out) {
    { F::name } -> std::convertible_to<std::string_view>;
    { F::make_context(options) } -> std::same_as<FormatContext>;
    { F::decode(context, datagram, out) }
    noexcept->std::same_as<Verdict>;
};

/// Where a decoder becomes a loop over a burst.
template <Format F>
void decode_burst_of(const FormatContext& context, std::span<const Datagram> datagrams, Fragment* out,
                     Verdict* verdict) noexcept {
    for (std::size_t i = 0; i < datagrams.size(); ++i) verdict[i] = F::decode(context, datagrams[i], out[i]);
}

/// The entry with what every format has. The rest is for the format to fill in.
template <Format F>
FormatEntry entry_of_format() {
    return {.name = F::name, .decode_burst = &decode_burst_of<F>, .make_context = &F::make_context};
}

}  // namespace weir::wire
