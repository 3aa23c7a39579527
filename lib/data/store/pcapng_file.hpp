// A pcapng file that is being written: hidden until it is closed, readable up to the last flush whatever happens to the
// program. Compressed when its name ends in ".zst".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "store/file.hpp"
#include "store/pcapng_blocks.hpp"

namespace weir::store {

/// For one thread. All members throw core::RunError unless noexcept. After an error nothing more is written: what came
/// before the flush that failed stays readable, and close() gives it its name.
class PcapngFile {
public:
    /// Blocks are collected and written together; a compressed file then has a frame for each flush, so that it can be
    /// read up to there.
    static constexpr std::size_t flush_bytes = std::size_t{1} << 20U;

    /// Creates `.NAME.part`; refuses if that or `path` exists.
    PcapngFile(std::filesystem::path path, const PcapngSection& section, std::span<const PcapngInterface> interfaces);
    ~PcapngFile();
    PcapngFile(const PcapngFile&) = delete;
    PcapngFile& operator=(const PcapngFile&) = delete;

    void put(const PcapngPacket& packet);
    void put(const PcapngStatistics& statistics);
    /// Everything that was put is in the kernel's hands.
    void flush();
    /// Flushes, syncs, and gives the file its name. After an error: cuts off what is not whole, and gives the name all
    /// the same; throws only if that fails.
    void close();

    /// In the file so far, as it is on the disk.
    [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_; }
    /// Put and not flushed yet.
    [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return used_; }
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
    /// Of the packets that were put, those that an error kept out of the file.
    [[nodiscard]] std::uint64_t lost_packets() const noexcept { return failed_ ? packets_ - flushed_packets_ : 0; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    void append(const std::vector<std::byte>& blocks);
    [[nodiscard]] std::byte* room_for(std::size_t bytes);

    struct Compressor;
    std::filesystem::path path_;
    std::filesystem::path hidden_;
    File file_;
    std::unique_ptr<Compressor> compressor_;  ///< null: plain
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
    std::vector<std::byte> block_;
    std::uint64_t written_ = 0;
    std::uint64_t packets_ = 0;
    std::uint64_t flushed_packets_ = 0;
    bool failed_ = false;
};

}  // namespace weir::store
