#include "fabric/links.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "fabric/hello_seal.hpp"

namespace weir::fabric {

namespace {

using cluster::Ending;
using core::TimeNs;

/// At least, for a connection and for each word of a meeting: RDMA endpoints may take long to make.
constexpr TimeNs meeting_ns = 2 * core::ns_per_s;
/// For a connection alone, which takes the second try where the first packet is lost.
constexpr TimeNs connecting_ns = 2 * core::ns_per_s;
/// Before this node looks where one is that should have called, and between such looks.
constexpr TimeNs knock_ns = core::ns_per_s;
/// Until it is said that a node does not come.
constexpr TimeNs missing_ns = 3 * core::ns_per_s;
/// For the next message of a node that has gone in peace.
constexpr TimeNs leaving_ns = core::ns_per_s;
/// Signs of life come by TCP. Messages of UCX may take longer, behind large payloads; if none comes for so many times
/// as long, the way for them is broken.
constexpr int silences_of_messages = 5;
constexpr int beats_in_silence = 4;
/// After an endpoint has failed: if the process of its node has ended, so does its connection, within this time.
constexpr TimeNs ending_ns = 100 * core::ns_per_ms;
constexpr std::size_t callers_max = 1024;
constexpr int drain_rounds_max = 10000;

store::Descriptor make_poll() {
    store::Descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll.is_open()) throw core::RunError(fmt::format("no epoll: {}", std::strerror(errno)));
    return poll;
}

std::string ucx_version_text(std::uint32_t version) {
    return fmt::format("{}.{}", version >> 16U, version & 0xffffU);
}

std::string run_text(std::uint32_t run) {
    return run == 0 ? "none with a number" : fmt::format("run {}", run);
}

/// Why a hello without the right seal came, as far as it can be known.
std::string unsealed_text(const std::string& where, bool has_secret) {
    return fmt::format("a hello {} is damaged{}; it was not believed", where,
                       has_secret ? ", or of a node that has another secret" : ", or of a node that has a secret");
}

void watch_fd(int poll, int fd, int operation, std::uint32_t events) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(poll, operation, fd, &event);
}

}  // namespace

Links::Links(const UcxNetwork::Config& config, LinkTable& table, DeferredEvents& deferred, UcxWorker& worker,
             Transfers& transfers)
    : config_(config), table_(table), deferred_(deferred), worker_(worker), transfers_(transfers), poll_(make_poll()) {
    static_cast<void>(seal_of({}, config.secret));  // that libcrypto is missing is said now, not when somebody calls
    for (const std::string& address : config.addresses) addresses_.emplace_back(address);
    listener_ = listen_at(addresses_[config.self]);
    watch_fd(poll_.get(), listener_.get(), EPOLL_CTL_ADD, EPOLLIN);
    watch_fd(poll_.get(), worker.wait_fd(), EPOLL_CTL_ADD, EPOLLIN);
}

/// How long it may say nothing.
TimeNs Links::silence_of(const Link& link) const noexcept {
    const bool is_patient = config_.readouts.contains(link.node) || config_.readouts.contains(config_.self);
    return config_.silence_ns + (is_patient ? config_.return_ns : 0);
}

TimeNs Links::meeting_time() const noexcept {
    return std::max(meeting_ns, config_.silence_ns);
}

std::string Links::name_of(cluster::NodeId node) const {
    return fmt::format("{} ({})", config_.names[node], config_.addresses[node]);
}

/// While this process was stopped it has heard nothing, and that is no silence of the others.
void Links::set_now(TimeNs now) {
    const bool is_first = table_.now == 0;
    const TimeNs gap = now - table_.now;
    const bool was_away = !is_first && gap > config_.silence_ns / beats_in_silence;
    if (is_first || was_away) {
        for (Link& link : table_.links) {
            if (is_first) link.missed_since = now;
            link.heard_at += was_away ? gap : 0;
            link.messaged_at += was_away ? gap : 0;
        }
    }
    table_.now = now;
}

