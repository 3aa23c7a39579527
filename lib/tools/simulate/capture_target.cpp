#include <filesystem>
#include <system_error>
#include <vector>

#include "simulate/frame_target.hpp"
#include "store/capture/writer.hpp"

namespace weir::simulate {

namespace {

class CaptureTarget : public FrameTarget {
public:
    CaptureTarget(const std::string& path, std::uint32_t frame_bytes_max)
        : path_(path), writer_(path), slot_bytes_(frame_bytes_max), memory_(std::size_t{slots} * frame_bytes_max) {}
    ~CaptureTarget() override {
        std::error_code error;  // half a capture would look like one
        if (!finished_) std::filesystem::remove(path_, error);
    }
    CaptureTarget(const CaptureTarget&) = delete;
    CaptureTarget& operator=(const CaptureTarget&) = delete;

    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return std::span(memory_).subspan(std::size_t{index} * slot_bytes_, slot_bytes_);
    }
    std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) override {
        for (const OutgoingFrame& outgoing : frames) {
            writer_.write(slot(first++).first(outgoing.frame.bytes), outgoing.time_ns);
        }
        return static_cast<std::uint32_t>(frames.size());
    }
    void finish() override {
        writer_.close();
        finished_ = true;
    }

private:
    std::filesystem::path path_;
    bool finished_ = false;
    store::CaptureWriter writer_;
    std::size_t slot_bytes_;
    std::vector<std::byte> memory_;
};

}  // namespace

std::unique_ptr<FrameTarget> open_capture_target(const std::string& path, std::uint32_t frame_bytes_max) {
    return std::make_unique<CaptureTarget>(path, frame_bytes_max);
}

}  // namespace weir::simulate
