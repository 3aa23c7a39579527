#include "port/ip_reassembly.hpp"

#include <arpa/inet.h>
#include <rte_errno.h>
#include <rte_ip_frag.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "core/one_writer.hpp"
#include "wire/network.hpp"

namespace weir::port {

using core::TimeNs;
using wire::PacketCounter;

static_assert(IpReassembly::pieces_max == RTE_LIBRTE_IP_FRAG_MAX_FRAG);

namespace {

/// An entry is found in one of two buckets. Twice the entries that are used, in buckets of 16, and hardly ever are both
/// full.
constexpr std::uint32_t bucket_entries = 16;
std::uint32_t buckets_of(const IpReassembly::Config& config) {
    return std::max<std::uint32_t>(1, (2 * config.datagrams_max + bucket_entries - 1) / bucket_entries);
}

/// Where a piece lies in its datagram, from its own headers as `prepare` left them.
struct Extent {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool last = false;
};

const std::byte* ip_of(const rte_mbuf* mbuf) noexcept {
    return rte_pktmbuf_mtod_offset(mbuf, const std::byte*, mbuf->l2_len);
}

bool is_ipv6(const std::byte* ip) noexcept {
    return std::to_integer<std::uint32_t>(ip[0]) >> 4 == 6;
}

Extent extent_of(const rte_mbuf* mbuf) noexcept {
    const std::byte* ip = ip_of(mbuf);
    Extent extent;
    if (is_ipv6(ip)) {
        const std::uint32_t field = wire::load_be<std::uint16_t>(ip + wire::ipv6_header_bytes + 2);
        extent.begin = field & 0xfff8;
        extent.last = (field & 1) == 0;
        extent.end = extent.begin + wire::load_be<std::uint16_t>(ip + 4) - wire::ipv6_fragment_header_bytes;
    } else {
        const std::uint32_t field = wire::load_be<std::uint16_t>(ip + 6);
        extent.begin = (field & 0x1fff) * 8;
        extent.last = (field & 0x2000) == 0;
        extent.end = extent.begin + wire::load_be<std::uint16_t>(ip + 2) - mbuf->l3_len;
    }
    return extent;
}

/// The first segment by itself; the rest is returned.
rte_mbuf* cut_off(rte_mbuf* mbuf) noexcept {
    rte_mbuf* rest = mbuf->next;
    mbuf->next = nullptr;
    mbuf->nb_segs = 1;
    mbuf->pkt_len = mbuf->data_len;
    return rest;
}

rte_ip_frag_tbl* make_table(const IpReassembly::Config& config, int node) {
    return ::rte_ip_frag_table_create(buckets_of(config), bucket_entries, config.datagrams_max,
                                      static_cast<std::uint64_t>(config.timeout_ns), node);
}

}  // namespace

IpReassembly::IpReassembly(const Config& config)
    : config_(config),
      table_(make_table(config, config.node)),
      row_(std::make_unique<rte_ip_frag_death_row>()),
      ended_(RTE_IP_FRAG_DEATH_ROW_MBUF_LEN * (pieces_max + 1)),
      last_(pairs_max) {
    if (table_ == nullptr && config.node != SOCKET_ID_ANY) table_ = make_table(config, SOCKET_ID_ANY);
    if (table_ == nullptr)
        throw core::RunError("no memory to put IP fragments together: " + std::string(rte_strerror(rte_errno)));
    row_->cnt = 0;
}

IpReassembly::~IpReassembly() {
    ::rte_ip_frag_table_destroy(table_);  // frees what it still holds
}

std::uint64_t IpReassembly::memory_bytes(const Config& config) noexcept {
    // An entry is 4 cache lines in the library's version 22.11; the number of entries is rounded up to a power of two.
    return std::uint64_t{2} * buckets_of(config) * bucket_entries * 256 + 4096;
}

IpReassembly::Key IpReassembly::key_of(const std::byte* ip) noexcept {
    Key key;
    key.pair.ipv6 = is_ipv6(ip);
    if (key.pair.ipv6) {
        std::memcpy(key.pair.bytes.data(), ip + 8, 32);
        key.identification = wire::load_be<std::uint32_t>(ip + wire::ipv6_header_bytes + 4);
    } else {
        std::memcpy(key.pair.bytes.data(), ip + 12, 4);
        std::memcpy(key.pair.bytes.data() + 16, ip + 16, 4);
        key.identification = wire::load_be<std::uint16_t>(ip + 4);
    }
    return key;
}

IpReassembly::Key IpReassembly::key_of(const rte_mbuf* mbuf) noexcept {
    return key_of(ip_of(mbuf));
}

/// As the library wants a piece: header lengths in the mbuf and, for IPv6, the fragment header right after the IPv6
/// header. What lies between (hop-by-hop options, routing) says nothing to the receiver and is taken out.
void IpReassembly::prepare(rte_mbuf* mbuf, const wire::Datagram& piece) noexcept {
    auto* frame = rte_pktmbuf_mtod(mbuf, std::byte*);
    const auto link_bytes = static_cast<std::uint32_t>(piece.ip - frame);
    std::uint32_t header_bytes = piece.ip_header_bytes();
    constexpr std::uint32_t bare_bytes = wire::ipv6_header_bytes + wire::ipv6_fragment_header_bytes;
    if (piece.ipv6 && header_bytes > bare_bytes) {
        const std::uint32_t between = header_bytes - bare_bytes;
        std::byte* ip = frame + link_bytes;
        const auto bytes = static_cast<std::uint16_t>(wire::load_be<std::uint16_t>(ip + 4) - between);
        wire::store_be(ip + 4, bytes);
        ip[6] = static_cast<std::byte>(wire::ipv6_fragment);
        std::memmove(frame + between, frame, link_bytes + wire::ipv6_header_bytes);
        ::rte_pktmbuf_adj(mbuf, static_cast<std::uint16_t>(between));
        header_bytes = bare_bytes;
    }
    mbuf->l2_len = link_bytes & 0x7fU;
    mbuf->l3_len = header_bytes & 0x1ffU;
}

bool IpReassembly::is_condemned(const Key& key, TimeNs now) const noexcept {
    if (now > condemned_until_ns_) return false;
    return std::ranges::any_of(condemned_, [&](const Condemned& one) { return now <= one.until_ns && one.key == key; });
}

void IpReassembly::end(rte_mbuf* mbuf, PacketCounter counter) noexcept {
    ended_[ended_count_++] = {mbuf, counter};
}

void IpReassembly::end_whole(rte_mbuf* whole, PacketCounter counter) noexcept {
    while (whole != nullptr) {
        rte_mbuf* rest = cut_off(whole);
        end(whole, counter);
        whole = rest;
    }
}

/// Why the library gave the datagram `key` up, whose pieces are in the row with the one that was just added.
PacketCounter IpReassembly::cause_of(const Key& key) const noexcept {
    std::array<Extent, RTE_IP_FRAG_DEATH_ROW_MBUF_LEN> extents;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < row_->cnt; ++i) {
        const rte_mbuf* mbuf = row_->row[i];
        if (key_of(mbuf) != key) continue;
        if (mbuf->nb_segs > 1) return PacketCounter::ip_fragment_conflict;  // it fitted in part
        extents[count++] = extent_of(mbuf);
    }
    if (count == 1) return PacketCounter::ip_fragment_no_room;  // it found no place in the table
    std::sort(extents.begin(), extents.begin() + count,
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (std::uint32_t i = 1; i < count; ++i)
        if (extents[i].begin < extents[i - 1].end || extents[i - 1].last) return PacketCounter::ip_fragment_conflict;
    return PacketCounter::ip_fragment_too_many;
}

/// Empties the row. What belongs to `own`, if that failed, was given up for a reason; everything else for its age.
void IpReassembly::take_row(const Key* own, bool failed, TimeNs now) noexcept {
    if (row_->cnt == 0) return;
    const PacketCounter cause = failed ? cause_of(*own) : PacketCounter::ip_fragment_timeout;
    if (cause == PacketCounter::ip_fragment_too_many) {
        condemned_until_ns_ = now + config_.timeout_ns;
        condemned_[next_condemned_] = {*own, condemned_until_ns_};
        next_condemned_ = (next_condemned_ + 1) % condemned_max;
    }
    for (std::uint32_t i = 0; i < row_->cnt; ++i) {
        rte_mbuf* mbuf = row_->row[i];
        const bool of_own = failed && key_of(mbuf) == *own;
        held_ -= mbuf->nb_segs;
        end_whole(mbuf, of_own ? cause : PacketCounter::ip_fragment_timeout);
    }
    row_->cnt = 0;
}

/// Whether the datagram is what its header says, with all headers in its first buffer.
bool IpReassembly::finish(rte_mbuf* whole) const noexcept {
    const std::byte* ip = ip_of(whole);
    const std::uint32_t ip_bytes =
        wire::load_be<std::uint16_t>(is_ipv6(ip) ? ip + 4 : ip + 2) + (is_ipv6(ip) ? wire::ipv6_header_bytes : 0);
    if (whole->l2_len + ip_bytes != whole->pkt_len) return false;  // IPv4 options made it longer than a length can say
    const std::uint32_t wanted = std::min(config_.header_bytes, whole->pkt_len);
    for (rte_mbuf* from = whole->next; whole->data_len < wanted; from = from->next) {
        const auto bytes =
            static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted - whole->data_len, from->data_len));
        if (bytes > ::rte_pktmbuf_tailroom(whole)) return false;
        std::memcpy(rte_pktmbuf_mtod_offset(whole, std::byte*, whole->data_len), rte_pktmbuf_mtod(from, std::byte*),
                    bytes);
        whole->data_len = static_cast<std::uint16_t>(whole->data_len + bytes);
        from->data_off = static_cast<std::uint16_t>(from->data_off + bytes);
        from->data_len = static_cast<std::uint16_t>(from->data_len - bytes);
    }
    return true;
}

