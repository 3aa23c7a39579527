#include "store/capture/library_parser.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "store/capture/link.hpp"
#include "store/capture/pcap_library.hpp"
#include "store/capture/stored_numbers.hpp"

namespace weir::store {

LibraryParser::~LibraryParser() {
    if (handle_ != nullptr) pcap().pcap_close(handle_);
}

std::string LibraryParser::open(CaptureInput& input) {
    const PcapLibrary& library = pcap();
    input_ = &input;
    cookie_io_functions_t calls{};
    calls.read = [](void* self, char* out, std::size_t bytes) -> ssize_t {
        CaptureInput& from = *static_cast<LibraryParser*>(self)->input_;
        return static_cast<ssize_t>(from.read(std::as_writable_bytes(std::span(out, bytes))));
    };
    std::FILE* stream = ::fopencookie(this, "rb", calls);
    if (stream == nullptr) return "no memory";
    std::array<char, PCAP_ERRBUF_SIZE> reason{};
    handle_ = library.pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason.data());
    if (handle_ == nullptr) {
        std::fclose(stream);
        return reason.data();
    }
    return CaptureLink::is_known(link()) ? std::string() : CaptureLink::refusal(link());
}

std::uint32_t LibraryParser::link() const noexcept {
    return static_cast<std::uint32_t>(pcap().pcap_datalink(handle_));
}

int LibraryParser::next(CaptureRecord& record) noexcept {
    pcap_pkthdr* header = nullptr;
    const unsigned char* data = nullptr;
    const int got = pcap().pcap_next_ex(handle_, &header, &data);
    if (got != 1) return got == PCAP_ERROR_BREAK ? 0 : -1;  // for a file, "break" is its proper end
    record.bytes = std::as_bytes(std::span(data, header->caplen));
    record.wire_bytes = std::max(header->len, header->caplen);
    was_zeros_ = record.wire_bytes == 0 && header->ts.tv_sec == 0 && header->ts.tv_usec == 0;
    // libpcap puts nanoseconds here when asked for them.
    record.time_ns = capture_time(header->ts.tv_sec, header->ts.tv_usec);
    return 1;
}

std::string LibraryParser::reason() const {
    return pcap().pcap_geterr(handle_);
}

}  // namespace weir::store
