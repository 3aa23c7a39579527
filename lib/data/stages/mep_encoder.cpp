#include "stages/mep_encoder.hpp"

#include <rte_cycles.h>

namespace weir::stages {

using reduce::MfpCounter;
using reduce::MfpProblem;

namespace {

MfpCounter counter_of(MfpProblem problem) noexcept {
    switch (problem) {
        case MfpProblem::head_missing:
            return MfpCounter::problem_head_missing;
        case MfpProblem::truncated:
            return MfpCounter::problem_truncated;
        case MfpProblem::magic:
            return MfpCounter::problem_magic;
        case MfpProblem::too_many:
            return MfpCounter::problem_too_many;
        case MfpProblem::too_long:
            return MfpCounter::problem_too_long;
        case MfpProblem::length:
            return MfpCounter::problem_length;
        case MfpProblem::mismatch:
        case MfpProblem::none:
        case MfpProblem::count_:
            break;
    }
    return MfpCounter::problem_mismatch;
}

}  // namespace

MepEncoder::MepEncoder(const reduce::MepWriter::Config& config, std::unique_ptr<reduce::PieceCodec> codec)
    : packets_(config),
      store_(std::move(codec)),
      received_(BytesEncoder::Config{config.refs_max, true}, nullptr),
      piece_(reduce::piece_bytes) {
    listed_.reserve(config.sources.size());
}

bool MepEncoder::begin(const assemble::Event& event) noexcept {
    const std::uint64_t start = ::rte_rdtsc();
    listed_.clear();
    for (std::uint32_t source = 0; source < event.messages.size(); ++source)
        if (lists_source(event, source)) listed_.push_back(source);
    const reduce::MepWriter::Result result = packets_.begin(
        std::span<const assemble::Message* const>(event.messages.data(), event.messages.size()), listed_);
    tally_.add(MfpCounter::blocks);
    is_packet_ = result.problem == MfpProblem::none;
    if (is_packet_) {
        packet_bytes_ = left_ = result.bytes;
        piece_filled_ = 0;
        tally_.add(MfpCounter::events, result.events);
        tally_.add(MfpCounter::fragments, result.events * listed_.size());
        tally_.add(MfpCounter::missing_fragments, result.missing);
        tally_.add(MfpCounter::bytes_out, result.bytes);
    } else {
        tally_.add(counter_of(result.problem));
    }
    for (const assemble::Message* message : event.messages)
        if (message != nullptr) tally_.add(MfpCounter::bytes_in, message->received_bytes);
    tally_.add(MfpCounter::cycles, ::rte_rdtsc() - start);
    return is_packet_ || received_.begin(event);
}

EventEncoder::Step MepEncoder::step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept {
    if (!is_packet_) return received_.step(writer, read_bytes);
    read_bytes = 0;
    if (piece_filled_ == 0) {
        const std::uint64_t start = ::rte_rdtsc();
        read_bytes = piece_filled_ = packets_.fill(piece_);
        left_ -= piece_filled_;
        tally_.add(MfpCounter::cycles, ::rte_rdtsc() - start);
    }
    if (writer.payload_room() < store_.bound(piece_filled_)) return Step::full;
    const reduce::StoredPiece stored = store_.put(std::span(piece_).first(piece_filled_), writer.open_payload());
    writer.close_payload(stored.bytes, static_cast<std::uint32_t>(piece_filled_),
                         static_cast<store::Encoding>(stored.encoding), left_ == 0, stored.element_bytes);
    piece_filled_ = 0;
    return left_ == 0 ? Step::done : Step::more;
}

std::vector<reduce::ReducerCounters> MepEncoder::counters() const {
    std::vector<reduce::ReducerCounters> all{reduce::counters_of("mfp", reduce::mfp_counters, tally_)};
    for (const reduce::ReducerCounters& codec : store_.counters()) all.push_back(codec);
    return all;
}

}  // namespace weir::stages
