// The table of one multi-fragment packet: where its fragments lie in the message, and which of them are whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reduce/mfp/layout.hpp"
#include "reduce/ref_reader.hpp"

namespace weir::reduce {

/// What a fragment of which bytes are missing becomes: one of no bytes, and of this type (LHCb's
/// DaqErrorFragmentMissing).
inline constexpr std::uint8_t mfp_missing_type = 92;

/// What is wrong with a packet as a whole.
enum class MfpProblem : std::uint8_t {
    none,
    head_missing,  ///< bytes of the header or of a table did not arrive: the fragments cannot be told apart
    truncated,     ///< the message ends before its header, its tables or its fragments do
    magic,         ///< not the number that the layout has there
    too_many,      ///< more fragments than there is room for, or none
    too_long,      ///< a fragment of more than 65535 bytes, which the multi-event packet has no number for
    length,        ///< the header's length, the sizes and the message do not agree
    mismatch,      ///< another first event or number of fragments than the packets of the other sources
    count_
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(MfpProblem::count_)> mfp_problem_names{
    "none", "head_missing", "truncated", "magic", "too_many", "too_long", "length", "mismatch"};

/// Its memory is taken at construction.
class MfpBlock {
public:
    /// For packets of up to `fragments_max` fragments.
    explicit MfpBlock(std::uint32_t fragments_max);

    /// Reads header and tables of a message of `total` bytes. 0: the size is not known; then the header's and the
    /// tables' word is taken, and what did not arrive is missing. After a problem the block is empty.
    MfpProblem read(const MfpLayout& layout, const SortedRefs& message, std::uint32_t total) noexcept;
    /// The same for a message of which all is there, which need not be asked for each fragment.
    MfpProblem read_whole(const MfpLayout& layout, const SortedRefs& message, std::uint32_t total) noexcept;
    /// A packet of which nothing is there: all its fragments are missing.
    void make_missing(std::uint64_t first_event, std::uint32_t fragments) noexcept;

    [[nodiscard]] std::uint64_t first_event() const noexcept { return first_event_; }
    [[nodiscard]] std::uint32_t fragments() const noexcept { return fragments_; }
    [[nodiscard]] std::uint32_t missing() const noexcept { return missing_; }
    /// Sum of the sizes.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::span<const std::uint8_t> types() const noexcept { return {types_.data(), fragments_}; }
    [[nodiscard]] std::span<const std::uint16_t> sizes() const noexcept { return {sizes_.data(), fragments_}; }
    [[nodiscard]] std::uint8_t type(std::uint32_t i) const noexcept { return types_[i]; }
    [[nodiscard]] std::uint16_t size(std::uint32_t i) const noexcept { return sizes_[i]; }
    /// Of a fragment's first byte in the message.
    [[nodiscard]] std::uint32_t offset(std::uint32_t i) const noexcept { return offsets_[i]; }

private:
    MfpProblem read_header(const MfpLayout& layout, std::uint32_t total) noexcept;
    void decode_sizes(const MfpLayout& layout) noexcept;
    MfpProblem read_tables(const MfpLayout& layout, std::uint32_t total) noexcept;
    MfpProblem walk(const MfpLayout& layout, std::uint32_t total) noexcept;
    MfpProblem add(std::uint32_t i, std::uint64_t at, std::uint64_t size) noexcept;

    RefReader reader_;
    bool whole_ = false;
    std::uint32_t fragments_max_;
    std::uint64_t first_event_ = 0;
    std::uint64_t length_ = 0;  ///< as the header says
    std::uint32_t fragments_ = 0;
    std::uint32_t missing_ = 0;
    std::uint64_t bytes_ = 0;
    std::vector<std::uint32_t> offsets_;
    std::vector<std::uint16_t> sizes_;
    std::vector<std::uint8_t> types_;
    std::vector<std::uint32_t> said_;  ///< the sizes, as numbers
    std::vector<std::byte> table_;     ///< of sizes, as received
};

}  // namespace weir::reduce
