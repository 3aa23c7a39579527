#include "bench/verbs_end.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace {

using nlohmann::json;
using weir::bench::to_json;
using weir::bench::verbs_end_from_json;
using weir::bench::VerbsEnd;
using weir::core::RunError;

VerbsEnd some_end() {
    VerbsEnd end;
    end.queue_pair.qp = 0x11;
    end.queue_pair.psn = 0xfffffe;
    end.queue_pair.rkey = 0x89abcdef;
    end.queue_pair.va = 0x7fffdeadbeef0000;
    end.queue_pair.set_ipv4(0x0a010002);
    end.path_mtu = 4096;
    end.kind = {.write = true, .reliable = true};
    end.places = 100;
    end.place_bytes = 8256;
    return end;
}

TEST(VerbsEnd, ComesBackFromJsonAsItWas) {
    const json text = json::parse(to_json(some_end()).dump());
    EXPECT_EQ(text["address"], "10.1.0.2");
    EXPECT_EQ(text["operation"], "write");
    EXPECT_EQ(text["service"], "rc");
    EXPECT_EQ(verbs_end_from_json(text), some_end());
}

TEST(VerbsEnd, WhatCannotBeIsRefused) {
    const std::pair<const char*, json> wrong[] = {{"queue_pair", 1 << 24}, {"psn", 1 << 24},   {"path_mtu", 1500},
                                                  {"places", 0},           {"address", "::1"}, {"rkey", "x"},
                                                  {"memory", nullptr}};
    for (const auto& [key, value] : wrong) {
        json text = to_json(some_end());
        text[key] = value;
        EXPECT_THROW((void)verbs_end_from_json(text), RunError) << key;
        text.erase(key);
        EXPECT_THROW((void)verbs_end_from_json(text), RunError) << key;
    }
}

TEST(VerbsEnd, PlacesAreTakenInTurn) {
    const VerbsEnd end = some_end();
    EXPECT_EQ(end.place_of(0), 0U);
    EXPECT_EQ(end.place_of(99), 99U);
    EXPECT_EQ(end.place_of(100), 0U);
    EXPECT_EQ(end.place_of(1234), 34U);
}

}  // namespace
