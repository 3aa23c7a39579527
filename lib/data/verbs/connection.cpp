#include "verbs/connection.hpp"

#include <algorithm>

namespace weir::verbs {
namespace {

constexpr std::uint8_t rnr_timer_code = 12;  // 0.64 ms (roce/queue_pair.hpp)
constexpr std::uint8_t hops = 64;

/// 4.096 us x 2^code is at least this long.
std::uint8_t timeout_code(core::TimeNs ns) noexcept {
    std::uint8_t code = 1;
    while (code < 31 && (std::int64_t{4096} << code) < ns) ++code;
    return code;
}

void to_init(ibv_qp* queue_pair, const RdmaPort& port, const ConnectionConfig& config) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = port.number;
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (queue_pair->qp_type == IBV_QPT_UD) {
        to.qkey = config.qkey;
        mask |= IBV_QP_QKEY;
    } else {
        to.qp_access_flags = config.access;
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    must(::ibv_modify_qp(queue_pair, &to, mask), "taking a queue pair from reset to init");
}

void to_receive(ibv_qp* queue_pair, const RdmaPort& port, const ConnectionConfig& config,
                const roce::PerftestEnd& peer) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    int mask = IBV_QP_STATE;
    if (queue_pair->qp_type != IBV_QPT_UD) {
        to.path_mtu = static_cast<ibv_mtu>(roce::mtu_number(config.path_mtu));
        to.dest_qp_num = peer.qp;
        to.rq_psn = peer.psn;
        to.ah_attr = path_to(port, peer);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (queue_pair->qp_type == IBV_QPT_RC) {
        to.max_dest_rd_atomic = 1;
        to.min_rnr_timer = rnr_timer_code;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    must(::ibv_modify_qp(queue_pair, &to, mask), "making a queue pair ready to receive");
}

void to_send(ibv_qp* queue_pair, const ConnectionConfig& config) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTS;
    to.sq_psn = config.first_psn;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (queue_pair->qp_type == IBV_QPT_RC) {
        to.timeout = timeout_code(config.timeout_ns);
        to.retry_cnt = static_cast<std::uint8_t>(std::min(config.retries, 7U));
        to.rnr_retry = static_cast<std::uint8_t>(config.rnr_retries);
        to.max_rd_atomic = 1;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    must(::ibv_modify_qp(queue_pair, &to, mask), "making a queue pair ready to send");
}

}  // namespace

roce::PerftestEnd end_of(const ibv_qp* queue_pair, const RdmaPort& port, std::uint32_t first_psn) {
    roce::PerftestEnd end;
    end.qp = queue_pair->qp_num;
    end.psn = first_psn;
    std::copy_n(port.gid.raw, end.gid.size(), end.gid.begin());
    end.has_gid = true;
    return end;
}

ibv_ah_attr path_to(const RdmaPort& port, const roce::PerftestEnd& peer) noexcept {
    ibv_ah_attr path{};
    path.is_global = 1;
    path.port_num = port.number;
    path.grh.sgid_index = static_cast<std::uint8_t>(port.gid_index);
    path.grh.hop_limit = hops;
    std::copy(peer.gid.begin(), peer.gid.end(), path.grh.dgid.raw);
    return path;
}

void connect(ibv_qp* queue_pair, const RdmaPort& port, const ConnectionConfig& config, const roce::PerftestEnd& peer) {
    to_init(queue_pair, port, config);
    to_receive(queue_pair, port, config, peer);
    to_send(queue_pair, config);
}

}  // namespace weir::verbs
