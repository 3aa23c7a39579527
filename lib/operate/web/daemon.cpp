#include "web/daemon.hpp"

#include <fmt/format.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/loaded_library.hpp"
#include "web/event_feed.hpp"
#include "web/url.hpp"

namespace weir::web {

namespace {

struct MhdLibrary {
    core::LoadedLibrary library{"libmicrohttpd", "libmicrohttpd.so.12", "libmicrohttpd12"};
    WEIR_LIBRARY_FUNCTION(MHD_add_response_header);
    WEIR_LIBRARY_FUNCTION(MHD_create_response_from_buffer_with_free_callback_cls);
    WEIR_LIBRARY_FUNCTION(MHD_create_response_from_callback);
    WEIR_LIBRARY_FUNCTION(MHD_destroy_response);
    WEIR_LIBRARY_FUNCTION(MHD_get_connection_info);
    WEIR_LIBRARY_FUNCTION(MHD_get_connection_values);
    WEIR_LIBRARY_FUNCTION(MHD_get_response_header);
    WEIR_LIBRARY_FUNCTION(MHD_queue_response);
    WEIR_LIBRARY_FUNCTION(MHD_resume_connection);
    WEIR_LIBRARY_FUNCTION(MHD_start_daemon);
    WEIR_LIBRARY_FUNCTION(MHD_stop_daemon);
    WEIR_LIBRARY_FUNCTION(MHD_suspend_connection);
};

const MhdLibrary& mhd() {
    static const MhdLibrary functions;
    return functions;
}

/// Beyond this a body is not even read on, to be able to answer.
constexpr std::size_t swallowed_bytes_max = 1U << 20U;
constexpr std::size_t connection_memory = 32U << 10U;  ///< the header of a request has to fit in, too

constexpr std::pair<const char*, const char*> usual_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

/// A request from its first header to its answer.
struct Exchange {
    Request request;
    std::uint64_t body_bytes = 0;  ///< that have come, kept or not
    bool too_large = false;
    bool broken_path = false;
};

/// The updates of a feed on their way to one viewer.
struct UpdateStream {
    UpdateStream(EventFeed& feed, MHD_Connection* to, Connections& all, Connections::Connection* its,
                 std::chrono::milliseconds its_patience)
        : connections(all),
          connection(its),
          patience(its_patience),
          viewer(
              feed, [to] { mhd().MHD_suspend_connection(to); }, [to] { mhd().MHD_resume_connection(to); }) {}

    Connections& connections;
    Connections::Connection* connection;
    std::chrono::milliseconds patience;
    std::shared_ptr<const std::string> bytes;
    std::size_t sent = 0;
    EventFeed::Viewer viewer;
};

ssize_t next_bytes(void* of, std::uint64_t, char* into, std::size_t room) {
    auto& stream = *static_cast<UpdateStream*>(of);
    if (!stream.bytes || stream.sent == stream.bytes->size()) {
        // Before it may be suspended: from then on another thread may end the connection.
        stream.connections.expect(stream.connection, {});
        EventFeed::Viewer::Piece piece = stream.viewer.next();
        if (piece.end) return MHD_CONTENT_READER_END_OF_STREAM;
        if (!piece.bytes) return 0;
        stream.bytes = std::move(piece.bytes);
        stream.sent = 0;
        stream.connections.expect(stream.connection, Connections::Clock::now() + stream.patience);
    }
    const std::size_t size = std::min(room, stream.bytes->size() - stream.sent);
    stream.bytes->copy(into, size, stream.sent);
    stream.sent += size;
    return static_cast<ssize_t>(size);
}

MHD_Response* mhd_response(const Response& response) {
    // libmicrohttpd only reads it, and gives it back when it is sent.
    auto* kept = new std::shared_ptr<const std::string>(response.body);
    auto* made = mhd().MHD_create_response_from_buffer_with_free_callback_cls(
        (*kept)->size(), const_cast<char*>((*kept)->data()),
        [](void* of) { delete static_cast<std::shared_ptr<const std::string>*>(of); }, kept);
    if (made == nullptr) delete kept;
    return made;
}

void add_headers(MHD_Response* made, const Response& response) {
    mhd().MHD_add_response_header(made, "Content-Type", response.type.c_str());
    for (const auto& [name, value] : response.headers) mhd().MHD_add_response_header(made, name.c_str(), value.c_str());
    for (const auto& [name, value] : usual_headers)
        if (mhd().MHD_get_response_header(made, name) == nullptr) mhd().MHD_add_response_header(made, name, value);
}

std::string peer_of(MHD_Connection* connection) {
    const auto* info = mhd().MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const sockaddr* address = info == nullptr ? nullptr : info->client_addr;
    if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return {};
    char text[NI_MAXHOST] = "";
    const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    return getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

MHD_Result take_header(void* into, MHD_ValueKind, const char* name, const char* value) {
    std::string key = name;
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    static_cast<Request*>(into)->headers.emplace(std::move(key), value == nullptr ? "" : value);
    return MHD_YES;
}

MHD_Result take_query(void* into, MHD_ValueKind, const char* name, const char* value) {
    const auto key = percent_decoded(name);
    const auto text = percent_decoded(value == nullptr ? "" : value);
    if (key && text) static_cast<Request*>(into)->query.emplace(*key, *text);
    return MHD_YES;
}

std::uint64_t announced_bytes(const Request& request) {
    const std::string_view text = request.header("content-length");
    std::uint64_t bytes = 0;
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    return bytes;
}

Response too_large_response(std::size_t limit) {
    return error_response(413, fmt::format("a body of at most {} bytes is accepted", limit));
}

}  // namespace

struct Daemon::Callbacks {
    static Connections::Connection* its_connection(MHD_Connection* connection) {
        const auto* info = mhd().MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return static_cast<Connections::Connection*>(info->socket_context);
    }

