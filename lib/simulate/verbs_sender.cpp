#include "simulate/verbs_sender.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::simulate {

namespace {

using core::RunError;
using core::TimeNs;
using roce::SendStatus;

constexpr std::uint8_t port_number = 1;

/// What libibverbs gives and wants back.
template <class T, auto give_back>
struct GiveBack {
    void operator()(T* what) const noexcept { give_back(what); }
};
template <class T, auto give_back>
using Held = std::unique_ptr<T, GiveBack<T, give_back>>;

template <class T, auto give_back>
Held<T, give_back> held(T* what, const char* step) {
    if (what == nullptr) throw RunError(fmt::format("RDMA device: {} failed: {}", step, std::strerror(errno)));
    return Held<T, give_back>(what);
}

void must(int code, const char* step) {
    if (code != 0)
        throw RunError(fmt::format("RDMA device: {} failed: {}", step, std::strerror(code < 0 ? errno : code)));
}

Held<ibv_context, ibv_close_device> open_device(const std::string& name) {
    int count = 0;
    ibv_device** list = ::ibv_get_device_list(&count);
    std::string names;
    ibv_device* found = nullptr;
    for (int i = 0; list != nullptr && i < count; ++i) {
        names += (names.empty() ? "" : ", ") + std::string(::ibv_get_device_name(list[i]));
        if (found == nullptr && (name.empty() || name == ::ibv_get_device_name(list[i]))) found = list[i];
    }
    ibv_context* context = found != nullptr ? ::ibv_open_device(found) : nullptr;
    const int reason = errno;
    if (list != nullptr) ::ibv_free_device_list(list);
    if (names.empty())
        throw RunError(
            "no RDMA device; an adapter needs its driver and rdma-core, "
            "soft-RoCE `rdma link add rxe0 type rxe netdev ETH`");
    if (found == nullptr) throw RunError(fmt::format("no RDMA device '{}'; there are: {}", name, names));
    if (context == nullptr)
        throw RunError(fmt::format("RDMA device '{}' cannot be opened: {}", name, std::strerror(reason)));
    return Held<ibv_context, ibv_close_device>(context);
}

/// RoCEv2 addresses of the port; one that is an IPv4 address is best, because perftest and weir talk of those.
std::uint32_t best_gid(ibv_context* context, int entries, ibv_gid& gid) {
    std::optional<std::uint32_t> best;
    for (int index = 0; index < entries; ++index) {
        ibv_gid_entry entry{};
        if (::ibv_query_gid_ex(context, port_number, static_cast<std::uint32_t>(index), &entry, 0) != 0 ||
            entry.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        const bool mapped =
            entry.gid.global.subnet_prefix == 0 && entry.gid.raw[10] == 0xff && entry.gid.raw[11] == 0xff;
        if (best && !mapped) continue;
        best = static_cast<std::uint32_t>(index);
        gid = entry.gid;
        if (mapped) break;
    }
    if (!best) throw RunError("RDMA device: its port has no RoCEv2 address; has its network interface an IP address?");
    return *best;
}

/// 4.096 us x 2^code is at least this long.
std::uint8_t timeout_code(TimeNs ns) noexcept {
    std::uint8_t code = 1;
    while (code < 31 && (std::int64_t{4096} << code) < ns) ++code;
    return code;
}

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
        : simulator_(simulator), config_(config), stop_(stop), context_(open_device(device)) {
        const SimulatorConfig& shape = simulator.config();
        ibv_port_attr port{};
        must(::ibv_query_port(context_.get(), port_number, &port), "asking about its port");
        if (shape.mtu > 128U << port.active_mtu)
            throw RunError(
                fmt::format("RDMA device: its path MTU is {}, and --mtu {} is more; what does its interface have?",
                            128U << port.active_mtu, shape.mtu));
        gid_index_ = best_gid(context_.get(), port.gid_tbl_len, gid_);
        domain_ = held<ibv_pd, ibv_dealloc_pd>(::ibv_alloc_pd(context_.get()), "allocating a protection domain");
        const std::uint32_t messages = config.depth * shape.sources;
        completions_ = held<ibv_cq, ibv_destroy_cq>(
            ::ibv_create_cq(context_.get(), static_cast<int>(messages), nullptr, nullptr, 0),
            "creating a completion queue");
        for (std::uint32_t source = 0; source < shape.sources; ++source) make_queue_pair();
        // A slot for each message that can be under way, as long as the longest.
        slot_bytes_ = std::max(1U, shape.bytes_max + 64);  // an EJFAT header may be in front
        memory_.resize(std::size_t{messages} * slot_bytes_);
        region_ = held<ibv_mr, ibv_dereg_mr>(::ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(), 0),
                                             "registering memory");
        posted_.resize(shape.sources);
        done_.resize(shape.sources);
        result_.sources.resize(shape.sources);
        result_.pacer = Pacer(config.pace);
    }

