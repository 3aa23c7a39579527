// libFuzzer target: any bytes from a client of the perftest exchange, cut anywhere. The first byte says how they are
// cut and whether queue pairs are given or refused. What a session answers is never more than what came, and it ends.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "roce/perftest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using weir::roce::PerftestEnd;
    using weir::roce::PerftestSession;
    if (size < 1) return 0;
    const std::size_t piece = 1 + (data[0] & 0x7fU);
    PerftestSession session(1024);
    std::size_t received = 0;
    for (std::size_t at = 1; at < size; at += piece) {
        const std::size_t bytes = std::min(piece, size - at);
        session.receive({reinterpret_cast<const char*>(data) + at, bytes});
        received += bytes;
        while (session.state() == PerftestSession::State::asking) {
            const PerftestEnd peer = session.peer();
            if (peer.qp > 0xffffff || peer.psn > 0xffffff) std::abort();
            if (PerftestEnd::parse(peer.text()) != peer) std::abort();
            const std::uint32_t before = session.queue_pairs();
            if ((data[0] & 0x80) != 0) {
                session.refuse("no");
                if (session.state() != PerftestSession::State::failed) std::abort();
            } else {
                PerftestEnd ours;
                ours.has_gid = peer.has_gid;
                session.open(ours);
                if (session.queue_pairs() != before + 1) std::abort();
            }
        }
        if (session.output().size() > received) std::abort();
        if (session.running() && session.queue_pairs() == 0) std::abort();
        if ((session.state() == PerftestSession::State::failed) == session.reason().empty()) std::abort();
    }
    return 0;
}
