// A file with a line of JSON for each change of state: what happened when, for whoever comes later.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace weir::serve {

class RunLog {
public:
    /// Lines are added to `path`; empty: nothing is kept. Throws core::RunError if it cannot be opened.
    explicit RunLog(const std::string& path);
    ~RunLog();
    RunLog(const RunLog&) = delete;
    RunLog& operator=(const RunLog&) = delete;

    /// Adds "time" to `line`, an object. A line that cannot be written whole is an error that is returned, and taken
    /// back as far as the disk allows; readers skip what is left of it.
    [[nodiscard]] std::string add(nlohmann::json line);

private:
    std::string path_;
    int fd_ = -1;
};

}  // namespace weir::serve
