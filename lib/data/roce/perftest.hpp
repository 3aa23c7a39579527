// The TCP exchange with which perftest's programs (ib_send_bw, ib_write_bw) meet before they send, seen from the
// server: bytes in, bytes out; no socket, no clock. The server need not be told what the client measures: what comes
// next is read off what the client says, so that one server takes SEND and WRITE, any size, count and number of queue
// pairs.
//
// Learnt from perftest 4.5 (src/perftest_communication.c, send_bw.c, write_bw.c; read there, not copied): every step is
// one message of the client and one answer of the same size.
//   1. version, 16 bytes of text; the size of the cycling buffer and of a cache line, 4 bytes each in network order;
//   the
//      path MTU as the digit of the verbs enumeration (1 is 256, 5 is 4096) and a zero
//   2. ends of queue pairs as text (PerftestEnd): one for each queue pair, and then over again as often as the client
//      wants to know that both have got to the same place
//   3. ib_write_bw only: results, in numbers of 8 bytes
//   4. "done"
// An end's text begins with a hexadecimal digit, a result practically never does (they are sizes, counts and doubles
// in network order), and "done" goes on with 'o', which is none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::roce {

/// One side of a queue pair, as the exchange says it: 108 bytes of text with a GID, 59 without (InfiniBand).
struct PerftestEnd {
    std::uint32_t lid = 0;
    std::uint32_t reads = 0;  ///< outstanding READs that it takes
    std::uint32_t qp = 0;     ///< 24 bits
    std::uint32_t psn = 0;    ///< 24 bits; of the first packet that it sends
    std::uint32_t rkey = 0;
    std::uint64_t va = 0;  ///< where the other side's WRITEs go
    std::array<std::uint8_t, 16> gid{};
    bool has_gid = false;
    std::uint32_t srq = 0;

    static constexpr std::size_t text_bytes = 59;       ///< with the zero at its end
    static constexpr std::size_t text_bytes_gid = 108;  ///< the same

    /// How long the text is that begins so; 0: `begin` is too short to tell.
    [[nodiscard]] static std::size_t size(std::string_view begin) noexcept;
    /// Reads a whole text. Nothing if a field is no number, too large, or not followed by a colon.
    [[nodiscard]] static std::optional<PerftestEnd> parse(std::string_view text) noexcept;
    /// As perftest writes it, the zero at its end included.
    [[nodiscard]] std::string text() const;
    /// The IPv4 address in the GID (::ffff:a.b.c.d), host byte order.
    [[nodiscard]] std::optional<std::uint32_t> ipv4() const noexcept;
    /// A GID from an IPv4 address in host byte order.
    void set_ipv4(std::uint32_t address) noexcept;

    bool operator==(const PerftestEnd&) const = default;
};

/// The verbs' number of a path MTU: 256 is 1, 4096 is 5. 0 if there is none.
[[nodiscard]] std::uint32_t mtu_number(std::uint32_t bytes) noexcept;

/// One client from its connection to its "done".
class PerftestSession {
public:
    static constexpr std::uint32_t queue_pairs_max = 1024;
    /// Clients before this version (the one in the exchange, not the package's) speak otherwise.
    static constexpr double version_min = 5.70;

    enum class State : std::uint8_t {
        listening,  ///< for more bytes
        asking,     ///< peer() is a queue pair of the client's that is new: call open() or refuse()
        ended,      ///< the client said that it is done
        failed,     ///< it said what this server does not understand: reason(); close the connection
    };

    /// `path_mtu`: the largest that we take; bytes, 256 to 4096.
    explicit PerftestSession(std::uint32_t path_mtu);

    /// Takes what came and goes on as far as that reaches; answers are appended to output().
    void receive(std::string_view bytes);
    /// What is to be sent; the caller takes away what it has sent.
    [[nodiscard]] std::string& output() noexcept { return output_; }

    [[nodiscard]] State state() const noexcept { return state_; }
    [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
    /// State::asking: the client's queue pair. It is numbered queue_pairs(), from 0.
    [[nodiscard]] const PerftestEnd& peer() const noexcept { return peer_; }
    /// Queue pairs that have been opened.
    [[nodiscard]] std::uint32_t queue_pairs() const noexcept { return count_; }
    /// The smaller of both sides' path MTUs, bytes; 0 before the client has said its own.
    [[nodiscard]] std::uint32_t path_mtu() const noexcept { return path_mtu_; }
    /// All queue pairs are there, and the client has gone on: from now on it may send.
    [[nodiscard]] bool running() const noexcept { return running_; }

    /// State::asking: our side of the queue pair, which must be ready to receive. Goes on with what has come meanwhile.
    void open(const PerftestEnd& ours);
    /// State::asking: there will be none.
    void refuse(std::string_view reason);

private:
    enum class Step : std::uint8_t { version, cycle_buffer, cache_line, mtu, ends };
    struct Pair {
        std::uint32_t qp = 0;
        std::string answer;
    };

    void advance();
    [[nodiscard]] bool take_greeting();
    [[nodiscard]] bool take_later();
    [[nodiscard]] bool take_end(std::size_t bytes);
    [[nodiscard]] bool check_version(std::string_view text);
    [[nodiscard]] bool check_mtu(std::string_view text);
    void fail(std::string_view reason);

    State state_ = State::listening;
    Step step_ = Step::version;
    bool running_ = false;
    std::uint32_t own_mtu_;
    std::uint32_t path_mtu_ = 0;
    std::uint32_t count_ = 0;
    std::string input_;
    std::string output_;
    std::string reason_;
    PerftestEnd peer_;
    std::vector<Pair> pairs_;
};

}  // namespace weir::roce
