#include "port/ip_reassembly.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/one_writer.hpp"
#include "wire/network.hpp"

namespace weir::port {

using core::TimeNs;
using wire::PacketCounter;

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32U;
}

/// All objects of `all`, chained through `next`.
template <class T>
T* chained(std::vector<T>& all, T* T::*next) noexcept {
    T* first = nullptr;
    for (T& one : all) {
        one.*next = first;
        first = &one;
    }
    return first;
}

}  // namespace

IpReassembly::IpReassembly(const Config& config)
    : config_(config),
      pieces_(config.buffers_max),
      datagrams_(config.datagrams_max),
      buckets_(buckets_of(config)),
      free_pieces_(chained(pieces_, &Held::before)),
      free_datagrams_(chained(datagrams_, &Waiting::next)),
      prints_(prints_max),
      senders_(senders_max),
      ended_(ended_max) {}

IpReassembly::~IpReassembly() {
    for (const List* list : {&waiting_, &spare_})
        for (const Waiting* one = list->oldest; one != nullptr; one = one->newer)
            for (const Held* held = one->tail; held != nullptr; held = held->before) ::rte_pktmbuf_free(held->mbuf);
}

std::uint32_t IpReassembly::buckets_of(const Config& config) noexcept {
    return std::bit_ceil(2 * std::max(config.datagrams_max, 1U));
}

std::uint64_t IpReassembly::memory_bytes(const Config& config) noexcept {
    return std::uint64_t{config.buffers_max} * sizeof(Held) + std::uint64_t{config.datagrams_max} * sizeof(Waiting) +
           std::uint64_t{buckets_of(config)} * sizeof(void*) + prints_max * sizeof(Print) +
           senders_max * sizeof(Sender) + ended_max * sizeof(Ended);
}

void IpReassembly::List::append(Waiting& one) noexcept {
    one.older = newest;
    one.newer = nullptr;
    (newest != nullptr ? newest->newer : oldest) = &one;
    newest = &one;
}

void IpReassembly::List::remove(Waiting& one) noexcept {
    (one.older != nullptr ? one.older->newer : oldest) = one.newer;
    (one.newer != nullptr ? one.newer->older : newest) = one.older;
}

IpReassembly::Key IpReassembly::key_of(const wire::Datagram& piece, std::uint32_t identification) noexcept {
    Key key;
    key.pair.ipv6 = piece.ipv6;
    key.identification = identification;
    if (piece.ipv6) {
        std::memcpy(key.pair.bytes.data(), piece.ip + 8, 32);
    } else {
        std::memcpy(key.pair.bytes.data(), piece.ip + 12, 4);
        std::memcpy(key.pair.bytes.data() + 16, piece.ip + 16, 4);
    }
    return key;
}

std::uint64_t IpReassembly::hash_of(const Key& key) noexcept {
    std::uint64_t hash = key.identification;
    for (std::size_t at = 0; at < key.pair.bytes.size(); at += 8)
        hash = mix(hash, wire::load_le<std::uint64_t>(key.pair.bytes.data() + at));
    return hash;
}

/// What a piece can be known by: its datagram, its place, and a part of its bytes: all headers, and some of the rest.
std::uint64_t IpReassembly::print_of(std::uint64_t hash, std::uint32_t begin, std::uint32_t end,
                                     const std::byte* data) noexcept {
    constexpr std::uint32_t words = 8;
    const std::uint32_t bytes = end - begin;
    std::uint64_t print = mix(hash, std::uint64_t{begin} << 32U | end);
    if (bytes < 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, bytes);
        return mix(print, word);
    }
    for (std::uint32_t i = 0; i < words; ++i)
        print = mix(print, wire::load_le<std::uint64_t>(data + std::min(8 * i, bytes - 8)));
    for (std::uint32_t i = 1; i <= words; ++i)
        print = mix(print, wire::load_le<std::uint64_t>(data + std::uint64_t{bytes - 8} * i / words));
    return print;
}

IpReassembly::Sender& IpReassembly::sender_of(const Key& key) noexcept {
    Key pair = key;
    pair.identification = 0;
    return senders_[hash_of(pair) % senders_max];
}

IpReassembly::List& IpReassembly::list_of(const Waiting& one) noexcept {
    return one.copies || one.fate != PacketCounter::in_flight ? spare_ : waiting_;
}