    static MHD_Result admit(void* of, const sockaddr*, socklen_t) {
        return static_cast<Daemon*>(of)->connections_.admits() ? MHD_YES : MHD_NO;
    }

    static void opened_or_closed(void* of, MHD_Connection* connection, void** context,
                                 MHD_ConnectionNotificationCode what) {
        auto& daemon = *static_cast<Daemon*>(of);
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
            const int fd = mhd().MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
            *context = daemon.connections_.opened(fd, Connections::Clock::now() + daemon.limits_.request);
        } else {
            daemon.connections_.closed(static_cast<Connections::Connection*>(*context));
        }
    }

    static void completed(void* of, MHD_Connection* connection, void** context, MHD_RequestTerminationCode) {
        auto& daemon = *static_cast<Daemon*>(of);
        delete static_cast<Exchange*>(*context);
        *context = nullptr;
        daemon.connections_.expect(its_connection(connection), Connections::Clock::now() + daemon.limits_.request);
    }

    /// Paths and queries are decoded by what has tests of its own.
    static std::size_t leave_escaped(void*, MHD_Connection*, char* text) { return std::strlen(text); }

    static Exchange* begin(Daemon& daemon, MHD_Connection* connection, const char* url, const char* method) {
        auto exchange = std::make_unique<Exchange>();
        Request& request = exchange->request;
        request.method = method;
        mhd().MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, &request);
        mhd().MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_query, &request);
        request.local = daemon.listener_.is_unix();
        request.peer = request.local ? "" : peer_of(connection);
        auto path = percent_decoded(url);
        exchange->broken_path = !path;
        if (path) request.path = std::move(*path);
        exchange->too_large = announced_bytes(request) > daemon.limits_.body_bytes;
        return exchange.release();
    }

    static void take_body(const Daemon& daemon, Exchange& exchange, const char* bytes, std::size_t size) {
        exchange.body_bytes += size;
        if (exchange.body_bytes > daemon.limits_.body_bytes) exchange.too_large = true;
        if (exchange.too_large)
            exchange.request.body.clear();
        else
            exchange.request.body.append(bytes, size);
    }

    static MHD_Result send(Daemon& daemon, MHD_Connection* connection, const Response& response) {
        Connections::Connection* its = its_connection(connection);
        daemon.connections_.expect(its, Connections::Clock::now() + daemon.limits_.response);
        MHD_Response* made = nullptr;
        if (response.feed == nullptr) {
            made = mhd_response(response);
        } else {
            auto* stream =
                new UpdateStream(*response.feed, connection, daemon.connections_, its, daemon.limits_.response);
            made = mhd().MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, connection_memory / 2, next_bytes, stream,
                                                           [](void* of) { delete static_cast<UpdateStream*>(of); });
            if (made == nullptr) delete stream;
        }
        if (made == nullptr) return MHD_NO;
        add_headers(made, response);
        const MHD_Result queued = mhd().MHD_queue_response(connection, static_cast<unsigned>(response.status), made);
        mhd().MHD_destroy_response(made);
        return queued;
    }

    /// Called with the header, then with each part of the body, then without any.
    static MHD_Result request(void* of, MHD_Connection* connection, const char* url, const char* method, const char*,
                              const char* upload, std::size_t* upload_size, void** context) try {
        auto& daemon = *static_cast<Daemon*>(of);
        auto* exchange = static_cast<Exchange*>(*context);
        if (exchange == nullptr) {
            exchange = begin(daemon, connection, url, method);
            *context = exchange;
            if (announced_bytes(exchange->request) <= swallowed_bytes_max) return MHD_YES;
            return send(daemon, connection, too_large_response(daemon.limits_.body_bytes));
        }
        if (*upload_size > 0) {
            take_body(daemon, *exchange, upload, *upload_size);
            *upload_size = 0;
            return exchange->body_bytes <= swallowed_bytes_max ? MHD_YES : MHD_NO;
        }
        daemon.requests_.fetch_add(1, std::memory_order_relaxed);
        if (exchange->too_large) return send(daemon, connection, too_large_response(daemon.limits_.body_bytes));
        if (exchange->broken_path) return send(daemon, connection, error_response(400, "the path is not well-formed"));
        return send(daemon, connection, daemon.answer(exchange->request));
    } catch (const std::exception&) {  // no memory: libmicrohttpd is C, and closes the connection
        return MHD_NO;
    }
};

Response Daemon::answer(const Request& request) {
    if (auto refused = gate_.refusal(request, TokenGuard::Clock::now())) return std::move(*refused);
    return routes_.answer(request);
}

Daemon::Daemon(Listener listener, const Routes& routes, TokenGuard* guard, Limits limits)
    : listener_(std::move(listener)),
      routes_(routes),
      gate_(listener_.host(), listener_.loopback(), guard),
      limits_(limits),
      connections_(limits.connections) {
    const int fd = listener_.release();
    // At its own limit libmicrohttpd would no longer accept, and clients would wait without being told.
    mhd_ = mhd().MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, &Callbacks::admit, this,
        &Callbacks::request, this, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, limits.connections + 1U,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory, MHD_OPTION_NOTIFY_CONNECTION,
        &Callbacks::opened_or_closed, this, MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::completed, this,
        MHD_OPTION_UNESCAPE_CALLBACK, &Callbacks::leave_escaped, nullptr, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (mhd_ == nullptr) throw core::RunError(fmt::format("{}: libmicrohttpd does not start", listener_.url()));
}

Daemon::~Daemon() {
    mhd().MHD_stop_daemon(mhd_);
}

}  // namespace weir::web
