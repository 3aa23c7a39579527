#include "bench/receive_requests.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace weir::bench {
namespace {

std::uint32_t requests_of(ibv_context* context) {
    ibv_device_attr attributes{};
    verbs::must(::ibv_query_device(context, &attributes), "asking about it");
    return std::min({ReceiveRequests::most, static_cast<std::uint32_t>(std::max(1, attributes.max_qp_wr)),
                     static_cast<std::uint32_t>(std::max(1, attributes.max_cqe))});
}

}  // namespace

ReceiveRequests::ReceiveRequests(ibv_context* context, ibv_pd* domain)
    : domain_(domain),
      count_(requests_of(context)),
      completions_(verbs::held<verbs::Completions>(
          ::ibv_create_cq(context, static_cast<int>(count_), nullptr, nullptr, 0), "creating a completion queue")),
      missing_(count_) {}

void ReceiveRequests::add_buffers(std::uint32_t bytes, std::uint32_t addresses) {
    buffers_.emplace(bytes, count_ + Receiver::held_max + Receiver::burst, addresses);
    const std::span<std::byte> memory = buffers_->memory();
    region_ = verbs::registered(domain_, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
}

ibv_qp* ReceiveRequests::create_queue_pair(ibv_qp_type type) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.cap.max_recv_wr = count_;
    wanted.cap.max_send_wr = wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.qp_type = type;
    return ::ibv_create_qp(domain_, &wanted);
}

void ReceiveRequests::begin(ibv_qp* queue_pair) {
    queue_pair_ = queue_pair;
    post();
}

void ReceiveRequests::post() {
    while (missing_ > 0) {
        const std::uint32_t posted = post_some();
        if (posted == 0) return;  // who assembles holds all buffers
        missing_ -= posted;
    }
}

std::uint32_t ReceiveRequests::post_some() {
    std::uint32_t count = 0;
    for (const std::uint32_t wanted = std::min(missing_, Receiver::burst); count < wanted; ++count) {
        ibv_recv_wr& post = posts_[count];
        post = {};
        if (buffers_) {
            std::byte* const buffer = buffers_->take();
            if (buffer == nullptr) break;
            pieces_[count] = {
                .addr = reinterpret_cast<std::uintptr_t>(buffer), .length = buffers_->bytes(), .lkey = region_->lkey};
            post.wr_id = pieces_[count].addr;
            post.sg_list = &pieces_[count];
            post.num_sge = 1;
        }
        if (count > 0) posts_[count - 1].next = &post;
    }
    if (count == 0) return 0;
    ibv_recv_wr* bad = nullptr;
    verbs::must(::ibv_post_recv(queue_pair_, posts_.data(), &bad), "posting requests for messages");
    return count;
}

std::span<const ibv_wc> ReceiveRequests::take(std::size_t room) {
    if (queue_pair_ == nullptr) return {};
    post();
    const int count = ::ibv_poll_cq(completions_.get(), static_cast<int>(std::min(room, done_.size())), done_.data());
    if (count < 0) throw core::RunError("RDMA device: polling for completions failed");
    const auto done = std::span(done_).first(static_cast<std::size_t>(count));
    for (const ibv_wc& one : done)
        if (one.status != IBV_WC_SUCCESS)
            throw core::RunError(
                fmt::format("RDMA device: a message was not received: {}", ::ibv_wc_status_str(one.status)));
    missing_ += static_cast<std::uint32_t>(count);
    completed_ += static_cast<std::uint64_t>(count);
    return done;
}

}  // namespace weir::bench
