// See pcapng_file.hpp.
#include "store/pcapng_file.hpp"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>

#include "core/error.hpp"
#include "store/creation_lock.hpp"
#include "store/run_path.hpp"

namespace weir::store {

struct PcapngFile::Compressor {
    ZSTD_CCtx* context = ZSTD_createCCtx();
    std::vector<std::byte> out = std::vector<std::byte>(ZSTD_compressBound(flush_bytes));
    Compressor() = default;
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;
    ~Compressor() { ZSTD_freeCCtx(context); }

    /// A frame of its own, with a checksum.
    [[nodiscard]] std::span<const std::byte> compress(std::span<const std::byte> bytes) {
        if (context == nullptr) throw core::RunError("no memory to compress a capture");
        out.resize(std::max(out.size(), ZSTD_compressBound(bytes.size())));
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);  // it has to keep up with a network
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
        const std::size_t got = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
        if (ZSTD_isError(got) != 0)
            throw core::RunError(fmt::format("a capture cannot be compressed: {}", ZSTD_getErrorName(got)));
        return {out.data(), got};
    }
};

PcapngFile::PcapngFile(std::filesystem::path path, const PcapngSection& section,
                       std::span<const PcapngInterface> interfaces)
    : path_(std::move(path)), hidden_(hidden_path(path_)) {
    {
        const CreationLock alone(hidden_.parent_path());
        if (is_there(path_)) throw core::RunError(fmt::format("{} exists already", path_.string()));
        file_ = File::create(hidden_);
        file_.lock();  // nobody may take it for the leftover of a killed program
    }
    if (path_.extension() == ".zst") compressor_ = std::make_unique<Compressor>();
    buffer_.resize(flush_bytes);
    append_block(block_, section);
    for (const PcapngInterface& interface : interfaces) append_block(block_, interface);
    append(block_);
    block_.clear();
}

PcapngFile::~PcapngFile() = default;

std::byte* PcapngFile::room_for(std::size_t bytes) {
    if (used_ + bytes > buffer_.size()) flush();
    if (bytes > buffer_.size()) buffer_.resize(bytes);  // a packet with very long comments
    std::byte* const at = buffer_.data() + used_;
    used_ += bytes;
    return at;
}

void PcapngFile::append(const std::vector<std::byte>& blocks) {
    std::copy(blocks.begin(), blocks.end(), room_for(blocks.size()));
}

void PcapngFile::put(const PcapngPacket& packet) {
    write_block(room_for(block_bytes(packet)), packet);
    ++packets_;
}

void PcapngFile::put(const PcapngStatistics& statistics) {
    block_.clear();
    append_block(block_, statistics);
    append(block_);
}

void PcapngFile::flush() {
    if (used_ == 0 || failed_) return;
    const std::span<const std::byte> blocks(buffer_.data(), used_);
    used_ = 0;
    failed_ = true;  // unless it goes well
    const std::span<const std::byte> bytes = compressor_ != nullptr ? compressor_->compress(blocks) : blocks;
    file_.write_at(written_, bytes);
    failed_ = false;
    written_ += bytes.size();
    flushed_packets_ = packets_;
}

void PcapngFile::close() {
    if (!failed_) {
        flush();
        file_.sync();
    }
    if (failed_ && !file_.truncate(written_)) {
        throw core::RunError(fmt::format("{} could not be cut to what is whole of it", hidden_.string()));
    }
    const CreationLock alone(hidden_.parent_path());  // its own goes before the name comes
    file_.close();
    rename_new(hidden_, path_);
}

}  // namespace weir::store
