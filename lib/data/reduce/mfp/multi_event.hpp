// Multi-event packets: the multi-fragment packets of all sources for one block of events, put together. In two orders,
// both specified byte by byte in docs/reference/reduce/mfp.md: source by source, as LHCb's event builder of late 2019
// has it ("mep"), or event by event ("events"). Written piece by piece on a worker; mep_view.hpp reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reduce/mfp/block.hpp"

namespace weir::reduce {

enum class MepOrder : std::uint8_t { sources, events };

/// Of the packet in order of events: the bytes "WEVT".
inline constexpr std::uint32_t mep_events_magic = 0x54564557;

/// What a source is called in the packet.
struct MepSource {
    std::uint16_t id = 0;
    std::uint16_t version = 0;
};

/// Writes one packet after the other. Memory is taken at construction: 7 bytes for each source and fragment, 8 for
/// each reference.
class MepWriter {
public:
    struct Config {
        MfpLayout layout;
        MepOrder order = MepOrder::sources;
        std::vector<MepSource> sources;  ///< of the run
        std::uint32_t fragments_max = 16384;
        std::uint32_t refs_max = 65536;  ///< references that the messages of an event can have, all together
    };
    struct Result {
        MfpProblem problem = MfpProblem::none;  ///< not none: no packet can be made
        std::uint64_t bytes = 0;                ///< of the packet that fill() gives
        std::uint64_t events = 0;
        std::uint64_t missing = 0;  ///< fragments of which bytes did not arrive
    };

    explicit MepWriter(const Config& config);
    MepWriter(const MepWriter&) = delete;
    MepWriter& operator=(const MepWriter&) = delete;

    /// Looks at the messages of an event, one for each source of the run, null where there is none. `listed`: sources
    /// whose fragments are in the packet; one without a message, or whose head did not arrive whole, has missing
    /// fragments only.
    Result begin(std::span<const assemble::Message* const> messages, std::span<const std::uint32_t> listed) noexcept;
    /// The next bytes of the packet: as many as fit, but for a few at its borders. 0 when there are no more; `out` has
    /// at least 64.
    [[nodiscard]] std::size_t fill(std::span<std::byte> out) noexcept;

private:
    struct Source {
        Source(const Config& config, std::uint32_t number, RefRoom& room)
            : number(number), refs(room), block(config.fragments_max) {}
        std::uint32_t number;
        SortedRefs refs;
        MfpBlock block;
        RefReader reader;
    };
    enum class Part : std::uint8_t { head, ids, versions, offsets, block_head, types, sizes, data, end };

    [[nodiscard]] MfpProblem read_blocks(std::span<const assemble::Message* const> messages) noexcept;
    [[nodiscard]] std::uint64_t total_bytes() const noexcept;
    [[nodiscard]] std::uint64_t head_bytes() const noexcept;
    [[nodiscard]] bool step_sources(std::span<std::byte>& out) noexcept;
    [[nodiscard]] bool step_events(std::span<std::byte>& out) noexcept;
    [[nodiscard]] bool step_names(std::span<std::byte>& out, std::uint64_t align) noexcept;
    [[nodiscard]] bool step_source_data(std::span<std::byte>& out) noexcept;
    [[nodiscard]] bool step_event_data(std::span<std::byte>& out) noexcept;
    [[nodiscard]] std::size_t copy_part(Source& source, std::uint32_t offset, std::uint64_t bytes,
                                        std::span<std::byte>& out) noexcept;
    void next(Part part) noexcept {
        part_ = part;
        index_ = 0;
        done_ = 0;
    }

    Config config_;
    RefRoom refs_;
    std::vector<Source> sources_;
    std::vector<Source*> listed_;
    std::uint64_t first_event_ = 0;
    std::uint32_t fragments_ = 0;
    Part part_ = Part::end;
    std::size_t source_ = 0;   ///< whose block is written
    std::uint64_t index_ = 0;  ///< entry of the table, or fragment
    std::uint64_t done_ = 0;   ///< bytes of that fragment that were written; running offset in tables
};

}  // namespace weir::reduce
