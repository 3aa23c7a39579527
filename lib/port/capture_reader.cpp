#include "port/capture_reader.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace weir::port {

namespace {

// libpcap reads through stdio, by default 4096 bytes at a time: two system calls for every 8 KiB packet.
constexpr std::size_t stream_buffer_bytes = 4U << 20;

// pcapng time stamps have 64 bits and any resolution, so a damaged one can be beyond what TimeNs holds.
core::TimeNs to_time_ns(const timeval& time) noexcept {
    constexpr std::int64_t last_s = std::numeric_limits<core::TimeNs>::max() / core::ns_per_s - 8;
    const std::int64_t seconds = std::clamp<std::int64_t>(time.tv_sec, 0, last_s);
    // libpcap puts nanoseconds here when asked for them; a damaged pcap record can hold 2^32 of them
    const std::int64_t fraction_ns = std::clamp<std::int64_t>(time.tv_usec, 0, 5 * core::ns_per_s);
    return seconds * core::ns_per_s + fraction_ns;
}

}  // namespace

void CaptureReader::Closer::operator()(pcap* handle) const noexcept {
    pcap_close(handle);
}

CaptureReader::CaptureReader(const std::string& path) : name_(path) {
    std::FILE* stream = std::fopen(path.c_str(), "rb");
    if (stream == nullptr) {
        throw core::RunError(fmt::format("{}: cannot open the capture: {}", path, std::strerror(errno)));
    }
    open(stream);
}

CaptureReader::CaptureReader(std::FILE* stream, std::string name) : name_(std::move(name)) {
    open(stream);
}

CaptureReader::~CaptureReader() = default;
CaptureReader::CaptureReader(CaptureReader&&) noexcept = default;
CaptureReader& CaptureReader::operator=(CaptureReader&& other) noexcept {
    handle_ = std::move(other.handle_);  // first: closing the old stream still needs the old buffer
    stream_buffer_ = std::move(other.stream_buffer_);
    name_ = std::move(other.name_);
    records_ = other.records_;
    bytes_ = other.bytes_;
    ended_ = other.ended_;
    cut_off_ = other.cut_off_;
    return *this;
}

void CaptureReader::open(std::FILE* stream) {
    stream_buffer_ = std::make_unique_for_overwrite<char[]>(stream_buffer_bytes);
    std::setvbuf(stream, stream_buffer_.get(), _IOFBF, stream_buffer_bytes);
    const int first = std::fgetc(stream);
    if (first == EOF) {
        const std::string reason = std::ferror(stream) != 0 ? std::strerror(errno) : "the file is empty";
        std::fclose(stream);
        throw core::RunError(fmt::format("{}: cannot read the capture: {}", name_, reason));
    }
    std::ungetc(first, stream);
    std::array<char, PCAP_ERRBUF_SIZE> reason{};
    handle_.reset(pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason.data()));
    if (!handle_) {
        std::fclose(stream);
        throw core::RunError(
            fmt::format("{}: not a capture that can be read (pcap or pcapng): {}", name_, reason.data()));
    }
    const int link = pcap_datalink(handle_.get());
    if (link != DLT_EN10MB) {
        const char* link_name = pcap_datalink_val_to_name(link);
        throw core::RunError(fmt::format("{}: captured on link type {} ({}); only Ethernet captures can be replayed",
                                         name_, link, link_name != nullptr ? link_name : "unknown"));
    }
}

bool CaptureReader::next(Record& record) noexcept {
    if (ended_) {
        return false;
    }
    pcap_pkthdr* header = nullptr;
    const unsigned char* data = nullptr;
    const int got = pcap_next_ex(handle_.get(), &header, &data);
    if (got != 1) {
        ended_ = true;
        cut_off_ = got != PCAP_ERROR_BREAK;  // for a file, "break" is its proper end
        return false;
    }
    record.bytes = std::as_bytes(std::span(data, header->caplen));
    record.wire_bytes = std::max(header->len, header->caplen);
    record.time_ns = to_time_ns(header->ts);
    ++records_;
    bytes_ += header->caplen;
    return true;
}

std::string CaptureReader::cut_off_text() const {
    if (!cut_off_) {
        return {};
    }
    return fmt::format("{}: the capture is cut off or damaged after record {}; what came before it is used ({})", name_,
                       records_, pcap_geterr(handle_.get()));
}

}  // namespace weir::port
