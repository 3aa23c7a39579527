#include "mpi_network.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "cluster/message_bytes.hpp"
#include "payloads.hpp"

namespace weir::cluster::bench {

namespace {

constexpr int message_tag = 0;
constexpr int mark_tag = 1;
/// The least that the standard promises; fewer blocks than half of that are on their way at a time.
constexpr Block tags = 32768;

}  // namespace

MpiNetwork::MpiNetwork(const Config& config, NodeId self, NodeId nodes)
    : config_(config),
      self_(self),
      nodes_(nodes),
      control_bytes_(control_receives * message_bytes_max),
      part_bytes_(make_bytes((1 + config.receives) * config.part_bytes)),
      queued_(nodes) {
    MPI_Comm_dup(MPI_COMM_WORLD, &control_);
    MPI_Comm_dup(MPI_COMM_WORLD, &parts_);
    requests_.resize(receive_count(), MPI_REQUEST_NULL);
    for (std::size_t slot = 0; slot < receive_count(); ++slot) post_receive(slot);
}

MpiNetwork::~MpiNetwork() {
    for (std::size_t slot = 0; slot < receive_count(); ++slot) {
        MPI_Cancel(&requests_[slot]);
        MPI_Request_free(&requests_[slot]);
    }
}

// A simulator puts other functions in the place of these two: all large blocks share the same memory, and what is in
// them is lost.
MpiNetwork::Bytes MpiNetwork::make_bytes(std::size_t count) {
    auto* const bytes = static_cast<std::byte*>(malloc(count));
    if (bytes == nullptr) throw std::bad_alloc();
    return Bytes(bytes);
}

void MpiNetwork::FreeBytes::operator()(std::byte* bytes) const noexcept {
    free(bytes);
}

std::byte* MpiNetwork::place_of(std::size_t slot) noexcept {
    if (slot < control_receives) return control_bytes_.data() + slot * message_bytes_max;
    return part_bytes_.get() + (1 + slot - control_receives) * config_.part_bytes;
}

void MpiNetwork::post_receive(std::size_t slot) {
    const bool is_part = slot >= control_receives;
    const auto bytes = static_cast<int>(is_part ? config_.part_bytes : message_bytes_max);
    MPI_Irecv(place_of(slot), bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, is_part ? parts_ : control_,
              &requests_[slot]);
}

void MpiNetwork::send(NodeId to, const Message& message, Payload payload) {
    newest_ = std::max(newest_, message.block);
    if (to == self_) {
        local_.push_back({to, message, payload});
    } else if (payload.handle != 0) {
        queued_parts_.push_back({to, message, payload});
    } else if (message.kind == Kind::ready) {
        ready_ = Mail{to, message, payload};  // says all that the one before says
    } else {
        queue(to, message);
    }
}

/// Messages for the same node travel together.
void MpiNetwork::queue(NodeId to, const Message& message) {
    const std::vector<std::byte> bytes = to_bytes(message);
    if (bytes.size() + sizeof(Size) > message_bytes_max)
        throw std::length_error("a message is too long to be received");
    std::vector<std::byte>& queued = queued_[to];
    if (queued.size() + bytes.size() + sizeof(Size) > message_bytes_max)
        send_bytes(to, std::exchange(queued, {}), message_tag);
    else if (queued.empty())
        awaited_.push_back(to);
    const auto size = static_cast<Size>(bytes.size());
    const auto* const size_bytes = reinterpret_cast<const std::byte*>(&size);
    queued.insert(queued.end(), size_bytes, size_bytes + sizeof size);
    queued.insert(queued.end(), bytes.begin(), bytes.end());
    ++stats_.messages;
}

core::TimeNs MpiNetwork::now() const {
    return 1 + static_cast<core::TimeNs>(MPI_Wtime() * 1e9);
}

void MpiNetwork::mark_all() {
    for (NodeId node = 0; node < nodes_; ++node)
        if (node != self_) send_bytes(node, {}, mark_tag);
    mark_queued_ = true;
}

void MpiNetwork::turn(EventBuilding& receiver, std::uint32_t most_us) {
    send_queued();
    send_parts();
    if (local_.empty() && !mark_queued_)
        wait(receiver, most_us);
    else
        deliver_local(receiver);
}

void MpiNetwork::flush() {
    send_queued();
    MPI_Waitall(static_cast<int>(sendings_.size()), requests_.data() + receive_count(), MPI_STATUSES_IGNORE);
}

void MpiNetwork::send_queued() {
    if (const auto ready = std::exchange(ready_, std::nullopt)) queue(ready->node, ready->message);
    for (const NodeId node : std::exchange(awaited_, {}))
        send_bytes(node, std::exchange(queued_[node], {}), message_tag);
}

void MpiNetwork::send_bytes(NodeId to, std::vector<std::byte> bytes, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, control_, &request);
    int has_left = 0;
    MPI_Test(&request, &has_left, MPI_STATUS_IGNORE);
    if (has_left != 0) return;
    requests_.push_back(request);
    sendings_.push_back({.is_part = false, .to = 0, .block = 0, .bytes = std::move(bytes)});
}

