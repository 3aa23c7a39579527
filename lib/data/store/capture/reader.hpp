// Reads the records of a pcap or pcapng file one after the other and counts them. Knows nothing of what is inside a
// frame: its count is the independent left side of the ledger in a replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "store/capture/byte_stream.hpp"
#include "store/capture/input.hpp"

namespace weir::store {

struct CaptureRecord {
    std::span<const std::byte> bytes;  ///< as captured; valid until the next call of next(), longer in a lent block
    CaptureBlock* block = nullptr;     ///< lent: the bytes stay until everybody has let go of it
    std::uint32_t wire_bytes = 0;      ///< length on the wire; larger than bytes.size() if the capture cut the frame
    core::TimeNs time_ns = 0;          ///< as stored; may run backwards between records
};

class PcapngParser;
class LibraryParser;
class CaptureLink;

/// A capture as Ethernet frames: pcap with microsecond or nanosecond time stamps in either byte order, and pcapng,
/// parsed where they were read, plain or compressed (byte_stream.hpp). Other kinds of pcap (versions before 2.4,
/// patched ones) go through libpcap. Delivers what libpcap delivers: bytes beyond the snapshot length of a file are
/// left out. Records of other link types get an Ethernet header for their own (link.hpp). Of a pcapng file, whose
/// interfaces may be of several kinds, it reads more than libpcap does (pcapng_parser.hpp).
class CaptureReader {
public:
    using Record = CaptureRecord;

    /// Opens a capture; "-" is standard input. Throws core::RunError, with the file's name and the reason, if it cannot
    /// be read, is empty, is no capture, ends inside its own header, or is of a link type that is not known. With a
    /// `lender` records are read into its blocks, as long as it has any.
    explicit CaptureReader(const std::string& path, BlockLender* lender = nullptr);
    /// The same for bytes from anywhere; `name` is for messages.
    CaptureReader(std::unique_ptr<ByteStream> source, std::string name, BlockLender* lender = nullptr);
    ~CaptureReader();
    CaptureReader(CaptureReader&&) noexcept;
    CaptureReader& operator=(CaptureReader&& other) noexcept;

    /// The next record, or false at the end. Also false, and then cut_off(), where the file cannot be read any further:
    /// it ends inside a record, or what follows is no record. Never throws.
    bool next(Record& record) noexcept;

    /// The file could not be read to a proper end. What was read up to there is good.
    [[nodiscard]] bool cut_off() const noexcept { return cut_off_; }
    /// A sentence for the operator: the file, how many records were read, the reason. Empty unless cut_off().
    [[nodiscard]] std::string cut_off_text() const;
    /// A sentence about zeros where records should be, which are not delivered; empty if there were none.
    [[nodiscard]] std::string zeros_text() const;
    /// A sentence about packets of interfaces that are not read; empty if there were none.
    [[nodiscard]] std::string other_link_text() const;
    /// What was to be in the file, and could not be read: sentences about the end of what can be, and zeros.
    [[nodiscard]] std::vector<std::string> unread() const;
    /// These, and what was left out on purpose.
    [[nodiscard]] std::vector<std::string> warnings() const;
    /// Packets of interfaces that are not read, so far.
    [[nodiscard]] std::uint64_t other_link() const noexcept { return other_link_; }
    /// Records delivered so far.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
    /// Captured bytes delivered so far.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    struct PcapLayout {
        bool swapped = false;
        std::uint32_t unit_ns = 1000;
        std::uint32_t snapshot_bytes = 0;
        std::uint32_t link = 0;
    };

    void open();
    [[nodiscard]] bool open_pcap();
    [[nodiscard]] bool next_record(Record& record) noexcept;
    [[nodiscard]] bool next_pcap(Record& record) noexcept;
    void end_pcap() noexcept;
    [[nodiscard]] bool pass_zeros() noexcept;
    void note_zeros(std::size_t bytes) noexcept;

    std::string name_;
    CaptureInput input_;
    PcapLayout pcap_;
    std::unique_ptr<PcapngParser> pcapng_;    ///< one of the two, or neither for pcap
    std::unique_ptr<LibraryParser> library_;  ///< refers to input_
    std::unique_ptr<CaptureLink> link_;       ///< null: Ethernet
    std::string reason_;                      ///< cut off: why
    std::uint64_t records_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t other_link_ = 0;
    std::uint64_t zero_bytes_ = 0;
    std::uint64_t zeros_after_ = 0;  ///< the first of them come after so many records
    bool ended_ = false;
    bool cut_off_ = false;
};

}  // namespace weir::store
