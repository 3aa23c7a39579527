// The events of several builders in one order. See merged_events.hpp.
#include "store/hdf5/merged_events.hpp"

#include <algorithm>
#include <tuple>

#include "store/hdf5/input_file.hpp"

namespace weir::store::hdf5 {

namespace {

struct Candidate {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t row = 0;
    std::uint32_t epoch = 0;
    std::uint32_t file = 0;
    bool complete = false;
    bool closed = false;
};

void add_file(const BuilderDataFile& file, std::uint32_t number, bool closed, std::vector<Candidate>& to) {
    const InputFile input(file.path);
    const auto numbers = input.values<std::uint64_t>("/entry/events/number", h5().H5T_NATIVE_UINT64_g);
    const auto epochs = input.values<std::uint32_t>("/entry/events/epoch", h5().H5T_NATIVE_UINT32_g);
    const auto bytes = input.values<std::uint64_t>("/entry/events/payload_bytes", h5().H5T_NATIVE_UINT64_g);
    const auto complete = input.values<std::uint8_t>("/entry/events/complete", h5().H5T_NATIVE_UINT8_g);
    for (std::uint64_t row = 0; row < file.events; ++row)
        to.push_back({numbers[row], bytes[row], row, epochs[row], number, complete[row] != 0, closed});
}

}  // namespace

MergedEvents merge_events(const BuilderFiles& found) {
    const Session session;
    std::vector<Candidate> all;
    std::uint32_t number = 0;
    for (const BuilderRun& run : found.runs)
        for (const BuilderDataFile& file : run.files) add_file(file, number++, !run.interrupted, all);
    const auto name = [](const Candidate& event) { return std::tuple(event.epoch, event.number); };
    const auto worth = [](const Candidate& event) { return std::tuple(event.complete, event.bytes, event.closed); };
    std::ranges::stable_sort(all, {}, name);
    MergedEvents merged;
    for (auto first = all.begin(); first != all.end();) {
        const auto next =
            std::find_if(first, all.end(), [&](const Candidate& event) { return name(event) != name(*first); });
        const auto best = std::ranges::max_element(first, next, {}, worth);
        merged.places.push_back({best->file, best->row});
        merged.copies += static_cast<std::uint64_t>(next - first - 1);
        first = next;
    }
    return merged;
}

}  // namespace weir::store::hdf5
