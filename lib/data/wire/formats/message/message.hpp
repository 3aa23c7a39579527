// `message`: no framing at all. The datagram's payload, or the RDMA message, is the message; its number comes from the
// transport.
#pragma once

#include <string_view>

#include "wire/format.hpp"

namespace weir::wire {

struct WholeMessage {
    static constexpr std::string_view name = "message";

    static FormatContext make_context(const FormatOptions& options);

    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        if (datagram.payload_bytes > context.message_bytes_max) return Verdict::malformed_message_size;
        out = Fragment{.payload = datagram.payload,
                       .bytes = datagram.payload_bytes,
                       .total = datagram.payload_bytes,
                       .total_known = true};
        return ok;
    }
};

}  // namespace weir::wire
