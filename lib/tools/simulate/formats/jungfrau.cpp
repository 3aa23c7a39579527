// JUNGFRAU in the simulator: the only one that sends images.
#include "wire/formats/jungfrau/jungfrau.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "simulate/formats/sls.hpp"

namespace weir::simulate {
namespace {

class JungfrauFrames final : public SimulatedFormat {
public:
    JungfrauFrames(const SimulatorConfig& config, const wire::FormatContext& context)
        : config_(config), context_(context), images_(config.sources / config.interfaces, config.seed) {}

    void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept override {
        wire::SlsHeader header = sls_header(config_, context_, packet, wire::Jungfrau::detector_type);
        header.bunch_id = packet.event;
        wire::write_sls(header, {}, datagram);
    }
    void content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                 std::span<std::byte> out) noexcept override {
        constexpr std::uint32_t row_bytes = DetectorImages::row_bytes;
        while (!out.empty()) {
            const std::uint32_t inside = offset % row_bytes;
            std::size_t bytes = out.size() / row_bytes * row_bytes;
            if (inside == 0 && bytes > 0) {
                images_.render(event, image_row(source, offset), static_cast<std::uint32_t>(bytes / row_bytes),
                               out.data());
            } else {  // RDMA: packets end where they want
                images_.render(event, image_row(source, offset), 1, row_.data());
                bytes = std::min<std::size_t>(row_bytes - inside, out.size());
                std::memcpy(out.data(), row_.data() + inside, bytes);
            }
            out = out.subspan(bytes);
            offset += static_cast<std::uint32_t>(bytes);
        }
    }

private:
    [[nodiscard]] std::uint32_t image_row(std::uint32_t source, std::uint32_t offset) const noexcept {
        // The packet number says where in the half of this interface a packet lies, whatever part of it is read out.
        const std::uint32_t first = source * (DetectorImages::rows_per_module / config_.interfaces);
        const wire::SlsLane& lane = context_.sls.lanes[source % config_.interfaces];
        return first + (lane.first_packet * wire::Jungfrau::payload_bytes + offset) / DetectorImages::row_bytes;
    }

    const SimulatorConfig& config_;
    const wire::FormatContext& context_;
    DetectorImages images_;
    std::array<std::byte, DetectorImages::row_bytes> row_{};
};

}  // namespace

SimulationEntry simulated_jungfrau() {
    return {.name = wire::Jungfrau::name,
            .context = sls_context_of,
            .make = make_simulated<JungfrauFrames>,
            .fixed_packets = true,
            .over_roce = true,
            .row_bytes = [](const SimulatorConfig&) { return wire::Jungfrau::row_bytes; }};
}

}  // namespace weir::simulate