/// A source that never changes its identification works as long as nothing is lost: then pieces of different datagrams
/// would be taken for one. So it is worth a word.
void IpReassembly::remember(const Key& key) noexcept {
    std::uint64_t hash = 0;
    for (std::size_t at = 0; at < key.pair.bytes.size(); at += 8)
        hash = (hash ^ wire::load_le<std::uint64_t>(key.pair.bytes.data() + at)) * 0x9e3779b97f4a7c15;
    std::optional<Key>& last = last_[hash >> 56U];
    if (last == key) {
        if (reused_.load(std::memory_order_relaxed) == 0) reusing_ = key.pair;
        core::add(reused_, 1, std::memory_order_release);
    }
    last = key;
}

rte_mbuf* IpReassembly::add(const Packet& packet, const wire::Datagram& piece, TimeNs now) noexcept {
    ended_count_ = 0;
    rte_mbuf* mbuf = packet.mbuf;
    core::add(fragments_);
    if (!piece.fragment || mbuf->nb_segs != 1) {
        end(mbuf, PacketCounter::malformed_ip_fragment);
        return nullptr;
    }
    prepare(mbuf, piece);
    const Key key = key_of(mbuf);
    if (is_condemned(key, now)) {
        end(mbuf, PacketCounter::ip_fragment_too_many);
        return nullptr;
    }
    if (held_ == config_.buffers_max) {  // what is over anyway makes room
        ::rte_ip_frag_table_del_expired_entries(table_, row_.get(), static_cast<std::uint64_t>(now));
        take_row(nullptr, false, now);
    }
    if (held_ == config_.buffers_max) {
        end(mbuf, PacketCounter::ip_fragment_no_room);
        return nullptr;
    }
    if (held_ == 0) due_ns_ = now + config_.timeout_ns;
    ++held_;
    auto* ip = rte_pktmbuf_mtod_offset(mbuf, std::byte*, mbuf->l2_len);
    const auto time = static_cast<std::uint64_t>(now);
    rte_mbuf* whole =
        piece.ipv6
            ? ::rte_ipv6_frag_reassemble_packet(table_, row_.get(), mbuf, time, reinterpret_cast<rte_ipv6_hdr*>(ip),
                                                reinterpret_cast<rte_ipv6_fragment_ext*>(ip + wire::ipv6_header_bytes))
            : ::rte_ipv4_frag_reassemble_packet(table_, row_.get(), mbuf, time, reinterpret_cast<rte_ipv4_hdr*>(ip));
    // The piece itself is in the row if it was its undoing; it was put there last, or is in a chain that was.
    bool failed = false;
    if (whole == nullptr)
        for (std::uint32_t i = 0; i < row_->cnt && !failed; ++i)
            for (const rte_mbuf* at = row_->row[i]; at != nullptr && !failed; at = at->next) failed = at == mbuf;
    take_row(&key, failed, now);
    if (whole == nullptr) return nullptr;
    held_ -= whole->nb_segs;
    if (!finish(whole)) {
        end_whole(whole, PacketCounter::ip_fragment_conflict);
        return nullptr;
    }
    core::add(datagrams_);
    remember(key);
    return whole;
}

