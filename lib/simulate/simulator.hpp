// The detector simulator: an endless or counted stream of frames from the project's own encoders, with seeded faults,
// and an independent account of what was sent. Not here: the targets that frames go to, and pacing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/simulator_content.hpp"
#include "wire/encode.hpp"

namespace weir::port {

enum class SimulatedFormat : std::uint8_t { jungfrau, moench, eiger, ejfat, dune, ess, spead, message, declared };
enum class SimulatedTransport : std::uint8_t { udp, roce_send, roce_write };

/// What the simulated detector is, and what the simulated network does to it. The defaults are those of `weir send`.
struct SimulatorConfig {
    SimulatedFormat format = SimulatedFormat::jungfrau;
    SimulatedTransport transport = SimulatedTransport::udp;
    std::uint32_t sources = 1;  ///< streams: one UDP port or queue pair each
    std::uint64_t events = 0;   ///< 0: without end
    std::uint64_t first_event = 1;
    std::uint64_t seed = 1;

    std::uint32_t interfaces = 1;              ///< jungfrau, moench: 2 makes a module out of two sources
    std::optional<std::uint32_t> rows{};       ///< jungfrau, moench, eiger: partial readout; default all
    std::optional<std::uint32_t> bit_depth{};  ///< eiger: default 16
    std::optional<bool> tengiga{};             ///< eiger: default true
    wire::DeclaredSpec declared{};             ///< declared: the format
    std::uint32_t source_id = 0;               ///< declared: in the header of source 0; source i has source_id + i
    std::uint32_t bytes_min = 1;               ///< messages of no fixed size: sizes are drawn evenly from here
    std::uint32_t bytes_max = 0;               ///< to here; 0 means 20000, or what one datagram holds
    std::uint8_t lb_version = 0;               ///< ejfat: load balancer header 2 or 3, or none
    std::uint32_t mtu = 0;                     ///< udp: IP MTU, 0 means 9000; roce: path MTU, 0 means 4096
    wire::RoceTransport service =
        wire::RoceTransport::uc;  ///< roce: uc, rc or ud; the frames of rc are those of a sender that nobody answers
    std::uint32_t first_psn = 0;  ///< roce, dune, ess: packet number of every source's first packet
    std::uint32_t queue_pair = 0x11;      ///< roce: of source 0; source i has queue_pair + i
    bool immediate = true;                ///< roce: the event number's low 32 bits travel in the LAST packet
    std::uint64_t va = 0x10000000;        ///< roce_write: buffer of source 0; source i has va + i * va_step
    std::uint32_t rkey = 0x1234;          ///< roce_write: of all sources
    std::uint32_t port = 0;               ///< udp: of source 0, 0 means the format's own; source i has port + i
    bool one_port = false;                ///< udp: all sources send to `port`
    std::optional<std::uint16_t> vlan{};  ///< VLAN id
    std::uint32_t src_ip = 0x0a01000a;    ///< 10.1.0.10, of source 0; source i has src_ip + i
    std::uint32_t dst_ip = 0x0a010002;    ///< 10.1.0.2
    /// roce: IPv6 instead. The last four bytes of the source address count on with the sources.
    std::optional<wire::Ipv6Addresses> ipv6{};
    std::optional<std::uint16_t> src_port{};  ///< of all sources; default: the format's own (roce: one per queue pair)
    bool one_src_ip = false;                  ///< all sources share src_ip
    std::array<std::uint8_t, 6> src_mac{0x02, 0, 0, 0, 0, 0x0a};  ///< of source 0; the last byte counts on
    std::array<std::uint8_t, 6> dst_mac{0x02, 0, 0, 0, 0, 0x02};