void Links::watch(const Connection& connection, int operation) noexcept {
    watch_fd(poll_.get(), connection.fd(), operation, connection.is_connecting() ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/// Not left to close(): a child process may have the same socket.
void Links::unwatch(const Connection& connection) noexcept {
    watch_fd(poll_.get(), connection.fd(), EPOLL_CTL_DEL, 0);
}

bool Links::look() {
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
    bool did = false;
    for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == worker_.wait_fd()) continue;
        fd == listener_.get() ? accept_callers() : serve(fd);
        did = true;
    }
    for (Link& link : table_.links)
        if (link.node != config_.self) look_at(link);
    hang_up_late();
    return did;
}

/// On who has called and says nothing.
void Links::hang_up_late() {
    for (auto caller = callers_.begin(); caller != callers_.end();) {
        const auto here = caller++;
        if (table_.now < here->second.until) continue;
        if (here->second.connection.has_piece()) refuse_caller();
        hang_up(here->first);
    }
}

void Links::hang_up(int fd) {
    const auto caller = callers_.find(fd);
    if (caller == callers_.end()) return;
    unwatch(caller->second.connection);
    callers_.erase(caller);
}

void Links::accept_callers() {
    while (true) {
        store::Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.is_open()) return;
        if (over_ || callers_.size() >= callers_max) continue;
        const int fd = socket.get();
        const auto caller =
            callers_.emplace(fd, Caller{Connection(std::move(socket)), table_.now + meeting_time()}).first;
        watch(caller->second.connection, EPOLL_CTL_ADD);
    }
}

void Links::serve(int fd) {
    if (const auto caller = callers_.find(fd); caller != callers_.end()) return serve_caller(caller);
    const auto link = std::ranges::find_if(
        table_.links, [fd](const Link& one) { return one.connection != nullptr && one.connection->fd() == fd; });
    if (link != table_.links.end()) serve_link(*link);
}

void Links::serve_caller(std::map<int, Caller>::iterator caller) {
    const int fd = caller->first;
    const bool lives = caller->second.connection.read();
    try {
        const auto frame = caller->second.connection.next();
        if (!frame && lives) return;
        if (!frame && caller->second.connection.has_piece()) refuse_caller();
        unwatch(caller->second.connection);
        Connection connection = std::move(callers_.extract(caller).mapped().connection);
        if (frame) greet(std::move(connection), *frame);
    } catch (const std::runtime_error&) {
        hang_up(fd);
        refuse_caller();
    }
}

Hello Links::hello_for(const Link& link) const {
    const auto up = std::ranges::count_if(table_.links, &Link::is_up);
    return {.agreement = config_.agreement,
            .session = link.own_session,
            .incarnation = config_.incarnation,
            .gone = link.gone,
            .ucx = UcxWorker::version(),
            .run = config_.run,
            .node = config_.self,
            .nodes = static_cast<cluster::NodeId>(table_.links.size()),
            .up = static_cast<cluster::NodeId>(up),
            .has_quorum = static_cast<std::uint16_t>(has_quorum_ ? 1 : 0)};
}

Frame Links::hello_frame(const Link& link, std::span<const std::byte> address) const {
    return frame_of(hello_for(link), address, config_.secret);
}

void Links::refuse_caller() {
    refuse(fmt::format("something that is no node of this version called at {}", config_.addresses[config_.self]));
}

void Links::refuse(std::string why) {
    ++refused_;
    deferred_.say(std::move(why));
}

/// Empty: it is one of us.
std::string Links::complaint_about(const Hello& hello) const {
    const auto& here = config_.addresses[config_.self];
    if (hello.nodes != table_.links.size() || hello.node >= hello.nodes)
        return fmt::format("a node of a cluster of {} nodes met this one of {} at {}", hello.nodes, table_.links.size(),
                           here);
    if (hello.agreement != config_.agreement)
        return fmt::format("{} is of another cluster, or has another configuration", name_of(hello.node));
    if (hello.run != config_.run)
        return fmt::format("{} is in {}, and this node in {}", name_of(hello.node), run_text(hello.run),
                           run_text(config_.run));
    if (hello.ucx != UcxWorker::version())
        return fmt::format("{} has UCX {}, and this node {}: all nodes need the same", name_of(hello.node),
                           ucx_version_text(hello.ucx), ucx_version_text(UcxWorker::version()));
    if (hello.node == config_.self)
        return fmt::format("there is another node that takes itself for {}", name_of(hello.node));
    return {};
}

