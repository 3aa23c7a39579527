#include "store/capture/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "store/capture/library_parser.hpp"
#include "store/capture/link.hpp"
#include "store/capture/pcapng_parser.hpp"
#include "store/capture/stored_numbers.hpp"

namespace weir::store {

namespace {

constexpr std::uint32_t pcap_us = 0xa1b2c3d4;
constexpr std::uint32_t pcap_ns = 0xa1b23c4d;
constexpr std::uint32_t pcapng_magic = 0x0a0d0d0a;  // the same in both byte orders
constexpr std::size_t file_header_bytes = 24;
constexpr std::size_t record_header_bytes = 16;

std::uint32_t load(const std::byte* at) noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::uint32_t load(const std::byte* at, bool swapped) noexcept {
    return swapped ? __builtin_bswap32(load(at)) : load(at);
}

/// A record's header.
bool is_zero(const std::byte* at) noexcept {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), at, sizeof words);
    return (words[0] | words[1]) == 0;
}

bool is_zeros(const std::byte* at, std::size_t bytes) noexcept {
    return std::all_of(at, at + bytes, [](std::byte value) { return value == std::byte{0}; });
}

std::uint16_t load_half(const std::byte* at, bool swapped) noexcept {
    std::uint16_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return swapped ? __builtin_bswap16(value) : value;
}

}  // namespace

CaptureReader::CaptureReader(const std::string& path, BlockLender* lender)
    : CaptureReader(open_file(path), path == "-" ? "standard input" : path, lender) {}

CaptureReader::CaptureReader(std::unique_ptr<ByteStream> source, std::string name, BlockLender* lender)
    : name_(std::move(name)), input_(decompress(std::move(source), name_), lender) {
    open();
}

CaptureReader::~CaptureReader() = default;

CaptureReader::CaptureReader(CaptureReader&& other) noexcept
    : name_(std::move(other.name_)),
      input_(std::move(other.input_)),
      pcap_(other.pcap_),
      pcapng_(std::move(other.pcapng_)),
      library_(std::move(other.library_)),
      link_(std::move(other.link_)),
      reason_(std::move(other.reason_)),
      records_(other.records_),
      bytes_(other.bytes_),
      other_link_(other.other_link_),
      zero_bytes_(other.zero_bytes_),
      zeros_after_(other.zeros_after_),
      ended_(other.ended_),
      cut_off_(other.cut_off_) {
    if (library_) library_->moved_to(input_);
}

CaptureReader& CaptureReader::operator=(CaptureReader&& other) noexcept {
    if (this == &other) return *this;
    library_ = std::move(other.library_);  // first: closing the old one still needs the old input
    name_ = std::move(other.name_);
    input_ = std::move(other.input_);
    pcap_ = other.pcap_;
    pcapng_ = std::move(other.pcapng_);
    link_ = std::move(other.link_);
    reason_ = std::move(other.reason_);
    records_ = other.records_;
    bytes_ = other.bytes_;
    other_link_ = other.other_link_;
    zero_bytes_ = other.zero_bytes_;
    zeros_after_ = other.zeros_after_;
    ended_ = other.ended_;
    cut_off_ = other.cut_off_;
    if (library_) library_->moved_to(input_);
    return *this;
}

void CaptureReader::open() {
    std::string reason = "unknown file format";
    if (input_.need(4) && load(input_.data()) == pcapng_magic) {
        pcapng_ = std::make_unique<PcapngParser>();
        reason = pcapng_->open(input_);
    } else if (open_pcap()) {
        reason.clear();
    } else if (input_.need(1)) {
        library_ = std::make_unique<LibraryParser>();
        reason = library_->open(input_);
    }
    if (reason.empty()) {
        const std::uint32_t link = library_ ? library_->link() : pcap_.link;
        if (!pcapng_ && link != link_ethernet) link_ = std::make_unique<CaptureLink>(link);
        return;
    }
    if (!input_.problem().empty()) reason += "; " + input_.problem();
    if (reason.starts_with("captured on")) throw core::RunError(fmt::format("{}: {}", name_, reason));
    throw core::RunError(fmt::format("{}: not a capture that can be read (pcap or pcapng): {}", name_, reason));
}

/// The usual kind. False for anything else: libpcap may know it, or knows what is wrong with it.
bool CaptureReader::open_pcap() {
    if (!input_.need(file_header_bytes)) return false;
    const std::byte* header = input_.data();
    const std::uint32_t magic = load(header);
    pcap_.swapped = magic == __builtin_bswap32(pcap_us) || magic == __builtin_bswap32(pcap_ns);
    const std::uint32_t own = load(header, pcap_.swapped);
    if (own != pcap_us && own != pcap_ns) return false;
    if (load_half(header + 4, pcap_.swapped) != 2 || load_half(header + 6, pcap_.swapped) != 4) return false;
    constexpr std::uint32_t link_mask = 0x03ffffff;  // above it: the length of the FCS
    pcap_.link = load(header + 20, pcap_.swapped) & link_mask;
    if (!CaptureLink::is_known(pcap_.link)) return false;
    pcap_.unit_ns = own == pcap_us ? 1000 : 1;
    pcap_.snapshot_bytes = snapshot_of(load(header + 16, pcap_.swapped));
    input_.consume(file_header_bytes);
    return true;
}

