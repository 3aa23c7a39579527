#include "bench/server.hpp"

#include <fmt/format.h>

#include "bench/host_facts.hpp"
#include "bench/interface_counters.hpp"
#include "bench/results.hpp"
#include "config/device_facts.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

// A client that thinks between two trials for longer has forgotten us, although it lives.
constexpr double patience_s = 600;
constexpr std::uint64_t packets_max = 1'000'000'000;  // 125 MB of bits

/// Compares all of it, however early it differs.
bool same(const std::string& a, const std::string& b) noexcept {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
    return difference == 0;
}

/// On a device that drops nothing a rate says something of both sides.
std::string waits_remark(const Transport& transport, const ReceiverSpec& spec) {
    if (!transport.on_device || config::device_facts(spec.device).loss != config::LossTold::lossless) return {};
    return fmt::format(
        "{} lets the sender wait and drops nothing: the most that the sender can do is the most that the "
        "receiver takes",
        config::driver_of(spec.device));
}

}  // namespace

Server::Server(Config config, std::function<void(const std::string&)> say)
    : config_(std::move(config)), say_(std::move(say)) {}

void Server::greet(ControlConnection& client) {
    const Json hello = client.receive("hello", 10);
    if (hello.value("version", 0) != protocol_version)
        throw core::RunError(fmt::format("this side speaks version {} of the protocol, the other {}", protocol_version,
                                         hello.value("version", 0)));
    if (!config_.token.empty() && !same(config_.token, hello.value("token", "")))
        throw core::RunError("the token is not the one that this server was started with");
    const std::string interface = interface_with(client.own_address());
    client.send({{"type", "welcome"},
                 {"version", protocol_version},
                 {"boot_id", boot_id()},
                 {"host", to_json(host_facts("receiver", interface, config_.weir_version))}});
}

void Server::serve(ControlConnection& client) {
    const std::string name = client.other_address();
    try {
        greet(client);
        say_(fmt::format("{}: connected", name));
        work(client);
        say_(fmt::format("{}: done", name));
    } catch (const std::exception& error) {
        say_(fmt::format("{}: {}", name, error.what()));
        try {
            client.send({{"type", client.gone().load() ? "left" : "error"}, {"what", error.what()}});
        } catch (const core::RunError&) {  // it has left meanwhile
        }
    }
    close();
}

void Server::work(ControlConnection& client) {
    while (true) {
        const Json asked = client.receive(patience_s);
        const std::string type = asked["type"];
        try {
            if (type == "bye") return;
            if (type == "open")
                client.send(open(asked, client));
            else if (type == "content")
                content_.add(asked);
            else if (type == "connect")
                client.send(connect(asked));
            else if (type == "begin")
                client.send(begin(asked));
            else if (type == "end")
                client.send(end(asked));
            else
                throw core::RunError(fmt::format("a message of type \"{}\" is not known", type));
        } catch (const Json::exception& error) {
            throw core::RunError(fmt::format("a message \"{}\" that cannot be read: {}", type, error.what()));
        }
    }
}

Server::Json Server::open(const Json& asked, const ControlConnection& client) {
    close();
    spec_ = {};
    spec_.address = config_.address.empty() ? asked.value("address", "") : config_.address;
    if (spec_.address.empty()) spec_.address = client.own_address();
    if (config_.address.empty()) spec_.interface = interface_with(spec_.address);
    // Nobody may be told to send to somebody else by way of us.
    if (spec_.interface.empty() && config_.address.empty())
        throw core::RunError(fmt::format("{} is no address of this host: nothing will be sent there", spec_.address));
    spec_.device = config_.device;
    spec_.cpu = config_.receiving.cpu;
    spec_.bytes = asked.at("bytes");
    by_weir_ = asked.at("by_weir");
    spec_.addresses = asked.at("addresses");
    check(PacketPlan{.trial = 0, .bytes = spec_.bytes, .packets = 1});
    const Depth depth = depth_named(asked.at("depth").get<std::string>());
    try {
        transport_ = &transport_named(asked.at("transport").get<std::string>());
        open_receiver(depth);
    } catch (const std::runtime_error& error) {  // a host that cannot do this may well do other things
        return {{"type", "opened"}, {"not_available", error.what()}};
    }
    const std::string interface =
        spec_.interface.empty() ? config::driver_of(spec_.device) : interface_text(spec_.interface);
    if (receiver_ == nullptr)
        return {{"type", "opened"}, {"not_available", ""},    {"address", spec_.address},
                {"port", 0},        {"interface", interface}, {"remarks", waits_remark(*transport_, spec_)}};
    const Endpoint endpoint = receiver_->endpoint();
    std::string remarks = receiver_->remarks();
    if (const std::string waits = waits_remark(*transport_, spec_); !waits.empty())
        remarks += (remarks.empty() ? "" : "; ") + waits;
    return {{"type", "opened"},      {"not_available", ""},         {"address", endpoint.address},
            {"port", endpoint.port}, {"offer", receiver_->offer()}, {"interface", interface},
            {"remarks", remarks}};
}

