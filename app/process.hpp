// What the whole process is made ready for before a command runs.
#pragma once

namespace weir::app {

/// Opens /dev/null where standard input, output or error is closed: the next file that is opened would get its number,
/// and the text that was meant for people. First of all, before anything opens a file.
void open_standard_descriptors() noexcept;

/// A write that fails says so, to whoever writes, instead of ending the process: to a reader that has left (SIGPIPE),
/// to a file that may not grow any more (SIGXFSZ).
void let_writes_fail() noexcept;

/// Standard output goes to a pipe, or the like, that nobody reads any more.
[[nodiscard]] bool output_reader_left() noexcept;

}  // namespace weir::app
