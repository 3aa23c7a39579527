// A worker of UCX, and endpoints of it, as objects that clean up after themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/ucx_library.hpp"

namespace weir::fabric {

class UcxWorker;

/// A way to another worker. UCX connects at the first send, or before it.
class UcxEndpoint {
public:
    /// What has become of it. It outlives the endpoint where something is still on its way.
    struct State {
        bool has_failed = false;  ///< found within UcxWorker::progress(): it works no longer
        /// UCX 1.13 ends the process if an endpoint over RDMA is closed that is neither connected nor has failed: an
        /// assertion about requests to connect in ucp_request_send_state_ff(). Whoever sends says when something left.
        bool may_close = false;
    };

    UcxEndpoint() = default;
    /// Throws core::RunError.
    UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address);
    UcxEndpoint(UcxEndpoint&& other) noexcept
        : endpoint_(std::exchange(other.endpoint_, nullptr)), state_(std::move(other.state_)) {}
    UcxEndpoint& operator=(UcxEndpoint&& other) noexcept {
        std::swap(endpoint_, other.endpoint_);
        std::swap(state_, other.state_);
        return *this;
    }
    ~UcxEndpoint() { close(); }

    [[nodiscard]] bool is_open() const noexcept { return endpoint_ != nullptr; }
    [[nodiscard]] bool has_failed() const noexcept { return state_ != nullptr && state_->has_failed; }
    [[nodiscard]] bool may_close() const noexcept {
        return state_ == nullptr || state_->has_failed || state_->may_close;
    }
    [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }
    [[nodiscard]] ucp_ep_h get() const noexcept { return endpoint_; }
    /// It is never closed. Its worker must not run any more.
    void abandon() noexcept { endpoint_ = nullptr; }
    /// The transports that UCX has chosen for it, such as "tcp/lo".
    [[nodiscard]] std::vector<std::string> transports() const;

private:
    void close() noexcept;

    ucp_ep_h endpoint_ = nullptr;
    std::shared_ptr<State> state_;
};

class UcxWorker {
public:
    /// `transports` as in UCX_TLS. Throws core::RunError if UCX has none of them here.
    UcxWorker(const std::string& transports, std::size_t peers);
    ~UcxWorker();
    UcxWorker(const UcxWorker&) = delete;
    UcxWorker& operator=(const UcxWorker&) = delete;

    /// Calls `callback` for each active message `id`.
    void receive(unsigned id, ucp_am_recv_callback_t callback, void* arg);
    /// Not from within a callback. False: there was nothing to do.
    bool progress() { return ucx().ucp_worker_progress(worker_) != 0; }
    [[nodiscard]] bool arm();
    [[nodiscard]] int wait_fd() const noexcept { return fd_; }
    /// UCX's, without the last number, which is for mended mistakes: 1.13.1 gives 0x1000d.
    [[nodiscard]] static std::uint32_t version();
    /// What others need to reach it.
    [[nodiscard]] const std::vector<std::byte>& address() const noexcept { return address_; }
    [[nodiscard]] std::size_t header_bytes_max() const noexcept { return header_bytes_max_; }
    [[nodiscard]] ucp_worker_h get() const noexcept { return worker_; }
    /// Closes an endpoint, at once or when it may be. What is on its way over it is cancelled, which progress() tells
    /// later. Not from within a callback.
    void retire(UcxEndpoint endpoint);

private:
    void open_context(const std::string& transports, std::size_t peers);
    void open_worker();
    void close() noexcept;

    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int fd_ = -1;
    std::size_t header_bytes_max_ = 0;
    std::vector<std::byte> address_;
    std::vector<UcxEndpoint> retired_;
};

}  // namespace weir::fabric
