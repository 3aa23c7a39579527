// See mdf_record.hpp.
#include "store/mdf_record.hpp"

#include <bit>
#include <cstring>

namespace weir::store {

namespace {

static_assert(std::endian::native == std::endian::little, "MDF is little-endian, and is written as it lies in memory");

struct Header {
    std::uint32_t sizes[3] = {};  ///< the same three times
    std::uint32_t checksum = 0;   ///< of what follows, to the end of the record
    std::uint8_t compression = 0;
    std::uint8_t layout = 0x37;  ///< version 3, and 7 words from the trigger mask on
    std::uint8_t content = 1;    ///< raw banks
    std::uint8_t spare = 0;
    /// All bits, as files have them that no trigger selected events for. A reader that asks for any bit takes the
    /// event; with 0 it would leave it out.
    std::uint32_t trigger_mask[4] = {0xffff'ffff, 0xffff'ffff, 0xffff'ffff, 0xffff'ffff};
    std::uint32_t run = 0;
    std::uint32_t orbit = 0;  ///< this and the next are in the ODIN bank, for those who can read its version
    std::uint32_t bunch = 0;
};
static_assert(sizeof(Header) == 48);
constexpr std::size_t checked_from = 16;

struct BankHeader {
    std::uint16_t magic = 0xcbcb;
    std::uint16_t bytes = 0;  ///< with this header, without what fills it up
    std::uint8_t type = 0;
    std::uint8_t version = 0;
    std::uint16_t source_id = 0;
};
static_assert(sizeof(BankHeader) == 8 && mdf_bank_bytes_max + sizeof(BankHeader) == 65535);
constexpr std::size_t bank_align = 4;

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
    const auto view = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), view.begin(), view.end());
}

}  // namespace

std::uint32_t mdf_checksum(std::span<const std::byte> bytes) noexcept {
    std::uint32_t hash = 0;
    for (const std::byte byte : bytes) {
        hash += static_cast<std::uint32_t>(static_cast<std::int8_t>(byte));
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    return hash + (hash << 15);
}

MdfRecord::MdfRecord(std::uint32_t run) : run_(run) {
    begin();
}

void MdfRecord::begin() {
    bytes_.clear();
    Header header;
    header.run = run_;
    append(bytes_, header);
}

bool MdfRecord::add(const MdfBank& bank, std::span<const std::byte> body) {
    const std::size_t bytes = sizeof(BankHeader) + body.size();
    if (body.size() > mdf_bank_bytes_max || bytes_.size() + bytes + bank_align > mdf_record_bytes_max) return false;
    append(bytes_, BankHeader{.bytes = static_cast<std::uint16_t>(bytes),
                              .type = bank.type,
                              .version = bank.version,
                              .source_id = bank.source_id});
    bytes_.insert(bytes_.end(), body.begin(), body.end());
    bytes_.resize((bytes_.size() + bank_align - 1) / bank_align * bank_align);
    return true;
}

std::span<const std::byte> MdfRecord::finish() {
    Header header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    for (std::uint32_t& size : header.sizes) size = static_cast<std::uint32_t>(bytes_.size());
    header.checksum = mdf_checksum(std::span(bytes_).subspan(checked_from));
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
}

}  // namespace weir::store
