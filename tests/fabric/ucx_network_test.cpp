#include "fabric/ucx_network.hpp"
#include "fabric/cluster_thread.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/message_bytes.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "effort.hpp"
#include "fabric/control_frame.hpp"
#include "fabric/control_socket.hpp"
#include "fabric/hello_seal.hpp"
#include "fabric/transfers.hpp"
#include "fabric/ucx_worker.hpp"

namespace weir::fabric {
namespace {

using cluster::Block;
using cluster::Ending;
using cluster::Incarnation;
using cluster::Kind;
using cluster::Message;
using cluster::NodeId;
using cluster::Payload;
using core::monotonic_ns;
using core::ns_per_ms;
using core::ns_per_s;
using core::TimeNs;

constexpr TimeNs patience = 120 * ns_per_s;

bool is_free(const std::string& address) {
    try {
        static_cast<void>(listen_at(HostAddress(address)));
    } catch (const core::RunError&) {
        return false;
    }
    return true;
}

/// Not of those that the kernel gives to connections, and to UCX: one could be taken before it is used here.
std::vector<std::string> free_addresses(std::size_t count, const std::string& host = "127.0.0.1") {
    static unsigned next = static_cast<unsigned>(::getpid()) * 37U;
    std::vector<std::string> addresses;
    for (unsigned tries = 0; addresses.size() < count && tries < 1000; ++tries) {
        auto address = host + ":" + std::to_string(20000 + next++ % 12000);
        if (is_free(address)) addresses.push_back(std::move(address));
    }
    return addresses.size() < count ? std::vector<std::string>() : addresses;
}

UcxNetwork::Config config_of(const std::vector<std::string>& addresses, NodeId self, Incarnation incarnation = 1) {
    UcxNetwork::Config config;
    config.addresses = addresses;
    for (std::size_t node = 0; node < addresses.size(); ++node) config.names.push_back("node" + std::to_string(node));
    config.self = self;
    config.incarnation = incarnation;
    config.agreement = 17;
    config.reconnect_ns = 20 * ns_per_ms;
    return config;
}

std::vector<std::byte> bytes_of(std::size_t count, unsigned seed) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xffU);
    return bytes;
}

Message part_of(Block block) {
    return {.kind = Kind::part, .from = 1, .to = 1, .block = block, .end = block + 1};
}

Payload payload_of(const std::vector<std::byte>& bytes) {
    return {bytes.size(), handle_of(bytes.data())};
}

/// Remembers what it is told, and whose memory is whose.
class Witness final : public Receiver {
public:
    struct Taken {
        NodeId from;
        Message message;
        std::vector<std::byte> bytes;
    };

    ~Witness() override { EXPECT_EQ(rooms, 0); }
    void up(NodeId node, Incarnation incarnation) override {
        lives[node] = incarnation;
        log.push_back("up " + std::to_string(node) + "." + std::to_string(incarnation));
    }
    void absent(NodeId node, Ending why) override { absences[node].push_back(why); }
    void quiet(NodeId node, bool is_quiet) override {
        if (is_quiet) ++times_quiet[node];
    }
    void down(NodeId node, Incarnation incarnation, Ending ending) override {
        EXPECT_EQ(lives[node], incarnation);
        lives.erase(node);
        log.push_back("down " + std::to_string(node) + "." + std::to_string(incarnation) +
                      (ending == Ending::silent ? " silent" : ""));
    }
    void received(NodeId from, const Message& message, Payload payload) override {
        Taken one{from, message, {}};
        if (message.kind == Kind::expelled) log.push_back("expelled by " + std::to_string(from));
        if (payload.handle != 0) {
            EXPECT_EQ(payload.handle % 64, 0U);
            one.bytes.assign(memory_of(payload), memory_of(payload) + payload.bytes);
            give_back(memory_of(payload), payload.bytes);
        }
        taken.push_back(std::move(one));
        if (answer) answer(taken.back());
    }
    void sent(NodeId to, Block block) override {
        ++sent_blocks[block];
        ++sent_to[to];
    }
    std::byte* room(std::uint64_t bytes) override {
        ++rooms;
        return static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
    }
    void give_back(std::byte* memory, std::uint64_t /*bytes*/) override {
        --rooms;
        std::free(memory);
    }
    void say(const std::string& text) override { said.push_back(text); }

    [[nodiscard]] bool has_said(const std::string& words) const {
        return std::ranges::any_of(said, [&](const auto& text) { return text.find(words) != std::string::npos; });
    }
    [[nodiscard]] bool has_logged(const std::string& line) const { return std::ranges::count(log, line) > 0; }

    std::map<NodeId, Incarnation> lives;
    std::map<NodeId, std::vector<Ending>> absences;
    std::map<NodeId, int> times_quiet;
    std::vector<std::string> log;
    std::vector<Taken> taken;
    std::map<Block, int> sent_blocks;
    std::map<NodeId, std::size_t> sent_to;
    std::vector<std::string> said;
    std::function<void(const Taken&)> answer;
    int rooms = 0;
};

struct Member {
    explicit Member(const UcxNetwork::Config& config) : network(std::make_unique<UcxNetwork>(config, witness)) {}
    Witness witness;
    std::unique_ptr<UcxNetwork> network;
};

/// Lets them all work in turns until it holds. False: it never did.
template <class Holds>
bool wait_until(std::deque<Member>& members, Holds&& holds, TimeNs time = patience) {
    const TimeNs end = monotonic_ns() + time;
    while (!holds()) {
        if (monotonic_ns() > end) return false;
        for (Member& member : members)
            if (member.network) member.network->progress(monotonic_ns());
    }
    return true;
}

bool all_up(std::deque<Member>& members) {
    return wait_until(members, [&] {
        return std::ranges::all_of(members,
                                   [&](const Member& one) { return one.witness.lives.size() + 1 == members.size(); });
    });
}

/// At the same time, as each waits for the others for a while.
void leave_together(std::deque<Member>& members) {
    std::vector<std::thread> threads;
    for (Member& member : members) threads.emplace_back([&member] { member.network.reset(); });
    for (auto& thread : threads) thread.join();
}

class UcxNetworkTest : public testing::Test {
protected:
    void SetUp() override {
        try {
            static_cast<void>(ucx());
        } catch (const core::RunError& error) {
            GTEST_SKIP() << error.what();
        }
    }
    void make(NodeId count, const std::string& transports = "all") {
        addresses = free_addresses(count);
        for (NodeId node = 0; node < count; ++node) {
            auto config = config_of(addresses, node);
            config.transports = transports;
            members.emplace_back(config);
        }
    }
    void TearDown() override { leave_together(members); }

