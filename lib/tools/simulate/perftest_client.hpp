// The client's side of the TCP exchange with which perftest's programs meet before they send (roce/perftest.hpp has the
// server's, and the format): how a sender learns the receiver's queue pairs, and the receiver the sender's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roce/perftest.hpp"

namespace weir::simulate {

class PerftestClient {
public:
    /// Connects to "HOST:PORT" or "HOST" (then 18515), through the kernel. Throws core::UsageError where the text is
    /// none of them, core::RunError with the reason where nobody answers within `patience_s`.
    PerftestClient(const std::string& server, double patience_s);
    /// A connection that is there already; it is closed at the end.
    PerftestClient(int socket, std::string name, double patience_s);
    ~PerftestClient();
    PerftestClient(const PerftestClient&) = delete;
    PerftestClient& operator=(const PerftestClient&) = delete;

    /// Says who we are and how long our packets may be; returns the smaller path MTU of both, bytes.
    std::uint32_t greet(std::uint32_t path_mtu);
    /// Tells our queue pairs and returns the other side's, in the same order.
    std::vector<roce::PerftestEnd> exchange(std::span<const roce::PerftestEnd> ours);
    /// Once our queue pairs are ready: until the other side's are.
    void meet(const roce::PerftestEnd& ours);
    /// That we are done. Throws nothing: what was sent stays sent.
    void done() noexcept;

private:
    void write(std::string_view bytes);
    [[nodiscard]] std::string read(std::size_t bytes);
    [[nodiscard]] roce::PerftestEnd answer_to(const roce::PerftestEnd& ours);
    [[noreturn]] void fail(std::string_view what) const;

    int socket_ = -1;
    std::string name_;
    double patience_s_;
};

}  // namespace weir::simulate
