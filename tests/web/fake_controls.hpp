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
    Outcome execute(std::string_view command) override {
        const std::lock_guard lock(mutex_);
        calls_.push_back("execute " + std::string(command));
        if (command == "stop") return {409, "nothing runs"};
        return {202, "on its way"};
    }
    Outcome set(std::string_view path, const nlohmann::json& value) override {
        const std::lock_guard lock(mutex_);
        calls_.push_back("set " + std::string(path) + " " + value.dump());
        if (path == "config/unknown") return {404, "there is no config/unknown"};
        return {200, ""};
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
