// A packet socket with the ring that the kernel fills for it: AF_PACKET, TPACKET_V3. Packets come by the block: one
// look at memory tells whether there are hundreds, where the rings of older versions have a look for each.
#pragma once

#include <linux/if_packet.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct sock_filter;

namespace weir::port {

/// For one thread, except send().
class BlockRing {
public:
    struct Config {
        /// A multiple of the page size. A longer packet than a block holds is cut (tp_snaplen below tp_len).
        std::uint32_t block_bytes = 1U << 20U;
        std::uint32_t blocks = 64;
        std::uint32_t retire_ms = 1;  ///< after that a block comes that is not full; see slowest_ms()
    };
    /// It hears nothing before bind_to(). Throws core::RunError naming the step, with what the kernel said.
    explicit BlockRing(const Config& config);
    ~BlockRing();
    BlockRing(const BlockRing&) = delete;
    BlockRing& operator=(const BlockRing&) = delete;

    /// Only what a classic BPF program lets through; before bind_to(). Throws core::RunError.
    void filter(std::span<const sock_filter> program);
    /// Packets of this interface and EtherType (ETH_P_ALL: all) that come in, from now on. Throws core::RunError.
    void bind_to(const std::string& interface, std::uint16_t protocol);
    /// The interface takes frames whatever their destination, as long as the socket is open. False: it does not.
    [[nodiscard]] bool hear_all() noexcept;

    /// Packets of the block in hand that have not been taken.
    [[nodiscard]] std::uint32_t left() const noexcept { return left_; }
    /// The block in hand goes back to the kernel, and with it the memory of its packets; the next one is taken if it is
    /// there. True if there are packets now.
    [[nodiscard]] bool next_block() noexcept;
    /// Gives the block in hand back.
    void give_back() noexcept;
    /// The next packet of the block in hand; left() must not be 0. Its memory is good until the block goes back.
    [[nodiscard]] const tpacket3_hdr& take() noexcept;
    /// Until there is a block, or for so long.
    void wait(int milliseconds) const noexcept;

    /// Hands a frame to the interface; false if it does not take it. For any thread.
    [[nodiscard]] bool send(std::span<const std::byte> frame) const noexcept;
    /// Packets that found no room in the ring, since it was asked last.
    [[nodiscard]] std::uint64_t take_drops() noexcept;
    /// Longest time that a packet waits for its block: the kernel closes one that is not full at the second tick of a
    /// timer that counts in ticks of its own.
    [[nodiscard]] static constexpr std::uint32_t slowest_ms(std::uint32_t retire_ms) noexcept {
        constexpr std::uint32_t kernel_tick_ms = 10;  // of the slowest (HZ = 100)
        return 2 * (retire_ms / kernel_tick_ms + 1) * kernel_tick_ms;
    }

private:
    [[nodiscard]] tpacket_block_desc& block() const noexcept;

    Config config_;
    int socket_ = -1;
    std::byte* memory_ = nullptr;
    std::uint32_t current_ = 0;  ///< block
    bool in_hand_ = false;
    std::uint32_t left_ = 0;
    const std::byte* packet_ = nullptr;
};

}  // namespace weir::port
