#include "simulate/verbs_sender.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "verbs/connection.hpp"
#include "verbs/rdma_device.hpp"

namespace weir::simulate {

namespace {

using core::RunError;
using core::TimeNs;
using roce::SendStatus;
using verbs::held;
using verbs::must;
using AddressHandle = verbs::Held<ibv_ah, ibv_destroy_ah>;

SendStatus status_of(ibv_wc_status status) noexcept {
    switch (status) {
        case IBV_WC_SUCCESS:
            return SendStatus::acknowledged;
        case IBV_WC_RETRY_EXC_ERR:
            return SendStatus::retries_exceeded;
        case IBV_WC_RNR_RETRY_EXC_ERR:
            return SendStatus::rnr_retries_exceeded;
        case IBV_WC_REM_INV_REQ_ERR:
            return SendStatus::invalid_request;
        case IBV_WC_REM_ACCESS_ERR:
            return SendStatus::access_error;
        case IBV_WC_WR_FLUSH_ERR:
            return SendStatus::flushed;
        default:
            return SendStatus::operation_error;
    }
}

ibv_qp_type type_of(wire::RoceTransport service) noexcept {
    return service == wire::RoceTransport::rc   ? IBV_QPT_RC
           : service == wire::RoceTransport::uc ? IBV_QPT_UC
                                                : IBV_QPT_UD;
}

class Verbs final : public VerbsSender {
public:
    Verbs(const std::string& device, Simulator& simulator, const RcSender::Config& config,
          const std::atomic<bool>& stop)
        : simulator_(simulator),
          per_event_(simulator.messages_per_event()),
          config_(config),
          stop_(stop),
          port_(verbs::port_of(device)) {
        const SimulatorConfig& shape = simulator.config();
        const std::uint32_t path_mtu = verbs::path_mtu_of(port_.attributes());
        if (shape.mtu > path_mtu)
            throw RunError(
                fmt::format("RDMA device: its path MTU is {}, and --mtu {} is more; what does its interface have?",
                            path_mtu, shape.mtu));
        domain_ = held<verbs::Domain>(::ibv_alloc_pd(port_.context.get()), "allocating a protection domain");
        const std::uint32_t messages = config.depth * shape.sources;
        completions_ = held<verbs::Completions>(
            ::ibv_create_cq(
                port_.context.get(),
                static_cast<int>(RcSender::messages_under_way(simulator, config.depth) * std::uint64_t{shape.sources}),
                nullptr, nullptr, 0),
            "creating a completion queue");
        for (std::uint32_t source = 0; source < shape.sources; ++source) make_queue_pair();
        // A slot for each message that can be under way, as long as the longest.
        slot_bytes_ = std::max({1U, shape.bytes_max + 64,  // an EJFAT header may be in front
                                simulator.rdma_bytes(shape.first_event, 0)});
        memory_.resize(std::size_t{messages} * slot_bytes_);
        region_ =
            held<verbs::Region>(::ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(), 0), "registering memory");
        posted_.resize(shape.sources);
        done_.resize(shape.sources);
        completed_.resize(shape.sources);
        result_.sources.resize(shape.sources);
        result_.pacer = Pacer(config.pace);
    }

    std::vector<roce::PerftestEnd> ends() const override {
        std::vector<roce::PerftestEnd> ends;
        for (const auto& queue_pair : queue_pairs_)
            ends.push_back(verbs::end_of(queue_pair.get(), port_, simulator_.config().first_psn));
        return ends;
    }

    void connect(std::span<const roce::PerftestEnd> peers) override {
        peers_.assign(peers.begin(), peers.end());
        const verbs::ConnectionConfig connection{.path_mtu = simulator_.config().mtu,
                                                 .first_psn = simulator_.config().first_psn,
                                                 .access = 0,
                                                 .qkey = Simulator::qkey,
                                                 .timeout_ns = config_.timeout_ns,
                                                 .retries = config_.retries,
                                                 .rnr_retries = config_.rnr_retries};
        for (std::size_t source = 0; source < queue_pairs_.size(); ++source) {
            verbs::connect(queue_pairs_[source].get(), port_, connection, peers_[source]);
            if (simulator_.config().service != wire::RoceTransport::ud) continue;
            ibv_ah_attr path = verbs::path_to(port_, peers_[source]);
            ways_.push_back(held<AddressHandle>(::ibv_create_ah(domain_.get(), &path), "creating an address handle"));
        }
    }

