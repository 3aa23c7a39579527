#include "stages/capture_source.hpp"

#include <algorithm>
#include <exception>

#include "core/one_writer.hpp"

namespace weir::stages {

namespace {

/// Stamps can be anything, so what is made of them stops at the ends of the scale.
TimeNs sum(TimeNs a, TimeNs b) noexcept {
    TimeNs out = 0;
    if (!__builtin_add_overflow(a, b, &out)) return out;
    return a < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max();
}

TimeNs difference(TimeNs a, TimeNs b) noexcept {
    TimeNs out = 0;
    if (!__builtin_sub_overflow(a, b, &out)) return out;
    return a < 0 ? std::numeric_limits<TimeNs>::min() : std::numeric_limits<TimeNs>::max();
}

void add_new(std::vector<std::string>& texts, const std::vector<std::string>& more) {
    for (const std::string& text : more)
        if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

}  // namespace

CaptureSource::CaptureSource(const Config& config, store::BlockLender* lender) : config_(config), lender_(lender) {
    for (const std::string& file : config.files) files_.push_back({store::CaptureReader(file, lender), {}});
}

void CaptureSource::read(File& file) noexcept {
    file.has_record = file.reader.next(file.record);
    if (!file.has_record && !file.reader.unread().empty())
        cut_ns_.store(std::min(cut_ns_.load(std::memory_order_relaxed), std::max<TimeNs>(0, time_ns_)),
                      std::memory_order_release);
    const std::uint64_t other_link = file.reader.other_link();
    if (other_link == file.other_link) return;
    core::add(other_link_, other_link - file.other_link);
    file.other_link = other_link;
}

void CaptureSource::read_first() noexcept {
    for (File& file : files_) read(file);
    given_ = nullptr;
}

/// Distances count from the first record of all files.
void CaptureSource::set_range() noexcept {
    const File* const first = earliest();
    const TimeNs first_ns = first != nullptr ? first->record.time_ns : 0;
    const auto moment = [&](const TimeBound& bound) { return bound.relative ? sum(first_ns, bound.ns) : bound.ns; };
    if (config_.from) from_ns_ = moment(*config_.from);
    if (config_.to) to_ns_ = moment(*config_.to);
}

/// The file whose next record is the earliest.
CaptureSource::File* CaptureSource::earliest() noexcept {
    File* found = nullptr;
    for (File& file : files_)
        if (file.has_record && (found == nullptr || file.record.time_ns < found->record.time_ns)) found = &file;
    return found;
}

bool CaptureSource::next(Item& out) noexcept {
    if (!begun_) {
        read_first();
        set_range();
        begun_ = true;
    }
    if (given_ != nullptr) read(*given_);
    given_ = earliest();
    if (given_ == nullptr) return false;
    const TimeNs stamp = given_->record.time_ns;
    if (stamp < from_ns_ || stamp >= to_ns_) {
        core::add(skipped_);
        out = {};
        return true;
    }
    if (records_++ == 0) first_ns_ = stamp;
    const TimeNs time = sum(stamp, shift_ns_);
    if (time < time_ns_ && time_ns_ - time > ran_back_ns()) [[unlikely]]
        ran_back_ns_.store(time_ns_ - time, std::memory_order_relaxed);
    time_ns_ = std::max(time_ns_, time);
    out = {&given_->record, static_cast<std::size_t>(given_ - files_.data()), time_ns_};
    return true;
}

bool CaptureSource::next_pass() {
    if (records_per_pass_ == 0) records_per_pass_ = records_;
    if (records_per_pass_ == 0) return false;
    const TimeNs span = difference(difference(time_ns_, shift_ns_), first_ns_);
    const auto step = std::max<TimeNs>(1, span / static_cast<TimeNs>(records_per_pass_));
    if (__builtin_add_overflow(shift_ns_, sum(span, step), &shift_ns_)) return false;
    unread_ = unread();
    warnings_ = warnings();
    try {
        for (File& file : files_) {
            file.reader = store::CaptureReader(file.reader.name(), lender_);
            file.other_link = 0;
        }
    } catch (const std::exception& error) {
        unread_.emplace_back(error.what());
        warnings_.emplace_back(error.what());
        return false;
    }
    read_first();
    ++passes_;
    return true;
}

std::vector<std::string> CaptureSource::unread() const {
    std::vector<std::string> texts = unread_;
    for (const File& file : files_) add_new(texts, file.reader.unread());
    return texts;
}

std::vector<std::string> CaptureSource::warnings() const {
    std::vector<std::string> texts = warnings_;
    for (const File& file : files_) add_new(texts, file.reader.warnings());
    return texts;
}

}  // namespace weir::stages