/// Somebody has called. Who may not talk gets a hello nevertheless, to see why.
void Links::greet(Connection connection, const Frame& frame) {
    const Hello hello = hello_of(frame);
    if (!has_seal(frame, config_.secret)) {
        refuse(unsealed_text("that came to " + config_.addresses[config_.self], !config_.secret.empty()));
        connection.post(hello_frame(Link{}, {}));
        return;
    }
    auto complaint = complaint_about(hello);
    if (complaint.empty() && hello.node < config_.self)
        complaint = fmt::format("{} calls, although it is to be called", name_of(hello.node));
    if (!complaint.empty()) return turn_away(connection, hello, std::move(complaint));
    Link& link = table_.links[hello.node];
    if (over_ || is_over(connection, link, hello)) return;
    const bool is_twin = link.is_up() && link.life == hello.incarnation;
    if (is_twin) return;  // that its connection is over will be seen soon
    if (link.connection != nullptr || link.is_up()) lose(link, Ending::over);
    if (!adopt(link, hello, frame)) return;
    link.connection = std::make_unique<Connection>(std::move(connection));
    link.stage = Link::Stage::greeted;
    link.until = table_.now + meeting_time();
    watch(*link.connection, EPOLL_CTL_ADD);
    link.connection->post(hello_frame(link, worker_.address()));
}

void Links::turn_away(Connection& connection, const Hello& hello, std::string why) {
    refuse(std::move(why));
    if (hello.node < table_.links.size()) table_.links[hello.node].missed = true;
    connection.post(hello_frame(Link{}, {}));
}

/// Whether one of the two lives is. If each takes the other one for dead, that stays who has a quorum, or more others,
/// or is first.
bool Links::is_over(Connection& connection, const Link& link, const Hello& hello) {
    const bool its = hello.incarnation <= link.gone || (link.is_up() && hello.incarnation < link.life);
    const bool own = hello.gone >= config_.incarnation;
    if (!its && !own) return false;
    const auto rank = [](const Hello& of) { return std::pair(of.has_quorum, of.up); };
    const auto mine = rank(hello_for(link));
    const bool is_first = mine == rank(hello) && config_.self < hello.node;
    const bool stays = own ? its && (mine > rank(hello) || is_first) : has_quorum_ || hello.has_quorum == 0;
    if (stays) {
        const cluster::Incarnation gone = std::max(link.gone, link.is_up() ? link.life : 0);
        connection.post(frame_of(Expelled{.from = config_.incarnation, .to = hello.incarnation, .gone = gone}));
    } else {
        be_expelled(hello.node, hello.incarnation, own ? hello.gone : config_.incarnation);
    }
    return true;
}

/// What it says of itself. False: UCX cannot reach it.
bool Links::adopt(Link& link, const Hello& hello, const Frame& frame) {
    if (link.life != hello.incarnation || link.endpoint.has_failed()) worker_.retire(std::move(link.endpoint));
    link.life = hello.incarnation;
    link.its_session = hello.session;
    link.posted = link.arrived = 0;
    link.words.clear();
    link.ready.reset();
    if (!transfers_.open(link, address_of(frame))) {
        deferred_.say(fmt::format(
            "UCX has no way to {} by transports {}; it knows only network interfaces that were up when this process began",
            name_of(link.node), config_.transports));
        link.missed = true;
        return false;
    }
    give_session(link);
    return true;
}

void Links::give_session(Link& link) {
    while (link.own_session == 0) link.own_session = std::uint64_t{random_()} << 32U | random_();
    table_.sessions.insert(link.own_session);
}

void Links::be_expelled(cluster::NodeId by, cluster::Incarnation incarnation, cluster::Incarnation gone) {
    if (std::exchange(over_, true)) return;
    deferred_.received(
        by, {.kind = cluster::Kind::expelled, .life = gone, .from = incarnation, .to = config_.incarnation}, {});
}

