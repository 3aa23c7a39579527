// The recorder's thread: takes the copies that rx lcores make (record_ring.hpp), in order of time over all of them, and
// writes them into pcapng files: all, or those around what went wrong (record_trigger.hpp). An ordinary thread, which
// may block; rx lcores do not wait for it, unless the whole input does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/sinks/pcapng.hpp"
#include "record/record_files.hpp"
#include "stages/record_ring.hpp"
#include "stages/record_trigger.hpp"
#include "stages/stage.hpp"
#include "stages/trigger_queue.hpp"

namespace weir::record {

class Recorder {
public:
    struct Config {
        config::RecorderConfig record;
        RecordFiles::Config files;
        core::TimeNs timeout_ns = 0;  ///< of events
        bool replay = false;          ///< the input ends by itself, and what its end cuts off is worth saving
        std::uint32_t builders = 1;
        /// Of each rx lcore: the NUMA node of its memory.
        std::vector<int> nodes;
    };

    /// All memory is taken here. Throws core::RunError, and core::UsageError when `memory` is too little for so many
    /// lcores.
    explicit Recorder(Config config);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // For whoever puts the pipeline together.
    [[nodiscard]] stages::RecordRing& ring(std::size_t rx) noexcept { return *sources_[rx].ring; }
    /// Null where triggers mean nothing.
    [[nodiscard]] stages::TriggerQueue* triggers(std::size_t shard) noexcept {
        return config_.record.packets == config::RecordMode::incomplete ? queues_[shard].get() : nullptr;
    }
    /// The promises of an rx lcore; `wait`: its input waits for room here.
    void connect(std::size_t rx, const stages::RxSignals& signals, bool wait) noexcept {
        sources_[rx].signals = &signals;
        wait_ = wait;
    }

    /// Before start(): the same interfaces, of which more is known now.
    void set_interfaces(std::vector<store::PcapngInterface> interfaces) {
        files_.set_interfaces(std::move(interfaces));
    }
    void start();
    /// Rx lcores have ended: writes what is left, closes the file.
    void finish();

    // For the control thread.
    /// What devices say: for the statistics at the end of each file.
    struct Device {
        std::optional<std::uint64_t> received;
        std::optional<std::uint64_t> dropped;
    };
    void set_devices(std::vector<Device> devices);
    /// What happened that lcores do not know of; times are the newest packet's.
    void trigger(stages::RecordTrigger trigger);

    struct Status {
        config::RecordMode mode = config::RecordMode::all;
        std::uint64_t seen = 0;      ///< packets that rx lcores took from ports or captures
        std::uint64_t written = 0;   ///< of these, those in files
        std::uint64_t left_out = 0;  ///< of these, those for which there was no room, or no file any more
        std::uint64_t files = 0;
        std::uint64_t bytes = 0;
        std::uint64_t memory_bytes = 0;
        std::array<std::uint64_t, stages::record_reasons> triggers{};
        std::uint64_t triggers_unsaved = 0;  ///< came after the last file
        std::uint64_t copied_bytes = 0;      ///< into memory so far
        core::TimeNs newest_ns = 0;          ///< of the packets that came; 0: none has
        double seconds_held = 0;             ///< incomplete: between the oldest and the newest in memory
        bool short_of_memory = false;        ///< incomplete: packets had to go before their time
        double shortest_seconds = 0;         ///< then: the age at which they did
        bool saving = false;
        bool failed = false;  ///< `stopped` is an error, not a limit
        std::string stopped;  ///< empty, or why nothing is written any more
        std::vector<std::string> names;
    };
    [[nodiscard]] Status status() const;
    [[nodiscard]] const Config& config() const noexcept { return config_; }

private:
    struct Source {
        std::unique_ptr<stages::RecordRing> ring;
        const stages::RxSignals* signals = nullptr;
        std::uint64_t at = 0;   ///< the next record
        std::uint64_t end = 0;  ///< of what can be read
    };
    static constexpr std::uint64_t turn_bytes = std::uint64_t{8} << 20U;

    void work();
    bool turn(bool final);
    [[nodiscard]] core::TimeNs look_at_rings(bool final) noexcept;
    [[nodiscard]] core::TimeNs take_triggers(bool final);
    void take(const stages::RecordTrigger& trigger);
    [[nodiscard]] bool write(core::TimeNs begin_ns, core::TimeNs end_ns, bool& more);
    [[nodiscard]] bool write_record(const Source& source);
    bool serve_windows(core::TimeNs safe_ns, core::TimeNs complete_ns, bool& more);
    void let_go(core::TimeNs complete_ns) noexcept;
    void move_to(Source& source, std::uint64_t position) noexcept;
    void publish(core::TimeNs safe_ns);
    [[nodiscard]] std::vector<store::PcapngStatistics> statistics();

    Config config_;
    RecordFiles files_;
    std::vector<Source> sources_;
    std::vector<std::unique_ptr<stages::TriggerQueue>> queues_;
    stages::RecordWindows windows_;
    bool wait_ = false;
    bool begun_ = false;  ///< a file was begun for the current window
    struct Comment {
        core::TimeNs from_ns = 0;
        std::string text;
    };
    std::vector<Comment> comments_;  ///< for the first packet that is as late; in order of coming
    std::vector<std::string> packet_comments_;
    std::optional<core::TimeNs> began_ns_;  ///< the first packet of all
    core::TimeNs record_ns_ = 0;            ///< of the last one that was looked at
    core::TimeNs flushed_ns_ = 0;           ///< steady clock
    core::TimeNs published_ns_ = 0;         ///< steady clock
    core::TimeNs pressed_ns_ = 0;           ///< steady clock: since when a ring has been short of blocks; 0: none is
    std::uint64_t put_ = 0;
    std::uint64_t discarded_ = 0;
    Status status_;

    mutable std::mutex mutex_;  ///< of what follows
    Status published_;
    std::vector<Device> devices_;
    std::vector<stages::RecordTrigger> requests_;

    std::atomic<bool> stop_{false};
    bool finished_ = false;
    std::thread thread_;
};

}  // namespace weir::record
