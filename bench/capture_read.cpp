// Reads a capture to its end and says how long that took: what replay is compared with. capture_read KIND FILE prints
// records, bytes, seconds, and seconds of CPU time. Kinds: libpcap (its buffer as it is), libpcap-4m (with one of 4
// MiB), weir (port::CaptureReader alone).
#include <pcap/pcap.h>
#include <time.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "store/capture/reader.hpp"

namespace {

double seconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Read {
    unsigned long long records = 0;
    unsigned long long bytes = 0;
};

bool read_libpcap(const char* path, std::size_t buffer_bytes, Read& out) {
    std::FILE* file = std::fopen(path, "rb");
    if (file == nullptr) return false;
    std::vector<char> buffer(buffer_bytes);
    if (buffer_bytes > 0) std::setvbuf(file, buffer.data(), _IOFBF, buffer.size());
    std::array<char, PCAP_ERRBUF_SIZE> reason{};
    pcap_t* handle = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, reason.data());
    if (handle == nullptr) return false;
    pcap_pkthdr* header = nullptr;
    const unsigned char* data = nullptr;
    while (pcap_next_ex(handle, &header, &data) == 1) {
        ++out.records;
        out.bytes += header->caplen;
    }
    pcap_close(handle);
    return true;
}

bool read_weir(const char* path, Read& out) {
    weir::store::CaptureReader reader{std::string(path)};
    weir::store::CaptureReader::Record record;
    while (reader.next(record)) {
    }
    out = {reader.records(), reader.bytes()};
    return !reader.cut_off();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc == 3 ? argv[1] : "";
    const double wall = seconds(CLOCK_MONOTONIC);
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    Read read;
    bool good = false;
    if (kind == "libpcap") good = read_libpcap(argv[2], 0, read);
    if (kind == "libpcap-4m") good = read_libpcap(argv[2], 4U << 20U, read);
    if (kind == "weir") good = read_weir(argv[2], read);
    if (!good) {
        std::fprintf(stderr, "usage: capture_read libpcap|libpcap-4m|weir FILE\n");
        return 2;
    }
    std::printf("%llu %llu %.6f %.6f\n", read.records, read.bytes, seconds(CLOCK_MONOTONIC) - wall,
                seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
