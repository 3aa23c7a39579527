// UCX, loaded when it is first wanted. A program that were linked with it would get its signal handlers, its threads
// and its settings at every start, whatever it was started for.
#pragma once

#include <ucp/api/ucp.h>

namespace weir::fabric {

/// Its functions that are used here, as a list for the pointers to them and for loading.
#define WEIR_UCX_FUNCTIONS(FUNCTION)         \
    FUNCTION(ucp_am_recv_data_nbx)           \
    FUNCTION(ucp_am_send_nbx)                \
    FUNCTION(ucp_cleanup)                    \
    FUNCTION(ucp_config_modify)              \
    FUNCTION(ucp_config_read)                \
    FUNCTION(ucp_config_release)             \
    FUNCTION(ucp_ep_close_nbx)               \
    FUNCTION(ucp_ep_create)                  \
    FUNCTION(ucp_ep_print_info)              \
    FUNCTION(ucp_get_version_string)         \
    FUNCTION(ucp_init_version)               \
    FUNCTION(ucp_request_free)               \
    FUNCTION(ucp_worker_arm)                 \
    FUNCTION(ucp_worker_create)              \
    FUNCTION(ucp_worker_destroy)             \
    FUNCTION(ucp_worker_get_address)         \
    FUNCTION(ucp_worker_get_efd)             \
    FUNCTION(ucp_worker_progress)            \
    FUNCTION(ucp_worker_query)               \
    FUNCTION(ucp_worker_release_address)     \
    FUNCTION(ucp_worker_set_am_recv_handler) \
    FUNCTION(ucs_status_string)

struct UcxLibrary {
#define WEIR_UCX_POINTER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses): a name
    WEIR_UCX_FUNCTIONS(WEIR_UCX_POINTER)
#undef WEIR_UCX_POINTER
};

/// Throws core::RunError if UCX is not installed. It stays loaded: its libraries cannot be taken out again.
[[nodiscard]] const UcxLibrary& ucx();

}  // namespace weir::fabric
