// libFuzzer target: any bytes as a detector packet. The first byte chooses the format; for a declared one, the next
// bytes make the description. A fragment that is accepted must lie in the packet and in its message.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "wire/format.hpp"

namespace {

using namespace weir::wire;

/// Takes bytes off the front of the input; zeroes once it is used up.
class Taker {
public:
    explicit Taker(std::span<const std::uint8_t> data) : data_(data) {}
    std::uint8_t byte() {
        if (data_.empty()) return 0;
        const std::uint8_t value = data_.front();
        data_ = data_.subspan(1);
        return value;
    }
    [[nodiscard]] std::span<const std::uint8_t> rest() const { return data_; }

private:
    std::span<const std::uint8_t> data_;
};

std::optional<DeclaredField> take_field(Taker& taker) {
    const std::uint8_t kind = taker.byte();
    if ((kind & 1) != 0) return std::nullopt;
    DeclaredField field{.offset = taker.byte(), .bytes = taker.byte()};
    if ((kind & 2) != 0) {
        std::uint64_t mask = 0;
        for (int i = 0; i < 8; ++i) mask = mask << 8 | taker.byte();
        field.mask = mask;
        field.shift = taker.byte();
    }
    return field;
}

DeclaredSpec take_spec(Taker& taker) {
    DeclaredSpec spec;
    spec.name = "fuzz";
    const std::uint8_t choice = taker.byte();
    spec.byte_order = (choice & 1) != 0 ? ByteOrder::big : ByteOrder::little;
    spec.header_bytes = taker.byte();
    spec.event = take_field(taker);
    spec.index = take_field(taker);
    spec.offset = take_field(taker);
    spec.total = take_field(taker);
    spec.magic = take_field(taker);
    spec.source = take_field(taker);
    spec.magic_value = taker.byte();
    if ((choice & 2) != 0) spec.payload_bytes = static_cast<std::uint32_t>(taker.byte() << 8 | taker.byte());
    if ((choice & 4) != 0) spec.packets = taker.byte();
    if ((choice & 8) != 0) spec.wrap_bits = taker.byte();
    return spec;
}

void check(const FormatContext& context, const Datagram& datagram, const Fragment& fragment) {
    const std::byte* end = datagram.payload + datagram.payload_bytes;
    if (fragment.payload < datagram.payload || fragment.payload + fragment.bytes > end) std::abort();
    if (!fragment.total_known || fragment.total > context.message_bytes_max) std::abort();
    if (fragment.offset > fragment.total || fragment.bytes > fragment.total - fragment.offset) std::abort();
    if (fragment.bytes == 0 && fragment.total != 0) std::abort();
    if (fragment.header_bytes != 0 &&
        (fragment.header < datagram.payload || fragment.header + fragment.header_bytes > end))
        std::abort();
    if (context.number_bits < 64 && fragment.number >> context.number_bits != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Taker taker({data, size});
    const FormatEntry& entry = formats()[taker.byte() % formats().size()];
    FormatOptions options;
    options.interfaces = 1 + taker.byte() % 2;
    if (entry.name == "declared") options.declared = take_spec(taker);
    FormatContext context;
    try {
        context = entry.make_context(options);
    } catch (const weir::core::UsageError&) {
        return 0;
    }
    const std::span<const std::uint8_t> rest = taker.rest();
    const auto packet = std::make_unique<std::byte[]>(rest.size());
    if (!rest.empty()) std::memcpy(packet.get(), rest.data(), rest.size());
    Datagram datagram;
    datagram.payload = packet.get();
    datagram.payload_bytes = static_cast<std::uint32_t>(rest.size());
    Fragment fragment;
    Verdict verdict = Verdict::count_;
    entry.decode_burst(context, {&datagram, 1}, &fragment, &verdict);
    if (verdict >= Verdict::count_) std::abort();
    if (verdict == ok) check(context, datagram, fragment);
    return 0;
}
