// Controls that note what is asked of them.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "web/controls.hpp"

namespace weir::web::test {

class FakeControls : public Controls {
public:
    Outcome apply(std::span<const Value> values, std::string_view command) override {
        const std::lock_guard lock(mutex_);
        for (const auto& [path, value] : values) {
            calls_.push_back("set " + path + " " + value.dump());
            if (path == "config/unknown") return {404, "there is no config/unknown"};
        }
        if (command.empty()) return {200, ""};
        calls_.push_back("execute " + std::string(command));
        if (command == "stop") return {409, "nothing runs"};
        return {202, "on its way"};
    }
    std::vector<std::string> calls() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> calls_;
};

}  // namespace weir::web::test