    double drop = 0;       ///< probability that a packet is not sent
    double duplicate = 0;  ///< probability that a sent packet is sent twice
    double truncate = 0;   ///< probability that a sent packet is cut short; its IP lengths stay, its copy stays whole
    double corrupt = 0;    ///< roce: probability that a bit that its iCRC covers is flipped; its copy stays whole
    std::uint32_t reorder = 0;  ///< places that a packet may move, either way
};

/// What the simulator did, counted where it was done. packets: generated - dropped + duplicated = emitted.
struct SimulatorAccount {
    struct Source {
        std::uint64_t generated = 0;
        std::uint64_t dropped = 0;
        std::uint64_t duplicated = 0;
        std::uint64_t truncated = 0;
        std::uint64_t corrupted = 0;
        std::uint64_t emitted = 0;
        std::uint64_t frame_bytes = 0;  ///< of the emitted frames, cut ones as cut
    };
    std::vector<Source> sources;
    std::uint64_t events = 0;          ///< begun; all their packets are planned
    std::uint64_t events_whole = 0;    ///< every packet was emitted uncut at least once
    std::uint64_t events_damaged = 0;  ///< something is missing
    std::uint64_t events_empty = 0;    ///< not one packet was emitted uncut
    std::uint64_t message_bytes = 0;   ///< of all messages of all events, as if nothing was dropped

    [[nodiscard]] Source total() const noexcept;
};

/// Flips one bit of a RoCE frame among those that its iCRC covers; `draw` says which. `header_bytes`: up to the BTH.
void flip_bit(std::span<std::byte> frame, std::uint32_t header_bytes, std::uint64_t draw) noexcept;

/// JUNGFRAU or MOENCH: modules with one or two interfaces.
[[nodiscard]] bool is_module(SimulatedFormat format) noexcept;
/// JUNGFRAU, MOENCH or EIGER: they share a header, and the size of a message is fixed.
[[nodiscard]] bool is_sls_detector(SimulatedFormat format) noexcept;
/// Whether every packet of a declared format is a whole message.
[[nodiscard]] bool is_one_packet(const wire::DeclaredSpec& spec) noexcept;
/// What a receiver of the format would know of it; nothing for formats without options of their own. Throws
/// core::UsageError.
[[nodiscard]] wire::FormatContext simulated_context(const SimulatorConfig& config);
/// That of dune, ess and spead: bytes of the headers, and sizes where they are fixed. Of others nothing is set.
[[nodiscard]] wire::FormatContext readout_context(SimulatedFormat format) noexcept;
/// Whether packets and header fields of a declared format hold the messages. Throws core::UsageError.
void check_declared(const SimulatorConfig& config, const wire::FormatContext& context);

/// Deterministic: the same configuration gives the same frames in the same order.
class Simulator {
public:
    struct Frame {
        std::uint32_t bytes = 0;
        std::uint32_t source = 0;
        std::uint64_t event = 0;
        bool truncated = false;
        bool corrupted = false;
        /// When the frame is due: events since the start, with the fraction that says how far the event is. Never
        /// falls.
        double due_events = 0;
    };

    /// Throws core::UsageError naming the option and what is accepted.
    explicit Simulator(const SimulatorConfig& config);

    /// Writes the next frame and describes it; false when all events have been sent. `out` has frame_bytes_max() bytes.
    /// Allocates nothing.
    bool next(std::span<std::byte> out, Frame& frame) noexcept;
    /// The same for who only wants the bytes.
    bool next(std::span<std::byte> out, std::uint32_t& frame_bytes) noexcept;
    /// Begins no further event: next() gives what is left of the present one, then false.
    void stop() noexcept { stopped_ = true; }

    [[nodiscard]] std::uint32_t frame_bytes_max() const noexcept { return frame_bytes_max_; }
    /// Bytes in front of the UDP payload in every frame.
    [[nodiscard]] std::uint32_t frame_header_bytes() const noexcept { return header_bytes_; }
    [[nodiscard]] const SimulatorAccount& account() const noexcept { return account_; }
    /// As given, with the defaults that depend on format and transport filled in.
    [[nodiscard]] const SimulatorConfig& config() const noexcept { return config_; }
    /// Destination port, or queue pair, of a source.
    [[nodiscard]] std::uint32_t endpoint(std::uint32_t source) const noexcept;

