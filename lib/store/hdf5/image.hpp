// Puts the payload of an event into the chunks of its image: pieces that are whole chunks go in as they are, the rest
// is decoded, laid where it belongs, and compressed again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/hdf5/data_file.hpp"
#include "store/hdf5/layout.hpp"

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
    /// Payload bytes that lie in the image without a gap.
    struct Stretch {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    void add_stretch(std::uint64_t offset, std::uint64_t bytes);
    void add_source(const SourceInfo& source, std::uint64_t module);
    void copy(std::uint64_t offset, std::span<const std::byte> bytes);
    void fill(std::byte* to, std::uint64_t bytes) const;
    void fill_torn_elements();
    [[nodiscard]] bool stores(const BlockHeader& header) const;

    Layout layout_;
    std::uint64_t chunk_bytes_;
    std::vector<Stretch> stretches_;
    std::size_t stretch_ = 0;  ///< the one that the payload has come to
    std::uint64_t used_ = 0;   ///< of it
    bool gaps_ = false;
    std::vector<std::byte> image_;  ///< whole chunks; made when something has to be decoded
    std::vector<bool> touched_;     ///< per chunk: something of it is in image_
};

}  // namespace weir::store::hdf5
