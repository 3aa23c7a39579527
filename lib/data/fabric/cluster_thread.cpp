#include "fabric/cluster_thread.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "core/one_writer.hpp"
#include "fabric/part_pieces.hpp"

namespace weir::fabric {

namespace {

constexpr core::TimeNs look_interval_ns = core::ns_per_ms;
/// Who sleeps for less comes too late.
constexpr core::TimeNs sleep_ns_min = core::ns_per_ms / 10;
constexpr core::TimeNs publish_interval_ns = 100 * core::ns_per_ms;
/// A builder that was told to stop stays for so long, although others go on: whoever stops all nodes has told those by
/// then, and all builders work off what readout nodes hold.
constexpr core::TimeNs drain_ns = core::ns_per_s;

/// Higher for each start of a node, as long as its clock goes on: tenths of seconds since 2026. If it is behind what it
/// was, others say how far this node's lives are.
cluster::Incarnation incarnation_of_now() {
    constexpr core::TimeNs begin_s = 1'767'225'600;
    const core::TimeNs since_ns = core::clock_ns(CLOCK_REALTIME) - begin_s * core::ns_per_s;
    return static_cast<cluster::Incarnation>(std::max<core::TimeNs>(1, since_ns / (100 * core::ns_per_ms)));
}

PartHead& head_at(std::byte* part) {
    return *reinterpret_cast<PartHead*>(part);
}

cluster::Payload payload_of(std::byte* part) {
    return part == nullptr ? cluster::Payload{}
                           : cluster::Payload{head_at(part).bytes, reinterpret_cast<std::uint64_t>(part)};
}

}  // namespace

ClusterThread::ClusterThread(Config config)
    : config_(std::move(config)), memory_(config_.memory_bytes), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (wake_fd_ < 0) throw core::RunError("eventfd: the system gives no more file descriptors");
    waited_for_ns_.resize(config_.settings.nodes);
    begin_life();
    network_text_ = network_->text();
    thread_ = std::thread([this] {
        started_.wait(false);
        run();
    });
}

ClusterThread::~ClusterThread() {
    join();
    network_.reset();
    ::close(wake_fd_);
}

void ClusterThread::build_into(BlockQueue& queue, const WriteFence& fence) {
    queue_ = &queue;
    fence_ = &fence;
}

void ClusterThread::give_up_when(std::function<bool()> has_failed) {
    has_failed_ = std::move(has_failed);
}

void ClusterThread::start() {
    started_.store(true);
    started_.notify_one();
}

void ClusterThread::join() {
    if (!thread_.joinable()) return;
    quit_.store(true, std::memory_order_release);
    start();
    wake();
    thread_.join();
    if (queue_ != nullptr) queue_->ended.store(true, std::memory_order_release);
}

void ClusterThread::wake() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_fd_, &one, sizeof one));  // full means that it is awake
}

void ClusterThread::begin_life() {
    constexpr auto last = std::numeric_limits<cluster::Incarnation>::max();
    incarnation_ = std::max(std::min(std::max(incarnation_, known_), last - 1) + 1, incarnation_of_now());
    ++lives_;
    expelled_ = false;
    had_quorum_ = true;
    UcxNetwork::Config network = config_.network;
    network.incarnation = incarnation_;
    network_ = std::make_unique<UcxNetwork>(network, static_cast<Receiver&>(*this));
    node_ = std::make_unique<cluster::Node>(config_.settings, self(), incarnation_, *network_,
                                            static_cast<cluster::Application&>(*this));
}

/// The others took this node for dead. What a readout node holds it offers again; blocks that were built without it
/// meanwhile it hears of.
void ClusterThread::begin_again() {
    say(is_readout() ? "the cluster took this node for dead; it begins anew, and offers again what it holds"
                     : "the cluster took this node for dead; it begins anew, and what it held is lost");
    end_life();
    const std::unique_ptr<cluster::Node> before = std::move(node_);
    begin_life();
    node_->go_on_from(*before);
}

