// ZeroMQ, loaded where events are streamed.
#pragma once

#include <zmq.h>

#include "core/loaded_library.hpp"

namespace weir::stream {

struct ZmqLibrary {
    core::LoadedLibrary library{"ZeroMQ", "libzmq.so.5", "libzmq5"};
    WEIR_LIBRARY_FUNCTION(zmq_bind);
    WEIR_LIBRARY_FUNCTION(zmq_close);
    WEIR_LIBRARY_FUNCTION(zmq_connect);
    WEIR_LIBRARY_FUNCTION(zmq_ctx_new);
    WEIR_LIBRARY_FUNCTION(zmq_ctx_term);
    WEIR_LIBRARY_FUNCTION(zmq_errno);
    WEIR_LIBRARY_FUNCTION(zmq_getsockopt);
    WEIR_LIBRARY_FUNCTION(zmq_msg_close);
    WEIR_LIBRARY_FUNCTION(zmq_msg_data);
    WEIR_LIBRARY_FUNCTION(zmq_msg_init);
    WEIR_LIBRARY_FUNCTION(zmq_msg_init_data);
    WEIR_LIBRARY_FUNCTION(zmq_msg_more);
    WEIR_LIBRARY_FUNCTION(zmq_msg_recv);
    WEIR_LIBRARY_FUNCTION(zmq_msg_send);
    WEIR_LIBRARY_FUNCTION(zmq_msg_size);
    WEIR_LIBRARY_FUNCTION(zmq_poll);
    WEIR_LIBRARY_FUNCTION(zmq_send);
    WEIR_LIBRARY_FUNCTION(zmq_setsockopt);
    WEIR_LIBRARY_FUNCTION(zmq_socket);
    WEIR_LIBRARY_FUNCTION(zmq_socket_monitor);
    WEIR_LIBRARY_FUNCTION(zmq_strerror);
};

/// Throws core::RunError if ZeroMQ cannot be loaded.
inline const ZmqLibrary& zmq() {
    static const ZmqLibrary functions;
    return functions;
}

}  // namespace weir::stream
