#include "simulate/frame_writes.hpp"

#include <algorithm>

namespace weir::simulate {

FrameWrites::FrameWrites(const Config& config) {
    if (config.write_bytes >= config.frame_bytes) {
        add({0, config.header_bytes + config.frame_bytes, true}, config.path_mtu);
        return;
    }
    const std::uint32_t all = (config.frame_bytes + config.write_bytes - 1) / config.write_bytes;
    const std::uint32_t of_chip = (all + config.readout_chips - 1) / config.readout_chips;
    for (std::uint32_t turn = 0; turn < of_chip; ++turn)
        for (std::uint32_t place = turn; place < all; place += of_chip) {
            const std::uint32_t begin = place * config.write_bytes;
            const std::uint32_t bytes = std::min(config.write_bytes, config.frame_bytes - begin);
            add({config.header_bytes + begin, bytes, false}, config.path_mtu);
        }
    add({0, config.header_bytes, true}, config.path_mtu);
}

void FrameWrites::add(const Write& write, std::uint32_t path_mtu) {
    const auto index = static_cast<std::uint32_t>(writes_.size());
    writes_.push_back(write);
    const std::uint32_t count = std::max(1U, (write.bytes + path_mtu - 1) / path_mtu);
    for (std::uint32_t i = 0; i < count; ++i) packets_.push_back({index, i, count});
}

}  // namespace weir::simulate