bool IpReassembly::is_overdue(const Waiting& one, TimeNs now) const noexcept {
    return now > one.first_ns + config_.timeout_ns;
}

std::span<IpReassembly::Print> IpReassembly::prints_at(std::uint64_t print) noexcept {
    return std::span(prints_).subspan(print % (prints_max / prints_of_set) * prints_of_set, prints_of_set);
}

bool IpReassembly::was_whole(std::uint64_t print, TimeNs now) noexcept {
    return std::ranges::any_of(prints_at(print),
                               [&](const Print& one) { return one.print == print && now <= one.until_ns; });
}

void IpReassembly::remember_whole(std::uint64_t print, TimeNs now) noexcept {
    *std::ranges::min_element(prints_at(print), {}, &Print::until_ns) = {print, now + config_.timeout_ns};
}

void IpReassembly::end(rte_mbuf* mbuf, PacketCounter counter) noexcept {
    ended_[ended_count_++] = {mbuf, counter};
}

void IpReassembly::end_pieces(Waiting& one, PacketCounter counter) noexcept {
    while (one.tail != nullptr) {
        Held& held = *one.tail;
        one.tail = held.before;
        end(held.mbuf, counter);
        held.before = free_pieces_;
        free_pieces_ = &held;
    }
    held_ -= one.pieces;
    one.pieces = one.bytes = 0;
}

void IpReassembly::forget(Waiting& one) noexcept {
    list_of(one).remove(one);
    Waiting** link = &bucket_of(one.hash);
    while (*link != &one) link = &(*link)->next;
    *link = one.next;
    one.next = free_datagrams_;
    free_datagrams_ = &one;
}

/// Nothing more is expected of it: its rest is lost, or it was none.
void IpReassembly::give_up(Waiting& one) noexcept {
    const Sender& sender = sender_of(one.key);
    // Of a sender that always uses one identification, a piece may be of another datagram and look alike.
    const bool reuses = sender.reuses && sender.last.pair == one.key.pair;
    end_pieces(one, one.copies && !reuses ? PacketCounter::duplicate : PacketCounter::ip_fragment_timeout);
    forget(one);
}

/// Gives the datagram up, and what still comes of it until it would have timed out: it must not be joined with another.
void IpReassembly::condemn(Waiting& one, PacketCounter counter) noexcept {
    end_pieces(one, counter);
    list_of(one).remove(one);
    one.fate = counter;
    spare_.append(one);
}

/// What is over anyway makes room, and what is most likely nothing.
void IpReassembly::make_room(TimeNs now) noexcept {
    if (waiting_.oldest != nullptr && is_overdue(*waiting_.oldest, now)) return give_up(*waiting_.oldest);
    const bool for_piece = held_ == config_.buffers_max;
    while (spare_.oldest != nullptr) {
        give_up(*spare_.oldest);
        if (!for_piece || held_ < config_.buffers_max) break;
    }
}

IpReassembly::Waiting* IpReassembly::find(const Key& key, std::uint64_t hash, TimeNs now) noexcept {
    Waiting* at = bucket_of(hash);
    while (at != nullptr && at->key != key) at = at->next;
    if (at == nullptr || !is_overdue(*at, now)) return at;
    give_up(*at);
    return nullptr;
}

/// nullptr: there is no room for one more.
IpReassembly::Waiting* IpReassembly::begin(const Key& key, std::uint64_t hash, bool copies, TimeNs now) noexcept {
    if (held_ == config_.buffers_max || free_datagrams_ == nullptr) make_room(now);
    if (held_ == config_.buffers_max || free_datagrams_ == nullptr) return nullptr;
    Waiting& fresh = *free_datagrams_;
    free_datagrams_ = fresh.next;
    fresh = {};
    fresh.key = key;
    fresh.hash = hash;
    fresh.first_ns = now;
    fresh.copies = copies;
    list_of(fresh).append(fresh);
    Waiting*& bucket = bucket_of(hash);
    fresh.next = bucket;
    bucket = &fresh;
    return &fresh;
}