/// Nothing of it counts any more for the others.
void ClusterThread::end_life() {
    publish();
    {
        const std::scoped_lock lock(mutex_);
        before_ = account_;
    }
    before_.readout.held = 0;
    refused_before_ = callers_refused_;
    network_.reset();
}

void ClusterThread::forget(cluster::Payload part, bool is_left) {
    auto* const data = reinterpret_cast<std::byte*>(part.handle);
    if (held_.erase(data) > 0) (is_left ? events_left_ : events_too_late_) += head_at(data).events;
    memory_.give_back(data);
}

// From other threads.

void ClusterThread::offer(cluster::Block rest, std::byte* part) {
    const std::scoped_lock lock(mutex_);
    offers_.push_back({rest, part});
    if (offers_.size() == 1) wake();
}

void ClusterThread::close() {
    const std::scoped_lock lock(mutex_);
    close_wanted_ = true;
    wake();
}

void ClusterThread::stopping(bool at_once) noexcept {
    stopping_.store(true, std::memory_order_relaxed);
    if (at_once) stop_at_once_.store(true, std::memory_order_relaxed);
    wake();
}

Account ClusterThread::account() const {
    const std::scoped_lock lock(mutex_);
    return account_;
}

std::vector<std::string> ClusterThread::take_said() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(said_, {});
}

// What the core tells.

void ClusterThread::built(cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts) {
    if (free_blocks_.empty()) {
        blocks_.push_back(std::make_unique<BuiltBlock>());
        free_blocks_.push_back(blocks_.back().get());
    }
    BuiltBlock& built = *free_blocks_.back();
    free_blocks_.pop_back();
    built.life = lives_;
    built.fill(config_.layout, span, parts, [this, span](cluster::NodeId node, const std::string& why) {
        if (malformed_parts_++ == 0)
            say("a part of events " + std::to_string(span.block) + " to " + std::to_string(span.end - 1) + " from " +
                config_.network.names[node] + " cannot be used, and its data are missing: " + why);
    });
    to_hand_on_.push_back(&built);
    core::add(in_hand_);
}

void ClusterThread::release(cluster::Payload payload) {
    auto* const data = reinterpret_cast<std::byte*>(payload.handle);
    held_.erase(data);
    memory_.give_back(data);
}

void ClusterThread::drop(cluster::Payload payload) {
    forget(payload, false);
}

std::pair<cluster::Payload, cluster::Payload> ClusterThread::split(cluster::Payload part, cluster::Block at) {
    auto* const data = reinterpret_cast<std::byte*>(part.handle);
    const std::pair<std::byte*, std::byte*> parts = split_part(memory_, data, at);
    held_.erase(data);
    for (std::byte* const one : {parts.first, parts.second})
        if (one != nullptr) held_.insert(one);
    return {payload_of(parts.first), payload_of(parts.second)};
}

cluster::Payload ClusterThread::join(cluster::Payload first, cluster::Payload second) {
    std::byte* const joined =
        join_parts(memory_, reinterpret_cast<std::byte*>(first.handle), reinterpret_cast<std::byte*>(second.handle));
    held_.erase(reinterpret_cast<std::byte*>(first.handle));
    held_.erase(reinterpret_cast<std::byte*>(second.handle));
    held_.insert(joined);
    return payload_of(joined);
}

void ClusterThread::ended() {
    has_ended_ = true;
}

// What the network tells.

void ClusterThread::up(cluster::NodeId node, cluster::Incarnation incarnation) {
    ask_transports_ns_ = now_ + core::ns_per_s;  // the way has been chosen by then
    node_->peer_up(node, incarnation, now_);
}

void ClusterThread::down(cluster::NodeId node, cluster::Incarnation incarnation, cluster::Ending ending) {
    if (!has_ended_) say(config_.network.names[node] + " went away");
    node_->peer_down(node, incarnation, ending, now_);
}

void ClusterThread::absent(cluster::NodeId node, cluster::Ending why) {
    node_->peer_absent(node, why, now_);
}