    RcSender::Result send() override {
        start_ = std::chrono::steady_clock::now();
        events_end_ =
            simulator_.config().events != 0 ? simulator_.config().events : std::numeric_limits<std::uint64_t>::max();
        TimeNs next_progress = core::ns_per_s;
        while (!ended()) {
            const TimeNs now = elapsed_ns();
            if (!stop_if_asked(now)) break;
            bool busy = collect();
            busy = post(now) || busy;
            if (config_.on_progress && now >= next_progress) {
                config_.on_progress(static_cast<double>(now) * 1e-9);
                next_progress += core::ns_per_s;
            }
            constexpr auto nap = std::chrono::microseconds(50);
            if (!busy) std::this_thread::sleep_for(nap);
        }
        finish();
        return result_;
    }

private:
    void make_queue_pair() {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = completions_.get();
        wanted.cap.max_send_wr = config_.depth * per_event_;
        wanted.cap.max_recv_wr = 1;
        wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
        wanted.qp_type = type_of(simulator_.config().service);
        queue_pairs_.push_back(
            held<verbs::QueuePair>(::ibv_create_qp(domain_.get(), &wanted), "creating a queue pair"));
    }

    [[nodiscard]] TimeNs elapsed_ns() const {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
    }

    /// False when what is under way has had its time after that.
    bool stop_if_asked(TimeNs now) {
        const bool asked = stop_.load(std::memory_order_relaxed);
        const bool over = config_.duration_s > 0 && static_cast<double>(now) * 1e-9 >= config_.duration_s;
        if (stopped_ns_ < 0 && (asked || over)) {
            stopped_ns_ = now;
            result_.interrupted = asked;
            events_end_ = std::min(events_end_, begun_);
        }
        return stopped_ns_ < 0 || static_cast<double>(now - stopped_ns_) * 1e-9 <= config_.grace_s;
    }

    [[nodiscard]] bool failed(std::size_t source) const {
        return result_.sources[source].status != SendStatus::acknowledged;
    }

    bool post(TimeNs now) {
        std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
        for (std::size_t source = 0; source < done_.size(); ++source)
            if (!failed(source)) least = std::min(least, done_[source]);
        if (least == std::numeric_limits<std::uint64_t>::max()) return false;
        bool any = false;
        while (begun_ < std::min(events_end_, least + config_.depth)) {
            if (config_.pace.events_per_s > 0) {
                const auto due = static_cast<TimeNs>(static_cast<double>(begun_) / config_.pace.events_per_s * 1e9);
                if (result_.pacer.wait_ns(due, now) > 0) break;
            }
            for (std::uint32_t source = 0; source < queue_pairs_.size(); ++source)
                if (!failed(source)) post_message(source, begun_);
            ++begun_;
            any = true;
        }
        return any;
    }

    void post_message(std::uint32_t source, std::uint64_t index) {
        const std::uint64_t event = simulator_.config().first_event + index;
        const std::uint32_t bytes = simulator_.rdma_bytes(event, source);
        std::byte* slot = memory_.data() + (source * config_.depth + index % config_.depth) * slot_bytes_;
        simulator_.rdma_content(event, source, 0, {slot, bytes});
        if (simulator_.writes().empty()) post_part(source, event, slot, {0, bytes, true});
        for (const FrameWrites::Write& write : simulator_.writes()) post_part(source, event, slot, write);
        ++posted_[source];
    }