/// in_flight: the piece brings something new; duplicate: all of it is there; conflict: it contradicts what is there.
PacketCounter IpReassembly::fit(const Waiting& into, const wire::PiecePlace& place, const std::byte* data) noexcept {
    constexpr PacketCounter conflict = PacketCounter::ip_fragment_conflict;
    if (into.tail == nullptr) return PacketCounter::in_flight;
    // One end, which the last piece has and no other reaches.
    if (into.total == 0 ? place.last && into.tail->end >= place.end
                        : place.last != (place.end == into.total) || place.end > into.total)
        return conflict;
    std::uint32_t common = 0;
    for (const Held* held = into.tail; held != nullptr && held->end > place.begin; held = held->before) {
        const std::uint32_t begin = std::max(held->begin, place.begin);
        const std::uint32_t end = std::min(held->end, place.end);
        if (begin >= end) continue;
        if (std::memcmp(held->data + (begin - held->begin), data + (begin - place.begin), end - begin) != 0)
            return conflict;
        common += end - begin;
    }
    if (common == 0) return PacketCounter::in_flight;
    return common == place.end - place.begin ? PacketCounter::duplicate : conflict;
}

/// Takes a piece that fits. Of the first one the headers stay, of the others the bytes of the datagram alone.
void IpReassembly::hold(Waiting& into, rte_mbuf* mbuf, const wire::PiecePlace& place,
                        const wire::Datagram& piece) noexcept {
    const auto* const frame = rte_pktmbuf_mtod(mbuf, const std::byte*);
    std::uint32_t bytes = piece.payload_bytes;
    if (place.begin == 0) {
        into.link_bytes = static_cast<std::uint32_t>(piece.ip - frame);
        into.header_bytes = piece.ip_header_bytes();
        bytes += into.link_bytes + into.header_bytes;
    } else {
        mbuf->data_off = static_cast<std::uint16_t>(mbuf->data_off + (piece.payload - frame));
    }
    mbuf->data_len = static_cast<std::uint16_t>(bytes);  // without padding
    mbuf->pkt_len = bytes;
    Held** link = &into.tail;
    while (*link != nullptr && (*link)->begin > place.begin) link = &(*link)->before;
    Held& held = *free_pieces_;
    free_pieces_ = held.before;
    held = {mbuf, piece.payload, place.begin, place.end, *link};
    *link = &held;
    ++into.pieces;
    ++held_;
    into.bytes += piece.payload_bytes;
    if (place.last) into.total = place.end;
}

/// As if the datagram had never been cut: its length, no fragment, and for IPv6 without a fragment header. What is
/// between that and the IPv6 header (hop-by-hop options, routing) says nothing to the receiver and goes, too. False: it
/// is longer than its header can say, because the first piece has options.
bool IpReassembly::write_header(rte_mbuf* first, const Waiting& whole) noexcept {
    auto* frame = rte_pktmbuf_mtod(first, std::byte*);
    std::byte* ip = frame + whole.link_bytes;
    if (!whole.key.pair.ipv6) {
        const std::uint32_t ip_bytes = whole.header_bytes + whole.total;
        if (ip_bytes > std::numeric_limits<std::uint16_t>::max()) return false;
        wire::store_be(ip + 2, static_cast<std::uint16_t>(ip_bytes));
        wire::store_be(ip + 6, std::uint16_t{0});
        wire::store_be(ip + 10, std::uint16_t{0});
        wire::store_le(ip + 10, static_cast<std::uint16_t>(~wire::ipv4_header_sum(ip, whole.header_bytes)));
        return true;
    }
    const std::uint32_t surplus = whole.header_bytes - wire::ipv6_header_bytes;
    const std::byte next = ip[whole.header_bytes - wire::ipv6_fragment_header_bytes];
    std::memmove(frame + surplus, frame, whole.link_bytes + wire::ipv6_header_bytes);
    ::rte_pktmbuf_adj(first, static_cast<std::uint16_t>(surplus));
    ip += surplus;
    wire::store_be(ip + 4, static_cast<std::uint16_t>(whole.total));
    ip[6] = next;
    return true;
}

