// See record_files.hpp.
#include "record/record_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "store/run_path.hpp"

namespace weir::record {

namespace {

constexpr std::size_t names_max = 256;
constexpr std::size_t notes_max = 100;

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
    return bytes % mib == 0 ? fmt::format("{} MiB", bytes / mib) : fmt::format("{} bytes", bytes);
}

}  // namespace

std::filesystem::path numbered_path(const std::filesystem::path& path, std::uint64_t number) {
    std::string name = path.filename().string();
    std::string end;
    for (const std::string_view extension : {".zst", ".pcapng"})
        if (name.size() > extension.size() && name.ends_with(extension)) {
            end.insert(0, extension);
            name.resize(name.size() - extension.size());
        }
    return path.parent_path() / fmt::format("{}-{:04}{}", name, number, end);
}

RecordFiles::RecordFiles(Config config, Statistics statistics)
    : config_(std::move(config)), statistics_(std::move(statistics)), delivered_(config_.interfaces.size()) {
    const std::filesystem::path folder =
        config_.path.has_parent_path() ? config_.path.parent_path() : std::filesystem::path(".");
    directory_ = store::Directory(folder);
    if (::access(folder.c_str(), W_OK | X_OK) != 0)
        throw core::RunError(store::write_error_text("cannot write to", folder, errno));
    const std::filesystem::path first = config_.numbered ? numbered_path(config_.path, 1) : config_.path;
    std::error_code error;
    for (const std::filesystem::path& path : {first, store::hidden_path(first)})
        if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
            throw core::RunError(fmt::format("{} exists already", path.string()));
}

RecordFiles::~RecordFiles() {
    end();
}

void RecordFiles::begin(const std::string& comment) {
    end();
    comment_ = comment;
}

void RecordFiles::stop(std::string why, bool failure) {
    if (stopped_.empty()) stopped_ = std::move(why);
    failed_ |= failure;
    end();
}

bool RecordFiles::has_space(std::uint64_t more) {
    if (config_.keep_free == 0) return true;  // then the disk says when it is full
    const auto free = directory_.free_bytes();
    if (!free || *free >= config_.keep_free + more) return true;
    stop(fmt::format("less than {} (keep_free) would be left on the disk of {}", size_text(config_.keep_free),
                     config_.path.string()),
         true);
    return false;
}

bool RecordFiles::open() {
    if (files_ >= config_.files_max) {
        stop(fmt::format("{} files (files_max) have been written", files_), false);
        return false;
    }
    if (!has_space(store::PcapngFile::flush_bytes)) return false;
    const std::uint64_t number = files_ + 1;
    const bool first_plain = number == 1 && !config_.numbered;
    const std::filesystem::path path = first_plain ? config_.path : numbered_path(config_.path, number);
    store::PcapngSection section = config_.section;
    if (!comment_.empty()) section.comments.push_back(comment_);
    file_ = std::make_unique<store::PcapngFile>(path, section, config_.interfaces);
    ++files_;
    if (names_.size() < names_max) names_.push_back(path.string());
    delivered_.assign(delivered_.size(), 0);
    return true;
}

bool RecordFiles::put(const store::PcapngPacket& packet) noexcept {
    try {
        if (!stopped_.empty()) return false;
        if (file_ != nullptr && file_->written_bytes() + file_->waiting_bytes() >= config_.segment_bytes) {
            notes_.emplace_back("goes on in the next file");
            end();
            comment_ = "goes on from the file before";
        }
        if (file_ == nullptr && !open()) return false;
        const std::size_t bytes = store::block_bytes(packet);
        if (bytes > config_.bytes_max || bytes_with_waiting() > config_.bytes_max - bytes) {
            stop(fmt::format("{} (bytes_max) have been written", size_text(config_.bytes_max)), false);
            return false;
        }
        file_packet_bytes_ += bytes;
        if (file_packet_bytes_ > store::PcapngFile::flush_bytes) {
            file_packet_bytes_ = 0;
            if (!has_space(2 * store::PcapngFile::flush_bytes)) return false;
        }
        file_->put(packet);
        ++delivered_[packet.interface];
        ++packets_;
        return true;
    } catch (const std::exception& error) {
        stop(error.what(), true);
        return false;
    }
}

void RecordFiles::flush() noexcept {
    if (file_ == nullptr) return;
    try {
        file_->flush();
    } catch (const std::exception& error) {
        stop(error.what(), true);
    }
}

void RecordFiles::note(std::string comment) {
    if (notes_.size() < notes_max) notes_.push_back(std::move(comment));
}

void RecordFiles::end() noexcept {
    if (file_ == nullptr) return;
    const std::unique_ptr<store::PcapngFile> file = std::move(file_);
    try {
        if (!failed_) {
            std::vector<store::PcapngStatistics> all = statistics_();
            for (store::PcapngStatistics& statistics : all) statistics.delivered = delivered_[statistics.interface];
            if (!stopped_.empty()) notes_.push_back("recording ended here: " + stopped_);
            if (!all.empty()) all.front().comments.insert(all.front().comments.end(), notes_.begin(), notes_.end());
            for (const store::PcapngStatistics& statistics : all) file->put(statistics);
        }
        file->close();
    } catch (const std::exception& error) {
        if (stopped_.empty()) stopped_ = error.what();
        failed_ = true;
        try {
            file->close();  // with what is whole of it
        } catch (const std::exception&) {
            // It keeps its hidden name; what is in it can be read.
        }
    }
    notes_.clear();
    comment_.clear();
    packets_ -= file->lost_packets();
    closed_bytes_ += file->written_bytes();
}

}  // namespace weir::record
