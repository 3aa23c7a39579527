// The capture reader against libpcap on the same bytes: the same records, stamps and end. Used by tests and the fuzzer.
#pragma once

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "memory_sources.hpp"
#include "store/capture/link.hpp"
#include "store/capture/reader.hpp"

namespace weir::store::test {

/// Memory in pieces of odd sizes, as a pipe may give it.
class PiecesSource final : public ByteStream {
public:
    explicit PiecesSource(std::span<const std::byte> bytes) : left_(bytes) {}
    std::size_t read(std::span<std::byte> out) noexcept override {
        piece_ = (piece_ * 5 + 3) % 977;
        const std::size_t bytes = std::min({out.size(), left_.size(), piece_ + 1});
        std::copy_n(left_.data(), bytes, out.data());
        left_ = left_.subspan(bytes);
        return bytes;
    }

private:
    std::span<const std::byte> left_;
    std::size_t piece_ = 1;
};

class Oracle {
public:
    explicit Oracle(std::span<const std::byte> bytes) : bytes_(bytes) {
        std::FILE* stream = ::fmemopen(const_cast<std::byte*>(bytes.data()), bytes.size(), "rb");
        std::array<char, PCAP_ERRBUF_SIZE> reason{};
        handle_ = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason.data());
        if (handle_ == nullptr) {
            std::fclose(stream);
        } else if (!CaptureLink::is_known(static_cast<std::uint32_t>(pcap_datalink(handle_)))) {
            pcap_close(handle_);
            handle_ = nullptr;
            other_link_ = true;
        }
    }
    ~Oracle() {
        if (handle_ != nullptr) pcap_close(handle_);
    }
    Oracle(const Oracle&) = delete;
    Oracle& operator=(const Oracle&) = delete;