    std::vector<roce::PerftestEnd> ends() const override {
        std::vector<roce::PerftestEnd> ends;
        for (const auto& queue_pair : queue_pairs_) {
            roce::PerftestEnd end;
            end.qp = queue_pair->qp_num;
            end.psn = simulator_.config().first_psn;
            std::copy_n(gid_.raw, end.gid.size(), end.gid.begin());
            end.has_gid = true;
            ends.push_back(end);
        }
        return ends;
    }

    void connect(std::span<const roce::PerftestEnd> peers) override {
        peers_.assign(peers.begin(), peers.end());
        for (std::size_t source = 0; source < queue_pairs_.size(); ++source) {
            to_init(queue_pairs_[source].get());
            to_receive(queue_pairs_[source].get(), peers_[source]);
            to_send(queue_pairs_[source].get());
            if (simulator_.config().service != wire::RoceTransport::ud) continue;
            ibv_ah_attr path = path_to(peers_[source]);
            ways_.push_back(
                held<ibv_ah, ibv_destroy_ah>(::ibv_create_ah(domain_.get(), &path), "creating an address handle"));
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
        wanted.cap.max_send_wr = config_.depth;
        wanted.cap.max_recv_wr = 1;
        wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
        wanted.qp_type = type_of(simulator_.config().service);
        queue_pairs_.push_back(
            held<ibv_qp, ibv_destroy_qp>(::ibv_create_qp(domain_.get(), &wanted), "creating a queue pair"));
    }

    void to_init(ibv_qp* queue_pair) const {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_INIT;
        to.port_num = port_number;
        int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
        if (queue_pair->qp_type == IBV_QPT_UD) {
            to.qkey = Simulator::qkey;
            mask |= IBV_QP_QKEY;
        } else {
            mask |= IBV_QP_ACCESS_FLAGS;
        }
        must(::ibv_modify_qp(queue_pair, &to, mask), "taking a queue pair from reset to init");
    }

    [[nodiscard]] ibv_ah_attr path_to(const roce::PerftestEnd& peer) const {
        ibv_ah_attr path{};
        path.is_global = 1;
        path.port_num = port_number;
        path.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
        path.grh.hop_limit = 64;
        std::copy(peer.gid.begin(), peer.gid.end(), path.grh.dgid.raw);
        return path;
    }

    void to_receive(ibv_qp* queue_pair, const roce::PerftestEnd& peer) const {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_RTR;
        int mask = IBV_QP_STATE;
        if (queue_pair->qp_type != IBV_QPT_UD) {
            to.path_mtu = static_cast<ibv_mtu>(roce::mtu_number(simulator_.config().mtu));
            to.dest_qp_num = peer.qp;
            to.rq_psn = peer.psn;
            to.ah_attr = path_to(peer);
            mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        }
        if (queue_pair->qp_type == IBV_QPT_RC) {
            to.max_dest_rd_atomic = 1;
            to.min_rnr_timer = 12;
            mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        }
        must(::ibv_modify_qp(queue_pair, &to, mask), "making a queue pair ready to receive");
    }

    void to_send(ibv_qp* queue_pair) const {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_RTS;
        to.sq_psn = simulator_.config().first_psn;
        int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
        if (queue_pair->qp_type == IBV_QPT_RC) {
            to.timeout = timeout_code(config_.timeout_ns);
            to.retry_cnt = static_cast<std::uint8_t>(std::min(config_.retries, 7U));
            to.rnr_retry = static_cast<std::uint8_t>(config_.rnr_retries);
            to.max_rd_atomic = 1;
            mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        }
        must(::ibv_modify_qp(queue_pair, &to, mask), "making a queue pair ready to send");
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
        const SimulatorConfig& shape = simulator_.config();
        const std::uint64_t event = shape.first_event + index;
        const std::uint32_t bytes = simulator_.rdma_bytes(event, source);
        std::byte* slot = memory_.data() + (source * config_.depth + index % config_.depth) * slot_bytes_;
        simulator_.rdma_content(event, source, 0, {slot, bytes});
        ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(slot), .length = bytes, .lkey = region_->lkey};
        ibv_send_wr request{};
        request.wr_id = source;
        request.sg_list = &piece;
        request.num_sge = bytes != 0 ? 1 : 0;
        const bool is_write = shape.transport == SimulatedTransport::roce_write;
        if (shape.immediate)
            request.opcode = is_write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
        else
            request.opcode = is_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
        request.imm_data = htonl(static_cast<std::uint32_t>(event));
        request.send_flags = IBV_SEND_SIGNALED;
        if (is_write) {
            request.wr.rdma.remote_addr = peers_[source].va;
            request.wr.rdma.rkey = peers_[source].rkey;
        }
        if (shape.service == wire::RoceTransport::ud) {
            request.wr.ud.ah = ways_[source].get();
            request.wr.ud.remote_qpn = peers_[source].qp;
            request.wr.ud.remote_qkey = Simulator::qkey;
        }
        ibv_send_wr* bad = nullptr;
        must(::ibv_post_send(queue_pairs_[source].get(), &request, &bad), "posting a message");
        ++posted_[source];
    }

