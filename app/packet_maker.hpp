// Makes the packets of a stored message again: the inverse of decoding and assembling, from the run's own
// configuration.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/event_scanner.hpp"
#include "wire/encode.hpp"
#include "wire/format.hpp"

namespace weir::app {

class PacketMaker {
public:
    /// `config`: the run's, as in its manifest. Throws core::RunError naming the stream whose packets cannot be made
    /// again. `packet_bytes`: payload of a packet where the format does not fix it.
    PacketMaker(const nlohmann::json& config, std::uint32_t packet_bytes);

    /// Appends the frames of one source's message. `bytes`: what came of it, without the gaps; missing bytes get no
    /// packet.
    void make(const store::EventInfo& event, const store::SourceInfo& source, std::span<const std::byte> bytes,
              std::vector<std::vector<std::byte>>& frames);

    /// Memory for the message with its gaps, where its packets are cut from the whole of it; else 0.
    [[nodiscard]] std::uint64_t whole_bytes(const store::SourceInfo& source) const;

    /// Where a source's packets came from: the place of its port in the configuration.
    [[nodiscard]] std::size_t port_of(std::uint32_t source) const {
        return source < sources_.size() ? streams_[sources_[source].stream].port : 0;
    }
    /// What a replay of the frames will not give back, in one sentence; empty if nothing.
    [[nodiscard]] std::string shortfall() const;

private:
    struct Stream {
        const wire::FormatEntry* format = nullptr;
        std::size_t port = 0;
        bool roce = false;
        bool immediate = false;
        bool counted = false;  ///< the packets carry no number: event = "arrival" or "count"
        wire::FormatOptions options;
        wire::FormatContext context;
        std::uint64_t piece_bytes = 0;  ///< payload of one packet; 0: the whole message is one
    };
    struct Source {
        std::size_t stream = 0;
        wire::FrameSpec frame;
        std::uint32_t qp = 0;
        std::uint32_t lane = 0;  ///< first or second interface of a module
        std::uint32_t psn = 0;   ///< of the next packet
        std::uint64_t next_number = 0;
    };

    void add_stream(const nlohmann::json& config, const nlohmann::json& stream);
    void make_datagrams(const Stream& stream, const Source& source, const store::SourceInfo& info,
                        std::span<const std::byte> bytes, std::vector<std::vector<std::byte>>& frames);
    void make_roce(const Stream& stream, Source& source, const store::EventInfo& event, const store::SourceInfo& info,
                   std::span<const std::byte> bytes, std::vector<std::vector<std::byte>>& frames);
    void set_format(Stream& stream, const nlohmann::json& config, const nlohmann::json& text) const;
    void put_header(const Stream& stream, const Source& source, const store::SourceInfo& info, std::uint64_t offset);

    std::uint32_t packet_bytes_;
    std::vector<Stream> streams_;
    std::vector<Source> sources_;
    std::vector<std::byte> datagram_;
    std::uint64_t left_out_ = 0;    ///< messages
    std::uint64_t renumbered_ = 0;  ///< messages
};

}  // namespace weir::app
