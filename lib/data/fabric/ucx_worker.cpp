#include "fabric/ucx_worker.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "core/error.hpp"

namespace weir::fabric {

namespace {

void must_ucx(ucs_status_t status, const std::string& step) {
    if (status != UCS_OK)
        throw core::RunError(fmt::format("UCX: {} failed: {}", step, ucx().ucs_status_string(status)));
}

/// The thread that UCX starts beside a worker, for connections that come in, is not to take the program's signals.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

struct ReleaseUcxConfig {
    void operator()(ucp_config_t* config) const { ucx().ucp_config_release(config); }
};

ucs_status_t drop_active_message(void* /*arg*/, const void* /*header*/, std::size_t /*header_bytes*/, void* /*data*/,
                                 std::size_t /*bytes*/, const ucp_am_recv_param_t* /*param*/) {
    return UCS_OK;
}

/// UCX 1.13 calls whatever lies in memory for numbers of active messages that are free up to the next power of two.
constexpr unsigned active_messages = 16;

/// "rc_verbs/mlx5_0:1"
bool is_rdma(const std::string& transport) {
    return transport.starts_with("rc_") || transport.starts_with("ud_") || transport.starts_with("dc_");
}

}  // namespace

UcxWorker::UcxWorker(const std::string& transports, std::size_t peers) {
    try {
        open_context(transports, peers);
        open_worker();
    } catch (...) {
        close();
        throw;
    }
}

UcxWorker::~UcxWorker() {
    close();
}

void UcxWorker::retire(UcxEndpoint endpoint) {
    retired_.push_back(std::move(endpoint));
    std::erase_if(retired_, [](const UcxEndpoint& one) { return one.may_close(); });
}

/// With endpoints that must not be closed it stays as it is, and keeps what it has until the process ends.
void UcxWorker::close() noexcept {
    std::erase_if(retired_, [](const UcxEndpoint& one) { return one.may_close(); });
    for (UcxEndpoint& endpoint : retired_) endpoint.abandon();
    if (!retired_.empty()) return;
    if (worker_ != nullptr) ucx().ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucx().ucp_cleanup(context_);
}

void UcxWorker::open_context(const std::string& transports, std::size_t peers) {
    ucp_config_t* read = nullptr;
    must_ucx(ucx().ucp_config_read(nullptr, nullptr, &read), "reading its settings");
    const std::unique_ptr<ucp_config_t, ReleaseUcxConfig> config(read);
    must_ucx(ucx().ucp_config_modify(read, "TLS", transports.c_str()), fmt::format("transports {}", transports));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.estimated_num_eps = peers;
    must_ucx(ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, read, &context_),
             fmt::format("starting with transports {}", transports));
}

void UcxWorker::open_worker() {
    const SignalsBlocked blocked;
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    must_ucx(ucx().ucp_worker_create(context_, &params, &worker_), "making a worker");
    must_ucx(ucx().ucp_worker_get_efd(worker_, &fd_), "asking for its descriptor");
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    must_ucx(ucx().ucp_worker_query(worker_, &attributes), "asking about its worker");
    header_bytes_max_ = attributes.max_am_header;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    must_ucx(ucx().ucp_worker_get_address(worker_, &address, &bytes), "asking for its address");
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    address_.assign(begin, begin + bytes);
    ucx().ucp_worker_release_address(worker_, address);
    for (unsigned id = active_messages; id-- > 0;) receive(id, drop_active_message, nullptr);
}

std::uint32_t UcxWorker::version() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucx().ucp_get_version(&major, &minor, &release);
    return major << 16U | minor;
}

void UcxWorker::receive(unsigned id, ucp_am_recv_callback_t callback, void* arg) {
    ucp_am_handler_param_t params{};
    params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    params.id = id;
    params.cb = callback;
    params.arg = arg;
    must_ucx(ucx().ucp_worker_set_am_recv_handler(worker_, &params), "preparing for active messages");
}

bool UcxWorker::arm() {
    return ucx().ucp_worker_arm(worker_) == UCS_OK;  // else there is something to do first
}

UcxEndpoint::UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address) : state_(std::make_shared<State>()) {
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void* state, ucp_ep_h, ucs_status_t) { static_cast<State*>(state)->has_failed = true; };
    params.err_handler.arg = state_.get();
    must_ucx(ucx().ucp_ep_create(worker.get(), &params, &endpoint_), "making an endpoint");
    state_->may_close = std::ranges::none_of(transports(), is_rdma);
}

void UcxEndpoint::close() noexcept {
    ucp_ep_h const endpoint = std::exchange(endpoint_, nullptr);
    if (endpoint == nullptr) return;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const request = ucx().ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) ucx().ucp_request_free(request);
}

/// UCX 1.13 only prints them, in lines such as "#   lane[0]:  2:tcp/lo.0 md[0] -> ...".
std::vector<std::string> UcxEndpoint::transports() const {
    std::vector<std::string> names;
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const file = ::open_memstream(&text, &bytes);
    if (file == nullptr) return names;
    if (is_open() && !has_failed()) ucx().ucp_ep_print_info(endpoint_, file);
    std::fclose(file);
    std::istringstream lines(std::string(text, bytes));
    ::free(text);
    for (std::string line; std::getline(lines, line);) {
        const auto lane = line.find(" lane[");
        const auto colon = lane == std::string::npos ? lane : line.find(':', line.find("]:", lane) + 2);
        const auto end = colon == std::string::npos ? colon : line.find_first_of(". ", colon);
        if (end != std::string::npos) names.push_back(line.substr(colon + 1, end - colon - 1));
    }
    return names;
}

}  // namespace weir::fabric