    bool collect() {
        std::array<ibv_wc, 32> done{};
        const int count = ::ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data());
        if (count < 0) throw RunError("RDMA device: polling for completions failed");
        for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
            const auto source = static_cast<std::uint32_t>(one.wr_id);
            RcSender::Source& account = result_.sources[source];
            const std::uint64_t event = simulator_.config().first_event + done_[source]++;
            if (const SendStatus status = status_of(one.status); status == SendStatus::acknowledged) {
                ++account.acknowledged;
                result_.message_bytes += simulator_.message_bytes(event, source);
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
            account.account.posted = posted_[source];
            account.account.acknowledged = account.acknowledged;
            account.account.failed = posted_[source] - account.acknowledged;
            if (account.account.failed != 0 && !failed(source)) account.status = SendStatus::flushed;
            whole = std::min(whole, account.acknowledged);
        }
        result_.events = begun_;
        result_.events_acknowledged = whole;
        result_.seconds = static_cast<double>(elapsed_ns()) * 1e-9;
        result_.cpu_seconds = static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID)) * 1e-9;
    }

    Simulator& simulator_;
    RcSender::Config config_;
    const std::atomic<bool>& stop_;
    Held<ibv_context, ibv_close_device> context_;
    Held<ibv_pd, ibv_dealloc_pd> domain_;
    Held<ibv_cq, ibv_destroy_cq> completions_;
    std::vector<std::byte> memory_;  ///< outlives the region, which outlives the queue pairs
    std::uint32_t slot_bytes_ = 0;
    Held<ibv_mr, ibv_dereg_mr> region_;
    std::vector<Held<ibv_ah, ibv_destroy_ah>> ways_;
    std::vector<Held<ibv_qp, ibv_destroy_qp>> queue_pairs_;
    std::uint32_t gid_index_ = 0;
    ibv_gid gid_{};
    std::vector<roce::PerftestEnd> peers_;
    RcSender::Result result_;
    std::vector<std::uint64_t> posted_;  ///< messages, per source
    std::vector<std::uint64_t> done_;
    std::uint64_t begun_ = 0;
    std::uint64_t events_end_ = 0;
    std::chrono::steady_clock::time_point start_;
    TimeNs stopped_ns_ = -1;
};

}  // namespace

void check_verbs_device(const std::string& device) {
    static_cast<void>(open_device(device));
}

std::unique_ptr<VerbsSender> open_verbs_sender(const std::string& device, Simulator& simulator,
                                               const RcSender::Config& config, const std::atomic<bool>& stop) {
    return std::make_unique<Verbs>(device, simulator, config, stop);
}

}  // namespace weir::simulate
