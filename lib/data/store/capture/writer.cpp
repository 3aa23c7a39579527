#include "store/capture/writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace weir::store {

namespace {

constexpr std::size_t stream_buffer_bytes = 1U << 20;
constexpr std::uint32_t snapshot_bytes = 262144;  // what tcpdump writes, and libpcap's own limit

}  // namespace

CaptureWriter::CaptureWriter(const std::string& path) : path_(path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) {
        throw core::RunError(errno == EEXIST
                                 ? fmt::format("{}: exists already; weir does not overwrite a capture", path)
                                 : fmt::format("{}: cannot create the capture: {}", path, std::strerror(errno)));
    }
    stream_.reset(::fdopen(file, "wb"));
    if (!stream_) {
        const int reason = errno;
        ::close(file);
        throw core::RunError(fmt::format("{}: cannot create the capture: {}", path, std::strerror(reason)));
    }
    stream_buffer_ = std::make_unique_for_overwrite<char[]>(stream_buffer_bytes);
    std::setvbuf(stream_.get(), stream_buffer_.get(), _IOFBF, stream_buffer_bytes);
    const std::array<std::uint32_t, 6> header{0xa1b23c4dU, 2U | 4U << 16, 0, 0, snapshot_bytes, 1};
    put(header.data(), sizeof header);
}

CaptureWriter::~CaptureWriter() = default;

void CaptureWriter::put(const void* bytes, std::size_t count) {
    if (count != 0 && std::fwrite(bytes, 1, count, stream_.get()) != count) {
        throw core::RunError(fmt::format("{}: cannot write the capture: {}", path_, std::strerror(errno)));
    }
}

void CaptureWriter::write(std::span<const std::byte> frame, core::TimeNs time_ns, std::uint32_t wire_bytes) {
    const core::TimeNs latest_ns = std::int64_t{std::numeric_limits<std::uint32_t>::max()} * core::ns_per_s;
    const core::TimeNs stamp_ns = std::clamp<core::TimeNs>(time_ns, 0, latest_ns);
    const auto captured_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(frame.size(), snapshot_bytes));
    const auto full_bytes = static_cast<std::uint32_t>(std::max<std::size_t>(frame.size(), wire_bytes));
    const std::array<std::uint32_t, 4> header{static_cast<std::uint32_t>(stamp_ns / core::ns_per_s),
                                              static_cast<std::uint32_t>(stamp_ns % core::ns_per_s), captured_bytes,
                                              full_bytes};
    put(header.data(), sizeof header);
    put(frame.data(), captured_bytes);
    ++records_;
}

void CaptureWriter::close() {
    if (stream_ && std::fclose(stream_.release()) != 0) {
        throw core::RunError(fmt::format("{}: cannot write the capture: {}", path_, std::strerror(errno)));
    }
}

}  // namespace weir::store
