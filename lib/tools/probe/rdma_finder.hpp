// Which streams the RoCEv2 requests of a sample are: the queue pairs that belong together, what numbers their events,
// and what is in their messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"
#include "probe/queue_pair_log.hpp"

namespace weir::probe {

class RdmaFinder {
public:
    /// `sample` must outlive the finder.
    explicit RdmaFinder(const PacketSample& sample);

    /// The largest stream first. `what`: for each flow of the sample, filled in for those with requests.
    [[nodiscard]] std::vector<FoundStream> find(std::vector<std::string>& what);

private:
    /// What one queue pair is.
    struct Setting {
        config::EventBy event = config::EventBy::count;
        std::string format = "message";
        wire::FormatOptions options{};
        std::optional<std::uint32_t> message_bytes{};  ///< all messages have it
        std::vector<roce::Region> regions{};           ///< frames are scattered over memory
        double confidence = 0;
        std::vector<std::string> evidence{};
        std::vector<std::string> doubts{};
    };

    [[nodiscard]] Setting setting_of(const QueuePairLog& log) const;
    [[nodiscard]] bool is_framed(const QueuePairLog& log, Setting& setting) const;
    [[nodiscard]] bool is_scattered(const QueuePairLog& log, Setting& setting) const;
    [[nodiscard]] FoundStream stream_of(std::vector<std::size_t> members) const;
    void account(FoundStream& out, const std::vector<std::size_t>& members) const;

    const PacketSample& sample_;
    std::vector<QueuePairLog> logs_;
    std::vector<Setting> settings_;  ///< of each log
};

}  // namespace weir::probe
