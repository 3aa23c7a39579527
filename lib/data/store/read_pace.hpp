// How fast something that nobody waits for may read from the disk that a run is written to, and when it is to give up.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

namespace weir::store {

/// Told before so many bytes are read; may wait. False: stop.
using ReadPace = std::function<bool(std::uint64_t bytes)>;

/// What was begun is left as it is: a pace said so.
class ReadingStopped final : public std::exception {
public:
    [[nodiscard]] const char* what() const noexcept override { return "stopped"; }
};

inline void keep_pace(const ReadPace& pace, std::uint64_t bytes) {
    if (pace && !pace(bytes)) throw ReadingStopped();
}

}  // namespace weir::store
