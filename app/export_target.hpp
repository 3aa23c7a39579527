// What `weir export` writes to: one class per format, given one event after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "filled_message.hpp"
#include "store/run_reader.hpp"

namespace weir::app {

struct ExportOptions {
    std::filesystem::path out;
    std::optional<std::uint32_t> source;  ///< only this one
    std::string dtype;                    ///< npy: empty for the format's own
    std::vector<std::uint64_t> shape;     ///< npy: of one source's message; empty for the format's own
    std::string fill = "0";               ///< npy: what stands where bytes are missing
    bool fill_given = false;              ///< else a reduced run keeps its markers
    bool split_sources = false;           ///< npy: a file per source
    std::string codec;                    ///< hdf5: of chunks; empty for the run's own
    std::vector<std::string> nexus;       ///< hdf5: "KEY=VALUE" of what the run does not know
    bool require_nxmx = false;            ///< hdf5: refused if the files would be no NXmx
    bool concatenate = false;             ///< raw: one file for all events
    std::uint32_t packet_bytes = 8192;    ///< pcap: payload bytes of a packet where the format does not fix them
    std::uint64_t event_bytes_max = event_bytes_max_default;  ///< larger ones are left out
};

/// An event with its payload: what came of each source's message, without the gaps. Where the payload is not what was
/// received, each source's part of it.
struct ExportEvent {
    const store::EventInfo* info = nullptr;
    struct Message {
        std::vector<std::byte> bytes;
    };
    std::vector<Message> messages;  ///< one per source of the event, empty for those left out
};

/// An event cannot be had in this format, but others can: it is left out, and said.
struct EventRefused : core::RunError {
    using core::RunError::RunError;
};

/// Throws EventRefused if the event would be too large with its gaps filled in. For targets that fill them in.
void refuse_too_large(const store::EventInfo& event, const ExportOptions& options);

class ExportTarget {
public:
    virtual ~ExportTarget() = default;
    /// Throws EventRefused before anything of the event is written, core::RunError if the export is to end.
    virtual void put(const ExportEvent& event) = 0;
    /// All events have been given. Returns one sentence of what was written.
    virtual std::string finish() = 0;
    /// What could not be done as asked; empty if nothing.
    [[nodiscard]] virtual std::string shortfall() const { return {}; }
};

/// `entries`: the events to come. One such function per format; the table of formats is in export.cpp.
using MakeTarget = std::unique_ptr<ExportTarget>(const store::RunReader& run, const ExportOptions& options,
                                                 const std::vector<store::IndexEntry>& entries);
MakeTarget make_npy_target;
MakeTarget make_raw_target;
MakeTarget make_pcap_target;
MakeTarget make_pcapng_target;
MakeTarget make_hdf5_target;
MakeTarget make_mdf_target;

}  // namespace weir::app