void ClusterThread::quiet(cluster::NodeId node, bool is_quiet) {
    node_->peer_quiet(node, is_quiet, now_);
}

void ClusterThread::received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) {
    // The core has forgotten whom it takes for gone, and does not listen to it.
    if (message.kind == cluster::Kind::expelled && message.to == incarnation_) {
        expelled_ = true;
        known_ = std::max(known_, message.life);
    }
    node_->receive(from, message, payload, now_);
}

void ClusterThread::sent(cluster::NodeId to, cluster::Block block) {
    if (node_ != nullptr) node_->sent(to, block);
}

std::byte* ClusterThread::room(std::uint64_t bytes) {
    return memory_.take(bytes).data;
}

void ClusterThread::give_back(std::byte* memory, std::uint64_t /*bytes*/) {
    memory_.give_back(memory);
}

void ClusterThread::say(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    said_.push_back(text);
}

// The thread.

void ClusterThread::run() {
    while (!quit_.load(std::memory_order_acquire) && !gave_up_.load(std::memory_order_relaxed)) {
        const core::TimeNs monotonic = core::monotonic_ns();
        now_ = clock_.at(monotonic);
        bool worked = network_->progress(monotonic);
        if (expelled_) {
            begin_again();
            continue;
        }
        worked |= take_offers();
        worked |= take_back();
        worked |= finish_written();
        worked |= hand_on();
        if (now_ - looked_ns_ >= look_interval_ns) look(now_);
        const core::TimeNs slot_left = tick();
        if (!worked) wait(slot_left);
    }
    note_transports();
    network_.reset();  // the others need not wait for silence
    for (std::byte* const part : held_) events_left_ += head_at(part).events;
    publish();
    if (has_given_up()) {
        queue_->ended.store(true, std::memory_order_release);
        done_.store(true, std::memory_order_release);
    }
}

/// Once and for all: what the sinks do after that is not asked.
bool ClusterThread::gives_up() {
    if (has_given_up()) return true;
    if (has_failed_ == nullptr || !has_failed_()) return false;
    say("the sinks of this node failed: it leaves the others, which go on without it");
    gave_up_.store(true, std::memory_order_release);
    return true;
}

bool ClusterThread::take_offers() {
    std::vector<Offer> offers;
    bool closes = false;
    {
        const std::scoped_lock lock(mutex_);
        offers.swap(offers_);
        closes = close_wanted_ && !closed_;
    }
    for (const Offer& offer : offers) {
        const PartHead head = head_at(offer.part);
        held_.insert(offer.part);
        node_->readout().offer({head.block, head.end}, offer.rest, payload_of(offer.part));
    }
    if (closes) {
        closed_ = true;
        node_->readout().close();
    }
    return !offers.empty() || closes;
}

/// To the pipeline, as far as there is room in the ring.
bool ClusterThread::hand_on() {
    bool worked = false;
    while (!to_hand_on_.empty() && queue_->built.push(to_hand_on_.front())) {
        to_hand_on_.pop_front();
        worked = true;
    }
    return worked;
}

/// What the pipeline holds nothing of any more; it may still be in a buffer of output.
bool ClusterThread::take_back() {
    if (queue_ == nullptr) return false;
    std::array<BuiltBlock*, 16> taken;
    const std::uint32_t count = queue_->taken.pop(taken);
    for (std::uint32_t i = 0; i < count; ++i) {
        for (const cluster::Payload& part : taken[i]->memory())
            memory_.give_back(reinterpret_cast<std::byte*>(part.handle));
        leaving_.push_back({taken[i], {}});
        fence_->mark(leaving_.back().place);
    }
    return count > 0;
}

bool ClusterThread::finish_written() {
    bool worked = false;
    while (!leaving_.empty() && fence_->has_passed(leaving_.front().place)) {
        if (gives_up()) return true;  // in this order: what has passed since may not be written
        BuiltBlock* const block = leaving_.front().block;
        leaving_.pop_front();
        if (block->life == lives_) node_->written(block->block());
        free_blocks_.push_back(block);
        core::subtract(in_hand_, 1);
        worked = true;
    }
    return worked;
}