void Links::serve_link(Link& link) {
    Connection& connection = *link.connection;
    if (connection.is_connecting()) {
        if (!connection.write()) return fail_to_connect(link, connection.error());
        if (connection.is_connecting()) return;
        if (link.stage == Link::Stage::knocking) return hear_answer(link);
        link.until = table_.now + meeting_time();
        watch(connection, EPOLL_CTL_MOD);
        link.stage = Link::Stage::greeting;
        give_session(link);
        connection.post(hello_frame(link, worker_.address()));
    }
    const bool lives = connection.read();
    try {
        while (link.connection != nullptr) {
            const auto frame = link.connection->next();
            if (!frame) break;
            hear(link, *frame);
        }
    } catch (const std::runtime_error&) {
        refuse(fmt::format("what answers at {} is no node of this version", name_of(link.node)));
        note_absent(link, true);
        return lose(link, Ending::silent);
    }
    if (!lives && link.connection != nullptr) end(link);
}

void Links::hear(Link& link, const Frame& frame) {
    link.heard_at = link.fresh_at = table_.now;
    switch (frame.kind) {
        case FrameKind::hello:
            meet(link, frame);
            break;
        case FrameKind::go:
            if (link.stage == Link::Stage::greeted) link.come_up(deferred_, table_.now);
            break;
        case FrameKind::beat:
            break;
        case FrameKind::expelled: {
            const Expelled expelled = expelled_of(frame);
            if (expelled.to == config_.incarnation) be_expelled(link.node, expelled.from, expelled.gone);
            end(link);
            break;
        }
        case FrameKind::leave:
            if (!link.is_up()) break;
            link.stage = Link::Stage::leaving;
            link.last = leave_of(frame).messages;
            link.messaged_at = table_.now;
            break;
    }
}

/// It has answered.
void Links::meet(Link& link, const Frame& frame) {
    if (link.stage != Link::Stage::greeting) return;
    const Hello hello = hello_of(frame);
    auto complaint = has_seal(frame, config_.secret)
                         ? complaint_about(hello)
                         : unsealed_text("of " + name_of(link.node), !config_.secret.empty());
    if (complaint.empty() && hello.node != link.node)
        complaint = fmt::format("at the address of {} answers {}", name_of(link.node), name_of(hello.node));
    if (!complaint.empty()) {
        refuse(std::move(complaint));
        link.missed = true;
        note_absent(link, true);
        return lose(link, Ending::silent);
    }
    // It will know better at the next try.
    if (hello.incarnation <= link.gone || !adopt(link, hello, frame)) return lose(link, Ending::silent);
    link.connection->post({.kind = FrameKind::go, .body = {}});
    link.come_up(deferred_, table_.now);
}

void Links::look_at(Link& link) {
    if (link.connection != nullptr && !link.connection->is_connecting() && link.connection->has_to_write())
        static_cast<void>(link.connection->write());
    if (link.is_up()) return look_at_up(link);
    if (!link.came && !link.missed && !config_.may_be_absent.contains(link.node) &&
        table_.now - link.missed_since >= missing_ns)
        miss(link);
    if (table_.now < link.until) return;
    if (link.connection != nullptr && link.connection->is_connecting()) return fail_to_connect(link, ETIMEDOUT);
    if (link.stage != Link::Stage::away) return lose(link, Ending::silent);
    if (over_) return;
    if (link.node < config_.self)
        dial(link, Link::Stage::connecting);
    else if (!link.came && !config_.may_be_absent.contains(link.node) && table_.now - link.missed_since >= knock_ns)
        dial(link, Link::Stage::knocking);
}

void Links::miss(Link& link) {
    link.missed = true;
    deferred_.say(link.node > config_.self ? fmt::format("{} has not called so far", name_of(link.node))
                  : link.error == 0
                      ? fmt::format("nobody answers at {}", name_of(link.node))
                      : fmt::format("nobody answers at {}: {}", name_of(link.node), std::strerror(link.error)));
}

void Links::dial(Link& link, Link::Stage stage) {
    link.until = table_.now + config_.reconnect_ns;
    const auto address = addresses_[link.node].next();
    if (!address) return;
    auto connection = Connection::to(*address);
    if (!connection) return fail_to_connect(link, errno);
    link.connection = std::make_unique<Connection>(std::move(*connection));
    link.stage = stage;
    link.until = table_.now + connecting_ns;
    watch(*link.connection, EPOLL_CTL_ADD);
}

