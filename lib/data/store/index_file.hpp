// The index of a run that is being written: where each event is. It is locked for as long as the run is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "store/file.hpp"
#include "store/format.hpp"

namespace weir::store {

class IndexFile {
public:
    static constexpr std::size_t entries_per_block = 2048;

    IndexFile() = default;
    /// Writes the index anew into a file that is open and locked. `run_tag`: stamped into each block. Throws
    /// core::RunError if it cannot be emptied; so do the others if they fail.
    IndexFile(File file, std::uint64_t run_tag);

    /// Adds one block; `version`: of the run. At most entries_per_block.
    void write(std::span<const IndexEntry> entries, std::uint16_t version);
    void sync() { file_.sync(); }
    /// Gives up the lock.
    void close() { file_.close(); }

    /// For the manifest.
    [[nodiscard]] nlohmann::json listed() const;

private:
    File file_;
    std::uint64_t run_tag_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t blocks_ = 0;
    std::uint32_t headers_crc_ = 0;
};

}  // namespace weir::store