    std::vector<std::string> addresses;
    std::deque<Member> members;
};

void exchange_sizes(std::deque<Member>& members) {
    const std::array<std::size_t, 6> sizes{0, 1, 1000, 65536, 65537, test::repeated(4U << 20U)};
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t i = 0; i < sizes.size(); ++i) payloads.push_back(bytes_of(sizes[i], static_cast<unsigned>(i)));
    for (std::size_t from = 0; from < members.size(); ++from)
        for (NodeId to = 0; to < static_cast<NodeId>(members.size()); ++to)
            for (std::size_t i = 0; i < sizes.size(); ++i)
                members[from].network->send(to, part_of(i), payload_of(payloads[i]));
    const std::size_t count = members.size() * sizes.size();
    ASSERT_TRUE(wait_until(members, [&] {
        return std::ranges::all_of(members, [&](const Member& member) {
            return member.witness.taken.size() == count && member.network->is_flushed();
        });
    }));
    for (Member& member : members) {
        for (const auto& taken : member.witness.taken) EXPECT_TRUE(taken.bytes == payloads[taken.message.block]);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            EXPECT_EQ(member.witness.sent_blocks[i], static_cast<int>(members.size()));
        for (NodeId to = 0; to < members.size(); ++to) EXPECT_EQ(member.witness.sent_to[to], sizes.size());
        member.witness.taken.clear();
    }
}

TEST_F(UcxNetworkTest, CarriesPartsOfAllSizesOverAllTransports) {
    for (const char* transports : {"tcp", "tcp,sm", "all"}) {
        SCOPED_TRACE(transports);
        make(3, transports);
        ASSERT_TRUE(all_up(members));
        exchange_sizes(members);
        EXPECT_NE(members[0].network->text().find("UCX 1."), std::string::npos);
        EXPECT_NE(members[0].network->text().find(" over "), std::string::npos) << members[0].network->text();
        for (Member& member : members) EXPECT_TRUE(member.witness.said.empty());
        leave_together(members);
        members.clear();
    }
}

TEST_F(UcxNetworkTest, SpeaksIpv6) {
    addresses = free_addresses(2, "[::1]");
    if (addresses.empty()) return;  // a host without IPv6
    for (NodeId node = 0; node < 2; ++node) members.emplace_back(config_of(addresses, node));
    ASSERT_TRUE(all_up(members));
    exchange_sizes(members);
}

TEST_F(UcxNetworkTest, LooksUpNames) {
    addresses = free_addresses(2);
    for (std::string& address : addresses) address.replace(0, address.find(':'), "localhost");
    for (NodeId node = 0; node < 2; ++node) members.emplace_back(config_of(addresses, node));
    ASSERT_TRUE(all_up(members));
}

TEST_F(UcxNetworkTest, CarriesMessagesWithoutPayload) {
    make(2);
    ASSERT_TRUE(all_up(members));
    Message report{.kind = Kind::report, .from = 1, .to = 1, .term = 5};
    for (Block block = 0; block < 20000; ++block) report.report.released.push_back({block, block + 1});
    const Message absent{
        .kind = Kind::part, .part = cluster::Part::not_held, .from = 1, .to = 1, .block = 3, .end = 3 + 1};
    const Message ready{.kind = Kind::ready, .ended = true, .from = 1, .to = 1, .block = 9, .first = 4};
    for (const Message& message : {report, absent, ready}) members[0].network->send(1, message, {});
    auto& taken = members[1].witness.taken;
    ASSERT_TRUE(wait_until(members, [&] { return taken.size() == 3; }));
    for (const Message& message : {report, absent, ready})
        EXPECT_EQ(
            std::ranges::count_if(taken, [&](const auto& one) { return one.from == 0 && one.message == message; }), 1);
    EXPECT_TRUE(members[0].witness.sent_blocks.empty());
}

TEST_F(UcxNetworkTest, CarriesManyWordsInOrder) {
    make(2);
    ASSERT_TRUE(all_up(members));
    constexpr Block words = 1000;
    for (Block block = 0; block < words; ++block) {
        members[0].network->send(1, {.kind = Kind::request, .from = 1, .to = 1, .block = block, .end = block + 1}, {});
        if (block % 100 == 50) members[0].network->progress(monotonic_ns());
    }
    EXPECT_FALSE(members[0].network->is_flushed()) << "the last ones wait for others";
    auto& taken = members[1].witness.taken;
    ASSERT_TRUE(wait_until(members, [&] { return taken.size() == words; }));
    EXPECT_TRUE(wait_until(members, [&] { return members[0].network->is_flushed(); }));
    for (Block block = 0; block < words; ++block) EXPECT_EQ(taken[block].message.block, block);
}

TEST_F(UcxNetworkTest, CarriesAllReadyOfATurnInOne) {
    make(2);
    ASSERT_TRUE(all_up(members));
    for (const Block block : {7U, 8U, 9U})
        members[0].network->send(
            1,
            {.kind = Kind::ready, .from = 1, .to = 1, .block = block, .first = block - 1, .gaps = {block - 1, block}},
            {});
    members[0].network->send(1, {.kind = Kind::request, .from = 1, .to = 1, .block = 3, .end = 3 + 1}, {});
    auto& taken = members[1].witness.taken;
    ASSERT_TRUE(wait_until(members, [&] { return taken.size() >= 2; }));
    members[0].network->send(1, {.kind = Kind::ready, .from = 1, .to = 1, .block = 10}, {});
    ASSERT_TRUE(wait_until(members, [&] { return taken.size() >= 3; }));
    std::vector<Block> blocks;
    for (const auto& one : taken)
        if (one.message.kind == Kind::ready) blocks.push_back(one.message.block);
    EXPECT_EQ(blocks, (std::vector<Block>{9, 10}));
    EXPECT_EQ(taken[1].message.first, 6U);
    EXPECT_EQ(taken[1].message.gaps, (std::vector<Block>{6, 7, 7, 8, 8, 9}));
}

