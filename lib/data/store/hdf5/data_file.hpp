// One data file of a run: what is in it by docs/reference/HDF5.md, written so that a reader can follow (SWMR).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/hdf5/chunk_encoder.hpp"
#include "store/hdf5/handle.hpp"
#include "store/hdf5/layout.hpp"
#include "store/hdf5/tables.hpp"

namespace weir::store::hdf5 {

/// Where a file begins in its run.
struct RunPosition {
    std::uint64_t events = 0;
    std::uint64_t missing = 0;
    std::uint64_t payload_bytes = 0;  ///< of the payload stream; 0 where the data is an image
};

/// What all files of a run say of it.
struct RunText {
    std::string name;
    std::string start_json;  ///< configuration and machine
    std::string start_time;  ///< ISO 8601
    Nexus nexus;
};

/// The type of the pixels or bytes of a layout. The library must have been started.
Handle element_type(const Library& library, const Layout& layout);

class DataFile {
public:
    /// Creates the file and everything in it, and lets readers in. Throws core::RunError.
    DataFile(const std::filesystem::path& path, const Layout& layout, const RunText& text, const RunPosition& begin);

    /// An image: makes room for the next event. Its chunks may come in any order; what is not written reads as fill.
    void begin_image();
    /// `stored` is chunk `chunk` of that image, as it is stored: through the file's filter, or plain.
    void put_chunk(std::uint64_t chunk, std::span<const std::byte> stored, bool filtered);
    /// Compresses the chunk first, if the file has a filter.
    void encode_chunk(std::uint64_t chunk, std::span<const std::byte> plain);

    /// No image: appends to the stream.
    void put_payload(std::span<const std::byte> bytes);

    /// The event's row. `first_offset`: where its payload began in the stream of the run.
    void end_event(const EventInfo& event, std::uint64_t first_offset);
    /// The event that was begun does not become one.
    void drop_event() noexcept;

    /// All whole events reach the kernel, their rows last, so that a reader who counts rows finds all of them whole.
    void flush();
    /// fdatasync. After an error it must not be tried again.
    void sync();
    /// flush() and an end; the file can then be opened like any other.
    void close();
    /// Gives up: what is not in the file stays out, errors do not matter any more.
    void abandon() noexcept;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return library_.path(); }
    [[nodiscard]] const RunPosition& begin() const noexcept { return begin_; }
    /// Where the next event would begin.
    [[nodiscard]] const RunPosition& end() const noexcept { return end_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return end_.events - begin_.events; }
    /// Of chunks and rows, stored. The library's own come on top.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    /// Of the payload stream in this file: with those of an event that is not whole, and without.
    [[nodiscard]] std::uint64_t stream_bytes() const noexcept { return stream_bytes_; }
    [[nodiscard]] std::uint64_t whole_stream_bytes() const noexcept { return whole_stream_bytes_; }

private:
    void create_image(hid_t parent);
    void create_stream(hid_t parent);
    [[nodiscard]] Handle creation_properties(int rank, const hsize_t* chunk) const;
    void write_chunk(const hsize_t* offset, std::span<const std::byte> stored, bool filtered);
    void write_tail(bool whole);

    Library library_;
    Layout layout_;
    RunPosition begin_;
    RunPosition end_;
    Handle file_;
    Handle entry_;
    Handle data_;
    std::optional<Tables> tables_;
    ChunkEncoder encoder_;
    std::uint64_t bytes_ = 0;
    std::uint64_t stream_bytes_ = 0;  ///< in this file, those of an event that is not whole among them
    std::uint64_t whole_stream_bytes_ = 0;
    std::vector<std::byte> tail_;  ///< of the stream: the chunk that is not full
    bool tail_written_ = false;    ///< as it was at some flush: it then stays plain and in its place
    bool image_open_ = false;
};

}  // namespace weir::store::hdf5
