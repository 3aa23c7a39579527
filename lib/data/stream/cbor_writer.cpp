#include "stream/cbor_writer.hpp"

#include <cbor.h>

#include <array>

namespace weir::stream {

/// The longest head of an item is 9 bytes.
template <class Encode>
void CborWriter::put(Encode encode) {
    std::array<unsigned char, 9> head;
    const std::size_t bytes = encode(head.data(), head.size());
    const auto* from = reinterpret_cast<const std::byte*>(head.data());
    out_.insert(out_.end(), from, from + bytes);
}

void CborWriter::integer(std::uint64_t value) {
    put([value](unsigned char* to, std::size_t room) { return ::cbor_encode_uint(value, to, room); });
}

void CborWriter::signed_integer(std::int64_t value) {
    if (value >= 0) return integer(static_cast<std::uint64_t>(value));
    const auto beyond = static_cast<std::uint64_t>(-(value + 1));  // -1 is 0
    put([beyond](unsigned char* to, std::size_t room) { return ::cbor_encode_negint(beyond, to, room); });
}

void CborWriter::real(double value) {
    put([value](unsigned char* to, std::size_t room) { return ::cbor_encode_double(value, to, room); });
}

void CborWriter::boolean(bool value) {
    put([value](unsigned char* to, std::size_t room) { return ::cbor_encode_bool(value, to, room); });
}

void CborWriter::text(std::string_view value) {
    put([value](unsigned char* to, std::size_t room) { return ::cbor_encode_string_start(value.size(), to, room); });
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    out_.insert(out_.end(), from, from + value.size());
}

void CborWriter::bytes_head(std::uint64_t count) {
    put([count](unsigned char* to, std::size_t room) { return ::cbor_encode_bytestring_start(count, to, room); });
}

void CborWriter::bytes(std::span<const std::byte> value) {
    bytes_head(value.size());
    out_.insert(out_.end(), value.begin(), value.end());
}

void CborWriter::array(std::uint64_t items) {
    put([items](unsigned char* to, std::size_t room) { return ::cbor_encode_array_start(items, to, room); });
}

void CborWriter::map(std::uint64_t pairs) {
    put([pairs](unsigned char* to, std::size_t room) { return ::cbor_encode_map_start(pairs, to, room); });
}

void CborWriter::tag(std::uint64_t number) {
    put([number](unsigned char* to, std::size_t room) { return ::cbor_encode_tag(number, to, room); });
}

}  // namespace weir::stream
