#include "study.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "lap.hpp"

namespace weir::bench {

using config::AssemblyMode;

namespace {

constexpr std::uint32_t room_bytes = 9216;  // a jumbo frame, whatever the packets' size: as a port with MTU 9000 has it

struct PoolFreer {
    void operator()(rte_mempool* pool) const noexcept { ::rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, PoolFreer>;

Pool make_pool(const char* kind, std::uint32_t buffers) {
    const std::uint32_t room = room_bytes + RTE_PKTMBUF_HEADROOM;
    Pool pool(::rte_mempool_create_empty("study", buffers, sizeof(rte_mbuf) + room, 256,
                                         sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY,
                                         RTE_MEMPOOL_F_NO_IOVA_CONTIG));
    rte_pktmbuf_pool_private settings{};
    settings.mbuf_data_room_size = static_cast<std::uint16_t>(room);
    if (pool == nullptr || ::rte_mempool_set_ops_byname(pool.get(), kind, nullptr) != 0)
        throw core::RunError(fmt::format("no pool of kind {}: {}", kind, rte_strerror(rte_errno)));
    ::rte_pktmbuf_pool_init(pool.get(), &settings);
    if (::rte_mempool_populate_default(pool.get()) < 0)
        throw core::RunError(fmt::format("no memory for {} buffers", buffers));
    ::rte_mempool_obj_iter(pool.get(), ::rte_pktmbuf_init, nullptr);
    return pool;
}

const StreamKind& kind_of(std::string_view name) {
    return *std::ranges::find(stream_kinds(), name, &StreamKind::name);
}

class Study {
public:
    Study(const StudyInput& input, const FrameMemory& memory, std::span<std::byte> outputs)
        : input_(input), memory_(memory), outputs_(outputs) {}

    nlohmann::json pools() {
        fmt::print("{:28}{:>6}  {:12}{:>9}  cycles per packet (frames copied into buffers by the same core)\n", "case",
                   "open", "pool", "buffers");
        for (const char* name : {"jungfrau-8k", "ejfat-1k"}) {
            const StreamKind& kind = kind_of(name);
            for (const std::uint32_t open : {1U, 64U}) {
                const WorkingSet set(memory_, input_.set_bytes, kind, {open, false, open});
                for (const std::uint32_t buffers : {4095U, 16383U, 65535U}) {
                    if (buffers < buffers_needed(kind, open) && open > 1) continue;
                    for (const char* ops : {"lf_stack", "stack", "ring_mp_mc"}) {
                        const Pool pool = make_pool(ops, buffers);
                        LapRunner runner(kind, {pool.get(), true, AssemblyMode::reference, open}, outputs_);
                        nlohmann::json row{{"name", name}, {"open_events", open}, {"pool", ops}, {"buffers", buffers}};
                        measure(row, runner, set, {Mode::touch, Mode::assemble, Mode::consume});
                        fmt::print("{:28}{:>6}  {:12}{:>9}{}\n", name, open, ops, buffers, columns(row));
                    }
                }
            }
        }
        return rows_;
    }

    nlohmann::json assembly() {
        fmt::print("{:28}{:>6}  {:11}{:12}{:>9}  cycles per packet\n", "case", "open", "assembly", "frames by",
                   "buffers");
        for (const char* name : {"jungfrau-8k", "ejfat-1k", "ejfat-256", "ejfat-128", "ejfat-64", "ejfat-64-alone",
                                 "roce-write-4k-icrc-ignored", "roce-write-4k-icrc-checked"}) {
            const StreamKind& kind = kind_of(name);
            for (const std::uint32_t open : {1U, 64U, 256U}) {
                const WorkingSet set(memory_, input_.set_bytes, kind, {open, false, open});
                for (const bool device_copies : {false, true})
                    for (const AssemblyMode assembly : {AssemblyMode::reference, AssemblyMode::copy}) {
                        const bool copies = assembly == AssemblyMode::copy;
                        const std::uint32_t buffers = copies ? 2047 : buffers_needed(kind, open);
                        const Pool pool = make_pool("lf_stack", buffers);
                        LapRunner runner(kind, {pool.get(), device_copies, assembly, open}, outputs_);
                        const char* name_of_assembly = copies ? "copy" : "reference";
                        const char* device = device_copies ? "this core" : "cold memory";
                        nlohmann::json row{{"name", name},
                                           {"open_events", open},
                                           {"assembly", name_of_assembly},
                                           {"frames_by", device},
                                           {"buffers", buffers}};
                        measure(row, runner, set, {Mode::touch, Mode::assemble, Mode::consume});
                        fmt::print("{:28}{:>6}  {:11}{:12}{:>9}{}\n", name, open, name_of_assembly, device, buffers,
                                   columns(row));
                    }
            }
        }
        return rows_;
    }

private:
    void measure(nlohmann::json& row, LapRunner& runner, const WorkingSet& set, const std::vector<Mode>& modes) {
        runner.run(Mode::verify, set);
        std::uint32_t disturbed = 0;
        for (const Mode mode : modes) {
            std::vector<double> cycles;
            for (std::uint32_t i = 0; i < input_.repetitions; ++i)
                cycles.push_back(static_cast<double>(runner.run_cold(mode, set, memory_, disturbed).cycles) /
                                 static_cast<double>(set.frames().size()));
            std::ranges::sort(cycles);
            row[std::string(name_of(mode)) + "_cycles"] = std::round(cycles[cycles.size() / 2] * 10) / 10;
            row[std::string(name_of(mode)) + "_cycles_min"] = std::round(cycles.front() * 10) / 10;
            row[std::string(name_of(mode)) + "_cycles_max"] = std::round(cycles.back() * 10) / 10;
        }
        row["disturbed_laps"] = disturbed;
        rows_.push_back(row);
    }

    static std::string columns(const nlohmann::json& row) {
        std::string text;
        for (const Mode mode : {Mode::touch, Mode::assemble, Mode::consume})
            text +=
                fmt::format("  {} {:6.0f}", name_of(mode), row[fmt::format("{}_cycles", name_of(mode))].get<double>());
        std::fflush(stdout);
        return text;
    }

    const StudyInput& input_;
    const FrameMemory& memory_;
    std::span<std::byte> outputs_;
    nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace

nlohmann::json run_study(const StudyInput& input, const FrameMemory& memory, std::span<std::byte> outputs) {
    Study study(input, memory, outputs);
    if (input.name == "pools") return study.pools();
    if (input.name == "assembly") return study.assembly();
    throw core::UsageError(fmt::format("--study: found '{}'; accepted: pools, assembly", input.name));
}

}  // namespace weir::bench
