// A moving window over the bytes of a capture: what a parser needs next lies contiguously in one block of memory.
// Blocks may be lent out, so that packets stay where they were read while the window moves on.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "store/capture/byte_stream.hpp"

namespace weir::store {

/// Memory that part of a capture is read into.
struct CaptureBlock {
    std::byte* memory = nullptr;  ///< CaptureInput::memory_bytes of it
};

/// Who lends blocks. Used by one thread.
class BlockLender {
public:
    virtual ~BlockLender() = default;
    /// A block that nothing refers to, or nullptr when there is none at the moment.
    virtual CaptureBlock* take() noexcept = 0;
    /// The window has left the block; others may still refer to it.
    virtual void leave(CaptureBlock& block) noexcept = 0;
};

class CaptureInput {
public:
    /// Most bytes that can be asked for at once: the largest record (libpcap's limit for Ethernet, 256 KiB) with what
    /// is around it.
    static constexpr std::size_t need_max = (256U << 10U) + 4096;
    /// Read at a time. Large enough that system calls cost nothing, small enough to be in the second-level cache still
    /// when the records are parsed. docs/internals/benchmarks/FILES.md has the measurement.
    static constexpr std::size_t read_bytes = 1U << 20U;
    /// The front takes what is left over from the block before.
    static constexpr std::size_t memory_bytes = need_max + read_bytes;

    /// `lender` (may be null) must outlive the input. Without a block from it, a private one is used over and over.
    CaptureInput(std::unique_ptr<ByteStream> source, BlockLender* lender);
    ~CaptureInput();
    CaptureInput(CaptureInput&& other) noexcept;
    CaptureInput& operator=(CaptureInput&& other) noexcept;

    /// Makes `bytes` (at most need_max) lie at data(). False if the input ends before.
    [[nodiscard]] bool need(std::size_t bytes) noexcept {
        return static_cast<std::size_t>(end_ - at_) >= bytes || fetch(bytes);
    }
    [[nodiscard]] const std::byte* data() const noexcept { return at_; }
    /// Bytes that lie there already.
    [[nodiscard]] std::size_t there() const noexcept { return static_cast<std::size_t>(end_ - at_); }
    /// Goes on by bytes that are there.
    void consume(std::size_t bytes) noexcept { at_ += bytes; }
    /// Goes on by any number of bytes. False if the input ends before.
    [[nodiscard]] bool skip(std::uint64_t bytes) noexcept;
    /// Up to out.size() bytes, copied; 0 at the end.
    [[nodiscard]] std::size_t read(std::span<std::byte> out) noexcept;

    /// The block that data() lies in, if it is a lent one; null: data() holds until the next call of need or skip.
    [[nodiscard]] CaptureBlock* block() const noexcept { return lent_; }
    [[nodiscard]] const std::string& problem() const noexcept { return source_->problem(); }

private:
    [[nodiscard]] bool fetch(std::size_t bytes) noexcept;
    void next_block() noexcept;

    std::unique_ptr<ByteStream> source_;
    BlockLender* lender_;
    std::unique_ptr<std::byte[]> own_;
    CaptureBlock* lent_ = nullptr;
    std::byte* at_ = nullptr;
    std::byte* end_ = nullptr;
    std::byte* limit_ = nullptr;  ///< of the block
    bool ended_ = false;
};

}  // namespace weir::store
