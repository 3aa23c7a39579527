#include "store/capture_recovery.hpp"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "store/creation_lock.hpp"
#include "store/file.hpp"
#include "store/paced_source.hpp"
#include "store/pcapng_file.hpp"
#include "store/run_path.hpp"

namespace weir::store {

namespace {

/// What is whole of a capture, from its start.
struct WholePart {
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
};

/// Blocks one after the other: type, length, body, length again. They are weir's own: in this machine's byte order.
class BlockCount {
public:
    /// Takes whole blocks off the start of `bytes`: how many bytes they have. Fewer where the rest is torn or no block.
    std::size_t take(std::span<const std::byte> bytes) {
        std::size_t at = 0;
        while (bytes.size() - at >= least_bytes) {
            const std::uint32_t type = word(bytes, at);
            const std::uint32_t length = word(bytes, at + 4);
            if (length < least_bytes || length % 4 != 0 || length > bytes.size() - at ||
                word(bytes, at + length - 4) != length)
                break;
            if (type == enhanced_packet) ++packets_;
            at += length;
        }
        return at;
    }
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }

private:
    static constexpr std::size_t least_bytes = 12;
    static constexpr std::uint32_t enhanced_packet = 6;
    static std::uint32_t word(std::span<const std::byte> bytes, std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    }
    std::uint64_t packets_ = 0;
};

/// The file from `offset` on, at most so many bytes.
std::vector<std::byte> piece(const PacedSource& source, std::uint64_t offset, std::size_t bytes_max) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, source.size() - offset)));
    bytes.resize(source.read(offset, bytes));
    return bytes;
}

/// A block is larger than this only with absurd comments; such a file ends there.
constexpr std::size_t piece_bytes = 8 * PcapngFile::flush_bytes;

WholePart whole_blocks(const PacedSource& source) {
    WholePart part;
    BlockCount blocks;
    for (;;) {
        const std::vector<std::byte> bytes = piece(source, part.bytes, piece_bytes);
        const std::size_t taken = blocks.take(bytes);
        if (taken == 0) break;
        part.bytes += taken;
    }
    part.packets = blocks.packets();
    return part;
}

/// Each flush is a frame with a checksum, in which blocks are whole.
WholePart whole_frames(const PacedSource& source) {
    WholePart part;
    BlockCount blocks;
    std::vector<std::byte> decoded;
    for (;;) {
        const std::vector<std::byte> bytes = piece(source, part.bytes, piece_bytes);
        const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
        if (bytes.empty() || ZSTD_isError(frame) != 0) break;
        const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), frame);
        if (size > 8 * piece_bytes) break;  // of unknown size too: it is not weir's
        decoded.resize(static_cast<std::size_t>(size));
        if (ZSTD_decompress(decoded.data(), decoded.size(), bytes.data(), frame) != decoded.size()) break;
        if (blocks.take(decoded) != decoded.size()) break;
        part.bytes += frame;
    }
    part.packets = blocks.packets();
    return part;
}

/// Not open if another program has its lock, or has dealt with it.
File lock_leftover(const std::filesystem::path& hidden, const std::filesystem::path& final_path) {
    const CreationLock alone(hidden.parent_path());
    if (is_there(final_path)) throw core::RunError(fmt::format("{} exists already", final_path.string()));
    if (alone.is_taken() || !is_there(hidden)) return {};
    File file = File::open_to_mend(hidden);
    if (!file.try_lock() || !file.is_whole(0)) return {};
    return file;
}

}  // namespace

std::optional<Recovered> recover_capture(const std::filesystem::path& final_path, const ReadPace& pace) {
    const std::filesystem::path hidden = hidden_path(final_path);
    File file = lock_leftover(hidden, final_path);
    if (!file.is_open()) return {};
    try {
        const PacedSource source(file, pace);
        const std::uint64_t size = file.size();
        const WholePart part = final_path.extension() == ".zst" ? whole_frames(source) : whole_blocks(source);
        if (part.packets == 0) {
            std::filesystem::remove(hidden);
            return Recovered{{}, "nothing"};
        }
        if (part.bytes < size && !file.truncate(part.bytes))
            throw core::RunError(write_error_text("cannot shorten", hidden, errno));
        file.sync();
        rename_new(hidden, final_path);
        Directory(final_path.parent_path()).sync();
        std::string holds = fmt::format("{} packets", part.packets);
        if (part.bytes < size)
            holds += fmt::format("; {} bytes that are no whole block are given up", size - part.bytes);
        return Recovered{final_path, std::move(holds)};
    } catch (const ReadingStopped&) {
        return {};
    } catch (const std::filesystem::filesystem_error& error) {
        throw core::RunError(error.what());
    }
}

}  // namespace weir::store
