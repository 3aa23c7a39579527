// A worker of UCX, and endpoints of it, as objects that clean up after themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/ucx_library.hpp"

namespace weir::fabric {

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
    /// What others need to reach it.
    [[nodiscard]] const std::vector<std::byte>& address() const noexcept { return address_; }
    [[nodiscard]] std::size_t header_bytes_max() const noexcept { return header_bytes_max_; }
    [[nodiscard]] ucp_worker_h get() const noexcept { return worker_; }

private:
    void open_context(const std::string& transports, std::size_t peers);
    void open_worker();
    void close() noexcept;

    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int fd_ = -1;
    std::size_t header_bytes_max_ = 0;
    std::vector<std::byte> address_;
};

/// A way to another worker. UCX connects at the first send.
class UcxEndpoint {
public:
    UcxEndpoint() = default;
    /// `failed` is called with `arg` from within UcxWorker::progress() once it works no longer. Throws core::RunError.
    UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address, ucp_err_handler_cb_t failed, void* arg);
    UcxEndpoint(UcxEndpoint&& other) noexcept : endpoint_(std::exchange(other.endpoint_, nullptr)) {}
    UcxEndpoint& operator=(UcxEndpoint&& other) noexcept {
        std::swap(endpoint_, other.endpoint_);
        return *this;
    }
    ~UcxEndpoint() { reset(); }

    /// Whatever is on its way over it is cancelled, which UcxWorker::progress() tells later. Not from within a
    /// callback.
    void reset() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return endpoint_ != nullptr; }
    [[nodiscard]] ucp_ep_h get() const noexcept { return endpoint_; }
    /// The transports that UCX has chosen for it, such as "tcp/lo".
    [[nodiscard]] std::vector<std::string> transports() const;

private:
    ucp_ep_h endpoint_ = nullptr;
};

}  // namespace weir::fabric
