// Writes CBOR (RFC 8949), item by item, into memory that grows. The counts of arrays and maps are the caller's promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::stream {

class CborWriter {
public:
    void integer(std::uint64_t value);
    void signed_integer(std::int64_t value);
    void real(double value);
    void boolean(bool value);
    void text(std::string_view value);
    void bytes(std::span<const std::byte> value);
    /// The head of a byte string, whose `count` bytes the caller puts after what is written here.
    void bytes_head(std::uint64_t count);
    void array(std::uint64_t items);
    /// `pairs` keys, each followed by its value.
    void map(std::uint64_t pairs);
    /// Of the item that follows.
    void tag(std::uint64_t number);

    [[nodiscard]] std::span<const std::byte> written() const noexcept { return out_; }
    void clear() noexcept { out_.clear(); }

private:
    template <class Encode>
    void put(Encode encode);

    std::vector<std::byte> out_;
};

}  // namespace weir::stream