/// What is left of a slot that something waits for the end of.
core::TimeNs ClusterThread::tick() {
    const core::TimeNs slot_ns = config_.settings.slot_ns;
    if (slot_ns == 0) return core::never;
    const core::TimeNs shared = core::clock_ns(CLOCK_REALTIME);
    node_->readout().tick(shared);
    return node_->readout().wants_ticks() ? slot_ns - shared % slot_ns : core::never;
}

void ClusterThread::look(core::TimeNs now) {
    if (begun_ns_ == core::never) begun_ns_ = now;
    const core::TimeNs since = std::exchange(looked_ns_, now);
    if (const auto builder = node_->waits_for(); builder && waiting_.load(std::memory_order_relaxed))
        waited_for_ns_[*builder] += static_cast<std::uint64_t>(now - since);
    if (gives_up()) return;
    node_->look(now);
    wanted_before_.store(node_->readout().wanted_before(), std::memory_order_relaxed);
    consider_leaving(now);
    note_company(now);
    note_quorum();
    if (now - published_ns_ >= publish_interval_ns) publish();
}

void ClusterThread::note_company(core::TimeNs now) {
    const cluster::Settings& settings = config_.settings;
    bool is_there = has_ended_ || company_ns_ == 0;
    for (cluster::NodeId node = 0; node < settings.nodes && !is_there; ++node)
        is_there =
            node != self() && node_->is_up(node) &&
            (is_builder() ? settings.readouts.contains(node) : !is_readout() || settings.builders.contains(node));
    if (is_there) company_ns_ = now;
    if (config_.alone_ns != core::never) alone_.store(now - company_ns_ >= config_.alone_ns, std::memory_order_relaxed);
}

/// That somebody is only quiet is nothing to speak of.
void ClusterThread::note_quorum() {
    network_->set_quorum(node_->has_quorum());
    const cluster::Quorum::Count count = node_->quorum().count(true);
    const bool has_quorum = count.suffices();
    if (has_ended_ || std::exchange(had_quorum_, has_quorum) == has_quorum) return;
    const std::string in_reach = std::to_string(count.here) + " of " + std::to_string(count.counted);
    say(has_quorum ? "enough of the cluster is in reach again (" + in_reach + " nodes that count): it goes on"
                   : "only " + in_reach +
                         " nodes that count are in reach: the others may go on without this part of the cluster, so it "
                         "waits ([cluster] quorum)");
}

/// A run that is over before the others have done waiting for a node that is listed and not there: builders will still
/// want what this one has.
bool ClusterThread::waits_for_the_start(core::TimeNs now) const {
    if (begun_ns_ == core::never || now - begun_ns_ >= config_.settings.join_wait_ns || held_.empty()) return false;
    if (node_->readout_stats().handed_over > 0) return false;
    for (cluster::NodeId node = 0; node < config_.settings.nodes; ++node)
        if (config_.settings.builders.contains(node) && node_->is_up(node)) return true;
    return false;
}

/// Others get the blocks of a builder that was told to stop, as long as one of them goes on: then it need not wait for
/// the end.
void ClusterThread::drain(core::TimeNs now) {
    node_->prepare_to_leave();
    if (drained_from_ == 0) drained_from_ = now + drain_ns;
    if (now >= drained_from_ && now < *leave_by_ && node_->others_build()) leave_by_ = now;
}

