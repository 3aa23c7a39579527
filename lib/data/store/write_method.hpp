// How a run gets to the disk: past the page cache or through it, one write after the other or several at once. What is
// asked for, and what the file system and the kernel take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "store/run_directory.hpp"
#include "store/write_policy.hpp"
#include "store/write_queue.hpp"

namespace weir::store {

class WriteMethod {
public:
    struct Config {
        Toggle direct = Toggle::off;  ///< as in RunWriter::Config, and so are the others
        Toggle uring = Toggle::automatic;
        std::uint32_t queue_depth = 8;
        std::uint32_t files = 1;
        WriteQueue::Tamper tamper;
    };
    WriteMethod() = default;
    /// Finds out what the file system and the kernel take, with a file that goes again. Throws core::RunError where
    /// that is less than what was asked for with `on`.
    WriteMethod(const Config& config, const RunDirectory& directory);

    [[nodiscard]] bool is_direct() const noexcept { return direct_; }
    /// The file system has thought better of it.
    void give_up_direct() noexcept { direct_ = false; }
    [[nodiscard]] WriteQueue& queue() noexcept { return queue_; }
    [[nodiscard]] const WriteQueue& queue() const noexcept { return queue_; }

    /// For the manifest, and for people.
    [[nodiscard]] nlohmann::json how() const;
    [[nodiscard]] std::string how_text() const;

private:
    [[nodiscard]] static int try_direct(const std::filesystem::path& path);

    std::uint32_t queue_depth_ = 1;
    std::uint32_t files_ = 1;
    bool direct_ = false;
    WriteQueue queue_;
    std::string note_;  ///< what was asked for and refused
};

}  // namespace weir::store
