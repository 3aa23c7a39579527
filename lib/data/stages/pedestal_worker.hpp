// Live pedestals on a worker lcore: says which generation an event is converted with, copies dark frames for the thread
// that makes generations (pedestal_keeper.hpp), and tells it how far the worker is. Nothing here waits, allocates or
// locks; in a replay the worker is told to come back, so that the same generations are used however fast things go.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "assemble/event.hpp"
#include "config/reducers/pedestal.hpp"
#include "core/counters.hpp"
#include "port/ring.hpp"
#include "reduce/chain/pixel_source.hpp"
#include "reduce/chain/raw_pixels.hpp"
#include "reduce/pedestal/generations.hpp"
#include "reduce/pedestal/intervals.hpp"
#include "reduce/pedestal/pedestal_counter.hpp"
#include "reduce/pedestal/pedestal_view.hpp"
#include "stages/stage.hpp"

namespace weir::stages {

/// A dark frame on its way from a worker: a copy, because messages go back at once.
struct DarkFrame {
    struct Part {
        bool came = false;      ///< otherwise the rest says nothing
        std::size_t first = 0;  ///< pixel of all storage cells of all modules where the source's begin
        std::size_t at = 0;     ///< the same in `pixels`
        std::size_t pixels = 0;
    };
    std::uint64_t number = 0;
    std::uint32_t epoch = 0;
    std::uint32_t shard = 0;     ///< of the builder
    std::uint64_t sequence = 0;  ///< in the order in which events left it
    reduce::IntervalPlace place = 0;
    std::vector<Part> parts;            ///< by source
    std::vector<std::uint16_t> pixels;  ///< raw; 0xffff did not come
};

/// From a worker to the keeper, through a ring, in the order of the worker's events.
struct PedestalNote {
    enum class Kind : std::uint32_t {
        frame,   ///< a dark frame; it goes back through the other ring
        closes,  ///< an event came that closes intervals up to `place`
        back,    ///< numbers have fallen back: `place` is what is closed
    };
    Kind kind = Kind::closes;
    std::uint32_t shard = 0;
    std::uint64_t sequence = 0;
    reduce::IntervalPlace place = 0;
    DarkFrame* frame = nullptr;
};

/// Written by one worker.
struct alignas(core::cache_line_bytes) PedestalProgress {
    /// By shard of the builder: all its events of a lower sequence are done with.
    std::array<std::atomic<std::uint64_t>, builders_max> done{};
    std::atomic<bool> waits{false};  ///< for a generation; nothing moves before that
};

/// What keeper and workers share.
struct PedestalShared {
    PedestalShared(std::size_t pixels, std::uint32_t workers) : generations(pixels, workers), progress(workers) {}
    reduce::Generations generations;
    std::atomic<reduce::IntervalPlace> closed{reduce::interval_none};  ///< generations up to it are made
    std::vector<PedestalProgress> progress;                            ///< by worker
};

class PedestalWorker {
public:
    struct Config {
        config::PedestalOptions options;
        std::vector<reduce::PixelSource> sources;  ///< by source id
        wire::DeclaredField storage_cell;
        std::uint32_t storage_cells = 1;
        std::uint32_t refs_max = 4096;
        std::uint32_t worker = 0;
        bool wait = false;  ///< a replay: rather wait than do without
        PedestalShared* shared = nullptr;
        port::Ring<PedestalNote>* notes = nullptr;
        port::Ring<DarkFrame*>* frames = nullptr;  ///< free ones
        const RunSignals* signals = nullptr;
    };
    enum class Step : std::uint8_t {
        wait,   ///< nothing can be done; come back with the same event
        more,   ///< come back with the same event
        ready,  ///< view() is what it is to be converted with, until end()
        veto,   ///< it was a dark frame that is not to be kept; end() follows
    };

    explicit PedestalWorker(const Config& config);

    /// Before anything else is done with an event, which is the next of its shard.
    [[nodiscard]] Step step(const assemble::Event& event, std::uint32_t shard) noexcept;
    /// The event is done with.
    void end() noexcept;
    /// A shard's ring was empty; `left` was read from BuildSignals before that was seen.
    void idle(std::uint32_t shard, std::uint64_t left) noexcept;
    [[nodiscard]] std::uint64_t left(std::uint32_t shard) const noexcept {
        return config_.signals->build[shard].left.load(std::memory_order_acquire);
    }

    [[nodiscard]] const reduce::PedestalView& view() const noexcept { return view_; }
    [[nodiscard]] const core::Tally<reduce::PedestalCounter>& tally() const noexcept { return tally_; }

private:
    enum class Phase : std::uint8_t { none, waits, copies, converts };

    void begin(const assemble::Event& event, std::uint32_t shard) noexcept;
    [[nodiscard]] bool prepare() noexcept;
    [[nodiscard]] bool take_frame() noexcept;
    void copy(std::uint32_t source, const assemble::Message& message) noexcept;
    [[nodiscard]] Step acquire() noexcept;
    [[nodiscard]] Step advance(const assemble::Event& event, std::uint32_t shard) noexcept;
    [[nodiscard]] bool is_dark(const assemble::Event& event) const noexcept;
    void publish(std::uint64_t done) noexcept;

    Config config_;
    core::Tally<reduce::PedestalCounter> tally_;
    reduce::IntervalFollower follower_;
    reduce::RawPixels raw_;
    reduce::PedestalView view_;
    Phase phase_ = Phase::none;

    // of the event in hand
    const assemble::Event* event_ = nullptr;
    std::uint32_t shard_ = 0;
    reduce::IntervalPlace place_ = 0;
    reduce::IntervalPlace needed_ = 0;
    bool dark_ = false;
    DarkFrame* frame_ = nullptr;
    std::uint32_t source_ = 0;
    PedestalNote note_;  ///< to be said
    bool has_note_ = false;
};

}  // namespace weir::stages
