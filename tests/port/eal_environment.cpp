// EAL for all tests of this program: it starts once in the life of a process.
#include <gtest/gtest.h>

#include <optional>

#include "port/eal.hpp"

namespace weir::port {

namespace {

class EalEnvironment : public testing::Environment {
public:
    void SetUp() override {
        EalConfig config;
        config.lcores = {0};
        config.memory_bytes = std::uint64_t{96} << 20U;
        config.pin = false;
        config.touch = true;
        config.drivers = {{"net_null"}};
        eal_.emplace(config);
    }
    void TearDown() override { eal_.reset(); }

private:
    std::optional<StandingEal> eal_;
};

[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new EalEnvironment);

}  // namespace

}  // namespace weir::port
