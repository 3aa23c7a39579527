#include "observe/unmatched_senders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "observe/address_text.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

using Sender = stages::RxNotes::Sender;

bool is_set(const stages::SenderAddress& address) {
    return std::ranges::any_of(address.bytes, [](std::uint8_t byte) { return byte != 0; });
}

stages::SenderAddress sender_address(const config::IpAddress& address) {
    return {address.v6, address.bytes};
}

/// Those of all rx lcores, each once, the most frequent first.
std::vector<Sender> merged(const pipeline::Pipeline& pipeline) {
    std::map<std::tuple<bool, std::uint32_t, bool, std::array<std::uint8_t, 16>>, Sender> all;
    for (const auto& rx : pipeline.rx())
        for (const Sender& sender : rx->notes().senders()) {
            const auto [at, is_new] =
                all.try_emplace({sender.roce, sender.key, sender.address.ipv6, sender.address.bytes}, sender);
            if (!is_new) at->second.packets += sender.packets;
        }
    std::vector<Sender> list;
    for (const auto& [key, sender] : all) list.push_back(sender);
    std::ranges::stable_sort(list, std::ranges::greater{}, &Sender::packets);
    if (list.size() > UnmatchedSenders::listed_max) list.resize(UnmatchedSenders::listed_max);
    return list;
}

/// What is known of the configured streams to compare senders with.
class Known {
public:
    explicit Known(const pipeline::Pipeline& pipeline) : pipeline_(pipeline) {
        for (const config::StreamConfig& stream : config().streams) {
            std::vector<std::uint32_t> keys(stream.qp);
            if (stream.transport == config::Transport::udp) keys.assign(stream.udp_dst.begin(), stream.udp_dst.end());
            auto& all = stream.transport == config::Transport::udp ? ports_ : queue_pairs_;
            all.insert(all.end(), keys.begin(), keys.end());
        }
        std::ranges::sort(ports_);
        std::ranges::sort(queue_pairs_);
    }

    /// "the address that det0 udp 50001 sends from, and reads as jungfrau"; empty: nothing speaks for it.
    [[nodiscard]] std::string why(const Sender& sender) const {
        std::string text;
        const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
        if (const auto source = source_with(sender.address))
            add(fmt::format("the address that {} comes from", config().sources[*source].label));
        if (const std::string near = near_text(sender); !near.empty()) add(near);
        if (sender.reads_as != stages::RxNotes::no_stream)
            add(fmt::format("reads as {}", config().streams[sender.reads_as].format));
        return text;
    }
    /// So that the next port is near as well.
    void take(const Sender& sender) {
        auto& all = sender.roce ? queue_pairs_ : ports_;
        all.insert(std::ranges::lower_bound(all, sender.key), sender.key);
    }

private:
    [[nodiscard]] const config::RunConfig& config() const { return pipeline_.options().config; }

    [[nodiscard]] std::optional<std::size_t> source_with(const stages::SenderAddress& address) const {
        for (std::size_t s = 0; s < config().sources.size(); ++s) {
            const config::StreamConfig& stream = config().streams[config().sources[s].stream];
            for (const auto& rx : pipeline_.rx()) {
                const stages::SenderAddress from = rx->notes().address_of(static_cast<std::uint32_t>(s));
                if (is_set(from) && from == address) return s;
            }
            if (std::ranges::any_of(stream.src,
                                    [&](const config::IpAddress& a) { return sender_address(a) == address; }))
                return s;
        }
        return std::nullopt;
    }

    /// Its port is configured (then another address is not), one of a gap between those that are, or the next one.
    [[nodiscard]] std::string near_text(const Sender& sender) const {
        const auto& all = sender.roce ? queue_pairs_ : ports_;
        const auto after = std::ranges::lower_bound(all, sender.key);
        const char* what = sender.roce ? "queue pair" : "port";
        if (after != all.end() && *after == sender.key)
            return fmt::format("a configured {} with addresses that `src` or `dst` do not name", what);
        constexpr std::uint32_t gap_max = 64;  // as many destinations as a detector takes in turn
        const bool above = after != all.begin() && sender.key - *(after - 1) == 1;
        const bool below = after != all.end() && *after - sender.key == 1;
        const bool between = after != all.begin() && after != all.end() && *after - *(after - 1) <= gap_max;
        if (between) return fmt::format("a {} between configured ones", what);
        return above || below ? fmt::format("a {} next to a configured one", what) : "";
    }

    const pipeline::Pipeline& pipeline_;
    std::vector<std::uint32_t> ports_;        ///< sorted, those of senders that are taken in among them
    std::vector<std::uint32_t> queue_pairs_;  ///< sorted
};

}  // namespace

UnmatchedSenders collect_unmatched(const pipeline::Pipeline& pipeline, std::uint64_t unsteered) {
    UnmatchedSenders found;
    if (unsteered == 0) return found;
    const std::vector<Sender> senders = merged(pipeline);
    Known known(pipeline);
    std::vector<std::string> why(senders.size());
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < senders.size(); ++i) {
            if (!why[i].empty()) continue;
            why[i] = known.why(senders[i]);
            if (why[i].empty()) continue;
            known.take(senders[i]);
            changed = true;
        }
    }
    for (std::size_t i = 0; i < senders.size(); ++i) {
        const Sender& sender = senders[i];
        found.list.push_back({fmt::format("{} {} from {}", sender.roce ? "queue pair" : "UDP port", sender.key,
                                          address_text(sender.address)),
                              sender.packets, why[i]});
        if (!why[i].empty()) found.possible_losses += sender.packets;
    }
    found.possible_losses = std::min(found.possible_losses, unsteered);
    return found;
}

std::string unmatched_text(const UnmatchedSenders& senders, bool of_detector) {
    constexpr std::size_t shown_max = 4;
    std::string text;
    std::size_t count = 0;
    for (const UnmatchedSender& sender : senders.list) {
        if (sender.why.empty() == of_detector || ++count > shown_max) continue;
        text += fmt::format("{}{} ({} packets{}{})", text.empty() ? "" : ", ", sender.what, sender.packets,
                            of_detector ? "; " : "", sender.why);
    }
    if (count > shown_max) text += fmt::format(" and {} more, in `unmatched` of the report", count - shown_max);
    return text;
}

nlohmann::json unmatched_json(const UnmatchedSenders& senders, std::uint64_t unsteered) {
    nlohmann::json list = nlohmann::json::array();
    for (const UnmatchedSender& sender : senders.list)
        list.push_back({{"to", sender.what}, {"packets", sender.packets}, {"why", sender.why}});
    return {{"packets", unsteered}, {"possible_losses", senders.possible_losses}, {"senders", std::move(list)}};
}

}  // namespace weir::observe
