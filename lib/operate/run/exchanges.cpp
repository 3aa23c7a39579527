#include "run/exchanges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "pipeline/pipeline.hpp"
#include "plan/setup.hpp"
#include "roce/queue_pair.hpp"
#include "wire/roce.hpp"

namespace weir::run {

namespace {

/// Queue pairs as they are configured, but for what the peer says of itself.
class PipelineQueuePairs final : public QueuePairs {
public:
    explicit PipelineQueuePairs(pipeline::Pipeline& pipeline) : pipeline_(pipeline) {}

    bool connect(std::uint32_t source, const Peer& peer) override {
        roce::QueuePairControl* const control = pipeline_.queue_pair_control(source);
        if (control == nullptr) return false;
        if (!posted_) {
            if (control->post({roce::QueuePairCommand::Kind::configure, source, queue_pair_for(source, peer)}))
                posted_ = source;
            return false;
        }
        if (posted_ != source && !given_up_) return false;
        if (!pipeline_.queue_pair_control(*posted_)->answer()) return false;
        posted_.reset();
        return !std::exchange(given_up_, false);
    }

    void give_up(std::uint32_t source) override {
        if (posted_ != source) return;
        if (pipeline_.queue_pair_control(source)->withdraw())
            posted_.reset();
        else
            given_up_ = true;  // its answer is for nobody
    }

private:
    [[nodiscard]] roce::QueuePair queue_pair_for(std::uint32_t source, const Peer& peer) const {
        std::array<std::byte, 4> address;
        for (std::uint32_t i = 0; i < 4; ++i) address[i] = static_cast<std::byte>(peer.ipv4 >> (24 - 8 * i));
        roce::QueuePair queue_pair = plan::make_queue_pair(pipeline_.options().config, source);
        queue_pair.peer_qp = peer.qp;
        queue_pair.peer_address = wire::roce_address(address.data(), false);
        queue_pair.psn = peer.psn;
        queue_pair.path_mtu = peer.path_mtu;
        return queue_pair;
    }

    pipeline::Pipeline& pipeline_;
    std::optional<std::uint32_t> posted_;  ///< the source whose command an lcore has
    bool given_up_ = false;                ///< ... for a client that has gone
};

PerftestServer::Config server_config(const config::RunConfig& config, const config::StreamConfig& stream) {
    PerftestServer::Config server;
    server.address = stream.listen_address;
    server.port = stream.listen_port;
    server.ipv4 = config.ports[stream.port].ipv4().value_or(0);
    server.path_mtu = path_mtu_of(config, stream);
    for (std::uint32_t i = 0; i < stream.source_count; ++i) {
        const roce::QueuePair queue_pair = plan::make_queue_pair(config, stream.first_source + i);
        const roce::Region region = queue_pair.region_count > 0 ? queue_pair.regions.front() : roce::Region{};
        server.offers.push_back({stream.first_source + i, stream.qp[i], region.rkey, region.va});
    }
    return server;
}

}  // namespace

std::uint32_t path_mtu_of(const config::RunConfig& config, const config::StreamConfig& stream) {
    if (stream.roce.path_mtu != 0) return stream.roce.path_mtu;
    // IPv4, UDP, BTH, the largest extended headers (RETH and immediate), iCRC.
    constexpr std::uint32_t headers = 20 + 8 + 12 + 16 + 4 + 4;
    std::uint32_t bytes = wire::roce_mtu_max;
    while (bytes > 256 && bytes + headers > config.ports[stream.port].mtu) bytes /= 2;
    return bytes;
}

struct Exchanges::Stream {
    Stream(pipeline::Pipeline& pipeline, const config::StreamConfig& config,
           const std::function<void(std::string_view)>& say)
        : queue_pairs(std::make_unique<PipelineQueuePairs>(pipeline)),
          server(server_config(pipeline.options().config, config), *queue_pairs, say),
          listen(fmt::format("{}:{}", config.listen_address, config.listen_port)) {}
    std::unique_ptr<QueuePairs> queue_pairs;
    PerftestServer server;
    std::string listen;
};

Exchanges::Exchanges(pipeline::Pipeline& pipeline, const std::function<void(std::string_view)>& say) {
    for (const config::StreamConfig& stream : pipeline.options().config.streams)
        if (stream.exchange != config::Exchange::none)
            streams_.push_back(std::make_unique<Stream>(pipeline, stream, say));
}

Exchanges::~Exchanges() = default;

void Exchanges::serve(double seconds) {
    for (const auto& stream : streams_) stream->server.serve(seconds);
}

nlohmann::json Exchanges::report() const {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& stream : streams_) {
        const PerftestServer::Account& account = stream->server.account();
        out.push_back({{"listen", stream->listen},
                       {"clients", account.clients},
                       {"ended", account.ended},
                       {"failed", account.failed},
                       {"lost", account.lost},
                       {"queue_pairs", account.queue_pairs}});
    }
    return out;
}

}  // namespace weir::run