TEST_F(UcxNetworkTest, CarriesManyPartsAtOnce) {
    make(2);
    ASSERT_TRUE(all_up(members));
    std::vector<std::vector<std::byte>> payloads;
    constexpr Block parts = 400;
    for (Block block = 0; block < parts; ++block)
        payloads.push_back(bytes_of(1 + block * block * 7919 % 200000, static_cast<unsigned>(block)));
    for (Block block = 0; block < parts; ++block) {
        members[0].network->send(1, part_of(block), payload_of(payloads[block]));
        members[1].network->send(0, part_of(block), payload_of(payloads[block]));
    }
    ASSERT_TRUE(wait_until(members, [&] {
        return std::ranges::all_of(members, [](const Member& one) {
            return one.witness.taken.size() == parts && one.witness.sent_blocks.size() == parts;
        });
    }));
    for (Member& member : members)
        for (const auto& taken : member.witness.taken) EXPECT_TRUE(taken.bytes == payloads[taken.message.block]);
}

TEST_F(UcxNetworkTest, BringsWhatANodeSendsItselfInTheNextRound) {
    make(1);
    const auto payload = bytes_of(100, 1);
    auto& witness = members[0].witness;
    int left = 3;
    witness.answer = [&](const auto&) {
        if (left-- > 0) members[0].network->send(0, part_of(2), payload_of(payload));
    };
    members[0].network->send(0, part_of(1), payload_of(payload));
    EXPECT_FALSE(members[0].network->is_flushed());
    EXPECT_TRUE(witness.taken.empty());
    EXPECT_TRUE(members[0].network->progress(1));
    ASSERT_EQ(witness.taken.size(), 1U);
    EXPECT_TRUE(witness.taken[0].bytes == payload);
    EXPECT_EQ(witness.sent_blocks[1], 1);
    EXPECT_EQ(witness.sent_blocks[2], 0);
    ASSERT_TRUE(wait_until(members, [&] { return witness.taken.size() == 4; }));
    EXPECT_EQ(witness.sent_blocks[2], 3);
}

TEST_F(UcxNetworkTest, DropsWhatIsForNobody) {
    make(2);
    const auto payload = bytes_of(100, 1);
    members[1].network->send(0, part_of(1), payload_of(payload));
    members[1].network->send(0, {.kind = Kind::ready}, {});
    EXPECT_TRUE(members[1].witness.sent_blocks.empty());
    members[1].network->progress(1);
    EXPECT_EQ(members[1].witness.sent_blocks[1], 1);
    EXPECT_TRUE(members[0].witness.taken.empty());
}

TEST_F(UcxNetworkTest, SaysThatNobodyAnswers) {
    addresses = free_addresses(3);
    members.emplace_back(config_of(addresses, 1));
    for (TimeNs now = ns_per_s; now < 10 * ns_per_s; now += ns_per_ms) members[0].network->progress(now);
    const auto& witness = members[0].witness;
    EXPECT_EQ(witness.said.size(), 2U);
    EXPECT_TRUE(witness.has_said("nobody answers at node0 (" + addresses[0] + ")"));
    EXPECT_TRUE(witness.has_said("node2 (" + addresses[2] + ")"));
    EXPECT_TRUE(witness.log.empty());
}

/// Answers nothing: the kernel drops who calls when nobody takes the calls before.
class SilentHost {
public:
    explicit SilentHost(const std::string& address) {
        const auto where = HostAddress(address).resolve_now().front();
        listener_ = store::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(listener_.get(), where.get(), where.bytes), 0);
        EXPECT_EQ(::listen(listener_.get(), 0), 0);
        for (int i = 0; i < 4; ++i) {
            callers_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            static_cast<void>(::connect(callers_.back().get(), where.get(), where.bytes));
        }
    }

    /// Takes a call. False: nobody calls.
    bool answers() {
        ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
        callers_.emplace_back(::accept(listener_.get(), nullptr, nullptr));
        return callers_.back().is_open();
    }

private:
    store::Descriptor listener_;
    std::vector<store::Descriptor> callers_;
};

TEST_F(UcxNetworkTest, KnowsAHostThatIsSilentFromOneWhereNoNodeRuns) {
    addresses = free_addresses(6);
    auto config = config_of(addresses, 2);
    config.may_be_absent.insert(5);
    members.emplace_back(config);
    auto first = std::make_optional<SilentHost>(addresses[0]);
    auto last = std::make_optional<SilentHost>(addresses[4]);
    const SilentHost spare(addresses[5]);
    TimeNs now = ns_per_s;
    const auto go_on = [&](auto until) {
        for (const TimeNs end = now + 8 * ns_per_s; now < end && !until(); now += ns_per_ms)
            members[0].network->progress(now);
    };
    const auto never = [] { return false; };
    go_on(never);
    auto& absences = members[0].witness.absences;
    EXPECT_EQ(absences[0], std::vector{Ending::silent});
    EXPECT_EQ(absences[4], std::vector{Ending::silent});
    for (const NodeId node : {1, 3, 5}) EXPECT_TRUE(absences[node].empty()) << node;
    // Who answers at last may be a node that is about to call. Only one that does not is none.
    while (last->answers()) continue;
    go_on([&] { return last->answers(); });
    EXPECT_EQ(absences[4], std::vector{Ending::silent});
    go_on([&] { return absences[4].size() > 1; });
    first.reset(), last.reset();
    go_on(never);
    EXPECT_EQ(absences[0], (std::vector{Ending::silent, Ending::over}));
    EXPECT_EQ(absences[4], (std::vector{Ending::silent, Ending::over}));
}

TEST_F(UcxNetworkTest, RefusesWhoAgreesOnSomethingElse) {
    addresses = free_addresses(2);
    for (NodeId node = 0; node < 2; ++node) {
        auto config = config_of(addresses, node);
        config.agreement = 1U + node;
        members.emplace_back(config);
    }
    ASSERT_TRUE(wait_until(
        members, [&] { return members[0].witness.has_said("node1") && members[1].witness.has_said("node0"); }));
    EXPECT_FALSE(wait_until(
        members, [&] { return !members[0].witness.lives.empty(); }, 200 * ns_per_ms));
    for (Member& member : members) EXPECT_EQ(member.witness.said.size(), 1U);
    EXPECT_TRUE(members[0].witness.has_said("configuration"));
}