    /// "" if a reader of the same bytes agrees in everything, or what differs.
    [[nodiscard]] std::string disagreement(std::unique_ptr<ByteStream> source) {
        std::unique_ptr<CaptureReader> reader;
        std::string refused;
        try {
            reader = std::make_unique<CaptureReader>(std::move(source), "test");
        } catch (const core::RunError& error) {
            refused = error.what();
        }
        // A block of a pcapng file that is larger than any packet is more than the reader takes at once.
        if (refused.find("are read") != std::string::npos) return {};
        // libpcap passes over it; its byte order and version count for the reader, as the format has it.
        if (is_pcapng() && has_section_ahead_of_interfaces()) return {};
        // Another interface of it may be Ethernet.
        if (is_pcapng() && other_link_) return {};
        if ((handle_ == nullptr) != (reader == nullptr))
            return handle_ == nullptr ? "opened what libpcap does not" : "refused what libpcap opens: " + refused;
        if (handle_ == nullptr) return {};
        CaptureLink link(static_cast<std::uint32_t>(pcap_datalink(handle_)));
        CaptureRecord empty;
        link.to_ethernet(empty);
        for (;;) {
            CaptureReader::Record record;
            const bool got = reader->next(record);
            if (!got && reader->cut_off_text().find("are read") != std::string::npos) return {};
            pcap_pkthdr* header = nullptr;
            const unsigned char* data = nullptr;
            const bool zeros_too =
                got && is_of_own_parser() && record.time_ns == 0 && record.wire_bytes == empty.wire_bytes;
            const int expected = next_of_library(header, data, zeros_too);
            if (expected == PCAP_ERROR && is_refused_by_library()) return {};
            if (got != (expected == 1))
                return fmt::format("record {}: libpcap {} ({}), {}", reader->records(), expected, pcap_geterr(handle_),
                                   reader->cut_off_text());
            if (!got && !reader->zeros_text().empty()) return {};
            if (!got)
                return reader->cut_off() == (expected != PCAP_ERROR_BREAK)
                           ? ""
                           : fmt::format("end: libpcap {}, {}", pcap_geterr(handle_), reader->cut_off_text());
            CaptureRecord same;
            same.bytes = std::as_bytes(std::span(data, header->caplen));
            same.wire_bytes = std::max(header->len, header->caplen);
            link.to_ethernet(same);
            if (!std::ranges::equal(record.bytes, same.bytes))
                return fmt::format("record {}: other bytes", reader->records());
            if (record.wire_bytes != same.wire_bytes)
                return fmt::format("record {}: {} bytes on the wire", reader->records(), record.wire_bytes);
            if (!is_time(header->ts, record.time_ns))
                return fmt::format("record {}: time {}, not {}.{:09}", reader->records(), record.time_ns,
                                   header->ts.tv_sec, header->ts.tv_usec);
        }
    }

private:
    [[nodiscard]] bool is_pcapng() const { return bytes_[0] == std::byte{0x0a}; }
    /// A second section header before the first interface is described.
    [[nodiscard]] bool has_section_ahead_of_interfaces() const {
        constexpr std::uint32_t section = 0x0a0d0d0a;
        constexpr std::uint32_t swapped_order = 0x4d3c2b1a;
        if (bytes_.size() < 12) return false;
        std::uint32_t order = 0;
        std::memcpy(&order, bytes_.data() + 8, sizeof order);
        const auto number = [&](std::size_t at) {
            std::uint32_t value = 0;
            std::memcpy(&value, bytes_.data() + at, sizeof value);
            return order == swapped_order ? __builtin_bswap32(value) : value;
        };
        std::size_t at = number(4);
        while (at + 8 <= bytes_.size() && number(at) != 1 && number(at) != section && number(at + 4) != 0)
            at += number(at + 4);
        return at + 8 <= bytes_.size() && number(at) == section;
    }
    /// Of what the reader leaves to libpcap it returns no zeros, not even one record of them; but times before 1970,
    /// which become 0.
    [[nodiscard]] bool is_of_own_parser() const {
        return pcap_major_version(handle_) == 2 && pcap_minor_version(handle_) == 4;
    }
    /// The next record; zeros are none.
    int next_of_library(pcap_pkthdr*& header, const unsigned char*& data, bool zeros_too) {
        for (;;) {
            const int got = pcap_next_ex(handle_, &header, &data);
            const bool zeros =
                got == 1 && (header->caplen | header->len) == 0 && header->ts.tv_sec == 0 && header->ts.tv_usec == 0;
            if (!zeros || zeros_too || is_pcapng()) return got;
        }
    }
    /// A file as pcapng may be, that libpcap does not read any further.
    [[nodiscard]] bool is_refused_by_library() const {
        const std::string reason = pcap_geterr(handle_);
        if (!is_pcapng()) return false;
        return reason.find("different from the") != std::string::npos || has_both_orders();
    }
    [[nodiscard]] bool has_both_orders() const {
        const auto has = [&](const std::array<unsigned, 4>& pattern) {
            const auto same = [](std::byte found, unsigned value) { return std::to_integer<unsigned>(found) == value; };
            return std::search(bytes_.begin(), bytes_.end(), pattern.begin(), pattern.end(), same) != bytes_.end();
        };
        return has({0x1a, 0x2b, 0x3c, 0x4d}) && has({0x4d, 0x3c, 0x2b, 0x1a});
    }
    static core::TimeNs clamped(std::int64_t seconds, std::int64_t fraction_ns) {
        constexpr std::int64_t last_s = std::numeric_limits<core::TimeNs>::max() / core::ns_per_s - 8;
        return std::clamp<std::int64_t>(seconds, 0, last_s) * core::ns_per_s +
               std::clamp<std::int64_t>(fraction_ns, 0, 5 * core::ns_per_s);
    }
    /// libpcap takes the 32 bits of a pcap file for signed; here the year 2038 is not the last.
    [[nodiscard]] bool is_time(const timeval& time, core::TimeNs found) const {
        if (found == clamped(time.tv_sec, time.tv_usec)) return true;
        if (is_pcapng()) return overflows();
        const auto seconds = static_cast<std::uint32_t>(time.tv_sec);
        const std::int64_t unit = time.tv_usec % 1000 == 0 ? 1000 : 1;
        const std::int64_t fraction = static_cast<std::uint32_t>(time.tv_usec / unit) * unit;
        return found == clamped(seconds, fraction) ||
               found == clamped(seconds, static_cast<std::uint32_t>(time.tv_usec)) ||
               found == clamped(seconds, time.tv_usec);
    }
    /// Binary resolutions so fine that libpcap's arithmetic overflows.
    [[nodiscard]] bool overflows() const {
        for (std::size_t i = 0; i + 4 < bytes_.size(); ++i) {
            const auto is = [&](std::size_t at, unsigned value) { return bytes_[i + at] == std::byte(value); };
            if (((is(0, 9) && is(1, 0) && is(2, 1) && is(3, 0)) || (is(0, 0) && is(1, 9) && is(2, 0) && is(3, 1))) &&
                std::to_integer<unsigned>(bytes_[i + 4]) >= 0x80 + 30)
                return true;
        }
        return false;
    }

    std::span<const std::byte> bytes_;
    pcap* handle_ = nullptr;
    bool other_link_ = false;  ///< its first interface is of a kind that is not read
};

/// "" if the reader and libpcap agree on these bytes, at once and in pieces.
inline std::string disagreement(std::span<const std::byte> bytes) {
    std::string text = Oracle(bytes).disagreement(std::make_unique<MemoryStream>(bytes));
    return text.empty() ? Oracle(bytes).disagreement(std::make_unique<PiecesSource>(bytes)) : text;
}

}  // namespace weir::store::test
