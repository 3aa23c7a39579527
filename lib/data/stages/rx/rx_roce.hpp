// RoCE packets on an rx lcore: which go to the listener, which to the responder, and which end here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "roce/listener/listener.hpp"
#include "stages/rx/header_prefetch.hpp"
#include "stages/rx/known_queue_pairs.hpp"
#include "stages/rx/rx_responder.hpp"
#include "wire/roce.hpp"

namespace weir::stages {

class RxRoce {
public:
    using TimeNs = core::TimeNs;
    /// What the packets are counted in, and collected in; outlives this object.
    struct Collaborators {
        const std::vector<StreamRuntime>& streams;
        RxSources& sources;
        RxNotes& notes;
        assemble::MessageTable& table;
        wire::PacketTally& packets;
        RxAnswers& answers;
    };

    /// `listener` has all sources, also those of reliable connections that are answered.
    RxRoce(const roce::Listener::Config& listener, const RxResponder::Config& responder, const Collaborators& around);

    /// Packets that came one after the other, field by field.
    struct Arrivals {
        std::span<const port::Packet* const> packets;
        const wire::Datagram* datagrams = nullptr;
        const steer::Route* routes = nullptr;
        const bool* decoded = nullptr;
        wire::RocePacket* roce = nullptr;  ///< set where decoded, and for all of them afterwards
    };
    /// The way of a packet like one that came before, and what it says; nullptr: it has to be decoded. `datagram` is of
    /// a known flow.
    [[nodiscard]] const steer::Route* find(const port::Packet& packet, const wire::Datagram& datagram,
                                           wire::RocePacket& out) const noexcept {
        return known_.find(packet.port, datagram, out);
    }
    /// Takes over all of them, in order.
    void add_burst(const Arrivals& burst, HeaderPrefetch& headers) noexcept;

    /// Does what a thread wants that connects or disconnects a queue pair; returns how many commands it took.
    [[nodiscard]] std::size_t take_command(TimeNs now) noexcept {
        return responder_ != nullptr ? responder_->take_command(now) : 0;
    }
    /// Ends what is due at `now`.
    void expire(TimeNs now) noexcept;
    /// End of run, or of the first pass over a capture: everything ends, and gets its number.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more.
    void begin_pass(TimeNs now) noexcept;
    /// Buffers are short and no event is open: ends the message that was opened first.
    void make_room(TimeNs now) noexcept;

    // For any thread.
    /// Whether weir answers the source's queue pair, and this lcore does.
    [[nodiscard]] bool answers(std::uint32_t source) const noexcept {
        return responder_ != nullptr && responder_->serves(source);
    }
    [[nodiscard]] roce::Responder::Status queue_pair(std::uint32_t source) const noexcept {
        return responder_ != nullptr ? responder_->status(source) : roce::Responder::Status{};
    }
    /// Which PSNs of a source came; nothing where this lcore does not listen to it.
    [[nodiscard]] std::optional<roce::PsnCounts::Values> psn_counts(std::uint32_t source) const noexcept {
        if (responder_ != nullptr && responder_->is_in_order(source)) return responder_->psn_counts(source);
        if (listener_ == nullptr || !listener_->listens_to(source)) return std::nullopt;
        return listener_->psn_counts(source);
    }

private:
    static constexpr std::uint32_t burst = roce::Listener::burst_max;

    /// Whether the iCRC of a packet of this route is looked at.
    [[nodiscard]] bool checks_icrc(const steer::Route& route) const noexcept {
        return route.stream != steer::Steering::none ? around_.streams[route.stream].check_icrc : check_unmatched_icrc_;
    }
    void decode(const Arrivals& burst, HeaderPrefetch& headers) noexcept;
    void listen(const Arrivals& burst, std::size_t begin, std::size_t end) noexcept;
    void add(const port::Packet& packet, const wire::Datagram& datagram, const steer::Route& route,
             const wire::RocePacket& roce, wire::Verdict verdict) noexcept;

    Collaborators around_;
    bool check_unmatched_icrc_ = false;
    std::unique_ptr<roce::Listener> listener_;  ///< only where packets may come in any order, or with gaps
    std::unique_ptr<RxResponder> responder_;    ///< only where queue pairs are answered

    KnownQueuePairs known_;
    // One burst.
    std::array<wire::Verdict, burst> verdicts_;
    std::array<std::uint32_t, burst> sources_;
    std::array<void*, burst> buffers_;
    std::array<TimeNs, burst> times_;
};

}  // namespace weir::stages
