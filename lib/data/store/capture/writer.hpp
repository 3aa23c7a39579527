// Writes frames into a pcap file with nanosecond time stamps. For the simulator's captures; not a sink of the pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "core/units.hpp"

namespace weir::store {

/// A new Ethernet capture: magic 0xa1b23c4d, version 2.4, little-endian (the host's order), link type 1.
class CaptureWriter {
public:
    /// Creates the file. Throws core::RunError if it exists already or cannot be created.
    explicit CaptureWriter(const std::string& path);
    ~CaptureWriter();
    CaptureWriter(CaptureWriter&&) noexcept = default;
    CaptureWriter& operator=(CaptureWriter&&) = delete;

    /// Appends a record. `wire_bytes` is the length on the wire where the capture holds less than that; 0 stands for
    /// `frame.size()`. Times before 1970 or after 2106 do not fit and are clamped. Throws core::RunError when the disk
    /// refuses.
    void write(std::span<const std::byte> frame, core::TimeNs time_ns, std::uint32_t wire_bytes = 0);
    /// Hands everything to the kernel and closes the file. Throws core::RunError when the disk refuses. A writer that
    /// is destroyed without close() closes too, but then nobody hears of a failure.
    void close();
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

private:
    void put(const void* bytes, std::size_t count);

    struct Closer {
        void operator()(std::FILE* stream) const noexcept { std::fclose(stream); }
    };
    std::string path_;
    std::unique_ptr<char[]> stream_buffer_;  // outlives stream_, which uses it
    std::unique_ptr<std::FILE, Closer> stream_;
    std::uint64_t records_ = 0;
};

}  // namespace weir::store
