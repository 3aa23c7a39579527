#include "bench/receive_ring.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/refused_memory.hpp"

namespace weir::bench {
namespace {

constexpr int buffer_group = 0;
constexpr unsigned requests_max = 4;
constexpr long long wait_ns = 10'000'000;
static_assert(std::has_single_bit(ReceiveRing::buffers_max));

/// 0: everybody may have an io_uring, 1: some, 2: nobody (kernel's admin-guide/sysctl/kernel.rst).
int disabled() {
    std::ifstream file("/proc/sys/kernel/io_uring_disabled");
    int value = 0;
    file >> value;
    return value;
}

std::string why_refused(int error) {
    const int setting = disabled();
    if (error == EPERM && setting != 0)
        return fmt::format("io_uring is not allowed here (kernel.io_uring_disabled = {})", setting);
    if (error == EPERM) return "io_uring is not allowed here (by a seccomp filter, as containers have?)";
    if (error == ENOSYS) return "this kernel has no io_uring, or a seccomp filter hides it";
    if (error == EINVAL) return "this kernel's io_uring is too old: Linux 6.1 is needed";
    return fmt::format("io_uring: {}", std::strerror(error));
}

/// As gettid(), for a call in every burst. A std::thread::id may be that of a thread that has ended.
pid_t own_thread() noexcept {
    thread_local const pid_t id = ::gettid();
    return id;
}

}  // namespace

ReceiveRing::ReceiveRing(int socket, PacketBuffers& buffers)
    : socket_(socket), buffers_(buffers), thread_(own_thread()) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    params.cq_entries = 2 * buffers_max;  // each packet has a buffer, so that this can never be too few
    if (const int is = ::io_uring_queue_init_params(requests_max, &ring_, &params); is < 0)
        throw core::RunError(why_refused(-is));
    try {
        make_buffer_ring();
    } catch (...) {
        ::io_uring_queue_exit(&ring_);
        throw;
    }
    for (std::uint32_t i = buffers_max; i > 0; --i) unused_.push_back(static_cast<std::uint16_t>(i - 1));
}

ReceiveRing::~ReceiveRing() {
    // A closed ring writes to no memory any more: receiving is done by the thread that waits, and none does.
    ::io_uring_queue_exit(&ring_);
    for (std::byte* const buffer : given_) {
        void* one = buffer;
        if (one != nullptr) PacketBuffers::release(&one, 1);
    }
}

void ReceiveRing::make_buffer_ring() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (buffers_max * sizeof(io_uring_buf) + page - 1) / page * page;
    places_.reset(static_cast<io_uring_buf_ring*>(std::aligned_alloc(page, bytes)));
    if (places_ == nullptr) core::refuse_memory(bytes);
    std::memset(places_.get(), 0, bytes);
    io_uring_buf_reg about{};
    about.ring_addr = reinterpret_cast<std::uintptr_t>(places_.get());
    about.ring_entries = buffers_max;
    about.bgid = buffer_group;
    if (const int is = ::io_uring_register_buf_ring(&ring_, &about, 0); is < 0) throw core::RunError(why_refused(-is));
    ::io_uring_buf_ring_init(places_.get());
}

bool ReceiveRing::is_own() const noexcept {
    return thread_ == own_thread();
}

void ReceiveRing::provide() noexcept {
    int count = 0;
    while (!unused_.empty()) {
        std::byte* const buffer = buffers_.take();
        if (buffer == nullptr) break;
        const std::uint16_t number = unused_.back();
        unused_.pop_back();
        given_[number] = buffer;
        ::io_uring_buf_ring_add(places_.get(), buffer, buffers_.bytes(), number, ::io_uring_buf_ring_mask(buffers_max),
                                count++);
    }
    if (count > 0) ::io_uring_buf_ring_advance(places_.get(), count);
}

void ReceiveRing::arm() noexcept {
    io_uring_sqe* const request = ::io_uring_get_sqe(&ring_);
    if (request == nullptr) return;  // the ones before have not been taken: wait() tries again
    ::io_uring_prep_recvmsg_multishot(request, socket_, &what_, 0);
    request->flags |= IOSQE_BUFFER_SELECT;
    request->buf_group = buffer_group;
    armed_ = true;
}

void ReceiveRing::wait() {
    if (!armed_) arm();
    io_uring_cqe* first = nullptr;
    __kernel_timespec time{.tv_sec = 0, .tv_nsec = wait_ns};
    const int is = ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
    if (is < 0 && is != -ETIME && is != -EINTR && is != -EAGAIN && is != -EBUSY) throw core::RunError(why_refused(-is));
}

std::uint32_t ReceiveRing::take(std::span<ReceivedPacket> packets) {
    std::uint32_t count = 0;
    io_uring_cqe* done = nullptr;
    while (count < packets.size() && ::io_uring_peek_cqe(&ring_, &done) == 0) {
        const io_uring_cqe copy = *done;
        ::io_uring_cqe_seen(&ring_, done);
        if (take(copy, packets[count])) ++count;
    }
    return count;
}

bool ReceiveRing::take(const io_uring_cqe& done, ReceivedPacket& packet) {
    if ((done.flags & IORING_CQE_F_MORE) == 0) armed_ = false;
    if ((done.flags & IORING_CQE_F_BUFFER) == 0) {
        // It ends when there was no buffer for a packet, which then stays in the socket.
        if (done.res >= 0 || done.res == -ENOBUFS || done.res == -ECANCELED || done.res == -EINTR) return false;
        throw core::RunError(fmt::format("receiving by io_uring: {}", std::strerror(-done.res)));
    }
    const auto number = static_cast<std::uint16_t>(done.flags >> IORING_CQE_BUFFER_SHIFT);
    std::byte* const buffer = std::exchange(given_[number], nullptr);
    unused_.push_back(number);
    if (done.res < static_cast<int>(note_bytes)) {
        void* one = buffer;
        PacketBuffers::release(&one, 1);
        return false;
    }
    packet = {buffer + note_bytes, static_cast<std::uint32_t>(done.res) - note_bytes, buffer};
    return true;
}

void ReceiveRing::Free::operator()(void* memory) const noexcept {
    std::free(memory);
}

}  // namespace weir::bench