TEST_F(UcxNetworkTest, RefusesWhatIsNoConfiguration) {
    Witness witness;
    addresses = free_addresses(2);
    const auto text_of = [&](const std::function<void(UcxNetwork::Config&)>& change) -> std::string {
        auto config = config_of(addresses, 0);
        change(config);
        try {
            const UcxNetwork network(config, witness);
        } catch (const core::RunError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(text_of([](auto&) {}), "");
    EXPECT_NE(text_of([](auto& config) { config.addresses[1] = "nonsense"; }).find("nonsense is no address"),
              std::string::npos);
    EXPECT_NE(
        text_of([](auto& config) { config.addresses[0] = "192.0.2.250:80"; }).find("cannot listen at 192.0.2.250:80"),
        std::string::npos);
    EXPECT_NE(text_of([](auto& config) { config.transports = "no_such_transport"; }).find("no_such_transport"),
              std::string::npos);
    members.emplace_back(config_of(addresses, 0));
    EXPECT_NE(text_of([](auto&) {}).find("Address already in use"), std::string::npos);
}

/// A connection of somebody else.
class Stranger {
public:
    explicit Stranger(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const auto place = HostAddress(address).resolve_now().front();
        EXPECT_EQ(::connect(socket_.get(), place.get(), place.bytes), 0);
    }
    void send(const std::vector<std::byte>& bytes) {
        EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }

private:
    store::Descriptor socket_;
};

TEST_F(UcxNetworkTest, IsNotHarmedByStrangers) {
    make(2);
    ASSERT_TRUE(all_up(members));
    std::mt19937 random(1);
    std::deque<Stranger> strangers;
    const auto frame_bytes = [](const Frame& frame) {
        std::vector<std::byte> bytes;
        append_frame(bytes, frame);
        return bytes;
    };
    strangers.emplace_back(addresses[0]);  // says nothing
    strangers.emplace_back(addresses[0]).send(std::vector<std::byte>(200));
    const auto hello =
        frame_bytes(frame_of(Hello{.agreement = 17, .incarnation = 9, .node = 1, .nodes = 2}, bytes_of(40, 1), ""));
    strangers.emplace_back(addresses[0]).send({hello.begin(), hello.begin() + 20});
    strangers.emplace_back(addresses[0]).send(frame_bytes({.kind = FrameKind::go, .body = {}}));
    strangers.emplace_back(addresses[0]).send(frame_bytes(frame_of(Expelled{.from = 1, .to = 1})));
    strangers.emplace_back(addresses[0]).send(frame_bytes({.kind = FrameKind::hello, .body = bytes_of(3, 1)}));
    for (int i = 0; i < 50; ++i) {
        auto bytes = bytes_of(random() % 300, random());
        for (auto& byte : bytes) byte = static_cast<std::byte>(random());
        strangers.emplace_back(addresses[i % 2]).send(bytes);
    }
    EXPECT_FALSE(wait_until(
        members, [&] { return members[0].witness.log.size() > 1; }, 100 * ns_per_ms));
    exchange_sizes(members);
    EXPECT_TRUE(members[0].witness.has_said("no node of this version called at " + addresses[0]));
    EXPECT_EQ(members[0].witness.said.size(), 1U);
}

Hello hello_of_node_1(Incarnation incarnation = 1) {
    return {
        .agreement = 17, .session = 1, .incarnation = incarnation, .ucx = UcxWorker::version(), .node = 1, .nodes = 2};
}

std::vector<std::byte> with_flipped(std::vector<std::byte> bytes, std::size_t at, std::byte bits) {
    bytes[at] ^= bits;
    return bytes;
}

/// The first so many bytes of the body, as a frame that says so.
Frame cut(Frame frame, std::size_t bytes) {
    frame.body.resize(bytes);
    return frame;
}

/// UCX ends the process if it is given such an address: an assertion in ucp_address_unpack() or after it.
TEST_F(UcxNetworkTest, RefusesAHelloThatIsDamagedAnywhere) {
    addresses = free_addresses(2);
    members.emplace_back(config_of(addresses, 0));
    UcxNetwork& network = *members[0].network;
    const UcxWorker worker("all", 1);
    const Frame good = frame_of(hello_of_node_1(), worker.address(), "");
    std::vector<std::byte> bytes;
    append_frame(bytes, good);
    std::uint64_t sent = 0;
    const auto call = [&](const std::vector<std::byte>& hello) {
        Stranger(addresses[0]).send(hello);
        ++sent;
        return wait_until(members, [&] { return network.refused() == sent; });
    };
    for (std::size_t at = 0; at < bytes.size(); ++at)
        for (const std::byte bits : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}})
            ASSERT_TRUE(call(with_flipped(bytes, at, bits))) << "byte " << at;
    for (std::size_t left = 0; left < good.body.size(); ++left) {
        std::vector<std::byte> shorter;
        append_frame(shorter, cut(good, left));
        ASSERT_TRUE(call(shorter)) << left << " bytes of the body";
        if (left == 0) continue;  // who says nothing is not counted
        ASSERT_TRUE(call({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(left)})) << left << " bytes";
    }
    EXPECT_TRUE(members[0].witness.has_said("is damaged"));
    EXPECT_TRUE(members[0].witness.log.empty());
    members.emplace_back(config_of(addresses, 1));
    ASSERT_TRUE(all_up(members));
    EXPECT_EQ(network.refused(), sent);
}

TEST_F(UcxNetworkTest, RefusesAnAnswerThatIsDamaged) {
    addresses = free_addresses(2);
    const store::Descriptor listener = listen_at(HostAddress(addresses[0]));
    members.emplace_back(config_of(addresses, 1));
    UcxNetwork& network = *members[0].network;
    const UcxWorker worker("all", 1);
    Hello hello = hello_of_node_1();
    hello.node = 0;
    std::vector<std::byte> bytes;
    append_frame(bytes, frame_of(hello, worker.address(), ""));
    std::uint64_t sent = 0;
    for (std::size_t at = 12; at < bytes.size(); at += 7) {
        int socket = -1;
        ASSERT_TRUE(wait_until(members, [&] {
            socket = ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            return socket >= 0;
        }));
        Connection caller{store::Descriptor(socket)};
        ASSERT_TRUE(wait_until(members, [&] {
            static_cast<void>(caller.read());
            return caller.next().has_value();
        }));
        const auto damaged = with_flipped(bytes, at, std::byte{0xff});
        ASSERT_EQ(::send(socket, damaged.data(), damaged.size(), MSG_NOSIGNAL), static_cast<ssize_t>(damaged.size()));
        ++sent;
        ASSERT_TRUE(wait_until(members, [&] { return network.refused() == sent; })) << "byte " << at;
    }
    EXPECT_TRUE(members[0].witness.has_said("a hello of node0"));
    EXPECT_TRUE(members[0].witness.log.empty());
}

