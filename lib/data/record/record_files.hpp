// The files that a recorder writes: their names, how many there may be and how large, and when there may be no more.
// For the recorder's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/file.hpp"
#include "store/pcapng_file.hpp"

namespace weir::record {

/// `name-0002.pcapng` for `name.pcapng`; before ".pcapng.zst" too.
[[nodiscard]] std::filesystem::path numbered_path(const std::filesystem::path& path, std::uint64_t number);

class RecordFiles {
public:
    struct Config {
        std::filesystem::path path;  ///< of the first file; with `numbered` none has it, they are name-0001, ...
        bool numbered = false;
        std::uint64_t files_max = UINT64_MAX;
        std::uint64_t bytes_max = UINT64_MAX;  ///< of all files
        std::uint64_t segment_bytes = UINT64_MAX;
        std::uint64_t keep_free = 0;
        store::PcapngSection section;
        std::vector<store::PcapngInterface> interfaces;
    };
    /// Statistics for the end of a file; `delivered` is filled in here.
    using Statistics = std::function<std::vector<store::PcapngStatistics>()>;

    /// Checks that the folder is there and can be written to, and that the first name is free. Throws core::RunError.
    RecordFiles(Config config, Statistics statistics);
    ~RecordFiles();

    /// Nothing has been put yet.
    void set_interfaces(std::vector<store::PcapngInterface> interfaces) { config_.interfaces = std::move(interfaces); }
    /// What is put from now on belongs together and begins a file of its own, which says why.
    void begin(const std::string& comment);
    /// Closes it; nothing if nothing was put.
    void end() noexcept;
    /// False: nothing is written any more.
    bool put(const store::PcapngPacket& packet) noexcept;
    /// Hands what waits to the kernel.
    void flush() noexcept;
    /// Says something at the end of the file in hand, if there is one.
    void note(std::string comment);

    /// Empty, or why no more is written: a limit, or an error.
    [[nodiscard]] const std::string& stopped() const noexcept { return stopped_; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
    [[nodiscard]] std::uint64_t files() const noexcept { return files_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return closed_bytes_ + (file_ ? file_->written_bytes() : 0); }
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
    /// Of those that are closed or open, in order; the first few hundred.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

private:
    [[nodiscard]] bool open();
    [[nodiscard]] bool has_space(std::uint64_t more);
    void stop(std::string why, bool failure);
    [[nodiscard]] std::uint64_t bytes_with_waiting() const noexcept {
        return bytes() + (file_ ? file_->waiting_bytes() : 0);
    }

    Config config_;
    Statistics statistics_;
    store::Directory directory_;
    std::unique_ptr<store::PcapngFile> file_;
    std::string comment_;
    std::vector<std::string> notes_;
    std::vector<std::uint64_t> delivered_;  ///< per interface, in the file in hand
    std::uint64_t file_packet_bytes_ = 0;   ///< put since the free space was looked at
    std::uint64_t files_ = 0;
    std::uint64_t closed_bytes_ = 0;
    std::uint64_t packets_ = 0;
    std::vector<std::string> names_;
    std::string stopped_;
    bool failed_ = false;
};

}  // namespace weir::record
