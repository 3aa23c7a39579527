// Datagrams of pieces on an rx lcore: those that came in IP fragments, and frames that a device spread over several
// buffers (larger than a buffer, or with the headers split off). Nothing is copied where it can be helped: a whole
// datagram is a chain of the received buffers, and its message gets a reference to each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assemble/message_table.hpp"
#include "port/buffers.hpp"
#include "port/ip_reassembly.hpp"
#include "reduce/chain/fragment_converter.hpp"
#include "stages/rx/rx_sources.hpp"
#include "steer/steering.hpp"
#include "wire/packet_counter.hpp"

namespace weir::stages {

class RxPieces {
public:
    using TimeNs = core::TimeNs;
    using Packet = port::Packet;
    static constexpr std::uint32_t segments_max = 128;  ///< buffers of a frame

    /// What the datagrams' packets are counted in, and collected in; outlives this object.
    struct Collaborators {
        const std::vector<StreamRuntime>& streams;
        RxSources& sources;
        RxNotes& notes;
        assemble::MessageTable& table;
        wire::PacketTally& packets;
        reduce::FragmentConverter* converter;  ///< null: none
    };

    /// `header_bytes`: all headers of any packet lie within, from the start of the frame.
    RxPieces(const port::IpReassembly::Config& config, std::uint32_t header_bytes, const Collaborators& around);

    /// Takes a packet that is a piece of a datagram; returns the whole datagram if this is what it lacked.
    [[nodiscard]] std::optional<Packet> join(const Packet& packet, const wire::Datagram& piece, TimeNs now) noexcept;
    /// Ends what has waited for too long, in a counter.
    void expire(TimeNs now) noexcept;
    /// Ends all that waits.
    void flush() noexcept;
    /// Pieces that wait.
    [[nodiscard]] std::uint32_t held() const noexcept { return reassembly_.held(); }

    /// All headers of a packet in several buffers in one piece: in its first buffer, or copied together, good until the
    /// next call.
    [[nodiscard]] std::span<const std::byte> head_of(const Packet& packet) noexcept;
    /// The packet in one buffer, for what has to be read as a whole, which is rare in several. Takes the packet over;
    /// one that cannot be copied ends in a counter.
    [[nodiscard]] std::optional<Packet> in_one_buffer(const Packet& packet) noexcept;
    /// Takes over a datagram in several buffers that is of the route's stream, decodes it and adds it to its message.
    /// `head` is where its headers were read.
    void assemble(const Packet& packet, const std::byte* head, wire::Datagram& datagram,
                  const steer::Route& route) noexcept;

    [[nodiscard]] const port::IpReassembly& reassembly() const noexcept { return reassembly_; }

private:
    void count_held(std::uint32_t held_before) noexcept;
    void add(const Packet& packet, std::uint32_t source, const wire::Fragment& fragment, std::uint32_t skip) noexcept;

    Collaborators around_;
    port::IpReassembly reassembly_;
    std::vector<std::byte> head_;  ///< the headers of a frame that has them in several buffers
};

}  // namespace weir::stages
