// Where the bytes of a capture come from: a file, a pipe, standard input; plain or compressed. Reads block by
// block, so one virtual call is for many packets.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weir::store {

class ByteStream {
public:
    virtual ~ByteStream() = default;
    /// Fills a prefix of `out` (not empty) and says how much; 0 at the end, proper or not.
    virtual std::size_t read(std::span<std::byte> out) noexcept = 0;
    /// The next read begins `bytes` earlier. False where that cannot be done.
    virtual bool step_back(std::size_t /*bytes*/) noexcept { return false; }
    /// Why reading ended before the proper end; empty while all is well.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

protected:
    void fail(std::string problem) { problem_ = std::move(problem); }

private:
    std::string problem_;
};

/// A file by name, "-" for standard input. Throws core::RunError naming it and the reason.
[[nodiscard]] std::unique_ptr<ByteStream> open_file(const std::string& path);

/// Whether a file that can be opened begins as those do that decompress() decompresses.
[[nodiscard]] bool is_compressed(const std::string& path) noexcept;

/// Looks at the first bytes and puts a decompressor in front of gzip (RFC 1952) and Zstandard (RFC 8878), both also in
/// several members or frames one after the other. Anything else passes unchanged. Throws core::RunError for
/// compression that is recognised and not supported (xz, bzip2, lz4). `name` is for messages.
[[nodiscard]] std::unique_ptr<ByteStream> decompress(std::unique_ptr<ByteStream> source, const std::string& name);

}  // namespace weir::store
