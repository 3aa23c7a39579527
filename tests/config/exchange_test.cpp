// The keys of a RoCE stream that agrees on queue pairs at run time.
#include "case.hpp"

namespace weir::config::test {
namespace {

const Edits perftest{{"device = \"net_null0\"", "device = \"net_null0\"\naddress = \"10.1.0.2/24\""},
                     {"event = \"immediate\"", "event = \"count\"\nservice = \"rc\"\nexchange = \"perftest\""}};

std::string with_exchange(const Edits& more = {}) {
    return edited(edited(roce_text, perftest), more);
}

TEST(ConfigExchange, ListensWherePerftestDoesUnlessToldOtherwise) {
    const RunConfig config = parse_config(with_exchange(), "test.toml");
    const StreamConfig& stream = config.streams.front();
    EXPECT_EQ(stream.exchange, Exchange::perftest);
    EXPECT_EQ(stream.listen_address, "0.0.0.0");
    EXPECT_EQ(stream.listen_port, 18515);
    EXPECT_EQ(parse_config(roce_text, "test.toml").streams.front().exchange, Exchange::none);
}

TEST(ConfigExchange, IsPrintedAsItIsRead) {
    for (const char* listen : {"10.2.0.1", "10.2.0.1:20000", "0.0.0.0:1"}) {
        const RunConfig config = parse_config(
            with_exchange({{"\"perftest\"", "\"perftest\"\nlisten = \"" + std::string(listen) + "\""}}), "test.toml");
        EXPECT_TRUE(parse_config(print_config(config), "printed.toml") == config) << print_config(config);
        EXPECT_NE(print_config(config).find(listen), std::string::npos);
    }
}

TEST(ConfigExchange, ProposesAKeyAndABufferForEachQueuePair) {
    const RunConfig config = parse_config(with_exchange(), "test.toml");
    const std::vector<RoceConfig::Region>& regions = config.streams.front().roce.regions;
    ASSERT_EQ(regions.size(), 2U);
    EXPECT_EQ(regions[1].qp, 18U);
    EXPECT_EQ(regions[1].region.bytes, config.streams.front().max_message_bytes);
    EXPECT_NE(regions[0].region.va, regions[1].region.va);
    EXPECT_NE(regions[0].region.rkey, regions[1].region.rkey);
    const std::string own = "region = { va = 4096, bytes = \"1MiB\", rkey = 7 }";
    const RunConfig said = parse_config(with_exchange({{"\"perftest\"", "\"perftest\"\n" + own}}), "test.toml");
    ASSERT_EQ(said.streams.front().roce.regions.size(), 1U);
    EXPECT_EQ(said.streams.front().roce.regions.front().region.rkey, 7U);
}

class ConfigExchangeError : public ConfigError {};

TEST_P(ConfigExchangeError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

const std::string text = with_exchange();
const std::string two = text + R"([[stream]]
port = "det0"
transport = "roce"
qp = [19]
service = "rc"
format = "message"
event = "count"
exchange = "perftest"
)";
const std::string key = "exchange = \"perftest\"";

const std::vector<Case> keys_cases{
    Case{"OfUdp", udp_text, {{udp_dst, udp_dst + "\nexchange = \"perftest\" #!"}}, {"stream.exchange", "roce"}},
    Case{"ListenOfUdp", udp_text, {{udp_dst, udp_dst + "\nlisten = \"0.0.0.0\" #!"}}, {"stream.listen", "roce"}},
    Case{"Word", text, {{key, "exchange = \"cm\" #!"}}, {"stream.exchange", "\"none\" or \"perftest\""}},
    Case{"ListenWithout", roce_text, {{"event =", "listen = \"0.0.0.0\" #!\nevent ="}}, {"stream.listen"}},
    Case{"ListenName", text, {{key, key + "\nlisten = \"localhost\" #!"}}, {"stream.listen", "\"localhost\""}},
    Case{"ListenPort", text, {{key, key + "\nlisten = \"10.0.0.1:70000\" #!"}}, {"stream.listen", "18515"}},
    Case{"ListenNoPort", text, {{key, key + "\nlisten = \"10.0.0.1:\" #!"}}, {"stream.listen"}},
    Case{"ListenPortZero", text, {{key, key + "\nlisten = \"10.0.0.1:0\" #!"}}, {"stream.listen"}},
    Case{"Listening", text, {{"service = \"rc\"", "service = \"listen\""}, {key, key + " #!"}}, {"\"rc\", \"uc\" or"}},
    Case{"Peer", text, {{key, key + "\npeer = [{ qp = 1 }, { qp = 2 }] #!"}}, {"stream.peer", "says who it is"}},
    Case{"NoAddress",
         text,
         {{"address = \"10.1.0.2/24\"\n", ""}, {key, key + " #!"}},
         {"stream.exchange", "IPv4 address"}},
    Case{"TwoAtOnePlace",
         two,
         {{key, key + "\nlisten = \"10.0.0.1\""}, {"qp = [19]", "qp = [19]\nlisten = \"0.0.0.0:18515\" #!"}},
         {"stream.listen", "18515", "a port of its own"}}};
INSTANTIATE_TEST_SUITE_P(Keys, ConfigExchangeError, testing::ValuesIn(keys_cases), case_name);

}  // namespace
}  // namespace weir::config::test
