#include "stages/rx/rx_roce.hpp"

#include <algorithm>
#include <iterator>

namespace weir::stages {

using wire::PacketCounter;

namespace {

/// Whether a responder has a say: only where enough of the packet is known to be said something about.
bool can_be_answered(wire::Verdict verdict) noexcept {
    return verdict == wire::ok || verdict == PacketCounter::malformed_roce_length ||
           verdict == PacketCounter::not_for_us_roce_request;
}

/// Whether the source's packets are let through in order and all of them.
bool is_reliable(const roce::Responder::Config& responder, std::uint32_t source) {
    const auto at = std::ranges::find(responder.sources, source, &roce::Responder::SourceConfig::source);
    return at != responder.sources.end() && at->queue_pair.service == roce::Service::rc;
}

roce::Listener::Config listened_of(roce::Listener::Config config, const roce::Responder::Config& responder) {
    std::erase_if(config.sources,
                  [&](const roce::MessageSource& source) { return is_reliable(responder, source.source); });
    return config;
}

RxResponder::Config answered_of(RxResponder::Config config, const roce::Listener::Config& all) {
    config.messages = all.sources;
    config.in_order.psn_window = all.psn_window;
    config.in_order.timeout_ns = all.timeout_ns;
    std::ranges::copy_if(
        all.sources, std::back_inserter(config.in_order.sources),
        [&](const roce::MessageSource& source) { return is_reliable(config.responder, source.source); });
    return config;
}

}  // namespace

RxRoce::RxRoce(const roce::Listener::Config& listener, const RxResponder::Config& responder,
               const Collaborators& around)
    : around_(around), check_unmatched_icrc_(std::ranges::any_of(around.streams, [](const StreamRuntime& stream) {
          return stream.roce && stream.check_icrc;
      })) {
    const roce::Listener::Config listened = listened_of(listener, responder.responder);
    if (!listened.sources.empty()) listener_ = std::make_unique<roce::Listener>(listened, around.table, around.packets);
    if (!responder.responder.sources.empty())
        responder_ = std::make_unique<RxResponder>(answered_of(responder, listener), listener_.get(), around.table,
                                                   around.sources, around.answers);
}

/// While one packet is being worked on, the headers of later ones are on their way from memory, and all of the next
/// ones where they are read as a whole.
void RxRoce::decode(const Arrivals& burst, HeaderPrefetch& headers) noexcept {
    const std::size_t count = burst.packets.size();
    std::size_t fetched = 1;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % HeaderPrefetch::together == 0) headers.next(HeaderPrefetch::together);
        verdicts_[i] = wire::ok;
        if (burst.decoded[i]) continue;
        const bool check = checks_icrc(burst.routes[i]);
        const std::size_t wanted = check ? std::min(count, i + 1 + HeaderPrefetch::bodies_ahead(*burst.packets[i])) : 0;
        for (; fetched < wanted; ++fetched)
            if (checks_icrc(burst.routes[fetched])) HeaderPrefetch::body(*burst.packets[fetched]);
        verdicts_[i] = wire::decode_roce(burst.datagrams[i], check, burst.roce[i]);
        if (!check && verdicts_[i] == wire::ok)
            known_.remember(*burst.packets[i], burst.datagrams[i], burst.roce[i], burst.routes[i]);
    }
    // The few packets with more headers are seen to when their opcode is known.
    headers.expect(*burst.packets.back()->mbuf, burst.datagrams[count - 1].payload + wire::roce_bth_bytes);
}

void RxRoce::add_burst(const Arrivals& burst, HeaderPrefetch& headers) noexcept {
    decode(burst, headers);
    const std::size_t count = burst.packets.size();
    std::size_t listened = 0;  // from here to i they wait for each other
    for (std::size_t i = 0; i < count; ++i) {
        const port::Packet& packet = *burst.packets[i];
        const steer::Route& route = burst.routes[i];
        if (verdicts_[i] == wire::ok && route.stream != steer::Steering::none && responder_ == nullptr) [[likely]] {
            around_.sources.note_and_count(route.source, burst.datagrams[i]);
            sources_[i] = route.source;
            buffers_[i] = packet.mbuf;
            times_[i] = packet.time_ns;
            continue;
        }
        listen(burst, listened, i);
        listened = i + 1;
        add(packet, burst.datagrams[i], route, burst.roce[i], verdicts_[i]);
    }
    listen(burst, listened, count);
}

/// These packets of the burst are the listener's.
void RxRoce::listen(const Arrivals& burst, std::size_t begin, std::size_t end) noexcept {
    if (begin == end) return;
    listener_->add_burst(
        {{burst.roce + begin, end - begin}, sources_.data() + begin, buffers_.data() + begin, times_.data() + begin});
}

/// The way of a packet for whatever decode_roce says of it.
void RxRoce::add(const port::Packet& packet, const wire::Datagram& datagram, const steer::Route& route,
                 const wire::RocePacket& roce, wire::Verdict verdict) noexcept {
    const bool matched = route.stream != steer::Steering::none;
    if (matched && answers(route.source) && can_be_answered(verdict))
        return responder_->respond(packet, datagram, route.source, roce, verdict);
    if (verdict == wire::ok && matched) {
        around_.sources.note_and_count(route.source, datagram);
        if (responder_ != nullptr) responder_->expire_messages(around_.table.due_by(packet.time_ns));
        return listener_->add(route.source, roce, packet.mbuf, packet.time_ns);
    }
    if (verdict == PacketCounter::not_for_us_roce_request && matched)
        listener_->skip(route.source, roce, packet.time_ns);
    if (verdict == wire::ok) around_.notes.unmatched_roce(datagram, roce.qp);
    around_.table.reject(packet.mbuf, verdict == wire::ok ? PacketCounter::unsteered : verdict);
}

void RxRoce::expire(TimeNs now) noexcept {
    if (listener_ != nullptr) listener_->expire(now);
    if (responder_ != nullptr) responder_->expire(now);
}

void RxRoce::finish(TimeNs now) noexcept {
    if (listener_ != nullptr) listener_->finish(now);
    if (responder_ != nullptr) responder_->finish(now);
}

void RxRoce::begin_pass(TimeNs now) noexcept {
    if (listener_ != nullptr) listener_->begin_pass(now);
    if (responder_ != nullptr) responder_->begin_pass(now);
}

void RxRoce::make_room(TimeNs now) noexcept {
    const TimeNs listened = listener_ != nullptr ? listener_->oldest_ns() : roce::InOrderReceiver::never;
    const TimeNs answered = responder_ != nullptr ? responder_->oldest_ns() : roce::InOrderReceiver::never;
    if (answered < listened)
        responder_->evict_oldest(now);
    else if (listener_ != nullptr)
        static_cast<void>(listener_->evict_oldest(now));
}

}  // namespace weir::stages
