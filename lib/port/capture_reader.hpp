// Reads the records of a pcap or pcapng file one after the other and counts them. Knows nothing of what is inside a
// frame: its count is the independent left side of the ledger in a replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "core/units.hpp"

struct pcap;

namespace weir::port {

/// An Ethernet capture, read through libpcap: pcap with microsecond or nanosecond time stamps in either byte order, and
/// pcapng. What libpcap does with the snapshot length of a file applies: bytes of a record beyond it are not delivered.
class CaptureReader {
public:
    struct Record {
        std::span<const std::byte> bytes;  ///< as captured; valid until the next call of next()
        std::uint32_t wire_bytes = 0;  ///< length on the wire; larger than bytes.size() if the capture cut the frame
        core::TimeNs time_ns = 0;      ///< as stored; may run backwards between records
    };

    /// Opens a capture. Throws core::RunError, with the file's name and the reason, if it cannot be read, is empty, is
    /// no capture, ends inside its own header, or was not captured on Ethernet.
    explicit CaptureReader(const std::string& path);
    /// The same for an open stream, which is closed at the end of the reader's life; `name` is for messages.
    CaptureReader(std::FILE* stream, std::string name);
    ~CaptureReader();
    CaptureReader(CaptureReader&&) noexcept;
    CaptureReader& operator=(CaptureReader&&) noexcept;

    /// The next record, or false at the end. Also false, and then cut_off(), where the file cannot be read any further:
    /// it ends inside a record, or what follows is no record. Never throws.
    bool next(Record& record) noexcept;

    /// The file could not be read to a proper end. What was read up to there is good.
    [[nodiscard]] bool cut_off() const noexcept { return cut_off_; }
    /// A sentence for the operator: the file, how many records were read, the reason. Empty unless cut_off().
    [[nodiscard]] std::string cut_off_text() const;
    /// Records delivered so far.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
    /// Captured bytes delivered so far.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    void open(std::FILE* stream);

    struct Closer {
        void operator()(pcap* handle) const noexcept;
    };
    std::string name_;
    std::unique_ptr<char[]> stream_buffer_;  // outlives handle_, which closes the stream that uses it
    std::unique_ptr<pcap, Closer> handle_;
    std::uint64_t records_ = 0;
    std::uint64_t bytes_ = 0;
    bool ended_ = false;
    bool cut_off_ = false;
};

}  // namespace weir::port
