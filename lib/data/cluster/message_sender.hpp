// How the parts of a node write to other nodes: addresses and terms are put on by the node.
#pragma once

#include "cluster/message.hpp"

namespace weir::cluster {

class MessageSender {
public:
    MessageSender() = default;
    MessageSender(const MessageSender&) = delete;
    MessageSender& operator=(const MessageSender&) = delete;
    virtual ~MessageSender() = default;
    /// Nothing is sent to who is not there.
    virtual void to(NodeId node, Message message, Payload payload) = 0;
    void to(NodeId node, Message message) { to(node, std::move(message), Payload{}); }
    /// Nothing is sent while nobody manages: who manages next asks for a report.
    virtual void to_manager(Message message) = 0;
};

}  // namespace weir::cluster
