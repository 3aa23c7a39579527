#include "stream/previews.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "store/payload_info.hpp"
#include "stream/zmq_library.hpp"

namespace weir::stream {

using store::hdf5::Element;
using store::hdf5::Layout;

namespace {

/// Previews that a slow subscriber may be behind.
constexpr int preview_queue = 4;

/// What was received has no marks, but where nothing came it is the largest number.
template <class Pixel>
std::vector<float> received_values(std::span<const std::byte> pixels) {
    std::vector<float> values(pixels.size() / sizeof(Pixel));
    for (std::size_t i = 0; i < values.size(); ++i) {
        Pixel value = 0;
        std::memcpy(&value, pixels.data() + sizeof value * i, sizeof value);
        const bool none = value == std::numeric_limits<Pixel>::max();
        values[i] = none ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
    }
    return values;
}

std::vector<float> values_of(const Layout& layout, std::span<const std::byte> pixels) {
    if (layout.description.content == store::Content::received) {
        if (layout.element == Element::u8) return received_values<std::uint8_t>(pixels);
        if (layout.element == Element::u32) return received_values<std::uint32_t>(pixels);
        return received_values<std::uint16_t>(pixels);
    }
    switch (layout.element) {
        case Element::f32:
            return store::energies_of(reduce::PixelType::f32, pixels);
        case Element::f16:
            return store::energies_of(reduce::PixelType::f16, pixels);
        case Element::i16:
            return store::energies_of(reduce::PixelType::i16, pixels);
        case Element::u8:
        case Element::u16:
        case Element::u32:
            break;
    }
    return store::energies_of(reduce::PixelType::u16, pixels);
}

std::size_t bins_of(std::uint64_t pixels, std::uint32_t bin) {
    return std::max<std::uint64_t>(pixels / bin, 1);
}

}  // namespace

std::vector<float> binned(const Layout& layout, std::span<const std::byte> pixels, std::uint32_t bin) {
    std::vector<float> values = values_of(layout, pixels);
    if (bin == 1) return values;
    const std::size_t rows = bins_of(layout.image_rows(), bin);
    const std::size_t columns = bins_of(layout.columns, bin);
    std::vector<float> sums(rows * columns, 0);
    std::vector<std::uint32_t> counts(rows * columns, 0);
    for (std::size_t row = 0; row < std::min<std::size_t>(layout.image_rows(), rows * bin); ++row)
        for (std::size_t column = 0; column < std::min<std::size_t>(layout.columns, columns * bin); ++column) {
            const float value = values[row * layout.columns + column];
            if (std::isnan(value)) continue;
            const std::size_t into = row / bin * columns + column / bin;
            sums[into] += value;
            ++counts[into];
        }
    for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = counts[i] == 0 ? std::numeric_limits<float>::quiet_NaN() : sums[i] / static_cast<float>(counts[i]);
    return sums;
}

Previews::Previews(const ZmqContext& context, const std::string& listen, std::uint32_t every, std::uint32_t bin)
    : socket_(context, ZMQ_PUB), every_(every), bin_(bin) {
    socket_.set(ZMQ_SNDHWM, preview_queue);
    address_ = socket_.bind(listen);
}

void Previews::publish(std::span<const std::byte> message) {
    zmq().zmq_send(socket_.get(), message.data(), message.size(), ZMQ_DONTWAIT);
}

void Previews::publish(const Series& series, std::uint64_t image_id, const store::EventInfo& event,
                       const Layout& layout, std::span<const std::byte> pixels) {
    const std::vector<float> image = binned(layout, pixels, bin_);
    const auto bytes = std::as_bytes(std::span(image));
    const std::pair<std::uint32_t, std::uint32_t> preview{every_, bin_};
    message_.clear();
    put_event_head(message_, "image", series, image_id, event, &preview);
    const std::size_t columns = bin_ == 1 ? layout.columns : bins_of(layout.columns, bin_);
    put_image_data(message_, image.size() / columns, columns, *element_type_named("float32"), {}, bytes.size());
    std::vector<std::byte> whole(message_.written().begin(), message_.written().end());
    whole.insert(whole.end(), bytes.begin(), bytes.end());
    publish(std::span<const std::byte>(whole));
}

}  // namespace weir::stream