/// To a knock. Somebody is there; it counts as away until it calls, or turns out to be none of us.
void Links::hear_answer(Link& link) {
    if (std::exchange(link.has_answered, true)) note_absent(link, true);
    lose(link, Ending::over);
    link.until = table_.now + knock_ns;
}

/// A host that refuses has no such node; one that says nothing may be in another part of the network.
void Links::fail_to_connect(Link& link, int error) {
    link.has_answered = false;
    note_absent(link, error == ECONNREFUSED);
    lose(link, Ending::silent);
    link.error = error;
    if (link.node > config_.self) link.until = table_.now + knock_ns;
}

/// Of one that has never come.
void Links::note_absent(Link& link, bool host_answers) {
    if (link.came || config_.may_be_absent.contains(link.node)) return;
    if (std::exchange(link.is_silent, !host_answers) == link.is_silent) return;
    deferred_.absent(link.node, host_answers ? Ending::over : Ending::silent);
}

void Links::look_at_up(Link& link) {
    const TimeNs now = table_.now;
    if (link.stage == Link::Stage::leaving) {
        if (link.arrived >= link.last || now - link.messaged_at >= leaving_ns) lose(link, Ending::over);
        return;
    }
    note_quiet(link);
    const TimeNs silence_ns = silence_of(link);
    const bool is_silent =
        now - link.heard_at > silence_ns || now - link.messaged_at > silences_of_messages * silence_ns;
    if (link.endpoint.has_failed() && !link.failed_at) {
        drain();
        link.failed_at = now;
    }
    if (is_silent || (link.failed_at && now - *link.failed_at >= ending_ns)) {
        expel(link);
        return lose(link, Ending::silent);
    }
    if (now >= link.beat_at) beat(link);
}

void Links::note_quiet(Link& link) {
    const bool is_quiet = table_.now - link.fresh_at > config_.silence_ns / 2;
    if (std::exchange(link.is_quiet, is_quiet) != is_quiet) deferred_.quiet(link.node, is_quiet);
}

void Links::beat(Link& link) {
    const TimeNs every = config_.silence_ns / beats_in_silence;
    link.beat_at = table_.now + every;
    link.connection->post({.kind = FrameKind::beat, .body = {}});
    if (table_.now - link.posted_at >= every) transfers_.send_beat(link);
}

/// Takes what has come already.
void Links::drain() {
    for (int i = 0; i < drain_rounds_max && worker_.progress(); ++i) {
    }
}

/// Its connection is over.
void Links::end(Link& link) {
    if (link.stage == Link::Stage::leaving) return disconnect(link);
    if (link.is_up()) drain();
    const int error = link.connection->error();
    const bool is_over = error == 0 || error == ECONNRESET || error == EPIPE;
    lose(link, is_over ? Ending::over : Ending::silent);
}

/// Who has no quorum may be the one that others take for dead.
void Links::expel(Link& link) {
    if (!has_quorum_) return;
    link.connection->post(frame_of(Expelled{.from = config_.incarnation, .to = link.life, .gone = link.life}));
    static_cast<void>(link.connection->read());  // closing with something unread would throw away what was sent
}

void Links::disconnect(Link& link) noexcept {
    if (link.connection == nullptr) return;
    if (link.connection->error() != 0) link.error = link.connection->error();
    unwatch(*link.connection);
    link.connection.reset();
}

/// Ends what there is, whatever stage it is in.
void Links::lose(Link& link, Ending ending) {
    if (link.is_up()) {
        link.gone = std::max(link.gone, link.life);
        deferred_.down(link.node, link.life, ending);
        worker_.retire(std::move(link.endpoint));
    }
    disconnect(link);
    link.own_session = 0;
    link.stage = Link::Stage::away;
    link.until = table_.now + config_.reconnect_ns;
}

void Links::leave() {
    over_ = true;
    for (Link& link : table_.links)
        if (link.is_up() && link.connection != nullptr) link.connection->post(frame_of(Leave{link.posted}));
}

bool Links::is_alone() const noexcept {
    return std::ranges::none_of(table_.links, &Link::is_up);
}

void Links::close() {
    for (Link& link : table_.links) {
        disconnect(link);
        link.own_session = 0;
        link.stage = Link::Stage::away;
        worker_.retire(std::move(link.endpoint));
    }
}

}  // namespace weir::fabric
