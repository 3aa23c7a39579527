// The latest event of a run as a picture, for whoever watches. Its blocks are copied as they pass on their way to the
// sinks, and only when somebody has looked at the one before; they are decoded where the picture is asked for. It is no
// sink: it writes nothing, and is in no account.
//
// Whoever shows a run makes one (`start` is what the sinks are opened with), gives it to Pipeline::Options and
// RunView::Options, and keeps it as long as either. The thread that serves pictures calls take_picture().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/hdf5/layout.hpp"

namespace weir::store {

class LatestEvent {
public:
    static constexpr std::size_t event_bytes_max = std::size_t{256}
                                                   << 20U;  ///< stored, or as pixels: of larger ones there is none
    static constexpr std::chrono::milliseconds usual_interval{200};

    struct Facts {
        std::string why_not;           ///< there is no picture; empty: there is
        std::uint64_t generation = 0;  ///< grows with each event that is copied; 0: none was yet
        std::uint32_t epoch = 0;
        std::uint64_t event = 0;
        std::uint32_t width = 0;
        std::uint32_t height = 0;  ///< of all sources, which are below each other
        std::string type;          ///< of a pixel: "u16", "f32"
        double seconds_ago = 0;    ///< that the event passed
    };
    /// Pixels row by row, little-endian. "u16": as received, and every one came. "f32": energies or photons, or what
    /// was received of an event of which something is missing, or that has no pixels of 16 bits; NaN where there is no
    /// value, +infinity where it is saturated.
    struct Picture {
        Facts facts;                    ///< without seconds_ago
        std::vector<std::byte> pixels;  ///< empty where there is no picture
    };

    /// `start`: {"config": …, "payload": …}, as what is kept with a run. `interval`: between two copies, at least.
    explicit LatestEvent(const nlohmann::json& start, std::chrono::milliseconds interval = usual_interval);
    ~LatestEvent();
    LatestEvent(const LatestEvent&) = delete;
    LatestEvent& operator=(const LatestEvent&) = delete;

    /// The blocks of one buffer, as workers write them; buffers that share an event follow each other. One thread.
    /// Costs an atomic load unless a picture is wanted.
    void pass(std::span<const std::byte> blocks) noexcept {
        if (wanted_.load(std::memory_order_relaxed)) [[unlikely]]
            look_at(blocks);
    }

    /// Of the latest event that was copied. Any thread.
    [[nodiscard]] Facts facts() const;
    /// The picture of it, and asks for the next one. Decodes, unless somebody has asked for the same before. Never
    /// null. Any thread that may take its time.
    [[nodiscard]] std::shared_ptr<const Picture> take_picture();

private:
    struct Copy;
    void look_at(std::span<const std::byte> blocks) noexcept;
    void take(std::span<const std::byte> blocks);
    void begin_copy();
    void append(std::span<const std::byte> blocks);
    void finish_copy();
    [[nodiscard]] std::shared_ptr<const Copy> latest() const;
    [[nodiscard]] std::shared_ptr<const Picture> decode(const Copy& copy) const;

    hdf5::Description description_;
    std::chrono::milliseconds interval_;
    std::atomic<bool> wanted_{true};

    // Of the thread that passes buffers.
    std::shared_ptr<Copy> copy_;  ///< of an event whose end is in a buffer to come
    std::size_t last_bytes_ = 0;
    std::uint64_t generation_ = 0;
    std::chrono::steady_clock::time_point copied_{};

    mutable std::mutex mutex_;
    std::shared_ptr<const Copy> latest_;
    std::mutex decoding_;  ///< one at a time, so that the next one finds the result
    std::shared_ptr<const Picture> picture_;
};

}  // namespace weir::store
