// What a Receiver is to be told, in its order. It is found out within callbacks of UCX and while sending, where the
// receiver must not be called, because it may send.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <variant>

#include "cluster/outlet.hpp"
#include "fabric/ucx_network.hpp"

namespace weir::fabric {

class DeferredEvents {
public:
    explicit DeferredEvents(Receiver& receiver) : receiver_(receiver) {}

    void up(cluster::NodeId node, cluster::Incarnation incarnation) { queue_.emplace_back(Up{node, incarnation}); }
    void down(cluster::NodeId node, cluster::Incarnation incarnation, cluster::Ending ending) {
        queue_.emplace_back(Down{node, incarnation, ending});
    }
    void absent(cluster::NodeId node, cluster::Ending why) { queue_.emplace_back(Absent{node, why}); }
    void quiet(cluster::NodeId node, bool is_quiet) { queue_.emplace_back(Quiet{node, is_quiet}); }
    void sent(cluster::NodeId to, cluster::Block block) { queue_.emplace_back(Sent{to, block}); }
    /// `payload` lies in memory that the receiver gave.
    void received(cluster::NodeId from, cluster::Message message, cluster::Payload payload) {
        queue_.emplace_back(Received{from, std::move(message), payload});
    }
    /// What a node sends itself; its payload is copied when the receiver is told.
    void own(cluster::NodeId self, cluster::Message message, cluster::Payload payload) {
        queue_.emplace_back(Own{self, std::move(message), payload});
    }
    void say(std::string text);

    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    /// Tells what there is, but nothing that comes meanwhile. False: there was nothing.
    bool deliver();
    /// Nothing is told any more; memory of the receiver's is given back.
    void drop();

private:
    struct Up {
        cluster::NodeId node;
        cluster::Incarnation incarnation;
    };
    struct Down {
        cluster::NodeId node;
        cluster::Incarnation incarnation;
        cluster::Ending ending;
    };
    struct Absent {
        cluster::NodeId node;
        cluster::Ending why;
    };
    struct Quiet {
        cluster::NodeId node;
        bool is_quiet;
    };
    struct Sent {
        cluster::NodeId to;
        cluster::Block block;
    };
    struct Received {
        cluster::NodeId from;
        cluster::Message message;
        cluster::Payload payload;
    };
    struct Own {
        cluster::NodeId self;
        cluster::Message message;
        cluster::Payload payload;
    };
    struct Say {
        std::string text;
    };

    void tell(const Up& notice) { receiver_.up(notice.node, notice.incarnation); }
    void tell(const Down& notice) { receiver_.down(notice.node, notice.incarnation, notice.ending); }
    void tell(const Absent& notice) { receiver_.absent(notice.node, notice.why); }
    void tell(const Quiet& notice) { receiver_.quiet(notice.node, notice.is_quiet); }
    void tell(const Sent& notice) { receiver_.sent(notice.to, notice.block); }
    void tell(const Received& notice) { receiver_.received(notice.from, notice.message, notice.payload); }
    void tell(const Own& notice);
    void tell(const Say& notice) { receiver_.say(notice.text); }

    Receiver& receiver_;
    std::deque<std::variant<Up, Down, Absent, Quiet, Sent, Received, Own, Say>> queue_;
    std::set<std::string> said_;
};

/// A payload that is the receiver's memory, or that has to be told of by sent().
[[nodiscard]] inline bool has_payload(const cluster::Message& message) noexcept {
    return message.kind == cluster::Kind::part && message.part == cluster::Part::whole;
}
[[nodiscard]] inline std::byte* memory_of(cluster::Payload payload) noexcept {
    return reinterpret_cast<std::byte*>(payload.handle);
}
[[nodiscard]] inline std::uint64_t handle_of(const std::byte* memory) noexcept {
    return reinterpret_cast<std::uint64_t>(memory);
}

}  // namespace weir::fabric
