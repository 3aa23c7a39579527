// Every Nth image, made smaller, for whoever wants to look: a PUB socket, on which who is slow misses some.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stream/cbor_writer.hpp"
#include "stream/series.hpp"
#include "stream/zmq.hpp"

namespace weir::stream {

/// The means of squares of `bin` by `bin` pixels; pixels without a value do not count, where all have none it is NaN,
/// and where one is saturated infinity. What is left at the right and at the bottom is left out, unless nothing else is
/// there.
[[nodiscard]] std::vector<float> binned(const store::hdf5::Layout& layout, std::span<const std::byte> pixels,
                                        std::uint32_t bin);

/// For one thread.
class Previews {
public:
    /// Listens. Throws core::RunError.
    Previews(const ZmqContext& context, const std::string& listen, std::uint32_t every, std::uint32_t bin);

    [[nodiscard]] bool wants(std::uint64_t image_id) const noexcept { return image_id % every_ == 0; }
    void publish(const Series& series, std::uint64_t image_id, const store::EventInfo& event,
                 const store::hdf5::Layout& layout, std::span<const std::byte> pixels);
    /// A start or an end, as consumers get them.
    void publish(std::span<const std::byte> message);
    [[nodiscard]] const std::string& address() const noexcept { return address_; }

private:
    ZmqSocket socket_;
    std::string address_;
    std::uint32_t every_;
    std::uint32_t bin_;
    CborWriter message_;
};

}  // namespace weir::stream
