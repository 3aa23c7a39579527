// What an rx lcore remembers of packets that it could not use, so that the summary can name the cause: who sent what no
// stream wants, and what refused packets of a stream look like. Off the hot path: asked only when a packet is refused,
// and once for each source.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stages/top_values.hpp"
#include "wire/encapsulation.hpp"
#include "wire/fragment.hpp"
#include "wire/header_kind.hpp"

namespace weir::stages {

struct StreamRuntime;

/// An address without its family's text. IPv4 in the first 4 bytes.
struct SenderAddress {
    bool ipv6 = false;
    std::array<std::uint8_t, 16> bytes{};
    friend bool operator==(const SenderAddress&, const SenderAddress&) = default;
};

/// Written by one lcore, read by any thread.
class RxNotes {
public:
    static constexpr std::uint16_t no_stream = 0xffff;
    static constexpr std::size_t senders_max = 16;
    using Senders = TopValuesIn<senders_max>;

    /// Who sends packets that match no stream.
    struct Sender {
        bool roce = false;
        std::uint32_t key = 0;  ///< destination UDP port, or destination queue pair
        SenderAddress address;
        std::uint64_t packets = 0;
        std::uint16_t reads_as = no_stream;  ///< the stream whose decoder takes its first packet
    };

    RxNotes(const std::vector<StreamRuntime>& streams, std::size_t sources);

    /// `frame`: where its Ethernet header begins.
    void unmatched_udp(const wire::Datagram& datagram, const std::byte* frame) noexcept;
    void unmatched_roce(const wire::Datagram& datagram, std::uint32_t qp) noexcept;
    /// A packet of a stream that ends in a counter of malformed packets. `fragment` is read only where the source is
    /// what is wrong; of the datagram the first `readable` bytes are at hand.
    void refused(std::uint16_t stream, std::uint32_t source, wire::Verdict verdict, const wire::Datagram& datagram,
                 std::uint32_t readable, const wire::Fragment& fragment) noexcept;
    /// A frame that is neither UDP nor RoCE, ARP or ICMP.
    void foreign(std::span<const std::byte> frame) noexcept;
    /// For the first packets of a source.
    void came_from(std::uint32_t source, const wire::Datagram& datagram) noexcept;

    [[nodiscard]] std::vector<Sender> senders() const;
    /// Where the source's first packet came from; all zero: none came.
    [[nodiscard]] SenderAddress address_of(std::uint32_t source) const noexcept { return load(from_[source]); }
    /// Packets for the source (of a stream whose ports or addresses tell the sources apart) that were malformed.
    [[nodiscard]] std::uint64_t refused(std::uint32_t source) const noexcept {
        return refused_[source].load(std::memory_order_relaxed);
    }
    /// Of datagrams with a payload of the wrong length: stream << 32 | bytes.
    [[nodiscard]] const TopValues& wrong_lengths() const noexcept { return wrong_lengths_; }
    /// Of datagrams that are several of a stream, handed over as one: stream << 32 | how many << 16 | bytes.
    [[nodiscard]] const TopValues& merged() const noexcept { return merged_; }
    /// Frames that others are in: bytes in front << 8 | wire::Encapsulation.
    [[nodiscard]] const TopValues& encapsulated() const noexcept { return encapsulated_; }
    /// Ids that no source has: stream << 32 | id.
    [[nodiscard]] const Senders& unknown_ids() const noexcept { return unknown_ids_; }
    /// Of datagrams with another header: stream << 32 | wire::Header, packed, or `other_byte_order`.
    [[nodiscard]] const TopValues& headers() const noexcept { return headers_; }
    static constexpr std::uint32_t other_byte_order = 0xffff'ffff;

private:
    struct Address {
        std::array<std::atomic<std::uint64_t>, 2> halves{};
        std::atomic<bool> ipv6{false};
    };
    [[nodiscard]] static SenderAddress load(const Address& address) noexcept;
    static void store(Address& address, const wire::Datagram& datagram) noexcept;
    void add(bool roce, std::uint32_t key, const wire::Datagram& datagram) noexcept;
    void note(const std::optional<wire::Encapsulated>& encapsulated) noexcept;
    [[nodiscard]] static std::uint32_t merged_of(const StreamRuntime& stream, const wire::Datagram& datagram,
                                                 std::uint32_t readable) noexcept;
    [[nodiscard]] std::uint16_t stream_that_reads(const wire::Datagram& datagram) noexcept;
    [[nodiscard]] bool fits_other_byte_order(const StreamRuntime& stream,
                                             const wire::Datagram& datagram) const noexcept;

    const std::vector<StreamRuntime>& streams_;
    Senders senders_;
    std::array<Address, senders_max> addresses_;
    std::array<std::atomic<std::uint16_t>, senders_max> reads_as_{};
    std::uint32_t tries_ = 0;  ///< that decoders were asked, of tries_max
    TopValues wrong_lengths_;
    TopValues merged_;
    TopValues encapsulated_;
    Senders unknown_ids_;
    TopValues headers_;
    std::vector<std::atomic<std::uint64_t>> refused_;  ///< per source
    std::vector<Address> from_;                        ///< per source
};

}  // namespace weir::stages
