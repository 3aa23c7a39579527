// Any bytes as a multi-fragment packet, with gaps where the input says so, put together to multi-event packets in both
// orders, which must be read back; and any bytes as a multi-event packet.
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "reduce/made_message.hpp"
#include "reduce/mfp/mep_view.hpp"
#include "reduce/mfp/multi_event.hpp"

namespace {

using namespace weir::reduce;

MfpLayout layout_for(std::uint8_t choice) {
    MfpLayout layout;
    layout.big_endian = (choice & 1U) != 0;
    if ((choice & 2U) != 0) layout.length = {};
    if ((choice & 4U) != 0) layout.fragment_align = 8;
    if ((choice & 8U) != 0) {
        layout.type_bytes = layout.size_bytes = 0;
        layout.size_in_fragment = {1, 2};
        layout.size_adds = 3;
    }
    return layout;
}

void check(bool holds) {
    if (!holds) std::abort();
}

void write(std::span<const std::byte> bytes, std::uint8_t choice, std::uint8_t gap) {
    weir::test::MadeMessage made;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        if (gap > 0 && at / 16 % gap == gap - 1U) continue;
        const auto piece = bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at));
        made.add(static_cast<std::uint32_t>(at), {piece.begin(), piece.end()});
    }
    if ((choice & 16U) == 0) made.declare(static_cast<std::uint32_t>(bytes.size()));
    for (const MepOrder order : {MepOrder::sources, MepOrder::events}) {
        MepWriter::Config config;
        config.layout = layout_for(choice);
        config.order = order;
        config.sources = {{1, 2}, {3, 4}};
        config.fragments_max = 300;
        MepWriter writer(config);
        const std::array messages{&made.message(), &made.message()};
        const auto result = writer.begin(messages, std::array{0U, 1U});
        if (result.problem != MfpProblem::none) continue;
        std::vector<std::byte> packet;
        std::array<std::byte, 100> piece;
        for (std::size_t n = writer.fill(piece); n > 0; n = writer.fill(piece))
            packet.insert(packet.end(), piece.begin(), piece.begin() + n);
        std::string problem;
        const auto view = MepView::parse(packet, problem);
        check(packet.size() == result.bytes && view.has_value() && view->events() == result.events);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
    write(bytes, data[0], data[1]);
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    std::string problem;
    if (const auto view = MepView::parse(exact, problem); view.has_value())
        for (std::uint32_t event = 0; event < view->events(); ++event)
            for (std::size_t source = 0; source < view->sources().size(); ++source) {
                const auto fragment = view->fragment(event, source).bytes;
                check(fragment.empty() || (fragment.data() >= exact.data() &&
                                           fragment.data() + fragment.size() <= exact.data() + exact.size()));
            }
    return 0;
}