void MpiNetwork::send_parts() {
    while (!queued_parts_.empty()) {
        const Mail& mail = queued_parts_.front();
        const Block block = mail.message.block;
        requests_.push_back(MPI_REQUEST_NULL);
        sendings_.push_back({.is_part = true, .to = mail.node, .block = block, .bytes = {}});
        MPI_Isend(part_bytes_.get(), static_cast<int>(config_.part_bytes), MPI_BYTE, mail.node,
                  static_cast<int>(block % tags), parts_, &requests_.back());
        queued_parts_.pop_front();
    }
}

void MpiNetwork::deliver_local(EventBuilding& receiver) {
    if (std::exchange(mark_queued_, false)) receiver.hear_mark();
    for (const Mail& mail : std::exchange(local_, {})) {
        const bool has_payload = mail.payload.handle != 0;
        receiver.receive(self_, mail.message, has_payload ? Payload{mail.payload.bytes, received} : Payload{});
        if (has_payload) receiver.sent(self_, mail.message.block);
    }
}

/// There is no MPI_Waitsome with a limit, so what comes meanwhile is seen at the end.
void MpiNetwork::wait(EventBuilding& receiver, std::uint32_t most_us) {
    if (most_us == 0) {
        hand_over(receiver, MPI_Waitsome);
        return;
    }
    usleep(most_us);
    while (hand_over(receiver, MPI_Testsome)) {
    }
}

/// `some`: what has come. False: nothing.
bool MpiNetwork::hand_over(EventBuilding& receiver, decltype(&MPI_Waitsome) some) {
    const int count = static_cast<int>(requests_.size());
    done_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int done = 0;
    some(count, requests_.data(), &done, done_.data(), statuses_.data());
    for (int i = 0; i < done; ++i) {
        const auto slot = static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]);
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        if (slot < control_receives)
            hand_over_message(receiver, slot, status);
        else if (slot < receive_count())
            hand_over_part(receiver, slot, status);
    }
    forget_sent(receiver);
    return done > 0;
}

void MpiNetwork::hand_over_message(EventBuilding& receiver, std::size_t slot, const MPI_Status& status) {
    if (status.MPI_TAG == mark_tag) {
        post_receive(slot);
        receiver.hear_mark();
        return;
    }
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const std::vector<std::byte> bytes(place_of(slot), place_of(slot) + count);
    post_receive(slot);
    for (std::span<const std::byte> left(bytes); !left.empty();) {
        Size size = 0;
        std::memcpy(&size, left.data(), sizeof size);
        const Message message = from_bytes(left.subspan(sizeof size, size), nodes_);
        left = left.subspan(sizeof size + size);
        if (message.kind != Kind::settled) newest_ = std::max(newest_, message.block);
        receiver.receive(static_cast<NodeId>(status.MPI_SOURCE), message, {});
    }
}

/// The payload is not looked at, so its place can be used again at once.
void MpiNetwork::hand_over_part(EventBuilding& receiver, std::size_t slot, const MPI_Status& status) {
    const Block block = block_of(status.MPI_TAG);
    post_receive(slot);
    ++stats_.parts;
    const Message message{.kind = Kind::part, .from = first_life, .to = first_life, .block = block, .end = block + 1};
    receiver.receive(static_cast<NodeId>(status.MPI_SOURCE), message, {config_.part_bytes, received});
}

/// The one nearest to the newest.
Block MpiNetwork::block_of(int tag) const noexcept {
    const Block least = newest_ > tags / 2 ? newest_ - tags / 2 : 0;
    return least + (static_cast<Block>(tag) - least) % tags;
}

void MpiNetwork::forget_sent(EventBuilding& receiver) {
    std::vector<std::pair<NodeId, Block>> left;
    for (std::size_t i = 0; i < sendings_.size();) {
        MPI_Request& request = requests_[receive_count() + i];
        if (request != MPI_REQUEST_NULL) {
            ++i;
            continue;
        }
        if (sendings_[i].is_part) left.emplace_back(sendings_[i].to, sendings_[i].block);
        request = requests_.back();
        requests_.pop_back();
        if (i + 1 != sendings_.size()) sendings_[i] = std::move(sendings_.back());
        sendings_.pop_back();
    }
    for (const auto& [to, block] : left) receiver.sent(to, block);
}

}  // namespace weir::cluster::bench
