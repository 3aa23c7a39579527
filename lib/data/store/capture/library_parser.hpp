// The part of CaptureReader that hands kinds of pcap that are too rare to be parsed here to libpcap, which also knows
// why something is no capture. Internal to it.
#pragma once

#include <cstdint>
#include <string>

#include "store/capture/reader.hpp"

struct pcap;

namespace weir::store {

/// libpcap over the same bytes.
class LibraryParser {
public:
    LibraryParser() = default;
    ~LibraryParser();
    LibraryParser(const LibraryParser&) = delete;
    LibraryParser& operator=(const LibraryParser&) = delete;
    /// Returns why it cannot be read, or "". From then on the input is libpcap's.
    [[nodiscard]] std::string open(CaptureInput& input);
    /// 1: a record; 0: the proper end; -1: damage, see reason().
    [[nodiscard]] int next(CaptureRecord& record) noexcept;
    /// The record's header was nothing but zeros.
    [[nodiscard]] bool was_zeros() const noexcept { return was_zeros_; }
    [[nodiscard]] std::string reason() const;
    /// After open().
    [[nodiscard]] std::uint32_t link() const noexcept;
    /// The reader that owns the input has moved.
    void moved_to(CaptureInput& input) noexcept { input_ = &input; }

private:
    CaptureInput* input_ = nullptr;
    pcap* handle_ = nullptr;
    bool was_zeros_ = false;
};

}  // namespace weir::store
