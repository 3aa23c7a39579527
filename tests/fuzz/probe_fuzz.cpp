// libFuzzer target: any bytes as the frames that `weir probe` looks at. Whatever they are, what is found is printed,
// and what is proposed reads back as a configuration (propose() throws if it does not).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "probe/find.hpp"
#include "probe/findings_text.hpp"
#include "probe/packet_view.hpp"
#include "probe/proposal.hpp"

namespace {

/// Takes `count` bytes off the front.
std::span<const std::byte> take(std::span<const std::byte>& bytes, std::size_t count) {
    const auto out = bytes.first(std::min(count, bytes.size()));
    bytes = bytes.subspan(out.size());
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weir::probe;
    std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
    PacketSample sample({.packets = 4096, .bytes = 1 << 24, .flows = 64});
    std::unique_ptr<std::byte[]> last;
    std::size_t last_bytes = 0;
    while (rest.size() >= 2) {
        const auto head = take(rest, 2);
        const std::size_t wanted = std::to_integer<std::size_t>(head[0]) | std::to_integer<std::size_t>(head[1]) << 8U;
        const auto frame = take(rest, wanted % 2048);
        // A buffer of exactly its size, so that a byte too far is seen; repeated, because counters need company.
        last = std::make_unique<std::byte[]>(frame.size());
        last_bytes = frame.size();
        if (!frame.empty()) std::memcpy(last.get(), frame.data(), frame.size());
        for (int i = 0; i <= static_cast<int>(wanted >> 12U); ++i)
            sample.add({last.get(), last_bytes}, static_cast<std::uint32_t>(last_bytes), 1000 * i);
    }
    const Findings findings = find(sample, {});
    if (findings_text(findings).empty() || findings_json(findings).empty()) std::abort();
    if (findings.recognised() && propose(findings, "").empty()) std::abort();
    const PacketView view =
        view_packet({last.get(), last_bytes}, static_cast<std::uint32_t>(last_bytes), sample, findings);
    if (view_json(view).empty()) std::abort();
    (void)view_text(view);
    return 0;
}
