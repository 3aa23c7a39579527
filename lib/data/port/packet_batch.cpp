#include "port/packet_batch.hpp"

#include <algorithm>
#include <utility>

namespace weir::port {

PacketBatch::PacketBatch(PacketBatch&& other) noexcept {
    *this = std::move(other);
}

PacketBatch& PacketBatch::operator=(PacketBatch&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    const std::span<Packet> all = other.take();
    std::ranges::copy(all, packets_.begin());
    end_ = static_cast<std::uint32_t>(all.size());
    return *this;
}

void PacketBatch::release_all() noexcept {
    std::array<void*, capacity> buffers;
    const std::span<const Packet> all = take();
    std::ranges::transform(all, buffers.begin(), &Packet::mbuf);
    release_buffers(buffers.data(), static_cast<std::uint32_t>(all.size()));
}

}  // namespace weir::port
