#include "fabric/control_frame.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "fabric/hello_seal.hpp"

namespace weir::fabric {

namespace {

constexpr std::uint32_t frame_magic = 0x72696577;  // "weir"
constexpr std::uint16_t frame_version = 9;
constexpr std::uint32_t frame_bytes_max = 1U << 16;

struct FrameHead {
    std::uint32_t magic = frame_magic;
    std::uint16_t version = frame_version;
    FrameKind kind{};
    std::uint32_t bytes = 0;
};

template <class T>
void append_value(std::vector<std::byte>& bytes, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
}

template <class T>
Frame frame_with(FrameKind kind, const T& value) {
    Frame frame{.kind = kind, .body = {}};
    append_value(frame.body, value);
    return frame;
}

template <class T>
T value_of(const Frame& frame, FrameKind kind) {
    if (frame.kind != kind || frame.body.size() < sizeof(T)) throw std::runtime_error("another frame was expected");
    T value;
    std::memcpy(&value, frame.body.data(), sizeof value);
    return value;
}

}  // namespace

Frame frame_of(const Hello& hello, std::span<const std::byte> address, std::string_view secret) {
    Frame frame = frame_with(FrameKind::hello, hello);
    frame.body.insert(frame.body.end(), address.begin(), address.end());
    append_value(frame.body, seal_of(frame.body, secret));
    return frame;
}

bool has_seal(const Frame& hello, std::string_view secret) {
    if (hello.body.size() < sizeof(Hello) + sizeof(HelloSeal)) return false;
    const std::span body(hello.body);
    return is_same_seal(body.last<sizeof(HelloSeal)>(), seal_of(body.first(body.size() - sizeof(HelloSeal)), secret));
}

Frame frame_of(const Expelled& expelled) {
    return frame_with(FrameKind::expelled, expelled);
}

Frame frame_of(const Leave& leave) {
    return frame_with(FrameKind::leave, leave);
}

Hello hello_of(const Frame& frame) {
    return value_of<Hello>(frame, FrameKind::hello);
}

std::span<const std::byte> address_of(const Frame& hello) {
    if (hello.kind != FrameKind::hello || hello.body.size() < sizeof(Hello) + sizeof(HelloSeal))
        throw std::runtime_error("another frame was expected");
    return std::span(hello.body).subspan(sizeof(Hello), hello.body.size() - sizeof(Hello) - sizeof(HelloSeal));
}

Expelled expelled_of(const Frame& frame) {
    return value_of<Expelled>(frame, FrameKind::expelled);
}

Leave leave_of(const Frame& frame) {
    return value_of<Leave>(frame, FrameKind::leave);
}

void append_frame(std::vector<std::byte>& bytes, const Frame& frame) {
    FrameHead head;
    head.kind = frame.kind;
    head.bytes = static_cast<std::uint32_t>(frame.body.size());
    append_value(bytes, head);
    bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
}

std::optional<Frame> FrameReader::next() {
    FrameHead head;
    if (bytes_.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes_.data(), sizeof head);
    if (head.magic != frame_magic || head.version != frame_version || head.kind < FrameKind::hello ||
        head.kind > FrameKind::leave || head.bytes > frame_bytes_max)
        throw std::runtime_error("no frame of this version");
    if (bytes_.size() < sizeof head + head.bytes) return std::nullopt;
    const auto body = bytes_.begin() + static_cast<std::ptrdiff_t>(sizeof head);
    Frame frame{.kind = head.kind, .body = {body, body + head.bytes}};
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(sizeof head + head.bytes));
    return frame;
}

}  // namespace weir::fabric