/// A part of the file that nobody wrote: zeros instead of at least two headers of records, or up to its end. One alone
/// may be a record without bytes, of the beginning of 1970.
bool CaptureReader::pass_zeros() noexcept {
    if (!is_zero(input_.data())) return false;
    const bool goes_on = input_.need(2 * record_header_bytes) ? is_zero(input_.data() + record_header_bytes)
                                                              : is_zeros(input_.data(), input_.there());
    if (!goes_on) return false;
    while (input_.need(record_header_bytes) && is_zero(input_.data())) {
        note_zeros(record_header_bytes);
        input_.consume(record_header_bytes);
    }
    return true;
}

void CaptureReader::note_zeros(std::size_t bytes) noexcept {
    if (zero_bytes_ == 0) zeros_after_ = records_;
    zero_bytes_ += bytes;
}

void CaptureReader::end_pcap() noexcept {
    if (zero_bytes_ > 0 && is_zeros(input_.data(), input_.there())) return note_zeros(input_.there());
    cut_off_ = input_.there() > 0;
    if (cut_off_) reason_ = "the file ends inside a record's header";
}

bool CaptureReader::next_pcap(Record& record) noexcept {
    if (!input_.need(record_header_bytes) || (pass_zeros() && !input_.need(record_header_bytes))) {
        end_pcap();
        return false;
    }
    const std::byte* header = input_.data();
    const std::uint32_t bytes = load(header + 8, pcap_.swapped);
    if (bytes > capture_bytes_max) {
        cut_off_ = true;
        reason_ = fmt::format("a record of {} bytes; at most {} can be", bytes, capture_bytes_max);
        return false;
    }
    if (!input_.need(record_header_bytes + bytes)) {
        cut_off_ = true;
        reason_ = "the file ends inside a packet";
        return false;
    }
    header = input_.data();
    const std::uint32_t captured = std::min(bytes, pcap_.snapshot_bytes);
    record.bytes = {header + record_header_bytes, captured};
    record.block = input_.block();
    record.wire_bytes = std::max(load(header + 12, pcap_.swapped), captured);
    record.time_ns =
        capture_time(load(header, pcap_.swapped), std::int64_t{load(header + 4, pcap_.swapped)} * pcap_.unit_ns);
    input_.consume(record_header_bytes + bytes);
    return true;
}

/// The next one that is not zeros, whoever parses it.
bool CaptureReader::next_record(Record& record) noexcept {
    if (pcapng_ == nullptr && library_ == nullptr) return next_pcap(record);
    record.block = nullptr;
    int state = 0;
    if (pcapng_ != nullptr) {
        state = pcapng_->next(input_, record);
        other_link_ = pcapng_->other_link();
    } else {
        while ((state = library_->next(record)) > 0 && library_->was_zeros()) note_zeros(record_header_bytes);
    }
    cut_off_ = state < 0;
    if (cut_off_) reason_ = pcapng_ != nullptr ? pcapng_->reason() : library_->reason();
    return state > 0;
}

bool CaptureReader::next(Record& record) noexcept {
    if (ended_) return false;
    const bool got = next_record(record);
    if (got) {
        if (link_ != nullptr) link_->to_ethernet(record);
        ++records_;
        bytes_ += record.bytes.size();
        return true;
    }
    ended_ = true;
    if (!input_.problem().empty()) {
        // The file may end between two records and be cut off all the same, if it is compressed.
        cut_off_ = true;
        reason_ = input_.problem();
    }
    return false;
}

std::string CaptureReader::cut_off_text() const {
    if (!cut_off_) return {};
    return fmt::format("{}: the capture is cut off or damaged after record {}; what came before it is used ({})", name_,
                       records_, reason_);
}

std::string CaptureReader::zeros_text() const {
    if (zero_bytes_ == 0) return {};
    return fmt::format(
        "{}: {} bytes behind record {} are zeros where records should be, and are no packets: what was to be there is "
        "not known",
        name_, zero_bytes_, zeros_after_);
}

std::string CaptureReader::other_link_text() const {
    if (other_link_ == 0) return {};
    return fmt::format("{}: {} packet{} left out, captured on link type {}", name_, other_link_,
                       other_link_ == 1 ? " is" : "s are", pcapng_->other_link_text());
}

std::vector<std::string> CaptureReader::unread() const {
    std::vector<std::string> texts;
    for (std::string text : {zeros_text(), cut_off_text()})
        if (!text.empty()) texts.push_back(std::move(text));
    return texts;
}

std::vector<std::string> CaptureReader::warnings() const {
    std::vector<std::string> texts = unread();
    if (other_link_ > 0) texts.push_back(other_link_text());
    return texts;
}

}  // namespace weir::store
