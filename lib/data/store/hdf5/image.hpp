// Puts the payload of an event into the chunks of its image: pieces that are whole chunks go in as they are, the rest
// is decoded, laid where it belongs, and compressed again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/hdf5/data_file.hpp"
#include "store/hdf5/layout.hpp"
#include "store/image_stretches.hpp"

namespace weir::store::hdf5 {

class ImageAssembler {
public:
    explicit ImageAssembler(const Layout& layout);

    /// `event` fits the layout (check_event) and stays until end().
    void begin(const EventInfo& event);
    /// A payload block that is a chunk as it is: put into `file`, and true. Else false, and take() has to be called.
    [[nodiscard]] bool take_stored(const BlockHeader& header, std::span<const std::byte> body, DataFile& file);
    /// The next bytes of the decoded payload.
    void take(std::span<const std::byte> decoded);
    /// The rest of the image goes into `file`; chunks of which nothing came are left out.
    void end(DataFile& file);

private:
    void add_source(const SourceInfo& source, std::uint64_t module);
    void copy(std::uint64_t offset, std::span<const std::byte> bytes);
    [[nodiscard]] std::span<const std::byte> pixels_of(std::uint64_t chunk);
    [[nodiscard]] bool stores(const BlockHeader& header) const;

    Layout layout_;
    std::uint64_t chunk_bytes_;      ///< of the payload, where several pixels may share a byte
    ImageStretches came_;            ///< of the payload
    std::size_t stretch_ = 0;        ///< the one that the payload has come to
    std::uint64_t used_ = 0;         ///< of it
    std::vector<std::byte> part_;    ///< of whole chunks as the payload has them; made when something has to be decoded
    std::vector<std::byte> pixels_;  ///< of a chunk, where the payload has several in a byte
    std::vector<bool> touched_;      ///< per chunk: something of it is in part_
};

}  // namespace weir::store::hdf5
