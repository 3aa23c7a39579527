// The event sink of a readout node of a cluster: its events are parts of events, and go to builders. It waits where
// there is no room for parts, so what a slow network or slow builders hold up is held up here, and the run's overload
// policy decides what is lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/awake_clock.hpp"
#include "fabric/cluster_thread.hpp"
#include "fabric/part_cutter.hpp"
#include "store/event_sink.hpp"

namespace weir::fabric {

class PartSink final : public store::EventSink {
public:
    /// `cluster_thread` outlives this, and is started before the first append().
    PartSink(PartCutter::Config config, ClusterThread& cluster_thread);

    void append(std::span<std::byte> blocks) override;
    void sync_if_due() override;
    void finish_data() override;
    void close(const nlohmann::json& manifest_extra) override;
    void stopping(bool at_once) noexcept override;

    [[nodiscard]] const Stats& stats() const noexcept override { return stats_; }
    [[nodiscard]] bool failed() const noexcept override { return false; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept override { return no_path_; }
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept override { return {}; }
    [[nodiscard]] std::string place() const override;
    [[nodiscard]] std::span<const std::string_view> causes_of_drops() const noexcept override { return causes; }

    /// Why an event did not get to a builder: it came when the part of its block had left; its source had begun its
    /// numbers anew; the others had not waited for its part; this node left before its part was released.
    static constexpr std::array<std::string_view, drop_causes_max> causes{"straggler", "restarted", "too_late", "left"};

private:
    void wait_for_room(std::size_t bytes);
    void count();

    ClusterThread& cluster_thread_;
    PartCutter cutter_;
    core::AwakeClock clock_;
    Stats stats_;
    std::filesystem::path no_path_;
    bool finished_ = false;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> gives_up_{false};
};

}  // namespace weir::fabric