TEST_F(UcxNetworkTest, LetsInOnlyWhoKnowsTheSecret) {
    addresses = free_addresses(2);
    auto config = config_of(addresses, 0);
    config.secret = std::string(100, 's');
    members.emplace_back(config);
    config = config_of(addresses, 1);
    config.secret = std::string(99, 's') + "S";
    members.emplace_back(config);
    ASSERT_TRUE(
        wait_until(members, [&] { return members[0].network->refused() > 1 && members[1].network->refused() > 1; }));
    for (const Member& member : members) {
        EXPECT_TRUE(member.witness.has_said("of a node that has another secret"));
        EXPECT_TRUE(member.witness.log.empty());
    }
    members.pop_back();
    members.emplace_back(config_of(addresses, 1));
    ASSERT_TRUE(wait_until(members, [&] { return members[1].network->refused() > 0; }));
    EXPECT_TRUE(members[1].witness.has_said("of a node that has a secret"));
    members.pop_back();
    config.secret = std::string(100, 's');
    members.emplace_back(config);
    EXPECT_TRUE(all_up(members));
}

TEST_F(UcxNetworkTest, RefusesAnotherUcx) {
    addresses = free_addresses(2);
    members.emplace_back(config_of(addresses, 0));
    const UcxWorker worker("all", 1);
    Hello hello = hello_of_node_1();
    hello.ucx ^= 1U;
    std::vector<std::byte> bytes;
    append_frame(bytes, frame_of(hello, worker.address(), ""));
    Stranger(addresses[0]).send(bytes);
    ASSERT_TRUE(wait_until(members, [&] { return members[0].network->refused() == 1; }));
    EXPECT_TRUE(wait_until(members, [&] { return members[0].witness.has_said("all nodes need the same"); }));
}

