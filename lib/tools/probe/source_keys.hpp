// What tells the sources of a UDP stream apart, as its configuration says it.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"
#include "wire/format_marks.hpp"

namespace weir::probe {

class SourceKeys {
public:
    explicit SourceKeys(const config::StreamConfig& stream);

    [[nodiscard]] std::size_t count() const noexcept { return labels_.size(); }
    [[nodiscard]] const std::string& label(std::size_t index) const noexcept { return labels_[index]; }
    /// Nothing: of no source of this stream.
    [[nodiscard]] std::optional<std::uint32_t> find(const FlowKey& flow, std::uint32_t header_source) const;
    /// UDP interface of the module: the place of the port in the list, as in a run.
    [[nodiscard]] std::uint8_t lane(const FlowKey& flow) const;

private:
    config::SourceBy by_;
    std::vector<std::string> labels_;
    std::map<std::uint32_t, std::uint32_t> numbers_;  ///< ports or header ids
    std::map<std::string, std::uint32_t> addresses_;
};

/// What the format's decoder is made with in such a stream.
[[nodiscard]] wire::FormatOptions decoder_options(const config::StreamConfig& stream, const wire::FormatOptions& own);

/// How much of a packet has to be there for its header to be read: of a described one up to its last field.
[[nodiscard]] std::uint32_t header_needed(const wire::FormatEntry& format, const wire::FormatContext& context,
                                          const wire::DeclaredSpec& spec);

/// The beginning of a packet as decoders want it: with room for the longest header, zeros where nothing was kept.
class PaddedHead {
public:
    explicit PaddedHead(std::span<const std::byte> head) noexcept {
        std::copy_n(head.begin(), std::min(head.size(), bytes_.size()), bytes_.begin());
    }
    [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

private:
    std::array<std::byte, 640> bytes_{};  ///< more than any format reads (SampleLimits::head_bytes)
};

/// The source ids that the headers have, rising; those of single packets are taken for damage. Empty where the format
/// has none, or they are too many to be sources.
[[nodiscard]] std::vector<std::uint32_t> header_ids(const wire::FormatEntry& format, const wire::FormatOptions& own,
                                                    std::span<const wire::SampledPacket> packets);

/// A key that says where the source id is has no place where ids are not asked for.
void forget_unused_source(FoundStream& found, const wire::FormatEntry& format);

/// How well a description fits packets.
[[nodiscard]] wire::Recognition recognise_declared(const wire::DeclaredSpec& spec,
                                                   std::span<const wire::SampledPacket> packets);

}  // namespace weir::probe
