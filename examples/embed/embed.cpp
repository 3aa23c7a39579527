// Events from the kernel's UDP sockets with weir's library, without DPDK: a socket for each source, a line for each
// event.
//   g++ -std=c++20 -O2 embed.cpp $(pkg-config --cflags --libs weir) -o embed
#include <arpa/inet.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "assemble/event_assembler.hpp"
#include "core/crc32c.hpp"

pollfd open_socket(unsigned port) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const int room = 8 << 20;  // what the kernel keeps while this program is busy, if net.core.rmem_max allows it
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot listen to port " + std::to_string(port));
    return {fd, POLLIN, 0};
}

weir::core::TimeNs now_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) try {
    if (argc != 5) throw std::runtime_error("usage: embed FORMAT FIRST-PORT SOURCES EVENTS");
    const auto port = static_cast<unsigned>(std::stoul(argv[2])), sources = static_cast<unsigned>(std::stoul(argv[3]));
    auto wanted = std::stoul(argv[4]);
    const auto show = [&](const weir::assemble::AssembledEvent& event) {
        std::printf("event %lu %s", static_cast<unsigned long>(event.number()),
                    event.complete() ? "complete" : "incomplete");
        for (unsigned source = 0; source < sources; ++source) {
            const std::vector<std::byte> payload = event.payload(source);
            std::printf(" %08x", weir::core::crc32c(payload));
        }
        std::puts("");
        if (wanted > 0) --wanted;
    };
    weir::assemble::EventAssembler events({.format = weir::wire::find_format(argv[1]), .sources = sources}, show);
    std::vector<pollfd> sockets;
    for (unsigned source = 0; source < sources; ++source) sockets.push_back(open_socket(port + source));
    std::vector<std::byte> datagram(65536);
    for (; wanted > 0; events.advance(now_ns())) {
        poll(sockets.data(), sockets.size(), 100);
        for (unsigned source = 0; source < sources; ++source)
            for (ssize_t got; (got = recv(sockets[source].fd, datagram.data(), datagram.size(), 0)) >= 0;)
                events.add(source, {datagram.data(), static_cast<std::size_t>(got)}, now_ns());
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
}
