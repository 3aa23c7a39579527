// What a node knows of another one, and by what it reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "cluster/message.hpp"
#include "core/units.hpp"
#include "fabric/control_socket.hpp"
#include "fabric/deferred_events.hpp"
#include "fabric/ucx_worker.hpp"

namespace weir::fabric {

struct Link {
    enum class Stage : std::uint8_t {
        away,        ///< there is no connection
        knocking,    ///< it is to call, and has not yet: this node looks whether its host answers
        connecting,  ///< this node calls
        greeting,    ///< and has said hello
        greeted,     ///< was called, and has answered
        up,
        leaving,  ///< it has said that it goes, and some of its messages are still on their way
    };

    [[nodiscard]] bool is_up() const noexcept { return stage == Stage::up || stage == Stage::leaving; }
    /// Its messages count from now on.
    void come_up(DeferredEvents& deferred, core::TimeNs now) {
        stage = Stage::up;
        came = true;
        heard_at = fresh_at = messaged_at = posted_at = now;
        is_quiet = false;
        failed_at.reset();
        deferred.up(node, life);
    }

    cluster::NodeId node = 0;
    Stage stage = Stage::away;
    cluster::Incarnation life = 0;  ///< of the connection
    cluster::Incarnation gone = 0;  ///< up to which its lives are over
    std::unique_ptr<Connection> connection;
    UcxEndpoint endpoint;                   ///< to `life`: one for each, made before it can send anything
    std::uint64_t own_session = 0;          ///< what its messages carry; 0: none are taken
    std::uint64_t its_session = 0;          ///< what messages to it carry
    std::vector<std::byte> words;           ///< for it, to go with the next active message of words
    std::optional<cluster::Message> ready;  ///< the same: all Kind::ready of a turn in one
    bool came = false;                      ///< ever
    bool missed = false;                    ///< that it does not come has been said
    bool is_silent = false;                 ///< nothing answers where it should be; it has never come
    bool has_answered = false;              ///< a knock; if it is one of us it calls before the next
    int error = 0;                          ///< why the last try failed
    std::uint64_t posted = 0;               ///< active messages of this connection
    std::uint64_t arrived = 0;
    std::uint64_t last = 0;                 ///< leaving: how many come in all
    core::TimeNs heard_at = 0;              ///< anything; time in which this process stood still does not count
    core::TimeNs fresh_at = 0;              ///< the same, but that does
    bool is_quiet = false;                  ///< for half the time after which it counts as gone
    std::optional<core::TimeNs> failed_at;  ///< that its endpoint had failed was seen
    core::TimeNs messaged_at = 0;           ///< an active message from it
    core::TimeNs posted_at = 0;             ///< an active message to it
    core::TimeNs beat_at = 0;               ///< the next sign of life is due
    core::TimeNs until = 0;                 ///< away: no new try before; otherwise: this stage may last
    core::TimeNs missed_since = 0;
};

struct LinkTable {
    std::vector<Link> links;
    std::set<std::uint64_t> sessions;  ///< all that were ever given out: those that are over are no mistake
    core::TimeNs now = 0;
};

}  // namespace weir::fabric