TEST(HelloSeal, IsAnHmacOfSha256) {
    // RFC 4231, test cases 2 and 6.
    const auto hex = [](std::string_view text, std::string_view key) {
        std::string digits;
        for (const std::byte byte : seal_of(std::as_bytes(std::span(text)), key))
            for (const unsigned half :
                 {std::to_integer<unsigned>(byte >> 4U), std::to_integer<unsigned>(byte & std::byte{15})})
                digits += "0123456789abcdef"[half];
        return digits;
    };
    EXPECT_EQ(hex("what do ya want for nothing?", "Jefe"),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex("Test Using Larger Than Block-Size Key - Hash Key First", std::string(131, '\xaa')),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/// Meets node 0 of two as node 1, and then sends what it likes.
class Impostor {
public:
    Impostor(std::deque<Member>& members, const std::string& address) : worker("all", 1) {
        connection = Connection::to(HostAddress(address).resolve_now().front());
        connection->post(frame_of(hello_of_node_1(), worker.address(), ""));
        std::optional<Frame> frame;
        EXPECT_TRUE(wait_until(members, [&] {
            if (connection->is_connecting()) return !connection->write();
            static_cast<void>(connection->read());
            frame = connection->next();
            return frame.has_value();
        }));
        session = hello_of(*frame).session;
        endpoint = UcxEndpoint(worker, address_of(*frame));
        connection->post({.kind = FrameKind::go, .body = {}});
    }
    void send(std::deque<Member>& members, unsigned id, const std::vector<std::byte>& header,
              const std::vector<std::byte>& data, std::uint32_t flags) {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        bool done = false;
        param.flags = flags;
        param.cb.send = [](void*, ucs_status_t, void* flag) { *static_cast<bool*>(flag) = true; };
        param.user_data = &done;
        void* const request =
            ucx().ucp_am_send_nbx(endpoint.get(), id, header.data(), header.size(), data.data(), data.size(), &param);
        if (!UCS_PTR_IS_PTR(request)) return;
        EXPECT_TRUE(wait_until(members, [&] {
            worker.progress();
            return done;
        }));
        ucx().ucp_request_free(request);
    }

    UcxWorker worker;
    std::optional<Connection> connection;
    UcxEndpoint endpoint;
    std::uint64_t session = 0;
};

TEST_F(UcxNetworkTest, IsNotHarmedByRandomMessages) {
    addresses = free_addresses(2);
    members.emplace_back(config_of(addresses, 0));
    auto& witness = members[0].witness;
    std::mt19937 random(2);
    {
        Impostor impostor(members, addresses[0]);
        const auto noise = [&](std::size_t count) {
            std::vector<std::byte> bytes(count);
            for (auto& byte : bytes) byte = static_cast<std::byte>(random());
            return bytes;
        };
        const auto good = cluster::to_bytes(part_of(7));
        for (int i = 0; i < test::repeated(800); ++i) {
            auto header = noise(random() % 64);
            const ActiveHead head{.session = impostor.session,
                                  .node = static_cast<std::uint16_t>(random() % 8 == 0 ? random() : 1)};
            if (random() % 4 != 0 && header.size() >= sizeof head) std::memcpy(header.data(), &head, sizeof head);
            if (random() % 4 == 0) header.insert(header.end(), good.begin(), good.end());
            auto data = noise(random() % 16 == 0 ? random() % 200000 : random() % 200);
            if (random() % 2 == 0 && data.size() > 6) {  // the length and the beginning of a word
                const auto length = static_cast<std::uint32_t>(data.size() - 4 - random() % 3);
                std::memcpy(data.data(), &length, sizeof length);
                data[4] = static_cast<std::byte>(random() % 14), data[5] = std::byte{0};
            }
            const std::array<std::uint32_t, 3> flags{0, UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV};
            impostor.send(members, random() % 5, header, data, flags[random() % 3]);
        }
        auto header = std::vector<std::byte>(sizeof(ActiveHead));
        const ActiveHead head{.session = impostor.session, .node = 1};
        std::memcpy(header.data(), &head, sizeof head);
        // A word, and a piece of another one.
        const auto ready = cluster::to_bytes({.kind = Kind::ready, .from = 1, .to = 1, .block = 12345});
        std::vector<std::byte> words{static_cast<std::byte>(ready.size()), std::byte{}, std::byte{}, std::byte{}};
        words.insert(words.end(), ready.begin(), ready.end());
        words.insert(words.end(), words.begin(), words.end() - 1);
        impostor.send(members, ActiveId::words, header, words, UCP_AM_SEND_FLAG_EAGER);
        ASSERT_TRUE(wait_until(members, [&] {
            impostor.worker.progress();
            return !witness.taken.empty() && witness.taken.back().message.block == 12345;
        }));
        header.insert(header.end(), good.begin(), good.end());
        impostor.send(members, ActiveId::part, header, bytes_of(1000, 5), 0);
        ASSERT_TRUE(wait_until(members, [&] {
            impostor.worker.progress();
            return !witness.taken.empty() && witness.taken.back().bytes == bytes_of(1000, 5);
        }));
    }
    EXPECT_EQ(std::ranges::count_if(witness.taken, [](const auto& one) { return one.message.block == 12345; }), 1);
    EXPECT_TRUE(witness.has_said("it was dropped"));
    EXPECT_EQ(witness.said.size(), 1U);
    ASSERT_TRUE(wait_until(members, [&] { return witness.has_logged("down 1.1"); }));
}

/// A node in a process of its own, which has to be made before there are networks in this one: UCX does not survive
/// fork(). It writes the first letters of what it is told into a pipe.
class ChildNode {
public:
    explicit ChildNode(const UcxNetwork::Config& config) {
        std::array<int, 2> told{};
        std::array<int, 2> start{};
        EXPECT_EQ(::pipe2(told.data(), O_CLOEXEC | O_NONBLOCK), 0);
        EXPECT_EQ(::pipe2(start.data(), O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            char go = 0;
            if (::read(start[0], &go, 1) == 1) run(config, told[1]);
            ::_exit(0);
        }
        ::close(told[1]);
        ::close(start[0]);
        told_ = store::Descriptor(told[0]);
        start_ = store::Descriptor(start[1]);
    }
    ~ChildNode() { kill(SIGKILL); }
    ChildNode(const ChildNode&) = delete;
    ChildNode& operator=(const ChildNode&) = delete;

    void start() { EXPECT_EQ(::write(start_.get(), "g", 1), 1); }
    void kill(int signal) {
        if (pid_ < 0) return;
        ::kill(pid_, signal);
        if (signal == SIGKILL) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
    /// What it was told so far, as letters.
    const std::string& told() {
        std::array<char, 100> letters{};
        for (ssize_t count = 0; (count = ::read(told_.get(), letters.data(), letters.size())) > 0;)
            text_.append(letters.data(), static_cast<std::size_t>(count));
        return text_;
    }

private:
    static void run(const UcxNetwork::Config& config, int out) {
        Witness witness;
        UcxNetwork network(config, witness);
        std::size_t written = 0;
        const auto payload = bytes_of(1U << 20U, 1);
        witness.answer = [&](const Witness::Taken& taken) {
            if (taken.message.kind == Kind::request)
                network.send(taken.from, part_of(taken.message.block), payload_of(payload));
        };
        for (const TimeNs end = monotonic_ns() + 600 * ns_per_s; monotonic_ns() < end;) {
            network.progress(monotonic_ns());
            for (; written < witness.log.size(); ++written)
                if (::write(out, witness.log[written].data(), 1) != 1) ::_exit(1);
        }
    }
    pid_t pid_ = -1;
    store::Descriptor told_;
    store::Descriptor start_;
    std::string text_;
};

class UcxNetworkWithChild : public UcxNetworkTest {
protected:
    /// Nodes 0 and 1 here, and 2, or 0 with 1 and 2 here, in a process of its own.
    void make_with_child(NodeId child_node, const std::string& transports = "all") {
        addresses = free_addresses(3);
        auto config = config_of(addresses, child_node);
        config.silence_ns = silence_ns;
        config.return_ns = return_ns;
        config.readouts = readouts;
        config.transports = transports;
        child = std::make_unique<ChildNode>(config);
        child->start();
        config.incarnation = 1;
        old_life = std::make_unique<ChildNode>(config);
        config.incarnation = 7;
        next_life = std::make_unique<ChildNode>(config);
        for (NodeId node = 0; node < 3; ++node) {
            if (node == child_node) continue;
            auto own = config_of(addresses, node);
            own.silence_ns = silence_ns;
            own.return_ns = return_ns;
            own.readouts = readouts;
            own.transports = transports;
            members.emplace_back(own);
        }
        ASSERT_TRUE(wait_until(members, [&] {
            return members[0].witness.lives.size() == 2 && members[1].witness.lives.size() == 2 &&
                   child->told() == "uu";
        }));
    }
    /// Of both that are here. Asks the child for parts meanwhile, so that some are on their way.
    TimeNs time_until_down(NodeId node, bool asks) {
        const std::string line = "down " + std::to_string(node) + (signal == SIGSTOP ? ".1 silent" : ".1");
        for (Block block = 0; asks && block < 50; ++block)
            for (Member& member : members)
                member.network->send(node, {.kind = Kind::request, .block = block, .end = block + 1}, {});
        EXPECT_TRUE(wait_until(members, [&] { return !asks || members[0].witness.taken.size() > 3; }));
        child->kill(signal);
        const TimeNs begin = monotonic_ns();
        EXPECT_TRUE(wait_until(
            members, [&] { return members[0].witness.has_logged(line) && members[1].witness.has_logged(line); }));
        return monotonic_ns() - begin;
    }
    void expect_others_go_on() {
        for (Member& member : members) {
            member.witness.taken.clear();
            member.witness.sent_blocks.clear();
        }
        const NodeId other = members[1].witness.lives.begin()->first;
        const NodeId one = members[0].witness.lives.begin()->first;
        const auto payload = bytes_of(300000, 3);
        members[0].network->send(one, part_of(1), payload_of(payload));
        members[1].network->send(other, part_of(1), payload_of(payload));
        ASSERT_TRUE(wait_until(members,
                               [&] { return !members[0].witness.taken.empty() && !members[1].witness.taken.empty(); }));
        EXPECT_TRUE(members[0].witness.taken[0].bytes == payload);
    }

    std::unique_ptr<ChildNode> child;
    std::unique_ptr<ChildNode> old_life;   ///< of the child, once more
    std::unique_ptr<ChildNode> next_life;  ///< of the child
    int signal = SIGKILL;
    TimeNs silence_ns = 20 * ns_per_s;  ///< long after a death is seen on any machine
    TimeNs return_ns = 0;
    cluster::NodeSet readouts;
};

TEST_F(UcxNetworkWithChild, SeesAProcessDie) {
    struct Case {
        const char* transports;
        NodeId node;
        bool asks;
    };
    for (const auto& [transports, node, asks] : {Case{"all", 2, false}, Case{"all", 0, false}, Case{"all", 2, true},
                                                 Case{"tcp", 2, true}, Case{"tcp", 0, true}}) {
        SCOPED_TRACE(transports);
        make_with_child(node, transports);
        const TimeNs time = time_until_down(node, asks);
        EXPECT_LT(time, silence_ns);  // by the connection's end, not for its silence
        RecordProperty(std::string("down_us_") + transports + std::to_string(node) + (asks ? "_busy" : "_idle"),
                       static_cast<int>(time / 1000));
        expect_others_go_on();
        EXPECT_TRUE(
            wait_until(members, [&] { return members[0].witness.rooms == 0 && members[1].witness.rooms == 0; }));
        for (Member& member : members) EXPECT_EQ(member.witness.log.size(), 3U);
        leave_together(members);
        members.clear();
    }
}

TEST_F(UcxNetworkWithChild, ExpelsWhoWasSilent) {
    silence_ns = 4 * ns_per_s;  // who has to wait for a CPU is not that silent
    signal = SIGSTOP;
    for (const NodeId node : {NodeId{2}, NodeId{0}}) {
        make_with_child(node);
        const TimeNs time = time_until_down(node, node == 2);
        EXPECT_GT(time, silence_ns / 2);
        for (const Member& member : members) EXPECT_EQ(member.witness.times_quiet.count(node), 1U);
        expect_others_go_on();
        child->kill(SIGCONT);
        EXPECT_TRUE(wait_until(members, [&] { return child->told().size() >= 5; }));
        EXPECT_EQ(child->told().substr(0, 3), "uue");
        EXPECT_EQ(std::ranges::count(child->told(), 'e'), 1);
        expect_others_go_on();
        for (Member& member : members) EXPECT_EQ(member.witness.log.size(), 3U);
        leave_together(members);
        members.clear();
        child.reset();
    }
}

/// It holds what nobody else has.
TEST_F(UcxNetworkWithChild, WaitsLongerForAReadoutNode) {
    silence_ns = 2 * ns_per_s;
    return_ns = 60 * ns_per_s;
    signal = SIGSTOP;
    for (const NodeId node : {NodeId{2}, NodeId{0}}) {
        readouts = {};
        readouts.insert(node);
        make_with_child(node);
        child->kill(SIGSTOP);
        const auto no_more = [&] { return members[0].witness.log.size() + members[1].witness.log.size() > 4; };
        EXPECT_FALSE(wait_until(members, no_more, 3 * silence_ns / 2)) << "it was not waited for";
        for (const Member& member : members) EXPECT_EQ(member.witness.times_quiet.count(node), 1U);
        child->kill(SIGCONT);
        for (Member& member : members)
            member.network->send(node, {.kind = Kind::request, .block = 77, .end = 77 + 1}, {});
        EXPECT_TRUE(wait_until(members,
                               [&] { return !members[0].witness.taken.empty() && !members[1].witness.taken.empty(); }));
        EXPECT_EQ(child->told(), "uu");
        leave_together(members);
        members.clear();
        child.reset();
    }
}

/// It may be the one that others have taken for dead.
TEST_F(UcxNetworkWithChild, WhoHasNoQuorumExpelsNobodyAndGivesWay) {
    silence_ns = 4 * ns_per_s;
    signal = SIGSTOP;
    for (const NodeId node : {NodeId{2}, NodeId{0}}) {
        make_with_child(node);
        for (Member& member : members) member.network->set_quorum(false);
        time_until_down(node, false);
        child->kill(SIGCONT);
        const std::string line = "expelled by " + std::to_string(node);
        EXPECT_TRUE(wait_until(
            members, [&] { return members[0].witness.has_logged(line) && members[1].witness.has_logged(line); }));
        EXPECT_EQ(std::ranges::count(child->told(), 'e'), 0);
        leave_together(members);
        members.clear();
        child.reset();
    }
}

TEST_F(UcxNetworkWithChild, KnowsALifeThatComesBack) {
    make_with_child(2);
    EXPECT_LT(time_until_down(2, false), silence_ns);
    auto& witness = members[0].witness;
    old_life->start();
    ASSERT_TRUE(wait_until(members, [&] { return old_life->told() == "e"; }));
    old_life.reset();
    EXPECT_EQ(witness.log.back(), "down 2.1");
    next_life->start();
    ASSERT_TRUE(
        wait_until(members, [&] { return witness.has_logged("up 2.7") && members[1].witness.has_logged("up 2.7"); }));
    members[0].network->send(2, {.kind = Kind::request, .block = 77, .end = 77 + 1}, {});
    ASSERT_TRUE(wait_until(members, [&] { return !witness.taken.empty(); }));
    EXPECT_EQ(witness.taken[0].message.block, 77U);
    EXPECT_TRUE(witness.taken[0].bytes == bytes_of(1U << 20U, 1));
}

TEST_F(UcxNetworkWithChild, EndsAlthoughSomebodyTakesNothing) {
    make_with_child(2);
    child->kill(SIGSTOP);
    const auto payload = bytes_of(1U << 20U, 1);
    for (Block block = 0; block < 30; ++block)
        for (Member& member : members) member.network->send(2, part_of(block), payload_of(payload));
    EXPECT_FALSE(wait_until(
        members, [&] { return members[0].network->is_flushed(); }, 50 * ns_per_ms));
    const TimeNs begin = monotonic_ns();
    leave_together(members);
    EXPECT_LT(monotonic_ns() - begin, silence_ns);  // nobody waits until it is expelled
}

/// A node that stays, in its first life, and another one that was there in `life` and has left.
std::deque<Member> one_that_has_seen(const std::vector<std::string>& addresses, NodeId other, Incarnation life) {
    std::deque<Member> members;
    members.emplace_back(config_of(addresses, 1 - other, 1));
    members.emplace_back(config_of(addresses, other, life));
    EXPECT_TRUE(all_up(members));
    std::thread leaving([&] { members[1].network.reset(); });
    while (!members[0].witness.has_logged("down " + std::to_string(other) + "." + std::to_string(life)))
        members[0].network->progress(monotonic_ns());
    leaving.join();
    return members;
}

TEST_F(UcxNetworkTest, TellsWhoBeginsAnEarlierLifeHowFarItWas) {
    const auto addresses = free_addresses(2);
    ASSERT_FALSE(addresses.empty());
    for (const Incarnation life : {3U, 10U}) {
        for (const NodeId returns : {NodeId{0}, NodeId{1}}) {
            std::deque<Member> members = one_that_has_seen(addresses, returns, 10);
            members.emplace_back(config_of(addresses, returns, life));
            const std::string expelled = "expelled by " + std::to_string(1 - returns);
            ASSERT_TRUE(wait_until(members, [&] { return members[2].witness.has_logged(expelled); })) << returns;
            EXPECT_EQ(members[2].witness.taken.back().message.life, 10U) << returns;
            leave_together(members);
        }
    }
}

TEST_F(UcxNetworkTest, AMemberWhoseClockIsBehindComesBackAllTheSame) {
    const auto addresses = free_addresses(2);
    ASSERT_FALSE(addresses.empty());
    constexpr Incarnation later = 1U << 31U;  // of years to come
    for (const NodeId returns : {NodeId{0}, NodeId{1}}) {
        std::deque<Member> members = one_that_has_seen(addresses, returns, later);
        fabric::ClusterThread::Config config{.network = config_of(addresses, returns)};
        config.settings.nodes = 2;
        config.settings.readouts.insert(returns);
        config.settings.builders.insert(1 - returns);
        config.settings.managers.insert(1 - returns);
        fabric::ClusterThread back(config);
        back.start();
        const std::string up = "up " + std::to_string(returns) + "." + std::to_string(later + 1);
        EXPECT_TRUE(wait_until(members, [&] { return members[0].witness.has_logged(up); })) << returns;
        std::thread leaving([&] { back.join(); });
        const std::string down = "down " + std::to_string(returns) + "." + std::to_string(later + 1);
        EXPECT_TRUE(wait_until(members, [&] { return members[0].witness.has_logged(down); })) << returns;
        leaving.join();
    }
}

TEST_F(UcxNetworkTest, WakesWhoWaits) {
    make(2);
    ASSERT_TRUE(all_up(members));
    const auto payload = bytes_of(100000, 1);
    std::atomic<bool> waits = false;
    std::atomic<int> in_vain = 0;
    std::thread waiter([&] {
        auto& network = *members[1].network;
        const TimeNs end = monotonic_ns() + patience;
        while (members[1].witness.taken.size() < 10 && monotonic_ns() < end) {
            if (network.progress(monotonic_ns()) || !network.arm()) continue;
            pollfd one{.fd = network.wait_fd(), .events = POLLIN, .revents = 0};
            waits = true;
            if (::poll(&one, 1, 5000) != 1) ++in_vain;
            waits = false;
        }
    });
    const auto work_until = [&](const auto& holds) {
        for (const TimeNs end = monotonic_ns() + patience; !holds() && monotonic_ns() < end;)
            members[0].network->progress(monotonic_ns());
    };
    for (Block block = 0; block < 10; ++block) {
        work_until([&] { return waits.load(); });
        members[0].network->send(1, part_of(block), payload_of(payload));
        work_until([&] { return members[0].network->is_flushed(); });
    }
    waiter.join();
    EXPECT_EQ(members[1].witness.taken.size(), 10U);
    EXPECT_EQ(in_vain, 0);
}

TEST_F(UcxNetworkTest, GoesInPeace) {
    make(3);
    ASSERT_TRUE(all_up(members));
    const auto payload = bytes_of(1U << 20U, 1);
    for (Block block = 0; block < 20; ++block) members[2].network->send(0, part_of(block), payload_of(payload));
    for (Block block = 0; block < 100; ++block)
        members[2].network->send(1, {.kind = Kind::request, .block = block, .end = block + 1}, {});
    std::thread goes([network = std::move(members[2].network)]() mutable {
        for (const TimeNs end = monotonic_ns() + patience; !network->is_flushed() && monotonic_ns() < end;)
            network->progress(monotonic_ns());
        network.reset();
    });
    auto& one = members[0].witness;
    auto& two = members[1].witness;
    EXPECT_TRUE(wait_until(members, [&] { return one.has_logged("down 2.1") && two.has_logged("down 2.1"); }));
    goes.join();
    EXPECT_EQ(one.taken.size(), 20U);
    EXPECT_EQ(two.taken.size(), 100U);
    for (const auto& taken : one.taken) EXPECT_TRUE(taken.bytes == payload);
}

/// Each in a thread, and everybody sends to everybody.
TEST_F(UcxNetworkTest, WorksInThreads) {
    constexpr NodeId nodes = 4;
    const Block blocks = test::repeated(200);
    make(nodes);
    std::atomic<std::size_t> finished = 0;
    std::vector<std::thread> threads;
    const auto payload = bytes_of(50000, 1);
    for (NodeId self = 0; self < nodes; ++self) {
        threads.emplace_back([&, self] {
            Witness& witness = members[self].witness;
            const auto& network = members[self].network;
            const TimeNs end = monotonic_ns() + patience;
            while (witness.lives.size() + 1 < nodes && monotonic_ns() < end) network->progress(monotonic_ns());
            for (Block block = 0; block < blocks; ++block) {
                for (NodeId to = 0; to < nodes; ++to) network->send(to, part_of(block), payload_of(payload));
                network->progress(monotonic_ns());
            }
            const auto is_done = [&] { return witness.taken.size() == nodes * blocks && network->is_flushed(); };
            while (!is_done() && monotonic_ns() < end) network->progress(monotonic_ns());
            ++finished;
            while (finished < nodes && monotonic_ns() < end) network->progress(monotonic_ns());
        });
    }
    for (auto& thread : threads) thread.join();
    for (Member& member : members) {
        EXPECT_EQ(member.witness.taken.size(), nodes * blocks);
        EXPECT_TRUE(
            std::ranges::all_of(member.witness.taken, [&](const auto& taken) { return taken.bytes == payload; }));
        EXPECT_EQ(member.witness.log.size(), nodes - 1);
    }
}

std::size_t count_threads() {
    std::size_t count = 0;
    DIR* const folder = ::opendir("/proc/self/task");
    while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(folder);
    return count;
}

TEST_F(UcxNetworkTest, LeavesTheProgramAsItIs) {
    const auto handlers = [] {
        std::vector<const void*> list;
        for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGHUP, SIGINT, SIGALRM, SIGUSR1}) {
            struct sigaction action {};
            ::sigaction(signal, nullptr, &action);
            list.push_back(reinterpret_cast<const void*>(action.sa_handler));
        }
        return list;
    };
    const auto code = [] {  // where hooks would be put
        std::vector<std::array<char, 16>> list;
        for (const char* name : {"mmap", "munmap", "mremap", "madvise", "brk", "sbrk", "shmat", "shmdt"}) {
            list.emplace_back();
            std::memcpy(list.back().data(), ::dlsym(RTLD_DEFAULT, name), 16);
        }
        return list;
    };
    const auto handlers_before = handlers();
    const auto code_before = code();
    const auto threads_before = count_threads();
    make(2);
    ASSERT_TRUE(all_up(members));
    exchange_sizes(members);
    EXPECT_EQ(handlers(), handlers_before);
    EXPECT_EQ(code(), code_before);
    leave_together(members);
    members.clear();
    EXPECT_TRUE(wait_until(members, [&] { return count_threads() == threads_before; }));
}

}  // namespace
}  // namespace weir::fabric