    /// A message, or one of the WRITEs that it is cut into.
    void post_part(std::uint32_t source, std::uint64_t event, std::byte* slot, const FrameWrites::Write& part) {
        const SimulatorConfig& shape = simulator_.config();
        ibv_sge piece{
            .addr = reinterpret_cast<std::uintptr_t>(slot) + part.offset, .length = part.bytes, .lkey = region_->lkey};
        ibv_send_wr request{};
        request.wr_id = source;
        request.sg_list = &piece;
        request.num_sge = part.bytes != 0 ? 1 : 0;
        const bool is_write = shape.transport == SimulatedTransport::roce_write;
        if (shape.immediate && part.last)
            request.opcode = is_write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
        else
            request.opcode = is_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
        request.imm_data = htonl(static_cast<std::uint32_t>(event));
        request.send_flags = IBV_SEND_SIGNALED;
        if (is_write) {
            request.wr.rdma.remote_addr = peers_[source].va + simulator_.rdma_offset(event) + part.offset;
            request.wr.rdma.rkey = peers_[source].rkey;
        }
        if (shape.service == wire::RoceTransport::ud) {
            request.wr.ud.ah = ways_[source].get();
            request.wr.ud.remote_qpn = peers_[source].qp;
            request.wr.ud.remote_qkey = Simulator::qkey;
        }
        ibv_send_wr* bad = nullptr;
        must(::ibv_post_send(queue_pairs_[source].get(), &request, &bad), "posting a message");
    }

    bool collect() {
        std::array<ibv_wc, 32> done{};
        const int count = ::ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data());
        if (count < 0) throw RunError("RDMA device: polling for completions failed");
        for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
            const auto source = static_cast<std::uint32_t>(one.wr_id);
            RcSender::Source& account = result_.sources[source];
            const std::uint64_t event = simulator_.config().first_event + completed_[source] / per_event_;
            const bool last = ++completed_[source] % per_event_ == 0;
            done_[source] += last ? 1 : 0;
            if (const SendStatus status = status_of(one.status); status == SendStatus::acknowledged) {
                ++account.acknowledged;
                if (last) result_.message_bytes += simulator_.message_bytes(event, source);
            } else if (!failed(source)) {
                account.status = status;
            }
        }
        return count > 0;
    }

    [[nodiscard]] bool ended() const {
        for (std::size_t source = 0; source < done_.size(); ++source) {
            if (done_[source] < posted_[source]) return false;
            if (!failed(source) && posted_[source] < events_end_) return false;
        }
        return true;
    }

    void finish() {
        std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();
        for (std::size_t source = 0; source < done_.size(); ++source) {
            RcSender::Source& account = result_.sources[source];
            account.account.posted = posted_[source] * per_event_;
            account.account.acknowledged = account.acknowledged;
            account.account.failed = account.account.posted - account.acknowledged;
            if (account.account.failed != 0 && !failed(source)) account.status = SendStatus::flushed;
            whole = std::min(whole, account.acknowledged / per_event_);
        }
        result_.events = begun_;
        result_.events_acknowledged = whole;
        result_.seconds = static_cast<double>(elapsed_ns()) * 1e-9;
        result_.cpu_seconds = static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID)) * 1e-9;
    }

    Simulator& simulator_;
    const std::uint32_t per_event_;  ///< WRITEs or SENDs of a source
    RcSender::Config config_;
    const std::atomic<bool>& stop_;
    verbs::RdmaPort port_;
    verbs::Domain domain_;
    verbs::Completions completions_;
    std::vector<std::byte> memory_;  ///< outlives the region, which outlives the queue pairs
    std::uint32_t slot_bytes_ = 0;
    verbs::Region region_;
    std::vector<AddressHandle> ways_;
    std::vector<verbs::QueuePair> queue_pairs_;
    std::vector<roce::PerftestEnd> peers_;
    RcSender::Result result_;
    std::vector<std::uint64_t> posted_;  ///< events, per source
    std::vector<std::uint64_t> done_;
    std::vector<std::uint64_t> completed_;  ///< WRITEs or SENDs
    std::uint64_t begun_ = 0;
    std::uint64_t events_end_ = 0;
    std::chrono::steady_clock::time_point start_;
    TimeNs stopped_ns_ = -1;
};

}  // namespace

void check_verbs_device(const std::string& device) {
    static_cast<void>(verbs::open_device(device));
}

std::unique_ptr<VerbsSender> open_verbs_sender(const std::string& device, Simulator& simulator,
                                               const RcSender::Config& config, const std::atomic<bool>& stop) {
    return std::make_unique<Verbs>(device, simulator, config, stop);
}

}  // namespace weir::simulate
