// The stream sink: sends the events of a run to other programs while it goes on, by ZeroMQ in DECTRIS' Stream V2
// (docs/reference/STREAM.md). For one ordinary thread; waits only if it is told to.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/event_sink.hpp"
#include "stream/consumer.hpp"
#include "stream/image_builder.hpp"
#include "stream/message.hpp"
#include "stream/previews.hpp"
#include "stream/series.hpp"

namespace weir::stream {

class Sink final : public store::EventSink {
public:
    struct Config {
        std::vector<std::string> listen;                       ///< one for each consumer
        bool wait = false;                                     ///< for consumers that are behind, or not there
        std::uint32_t queue = 256;                             ///< messages on their way to a consumer,
        std::uint64_t queue_bytes = std::uint64_t{256} << 20;  ///< and bytes of them
        std::string previews;                                  ///< where they are published; empty: nowhere
        std::uint32_t preview_every = 100;
        std::uint32_t preview_bin = 4;
        std::chrono::milliseconds linger{1000};         ///< for what has not left at the end
        std::chrono::milliseconds start_timeout{1000};  ///< for consumers to connect before the run begins
        std::uint64_t run = 0;
        std::string name;
        std::string start_json = "{}";
    };

    /// Listens. Throws core::RunError.
    explicit Sink(const Config& config);
    ~Sink() override;

    void append(std::span<std::byte> blocks) override;
    void sync_if_due() override;
    /// All consumers are connected, or had start_timeout for that.
    [[nodiscard]] bool is_ready() override;
    void finish_data() override;
    void close(const nlohmann::json& manifest_extra) override;
    void stopping(bool at_once) noexcept override {
        if (at_once) at_once_.store(true, std::memory_order_relaxed);
        stopping_.store(true, std::memory_order_relaxed);
    }

    [[nodiscard]] const Stats& stats() const noexcept override { return stats_; }
    [[nodiscard]] bool failed() const noexcept override { return failed_; }
    /// Empty: it writes nowhere.
    [[nodiscard]] const std::filesystem::path& path() const noexcept override { return path_; }
    [[nodiscard]] std::optional<std::uint64_t> free_bytes() const noexcept override { return {}; }
    [[nodiscard]] std::string place() const override;
    [[nodiscard]] std::span<const std::string_view> causes_of_drops() const noexcept override { return drop_causes; }
    [[nodiscard]] bool may_leave_out() const noexcept override { return !config_.wait; }
    [[nodiscard]] nlohmann::json how() const override;
    [[nodiscard]] std::string how_text() const override;

    [[nodiscard]] const std::vector<Consumer>& consumers() const noexcept { return consumers_; }

private:
    void take_block(const store::BlockHeader& header, std::span<const std::byte> body);
    void take_event(const store::BlockHeader& header, std::span<const std::byte> body);
    void take_sources(std::span<const std::byte> body);
    void take_payload(store::BlockHeader header, std::span<const std::byte> body);
    void begin_event();
    void begin_bytes();
    void put_bytes(std::span<const std::byte> decoded);
    void end_event();
    void begin_series();
    [[nodiscard]] MessagePtr make_start();
    [[nodiscard]] MessagePtr make_message(std::span<const std::byte> bytes);
    void finish_image();
    void send(const MessagePtr& message);
    [[nodiscard]] std::optional<DropCause> send_to(Consumer& consumer, const MessagePtr& message);
    void send_end();
    void wait_for_the_rest();
    void count() noexcept;
    template <class Action>
    void guarded(Action action);

    Config config_;
    std::chrono::steady_clock::time_point ready_by_;
    ZmqContext context_;
    std::vector<Consumer> consumers_;
    std::optional<Previews> previews_;
    std::shared_ptr<MessageMemory> memory_;
    std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>(0);
    std::filesystem::path path_;
    Series series_;
    store::hdf5::Description description_;
    std::optional<store::hdf5::Layout> layout_;
    bool begun_ = false;  ///< the series: its first event has come
    MessagePtr start_;
    std::uint64_t start_is_for_ = 0;  ///< the image that start_ says is next

    store::EventInfo event_;
    bool event_open_ = false;
    std::uint32_t sources_left_ = 0;
    std::uint64_t payload_left_ = 0;
    std::uint64_t image_id_ = 0;  ///< of the event in hand, or of the next one
    MessageMemory::Block block_;  ///< the message in the making
    std::size_t head_bytes_ = 0;  ///< that are kept free in it for the head
    CborWriter head_;
    bool is_image_ = false;
    ImageBuilder image_;
    store::PayloadDecoder decoder_;
    std::size_t bytes_at_ = 0;  ///< of an event that is no image: where its next byte goes
    std::size_t source_at_ = 0;
    std::uint64_t source_left_ = 0;

    Stats stats_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> at_once_{false};  ///< nobody is waited for any more
    bool failed_ = false;
    bool finished_ = false;
    std::string failure_;
};

}  // namespace weir::stream
