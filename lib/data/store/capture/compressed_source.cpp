// gzip and Zstandard in front of a capture, streamed: a fixed input buffer and the decompressor's window, whatever the
// size of the file. What could be decompressed before a cut or damage is delivered; then problem() says what happened.
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "core/refused_memory.hpp"
#include "store/capture/byte_stream.hpp"

namespace weir::store {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t input_bytes = 256U << 10U;

/// Gives back what was read to recognise the file, where the file itself cannot.
class PrefixedSource final : public ByteStream {
public:
    PrefixedSource(std::span<const std::byte> prefix, std::unique_ptr<ByteStream> rest)
        : bytes_(prefix.size()), rest_(std::move(rest)) {
        std::copy(prefix.begin(), prefix.end(), prefix_.begin());
    }
    std::size_t read(std::span<std::byte> out) noexcept override {
        if (first_ == bytes_) {
            const std::size_t got = rest_->read(out);
            if (got == 0 && problem().empty()) fail(rest_->problem());
            return got;
        }
        const std::size_t some = std::min(out.size(), bytes_ - first_);
        std::copy_n(prefix_.data() + first_, some, out.data());
        first_ += some;
        return some;
    }

private:
    std::array<std::byte, 8> prefix_{};
    std::size_t first_ = 0;
    std::size_t bytes_;
    std::unique_ptr<ByteStream> rest_;
};

/// What both decompressors have in common: compressed input, read when it has been used up.
class CompressedSource : public ByteStream {
protected:
    explicit CompressedSource(std::unique_ptr<ByteStream> from)
        : from_(std::move(from)), input_(std::make_unique_for_overwrite<std::byte[]>(input_bytes)) {}

    /// False at the end of the compressed file.
    [[nodiscard]] bool refill() noexcept {
        if (!left_.empty()) return true;
        left_ = {input_.get(), from_->read({input_.get(), input_bytes})};
        if (left_.empty() && !from_->problem().empty()) fail(from_->problem());
        return !left_.empty();
    }

    std::span<const std::byte> left_;

private:
    std::unique_ptr<ByteStream> from_;
    std::unique_ptr<std::byte[]> input_;
};

class GzipSource final : public CompressedSource {
public:
    explicit GzipSource(std::unique_ptr<ByteStream> from) : CompressedSource(std::move(from)) {
        constexpr int gzip_only = 16;  // added to the window bits: zlib's manual, inflateInit2
        if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) core::refuse_memory(0);
    }
    ~GzipSource() override { inflateEnd(&stream_); }
    GzipSource(const GzipSource&) = delete;
    GzipSource& operator=(const GzipSource&) = delete;

    std::size_t read(std::span<std::byte> out) noexcept override {
        stream_.next_out = reinterpret_cast<Bytef*>(out.data());
        stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30U));
        const std::size_t asked = stream_.avail_out;
        while (!ended_ && stream_.avail_out == asked) step();
        return asked - stream_.avail_out;
    }

private:
    void step() noexcept {
        if (!refill()) {
            ended_ = true;
            if (within_ && problem().empty()) fail("the gzip data are cut off");
            return;
        }
        if (!within_) {
            // Files are padded with zeros on some media; gzip(1) passes over them too.
            while (!left_.empty() && left_.front() == std::byte{0} && behind_first_) left_ = left_.subspan(1);
            if (left_.empty()) return;
            within_ = true;
        }
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(left_.data()));
        stream_.avail_in = static_cast<uInt>(left_.size());
        const int got = inflate(&stream_, Z_NO_FLUSH);
        left_ = left_.last(stream_.avail_in);
        if (got == Z_STREAM_END) {
            within_ = false;
            behind_first_ = true;
            inflateReset(&stream_);
        } else if (got != Z_OK && got != Z_BUF_ERROR) {
            ended_ = true;
            fail(std::string("the gzip data are damaged: ") + (stream_.msg != nullptr ? stream_.msg : "not gzip"));
        }
    }

    z_stream stream_{};
    bool within_ = false;  ///< a member
    bool behind_first_ = false;
    bool ended_ = false;
};

class ZstdSource final : public CompressedSource {
public:
    explicit ZstdSource(std::unique_ptr<ByteStream> from)
        : CompressedSource(std::move(from)), stream_(ZSTD_createDStream()) {
        if (stream_ == nullptr) core::refuse_memory(0);
    }
    ~ZstdSource() override { ZSTD_freeDStream(stream_); }
    ZstdSource(const ZstdSource&) = delete;
    ZstdSource& operator=(const ZstdSource&) = delete;

    std::size_t read(std::span<std::byte> out) noexcept override {
        ZSTD_outBuffer to{out.data(), out.size(), 0};
        while (!ended_ && to.pos == 0) {
            // What is complete inside the decompressor comes out without new input.
            if (!refill() && !full_) {
                ended_ = true;
                if (within_ && problem().empty()) fail("the zstd data are cut off");
                break;
            }
            ZSTD_inBuffer from{left_.data(), left_.size(), 0};
            const std::size_t got = ZSTD_decompressStream(stream_, &to, &from);
            left_ = left_.subspan(from.pos);
            if (ZSTD_isError(got) != 0) {
                ended_ = true;
                fail(std::string("the zstd data are damaged: ") + ZSTD_getErrorName(got));
            }
            within_ = got != 0;
            full_ = to.pos == to.size;
        }
        return to.pos;
    }

private:
    ZSTD_DStream* stream_;
    bool within_ = false;  ///< a frame
    bool full_ = false;    ///< the last call filled its output: there may be more
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> decompress(std::unique_ptr<ByteStream> source, const std::string& name) {
    std::array<std::byte, 8> front{};
    std::size_t count = 0;
    while (count < front.size()) {
        const std::size_t got = source->read(std::span(front).subspan(count));
        if (got == 0) break;
        count += got;
    }
    const std::string_view magic(reinterpret_cast<const char*>(front.data()), count);
    if (count == 0) {
        const std::string& problem = source->problem();
        throw core::RunError(
            fmt::format("{}: cannot read the capture: {}", name, problem.empty() ? "the file is empty" : problem));
    }
    for (const auto& [kind, begin] : {std::pair{"xz",
                                                "\xfd"
                                                "7zXZ\0"sv},
                                      std::pair{"bzip2", "BZh"sv}, std::pair{"lz4", "\x04\x22\x4d\x18"sv}})
        if (magic.starts_with(begin))
            throw core::RunError(
                fmt::format("{}: compressed with {}; accepted: pcap and pcapng, plain or compressed with gzip or zstd",
                            name, kind));
    if (!source->step_back(count))
        source = std::make_unique<PrefixedSource>(std::span(front).first(count), std::move(source));
    if (magic.starts_with("\x1f\x8b"sv)) return std::make_unique<GzipSource>(std::move(source));
    // A skippable frame may come first, as some parallel compressors write it.
    const bool skippable = count >= 4 && (magic[0] & 0xf0) == 0x50 && magic.substr(1).starts_with("\x2a\x4d\x18"sv);
    if (skippable || magic.starts_with("\x28\xb5\x2f\xfd"sv)) return std::make_unique<ZstdSource>(std::move(source));
    return source;
}

}  // namespace weir::store
