// UCX, loaded when it is first wanted. A program that were linked with it would get its signal handlers, its threads
// and its settings at every start, whatever it was started for.
#pragma once

#include <ucp/api/ucp.h>

#include "core/loaded_library.hpp"

namespace weir::fabric {

struct UcxLibrary {
    core::LoadedLibrary library{"UCX", "libucp.so.0", "libucx0"};
    WEIR_LIBRARY_FUNCTION(ucp_am_recv_data_nbx);
    WEIR_LIBRARY_FUNCTION(ucp_am_send_nbx);
    WEIR_LIBRARY_FUNCTION(ucp_cleanup);
    WEIR_LIBRARY_FUNCTION(ucp_config_modify);
    WEIR_LIBRARY_FUNCTION(ucp_config_read);
    WEIR_LIBRARY_FUNCTION(ucp_config_release);
    WEIR_LIBRARY_FUNCTION(ucp_ep_close_nbx);
    WEIR_LIBRARY_FUNCTION(ucp_ep_create);
    WEIR_LIBRARY_FUNCTION(ucp_ep_print_info);
    WEIR_LIBRARY_FUNCTION(ucp_get_version);
    WEIR_LIBRARY_FUNCTION(ucp_get_version_string);
    WEIR_LIBRARY_FUNCTION(ucp_init_version);
    WEIR_LIBRARY_FUNCTION(ucp_request_free);
    WEIR_LIBRARY_FUNCTION(ucp_worker_arm);
    WEIR_LIBRARY_FUNCTION(ucp_worker_create);
    WEIR_LIBRARY_FUNCTION(ucp_worker_destroy);
    WEIR_LIBRARY_FUNCTION(ucp_worker_get_address);
    WEIR_LIBRARY_FUNCTION(ucp_worker_get_efd);
    WEIR_LIBRARY_FUNCTION(ucp_worker_progress);
    WEIR_LIBRARY_FUNCTION(ucp_worker_query);
    WEIR_LIBRARY_FUNCTION(ucp_worker_release_address);
    WEIR_LIBRARY_FUNCTION(ucp_worker_set_am_recv_handler);
    WEIR_LIBRARY_FUNCTION(ucs_status_string);
};

/// Throws core::RunError if UCX cannot be loaded.
[[nodiscard]] const UcxLibrary& ucx();

}  // namespace weir::fabric