/// Who is told to stop, or has no more parts, waits for the others, but not for ever.
void ClusterThread::consider_leaving(core::TimeNs now) {
    if (done_.load(std::memory_order_relaxed)) return;
    const bool stopping = stopping_.load(std::memory_order_relaxed);
    const bool nothing_left = is_readout() ? closed_ && held_.empty() : stopping;
    if (is_readout() && leave_by_ && waits_for_the_start(now)) leave_by_ = now + config_.leave_ns;
    if (!leave_by_ && (nothing_left || (stopping && (closed_ || !is_readout())))) leave_by_ = now + config_.leave_ns;
    if (stopping && is_builder() && !is_readout()) drain(now);
    const bool waits_no_more = (leave_by_ && now >= *leave_by_) || stop_at_once_.load(std::memory_order_relaxed);
    bool done = has_ended_;
    if (is_readout()) done |= closed_ && waits_no_more;
    if (is_builder() && waits_no_more && !has_ended_) {
        node_->leave();
        // What only this node knows to be built would be taken for lost with it.
        const bool waited_twice = leave_by_ && now >= *leave_by_ + config_.leave_ns;
        const bool is_settled = node_->is_settled() || waited_twice;
        // Nobody answers in a part of the network that waits. What it has not built the others have been given.
        const bool is_apart = waited_twice && !node_->has_quorum() && blocks_in_hand() == 0;
        done |= stop_at_once_.load(std::memory_order_relaxed) || (node_->is_idle() && is_settled) || is_apart;
    }
    if (!is_readout() && !is_builder()) done |= waits_no_more;
    if (is_builder()) {
        const bool takes_no_more = (has_ended_ || waits_no_more) && to_hand_on_.empty();
        if (takes_no_more && (done || node_->is_idle())) queue_->ended.store(true, std::memory_order_release);
    }
    if (done) done_.store(true, std::memory_order_release);
}

/// Connections to who has gone are not there any more. UCX takes some 0.1 ms to describe one, so it is seldom asked.
void ClusterThread::note_transports() {
    ask_transports_ns_.reset();
    for (std::string& name : network_->transports()) transports_.insert(std::move(name));
}

void ClusterThread::publish() {
    published_ns_ = now_;
    Account account = before_;
    if (ask_transports_ns_ && now_ >= *ask_transports_ns_) note_transports();
    account.transports.assign(transports_.begin(), transports_.end());
    if (network_) callers_refused_ = refused_before_ + network_->refused();
    account.callers_refused = callers_refused_;
    account.self = self();
    account.lives = lives_;
    account.readout += node_->readout_stats();
    account.builder += node_->builder_stats();
    account.manages = node_->manager() != nullptr;
    account.has_quorum = had_quorum_;
    account.manager += node_->manager_stats();
    account.settled = node_->settled();
    account.losses.assign(node_->losses().begin(), node_->losses().end());
    account.is_up.resize(config_.settings.nodes);
    for (cluster::NodeId node = 0; node < config_.settings.nodes; ++node) account.is_up[node] = node_->is_up(node);
    account.events_too_late = events_too_late_;
    account.events_left = events_left_;
    account.memory_bytes = memory_.used();
    account.memory_highest = memory_.used_highest();
    account.memory_bound = memory_.bound();
    account.waited_for_ns = waited_for_ns_;
    account.waited_ns = waited_ns_.load(std::memory_order_relaxed);
    account.malformed_parts = malformed_parts_;
    account.blocks_in_hand = blocks_in_hand();
    if (has_given_up()) account.blocks_given_up = node_->unwritten();
    const std::scoped_lock lock(mutex_);
    account_ = std::move(account);
}

/// For what comes from the network or from another thread; rings of the pipeline are asked again soon.
void ClusterThread::wait(core::TimeNs most_ns) {
    if (most_ns < sleep_ns_min || !network_->arm()) return;
    std::array<pollfd, 2> wanted{pollfd{network_->wait_fd(), POLLIN, 0}, pollfd{wake_fd_, POLLIN, 0}};
    const timespec most{0, std::min(most_ns, blocks_in_hand() > 0 ? sleep_ns_min : look_interval_ns)};
    if (::ppoll(wanted.data(), wanted.size(), &most, nullptr) > 0 && (wanted[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        static_cast<void>(::read(wake_fd_, &count, sizeof count));
    }
}

}  // namespace weir::fabric
