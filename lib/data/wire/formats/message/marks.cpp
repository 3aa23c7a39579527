// A message has no header, so nothing in it says what it is.
#include "wire/format_marks.hpp"

namespace weir::wire {

FormatMarks message_marks() {
    return {};
}

}  // namespace weir::wire
