// Messages in the order of their first packets, chained through `previous` and `next`.
#pragma once

#include "assemble/message.hpp"

namespace weir::assemble {

class MessageList {
public:
    [[nodiscard]] Message* first() const noexcept { return first_; }
    void insert(Message& message) noexcept {
        // Messages open in order of time, but for those that learn their number late: the walk is short.
        Message* before = last_;
        while (before != nullptr && before->first_ns > message.first_ns) before = before->previous;
        message.previous = before;
        message.next = before != nullptr ? before->next : first_;
        (before != nullptr ? before->next : first_) = &message;
        (message.next != nullptr ? message.next->previous : last_) = &message;
    }
    void remove(Message& message) noexcept {
        (message.previous != nullptr ? message.previous->next : first_) = message.next;
        (message.next != nullptr ? message.next->previous : last_) = message.previous;
        message.previous = message.next = nullptr;
    }

private:
    Message* first_ = nullptr;
    Message* last_ = nullptr;
};

}  // namespace weir::assemble