    /// What a receiver must find: bytes of a message, detector headers not counted...
    [[nodiscard]] std::uint32_t message_bytes(std::uint64_t event, std::uint32_t source) const noexcept;
    /// ... and the bytes themselves. For jungfrau (the only one with images), offset and size are multiples of 2048 (a
    /// row).
    void message_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                         std::span<std::byte> out) noexcept;

    /// RoCE: bytes of the RDMA message (the format's header, if it has one, and the whole message after it) ...
    [[nodiscard]] std::uint32_t rdma_bytes(std::uint64_t event, std::uint32_t source) const noexcept;
    /// ... those of one packet of it, at a multiple of the path MTU, made again as often as asked for ...
    void rdma_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                      std::span<std::byte> out) noexcept;
    /// ... where a WRITE goes, and the headers in front.
    [[nodiscard]] std::uint64_t rdma_va(std::uint32_t source) const noexcept { return config_.va + va_step * source; }
    static constexpr std::uint64_t va_step = 0x10000000;
    static constexpr std::uint32_t qkey = 0x11111111;
    [[nodiscard]] wire::FrameSpec frame_spec(std::uint32_t source) const noexcept;

private:
    struct Planned {
        std::uint64_t place;  ///< in the order of emission; where it is shared, the later packet goes first
        std::uint64_t sequence;
        std::uint64_t event;
        std::uint32_t source;
        std::uint32_t packet;
        std::uint32_t psn;
        bool truncated;
        bool corrupted;
        double due_events;
    };
    struct Later {
        bool operator()(const Planned& a, const Planned& b) const noexcept {
            return a.place != b.place ? a.place > b.place : a.sequence < b.sequence;
        }
    };

    void complete_config();
    void begin_event() noexcept;
    void end_event() noexcept;
    bool plan_next() noexcept;
    void plan_faults(const Planned& packet) noexcept;
    void enqueue(Planned packet) noexcept;
    [[nodiscard]] std::uint32_t packet_count(std::uint32_t message_bytes) const noexcept;
    [[nodiscard]] std::uint32_t format_header_bytes() const noexcept;
    [[nodiscard]] wire::EjfatHeader ejfat_header(std::uint64_t event, std::uint32_t source,
                                                 std::uint32_t offset) const noexcept;
    std::size_t write(const Planned& packet, std::span<std::byte> out) noexcept;
    [[nodiscard]] std::uint32_t lane_of(std::uint32_t source) const noexcept;
    [[nodiscard]] std::uint32_t image_row(std::uint32_t source, std::uint32_t offset) const noexcept;
    std::size_t write_detector(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_declared(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_ejfat(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_dune(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_ess(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_spead(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_message(const Planned& packet, std::span<std::byte> out) noexcept;
    std::size_t write_roce(const Planned& packet, std::span<std::byte> out) noexcept;

    SimulatorConfig config_;
    wire::FormatContext context_;  ///< PSI's detectors and declared formats
    SimulatorAccount account_;
    std::optional<DetectorImages> images_;
    std::optional<MessageContent> content_;
    std::vector<std::byte> scratch_;  ///< payload of one RoCE packet
    std::uint32_t packet_bytes_ = 0;  ///< message bytes in a full packet
    std::uint32_t header_bytes_ = 0;
    std::uint32_t frame_bytes_max_ = 0;

    bool stopped_ = false;
    std::uint64_t event_ = 0;  ///< events begun
    std::uint32_t packet_ = 0;
    std::uint32_t source_ = 0;
    std::uint64_t event_emitted_ = 0;  ///< packets of the present event that go out uncut
    std::uint64_t event_lost_ = 0;
    std::uint32_t event_packets_max_ = 0;
    std::vector<std::uint32_t> event_packets_;  ///< per source
    std::vector<std::uint32_t> psn_;            ///< per source, of its next packet

    std::vector<Planned> waiting_;  ///< heap, at most reorder + 2
    std::uint64_t sequence_ = 0;
    double due_events_ = 0;
};

}  // namespace weir::port
