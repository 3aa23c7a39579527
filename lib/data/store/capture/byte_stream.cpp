#include "store/capture/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"

namespace weir::store {

namespace {

class FileStream final : public ByteStream {
public:
    FileStream(int fd, bool owned) : fd_(fd), owned_(owned) {}
    ~FileStream() override {
        if (owned_) ::close(fd_);
    }
    FileStream(const FileStream&) = delete;
    FileStream& operator=(const FileStream&) = delete;

    std::size_t read(std::span<std::byte> out) noexcept override {
        for (;;) {
            const ssize_t got = ::read(fd_, out.data(), out.size());
            if (got >= 0) return static_cast<std::size_t>(got);
            if (errno == EINTR) continue;
            fail(std::strerror(errno));
            return 0;
        }
    }
    bool step_back(std::size_t bytes) noexcept override {
        return ::lseek(fd_, -static_cast<off_t>(bytes), SEEK_CUR) >= 0;
    }

private:
    int fd_;
    bool owned_;
};

}  // namespace

std::unique_ptr<ByteStream> open_file(const std::string& path) {
    if (path == "-") return std::make_unique<FileStream>(STDIN_FILENO, false);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw core::RunError(fmt::format("{}: cannot open the capture: {}", path, std::strerror(errno)));
    // The kernel reads ahead in larger steps; where it cannot, nothing is lost.
    static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    return std::make_unique<FileStream>(fd, true);
}

bool is_compressed(const std::string& path) noexcept {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return false;
    std::array<unsigned char, 4> magic{};
    const std::size_t count = std::fread(magic.data(), 1, magic.size(), file);
    std::fclose(file);
    constexpr std::array<unsigned char, 2> gzip{0x1f, 0x8b};
    constexpr std::array<unsigned char, 3> zstd{0xb5, 0x2f, 0xfd};       // after 0x28
    constexpr std::array<unsigned char, 3> skippable{0x2a, 0x4d, 0x18};  // after 0x50 to 0x5f
    return count == magic.size() && (std::equal(gzip.begin(), gzip.end(), magic.begin()) ||
                                     std::equal(zstd.begin(), zstd.end(), magic.begin() + 1) ||
                                     std::equal(skippable.begin(), skippable.end(), magic.begin() + 1));
}

}  // namespace weir::store
