// The receiver that everybody writes first, for scripts/bench neighbours: a socket, bind, and recvmmsg in a loop that
// counts packets. Nothing of weir's is in it. plain_receiver ADDRESS prints its port; then it answers each line on
// standard input with the number of packets so far, once none has come for a while, and ends with standard input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
    constexpr unsigned burst = 64;
    constexpr std::size_t room_bytes = 9000;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (argc != 2 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
        std::fprintf(stderr, "usage: plain_receiver ADDRESS\n");
        return 2;
    }
    const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
    const timeval patience{.tv_sec = 0, .tv_usec = 20'000};
    socklen_t size = sizeof address;
    if (receiver < 0 || bind(receiver, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        std::perror("plain_receiver");
        return 1;
    }
    std::vector<std::array<char, room_bytes>> rooms(burst);
    std::array<iovec, burst> parts{};
    std::array<mmsghdr, burst> messages{};
    for (unsigned i = 0; i < burst; ++i) {
        parts[i] = {rooms[i].data(), room_bytes};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    std::printf("%u\n", ntohs(address.sin_port));
    std::fflush(stdout);
    std::uint64_t packets = 0;
    for (;;) {
        const int count = recvmmsg(receiver, messages.data(), burst, MSG_WAITFORONE, nullptr);
        if (count > 0) {
            packets += static_cast<std::uint64_t>(count);
            continue;
        }
        pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
        if (poll(&input, 1, 0) <= 0) continue;
        std::array<char, 16> line{};
        if (std::fgets(line.data(), line.size(), stdin) == nullptr) return 0;
        std::printf("%" PRIu64 "\n", packets);
        std::fflush(stdout);
    }
}
