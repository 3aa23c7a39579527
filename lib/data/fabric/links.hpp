// Who is there: connects this node with the others, each pair by one TCP connection, and watches over that.
//
// UCX has listeners of its own. They are not used, because in version 1.13 a few bytes of anybody end the program of
// who listens (an assertion), and because a TCP connection ends at once with a process, whatever UCX's transport
// deferred.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fabric/control_frame.hpp"
#include "fabric/control_socket.hpp"
#include "fabric/deferred_events.hpp"
#include "fabric/link.hpp"
#include "fabric/transfers.hpp"
#include "fabric/ucx_network.hpp"
#include "fabric/ucx_worker.hpp"

namespace weir::fabric {

class Links {
public:
    /// Throws core::RunError: the address is not this host's, or taken.
    Links(const UcxNetwork::Config& config, LinkTable& table, DeferredEvents& deferred, UcxWorker& worker,
          Transfers& transfers);
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    void set_now(core::TimeNs now);
    /// See UcxNetwork::set_quorum.
    void set_quorum(bool has_quorum) noexcept { has_quorum_ = has_quorum; }
    /// Does what is to be done. False: nothing.
    bool look();
    /// Becomes readable with the worker's, too.
    [[nodiscard]] int wait_fd() const noexcept { return poll_.get(); }
    /// Tells the others; afterwards look() only waits until they have all that was sent.
    void leave();
    [[nodiscard]] bool is_alone() const noexcept;
    /// Hellos that were not believed, and connections that began with something else.
    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
    /// Leaves at once, without a word.
    void close();

private:
    struct Caller {
        Connection connection;
        core::TimeNs until;
    };

    void watch(const Connection& connection, int operation) noexcept;
    void unwatch(const Connection& connection) noexcept;
    void accept_callers();
    void hang_up(int fd);
    void hang_up_late();
    void serve(int fd);
    void serve_caller(std::map<int, Caller>::iterator caller);
    void serve_link(Link& link);
    void hear(Link& link, const Frame& frame);
    [[nodiscard]] Hello hello_for(const Link& link) const;
    [[nodiscard]] Frame hello_frame(const Link& link, std::span<const std::byte> address) const;
    [[nodiscard]] std::string complaint_about(const Hello& hello) const;
    void refuse(std::string why);
    void refuse_caller();
    void greet(Connection connection, const Frame& frame);
    void turn_away(Connection& connection, const Hello& hello, std::string why);
    [[nodiscard]] bool is_over(Connection& connection, const Link& link, const Hello& hello);
    void meet(Link& link, const Frame& frame);
    [[nodiscard]] bool adopt(Link& link, const Hello& hello, const Frame& frame);
    void give_session(Link& link);
    void be_expelled(cluster::NodeId by, cluster::Incarnation incarnation, cluster::Incarnation gone);
    void look_at(Link& link);
    void look_at_up(Link& link);
    void dial(Link& link, Link::Stage stage);
    void hear_answer(Link& link);
    void note_absent(Link& link, bool host_answers);
    void fail_to_connect(Link& link, int error);
    void miss(Link& link);
    void beat(Link& link);
    void drain();
    void end(Link& link);
    void disconnect(Link& link) noexcept;
    void note_quiet(Link& link);
    void lose(Link& link, cluster::Ending ending);
    void expel(Link& link);
    [[nodiscard]] core::TimeNs meeting_time() const noexcept;
    [[nodiscard]] core::TimeNs silence_of(const Link& link) const noexcept;
    [[nodiscard]] std::string name_of(cluster::NodeId node) const;

    const UcxNetwork::Config& config_;
    LinkTable& table_;
    DeferredEvents& deferred_;
    UcxWorker& worker_;
    Transfers& transfers_;
    std::vector<HostAddress> addresses_;
    store::Descriptor listener_;
    store::Descriptor poll_;
    std::map<int, Caller> callers_;
    std::random_device random_;
    std::uint64_t refused_ = 0;
    bool has_quorum_ = true;
    bool over_ = false;  ///< this life is, or it leaves: nobody is called or let in any more
};

}  // namespace weir::fabric