/// All pieces are here: they become one chain, and the datagram is forgotten, all but its prints.
rte_mbuf* IpReassembly::join(Waiting& whole, TimeNs now) noexcept {
    const Held* first = whole.tail;
    while (first->before != nullptr) first = first->before;
    if (!write_header(first->mbuf, whole)) {
        condemn(whole, PacketCounter::ip_fragment_conflict);
        return nullptr;
    }
    rte_mbuf* chain = nullptr;
    std::uint32_t bytes = 0;
    while (whole.tail != nullptr) {
        Held& held = *whole.tail;
        whole.tail = held.before;
        remember_whole(print_of(whole.hash, held.begin, held.end, held.data), now);
        held.mbuf->next = chain;
        chain = held.mbuf;
        bytes += chain->data_len;
        held.before = free_pieces_;
        free_pieces_ = &held;
    }
    chain->nb_segs = static_cast<std::uint16_t>(whole.pieces);
    chain->pkt_len = bytes;
    held_ -= whole.pieces;
    core::add(datagrams_whole_);
    if (!whole.copies) remember(whole.key);  // or it came twice, all of it
    forget(whole);
    return chain;
}

/// A source that never changes its identification works as long as nothing is lost: then pieces of different datagrams
/// would be taken for one. So it is worth a word.
void IpReassembly::remember(const Key& key) noexcept {
    Sender& sender = sender_of(key);
    if (sender.known && sender.last == key) {
        if (reused_.load(std::memory_order_relaxed) == 0) reusing_ = key.pair;
        core::add(reused_, 1, std::memory_order_release);
        sender.reuses = true;
    } else if (sender.last.pair != key.pair) {
        sender.reuses = false;
    }
    sender.last = key;
    sender.known = true;
}

rte_mbuf* IpReassembly::add(const Packet& packet, const wire::Datagram& piece, TimeNs now) noexcept {
    ended_count_ = 0;
    rte_mbuf* mbuf = packet.mbuf;
    core::add(fragments_);
    const auto end_here = [&](PacketCounter counter) -> rte_mbuf* {
        end(mbuf, counter);
        return nullptr;
    };
    if (!piece.fragment || mbuf->nb_segs != 1) return end_here(PacketCounter::malformed_ip_fragment);
    const wire::PiecePlace place = wire::place_of(piece);
    const Key key = key_of(piece, place.identification);
    const std::uint64_t hash = hash_of(key);
    Waiting* at = find(key, hash, now);
    if (at != nullptr && at->fate != PacketCounter::in_flight) return end_here(at->fate);
    if (at == nullptr || at->copies) {
        const bool copy = was_whole(print_of(hash, place.begin, place.end, piece.payload), now);
        // A piece that was in no datagram: the identification is used again, and copies of the old one must not mix in.
        if (at != nullptr && !copy) give_up(*at);
        if (at == nullptr || !copy) at = begin(key, hash, copy, now);
        if (at == nullptr) return end_here(PacketCounter::ip_fragment_no_room);
    }
    const PacketCounter answer = fit(*at, place, piece.payload);
    if (answer == PacketCounter::duplicate) return end_here(answer);
    if (answer != PacketCounter::in_flight || at->pieces == pieces_max) {
        const bool fits = answer == PacketCounter::in_flight;
        condemn(*at, fits ? PacketCounter::ip_fragment_too_many : answer);
        return end_here(at->fate);
    }
    if (held_ == config_.buffers_max && !at->copies) make_room(now);
    if (held_ == config_.buffers_max) return end_here(PacketCounter::ip_fragment_no_room);
    hold(*at, mbuf, place, piece);
    return at->total != 0 && at->bytes == at->total ? join(*at, now) : nullptr;
}

void IpReassembly::expire(TimeNs now) noexcept {
    ended_count_ = 0;
    for (List* list : {&waiting_, &spare_})
        while (list->oldest != nullptr && is_overdue(*list->oldest, now) && ended_count_ + pieces_max <= ended_max)
            give_up(*list->oldest);
}

void IpReassembly::flush() noexcept {
    ended_count_ = 0;
    for (List* list : {&waiting_, &spare_})
        while (list->oldest != nullptr && ended_count_ + pieces_max <= ended_max) give_up(*list->oldest);
}

IpReassembly::Counts IpReassembly::counts() const noexcept {
    return {fragments_.load(std::memory_order_relaxed), datagrams_whole_.load(std::memory_order_relaxed),
            reused_.load(std::memory_order_relaxed)};
}

std::string IpReassembly::reusing_source() const {
    if (reused_.load(std::memory_order_acquire) == 0) return {};
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(reusing_.ipv6 ? AF_INET6 : AF_INET, reusing_.bytes.data(), text.data(), text.size());
    return text.data();
}

}  // namespace weir::port