void IpReassembly::expire(TimeNs now) noexcept {
    ended_count_ = 0;
    if (held_ == 0 || now <= due_ns_) return;
    ::rte_ip_frag_table_del_expired_entries(table_, row_.get(), static_cast<std::uint64_t>(now));
    // If the row took all it could there may be more, at once; otherwise what is held now is not due for a while. The
    // result of no packet depends on when this is called: the library compares times itself when one comes.
    if (row_->cnt == 0) due_ns_ = now + config_.timeout_ns / 8;
    take_row(nullptr, false, now);
}

void IpReassembly::flush() noexcept {
    ended_count_ = 0;
    ::rte_ip_frag_table_del_expired_entries(table_, row_.get(), std::numeric_limits<std::uint64_t>::max());
    take_row(nullptr, false, 0);
}

IpReassembly::Counts IpReassembly::counts() const noexcept {
    return {fragments_.load(std::memory_order_relaxed), datagrams_.load(std::memory_order_relaxed),
            reused_.load(std::memory_order_relaxed)};
}

std::string IpReassembly::reusing_source() const {
    if (reused_.load(std::memory_order_acquire) == 0) return {};
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(reusing_.ipv6 ? AF_INET6 : AF_INET, reusing_.bytes.data(), text.data(), text.size());
    return text.data();
}

}  // namespace weir::port
