// Which streams a sample of UDP datagrams has: the format of each flow, the flows that belong together, and what tells
// their sources apart.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probe/declared_guess.hpp"
#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"
#include "wire/format_marks.hpp"

namespace weir::probe {

class StreamFinder {
public:
    /// `declared`: formats that the user has described, tried after weir's own. All must outlive the finder.
    StreamFinder(const PacketSample& sample, const std::vector<wire::DeclaredSpec>& declared);

    /// What was found, the largest stream first. `what`: for each flow of the sample what it was taken for, filled in.
    [[nodiscard]] std::vector<FoundStream> find(std::vector<std::string>& what);

private:
    /// Flows that one format and one set-up fit.
    struct Group {
        Basis basis = Basis::format;
        const wire::FormatEntry* format = nullptr;
        wire::FormatOptions options{};
        double confidence = 0;
        std::vector<std::string> evidence{};
        std::vector<std::string> doubts{};
        std::vector<std::uint32_t> flows{};
    };

    [[nodiscard]] std::vector<wire::SampledPacket> packets_of(std::span<const std::uint32_t> flows) const;
    [[nodiscard]] Group recognise(std::span<const std::uint32_t> flows) const;
    void recognise_flows();
    [[nodiscard]] std::optional<DeclaredGuess> guess_from(std::uint32_t flow, const std::set<std::uint32_t>& open);
    void guess_flows();
    void join_groups();
    [[nodiscard]] FoundStream stream_of(const Group& group) const;
    [[nodiscard]] std::vector<config::StreamConfig> settings_of(const Group& group) const;
    /// What becomes of a group's packets with some settings.
    struct Tried {
        FoundStream found{};
        std::uint64_t complete = 0;  ///< packets of events of which all sources are whole
        std::uint64_t placed = 0;    ///< packets that brought something new
        std::uint64_t whole = 0;     ///< messages
        std::uint64_t mixed = 0;     ///< packets in messages of other senders (SenderCheck)
        bool shared = false;         ///< a source has several senders
    };
    [[nodiscard]] Tried tried(const Group& group, const config::StreamConfig& stream) const;
    [[nodiscard]] bool is_conversation(std::uint32_t flow) const;
    void add_message(std::vector<FoundStream>& out) const;

    const PacketSample& sample_;
    const std::vector<wire::DeclaredSpec>& declared_;
    std::vector<std::vector<std::uint32_t>> datagrams_;  ///< of each flow, indices into the sample
    std::vector<Group> groups_;
    std::vector<std::string> what_;  ///< of each flow
};

}  // namespace weir::probe
