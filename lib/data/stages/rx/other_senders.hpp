// Hosts that packets of a source come from, beside the one that its first packet came from: told apart by small
// numbers, so that no message is made of packets of two of them, and counted, so that the summary can name them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/one_writer.hpp"
#include "wire/bytes.hpp"
#include "wire/fragment.hpp"

namespace weir::stages {

/// An IP address; one of IPv4 as IPv6 writes it (RFC 4291, section 2.5.5.2).
struct HostAddress {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    static constexpr std::uint64_t ipv4 = std::uint64_t{0xffff} << 32U;
    [[nodiscard]] static HostAddress of(const wire::Datagram& from) noexcept {
        if (!from.ipv6) [[likely]]
            return {0, ipv4 | from.src};
        return {wire::load_be<std::uint64_t>(from.ipv6_src()), wire::load_be<std::uint64_t>(from.ipv6_src() + 8)};
    }
    [[nodiscard]] constexpr bool is_ipv4() const noexcept { return high == 0 && low >> 32U == ipv4 >> 32U; }
    /// No host has it: it is a multicast address.
    [[nodiscard]] static constexpr HostAddress nobody() noexcept { return {~std::uint64_t{0}, ~std::uint64_t{0}}; }
    friend constexpr bool operator==(const HostAddress&, const HostAddress&) = default;
};

/// Written by one lcore, read by any thread.
class OtherSenders {
public:
    struct Sender {
        std::uint32_t source = 0;
        HostAddress address;
        std::uint64_t packets = 0;
    };
    static constexpr std::size_t senders_max = 254;
    static constexpr std::uint8_t too_many = 0xff;

    /// A packet of `source` came from there. Returns the sender's number, from 1, or too_many: it cannot be told from
    /// others.
    std::uint8_t add(std::uint32_t source, HostAddress address) noexcept {
        const std::size_t count = count_.load(std::memory_order_relaxed);
        for (std::size_t i = 0; i < count; ++i) {
            if (entries_[i].source != source || entries_[i].address != address) continue;
            core::add(entries_[i].packets);
            return static_cast<std::uint8_t>(i + 1);
        }
        if (count == senders_max) return too_many;
        entries_[count].source = source;
        entries_[count].address = address;
        entries_[count].packets.store(1, std::memory_order_relaxed);
        count_.store(count + 1, std::memory_order_release);
        return static_cast<std::uint8_t>(count + 1);
    }

    [[nodiscard]] std::vector<Sender> list() const {
        std::vector<Sender> senders;
        const std::size_t count = count_.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < count; ++i)
            senders.push_back(
                {entries_[i].source, entries_[i].address, entries_[i].packets.load(std::memory_order_relaxed)});
        return senders;
    }

private:
    /// Source and address stay as they are once the entry is counted.
    struct Entry {
        std::uint32_t source = 0;
        HostAddress address;
        std::atomic<std::uint64_t> packets{0};
    };
    std::array<Entry, senders_max> entries_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace weir::stages
