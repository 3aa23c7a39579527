// What two nodes say to each other on their TCP connection, beside the messages that UCX carries: who they are, and
// that they are still there. In the byte order of the host: hosts of another one are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/message.hpp"

namespace weir::fabric {

enum class FrameKind : std::uint16_t {
    hello = 1,  ///< who calls: Hello. The answer, if both may talk: who is called
    go,         ///< both know each other now, and messages may come
    beat,       ///< still there
    expelled,   ///< for the receiver, this life of yours is over: Expelled
    leave,      ///< goes away, and has sent so many messages: Leave
};

struct Frame {
    FrameKind kind = FrameKind::beat;
    std::vector<std::byte> body;
};

struct Hello {
    std::uint64_t agreement = 0;
    /// What the receiver's messages have to carry from now on.
    std::uint64_t session = 0;
    cluster::Incarnation incarnation = 0;
    /// Up to which life of the receiver's they are all over, as the sender knows it.
    cluster::Incarnation gone = 0;
    /// The sender's UCX, as UcxWorker::version(): what another one makes of its address is anybody's guess.
    std::uint32_t ucx = 0;
    std::uint32_t run = 0;  ///< the number of the run that the sender was started for; 0: for none in particular
    cluster::NodeId node = 0;
    cluster::NodeId nodes = 0;
    cluster::NodeId up = 0;        ///< how many others the sender is connected with
    std::uint16_t has_quorum = 0;  ///< 1: see cluster::Quorum
};

struct Expelled {
    cluster::Incarnation from = 0;
    cluster::Incarnation to = 0;
    cluster::Incarnation gone = 0;  ///< up to which life of the receiver's they are all over
};

struct Leave {
    std::uint64_t messages = 0;
};

/// With `address` behind it, what UCX needs to reach its sender, and a seal over both (hello_seal.hpp).
[[nodiscard]] Frame frame_of(const Hello& hello, std::span<const std::byte> address, std::string_view secret);
/// Before anything in a hello is believed. False: it was damaged on its way, or its sender has another secret.
[[nodiscard]] bool has_seal(const Frame& hello, std::string_view secret);
[[nodiscard]] Frame frame_of(const Expelled& expelled);
[[nodiscard]] Frame frame_of(const Leave& leave);
/// These throw std::runtime_error if the frame is not of that kind.
[[nodiscard]] Hello hello_of(const Frame& frame);
[[nodiscard]] std::span<const std::byte> address_of(const Frame& hello);
[[nodiscard]] Expelled expelled_of(const Frame& frame);
[[nodiscard]] Leave leave_of(const Frame& frame);

void append_frame(std::vector<std::byte>& bytes, const Frame& frame);

/// Frames out of bytes as they come.
class FrameReader {
public:
    void add(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    /// None: it has not come as a whole. Throws std::runtime_error if this is something else.
    [[nodiscard]] std::optional<Frame> next();
    /// Of a frame that has not come as a whole.
    [[nodiscard]] bool has_piece() const noexcept { return !bytes_.empty(); }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace weir::fabric