Server::Json Server::connect(const Json& asked) {
    if (receiver_ == nullptr) throw core::RunError("a receiver was connected before it was opened");
    try {
        receiver_->connect(asked.at("answer"));
    } catch (const core::RunError& error) {
        return {{"type", "connected"}, {"not_available", error.what()}};
    }
    return {{"type", "connected"}, {"not_available", ""}};
}

/// None where `weir run` receives.
void Server::open_receiver(Depth depth) {
    if (const std::string problem = depth_problem(*transport_, depth); !problem.empty()) throw core::RunError(problem);
    if (!config_.address.empty() && !transport_->on_device)
        throw core::RunError(fmt::format("{} needs a network of the kernel's, and does not go over {}",
                                         transport_->name, config::driver_of(config_.device)));
    if (spec_.addresses > 1 && (!transport_->places || transport_->by_pipeline(depth, by_weir_)))
        throw core::RunError("where payload goes is for the ring to say, or for the driver's pool");
    if (transport_->by_pipeline(depth, by_weir_)) {
        if (const std::string problem = pipeline_problem(*transport_->pipeline, spec_.bytes); !problem.empty())
            throw core::RunError(problem);
        return;
    }
    receiver_ = transport_->open(spec_);
}

Server::Json Server::begin(const Json& asked) {
    if (transport_ == nullptr) throw core::RunError("a trial was begun before a receiver was opened");
    TrialSpec spec;
    spec.plan = {.trial = asked.at("trial"),
                 .bytes = asked.at("bytes"),
                 .packets = asked.at("packets_per_message"),
                 .sources = asked.at("sources"),
                 .content = asked.at("content").get<bool>() ? content_.content() : nullptr};
    if (asked.at("content").get<bool>() && !spec.plan.content)
        throw core::RunError("a trial wants content that has not come");
    check(spec.plan);
    spec.packets = asked.at("packets");
    spec.ramp = asked.at("ramp");
    spec.packets_per_s = asked.at("packets_per_s");
    spec.depth = depth_named(asked.at("depth").get<std::string>());
    spec.joined = asked.at("joined");
    if (spec.plan.bytes > spec_.bytes) throw core::RunError("packets are larger than the receiver was opened for");
    if (spec.packets > packets_max) throw core::RunError(fmt::format("a trial has at most {} packets", packets_max));
    Receiving::Settings settings = config_.receiving;
    settings.real_time = transport_->real_time;
    trial_.reset();
    pipeline_trial_.reset();
    if (transport_->by_pipeline(spec.depth, by_weir_)) {
        pipeline_trial_.emplace(*transport_->pipeline, spec_, spec);
        return {{"type", "begun"}};
    }
    if (receiver_ == nullptr) throw core::RunError("a trial was begun at a depth that was not opened");
    trial_.emplace(*receiver_, spec_.interface, spec, settings);
    return {{"type", "begun"}};
}

Server::Json Server::end(const Json& asked) {
    if (!trial_ && !pipeline_trial_) throw core::RunError("a trial was ended that had not begun");
    const Receiving::Outcome outcome = trial_ ? trial_->end(asked.at("sent")) : pipeline_trial_->end();
    trial_.reset();
    pipeline_trial_.reset();
    const Latency& latency = outcome.latency;
    return {{"type", "counts"},
            {"counts", to_json(outcome.counts)},
            {"latency_s", {latency.p50, latency.p99, latency.p999, latency.longest}},
            {"remarks", outcome.remarks}};
}

void Server::close() noexcept {
    pipeline_trial_.reset();
    trial_.reset();
    receiver_.reset();
}

}  // namespace weir::bench
