#include "harness.hpp"

#include <algorithm>
#include <cstring>

namespace weir::assemble::test {

using wire::PacketCounter;

Harness::Harness(const Limits& limits)
    : limits_(limits),
      packet_tallies_(limits.rx_count + limits.shards),
      message_tallies_(limits.rx_count + limits.shards),
      event_tallies_(limits.shards) {
    if (limits_.sources_needed == 0) limits_.sources_needed = limits_.sources;
    const std::vector<std::uint8_t> bits(limits_.sources, static_cast<std::uint8_t>(limits_.number_bits));
    EventBuilder::Config to;
    for (std::uint32_t rx = 0; rx < limits_.rx_count; ++rx) {
        MessageTable::Config from;
        from.owner = static_cast<std::uint16_t>(rx);
        from.sources = limits_.sources;
        from.messages_max = limits_.messages_max;
        from.buffers_max = limits_.buffers_max;
        from.range_blocks = limits_.range_blocks;
        from.horizon = limits_.horizon;
        from.message_bytes_max = limits_.message_bytes_max;
        from.timeout_ns = limits_.timeout_ns;
        from.number_bits = bits;
        from.copies = limits_.copies;
        from.shards = limits_.shards;
        tables_.push_back(
            std::make_unique<MessageTable>(from, packet_tallies_[rx], message_tallies_[rx], &Harness::release));
    }
    to.sources = limits_.sources;
    to.sources_needed = limits_.sources_needed;
    to.open_max = limits_.open_max;
    to.queued_max = limits_.queued_max;
    to.timeout_ns = limits_.timeout_ns;
    to.horizon = limits_.horizon;
    to.wait = limits_.wait;
    to.overload = limits_.overload;
    to.prescale = limits_.prescale;
    for (std::uint32_t source = 0; source < limits_.sources; ++source)
        to.owner.push_back(static_cast<std::uint16_t>(source % limits_.rx_count));
    to.number_bits = bits;
    to.rx_count = limits_.rx_count;
    to.messages_max = limits_.messages_max;
    if (const ShardOf shard_of(limits_.shards, bits); shard_of.shards() > 1)
        board_ = std::make_unique<ShardBoard>(shard_of.shards(), shard_of.bits());
    to.board = board_.get();
    for (to.shard = 0; to.shard < limits_.shards; ++to.shard)
        builders_.push_back(std::make_unique<EventBuilder>(to, packet_tallies_[limits_.rx_count + to.shard],
                                                           message_tallies_[limits_.rx_count + to.shard],
                                                           event_tallies_[to.shard]));
}

std::byte Harness::content(const Buffer& buffer, std::size_t at) {
    at += buffer.offset;
    return static_cast<std::byte>(
        (buffer.number * 131 + (buffer.number >> 8U) * 17 + buffer.source * 29 + buffer.salt + at * 7 + (at >> 8U)) &
        0xFFU);
}

void Harness::release(void** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        auto* buffer = static_cast<Buffer*>(buffers[i]);
        ++buffer->released;
        std::ranges::fill(buffer->bytes, std::byte{0xDD});  // who still reads it gets something else
    }
}

Harness::Buffer& Harness::make_buffer(std::size_t index, const Packet& packet) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.packet = first_copies_.try_emplace(copy_key(packet), index).first->second;
    buffer.source = packet.source;
    buffer.number = packet.number;
    buffer.offset = packet.offset;
    buffer.salt = packet.salt;
    buffer.header = std::byte{packet.header};
    buffer.time_ns = packet.time_ns;
    buffer.bytes.resize(packet.bytes);
    for (std::size_t i = 0; i < buffer.bytes.size(); ++i) buffer.bytes[i] = content(buffer, i);
    return buffer;
}

wire::Fragment Harness::fragment_of(const Packet& packet, Buffer& buffer) const {
    wire::Fragment fragment;
    fragment.payload = buffer.bytes.data();
    fragment.number = packet.number;
    fragment.offset = packet.offset;
    fragment.bytes = packet.bytes;
    fragment.total = packet.total_known ? packet.total : 0;
    fragment.total_known = packet.total_known;
    fragment.header = &buffer.header;
    fragment.header_bytes = 1;
    fragment.sender = packet.sender;
    fragment.fresh = packet.fresh;
    return fragment;
}

void Harness::add_to(MessageTable& table, std::span<const Numbered> packets) {
    std::vector<std::uint32_t> sources;
    std::vector<wire::Fragment> fragments;
    std::vector<void*> buffers;
    std::vector<TimeNs> times;
    for (const auto& [packet, index] : packets) {
        Buffer& buffer = make_buffer(index, *packet);
        sources.push_back(packet->source);
        fragments.push_back(fragment_of(*packet, buffer));
        buffers.push_back(&buffer);
        times.push_back(packet->time_ns);
    }
    if (limits_.bursts) {
        for (std::size_t at = 0; at < packets.size(); at += MessageTable::burst_max)
            table.add_burst(
                {std::span(sources).subspan(at, std::min<std::size_t>(MessageTable::burst_max, packets.size() - at)),
                 fragments.data() + at, buffers.data() + at, times.data() + at});
    } else {
        for (std::size_t i = 0; i < packets.size(); ++i) table.add_any(sources[i], fragments[i], buffers[i], times[i]);
    }
}

std::size_t Harness::add(const Packet& packet) {
    advance(packet.time_ns);
    const Numbered one{&packet, buffers_.size()};
    add_to(*tables_[packet.source % limits_.rx_count], {&one, 1});
    exchange();
    return buffers_.size() - 1;
}

void Harness::add_undrained(std::span<const Packet> packets) {
    std::vector<std::vector<Numbered>> of_table(limits_.rx_count);
    for (std::size_t index = buffers_.size(); const Packet& packet : packets) {
        now_ = std::max(now_, packet.time_ns);
        of_table[packet.source % limits_.rx_count].push_back({&packet, index++});
    }
    for (std::uint32_t rx = 0; rx < limits_.rx_count; ++rx) add_to(*tables_[rx], of_table[rx]);
}

void Harness::add_in_pieces(const Packet& packet, std::uint32_t pieces, MessageTable::PiecesAre are) {
    advance(packet.time_ns);
    wire::Fragment fragment;
    fragment.number = packet.number;
    fragment.offset = packet.offset;
    fragment.bytes = packet.bytes;
    fragment.total = packet.total_known ? packet.total : 0;
    fragment.total_known = packet.total_known;
    std::vector<Piece> parts;
    const std::uint32_t step = (packet.bytes + pieces - 1) / pieces;
    for (std::uint32_t i = 0; i < pieces; ++i) {
        const std::uint32_t begin = std::min(i * step, packet.bytes);
        Packet part = packet;
        part.offset += begin;
        part.bytes = std::min(step, packet.bytes - begin);
        Buffer& buffer = make_buffer(buffers_.size(), part);
        buffer.continued = i > 0 && are == MessageTable::PiecesAre::one_packet;
        parts.push_back({&buffer, buffer.bytes.data(), static_cast<std::uint32_t>(buffer.bytes.size())});
    }
    tables_[packet.source % limits_.rx_count]->add_pieces(packet.source, fragment, parts, packet.time_ns, are);
    exchange();
}

void Harness::bind(std::uint32_t source, std::uint64_t number, std::uint32_t total, std::span<const Part> parts,
                   TimeNs now) {
    advance(now);
    MessageTable& table = *tables_[source % limits_.rx_count];
    Message* message = table.open_unbound(source, parts.front().time_ns);
    for (const Part& part : parts) {
        Buffer& buffer = make_buffer(
            buffers_.size(),
            {.source = source, .number = number, .offset = part.offset, .bytes = part.bytes, .time_ns = part.time_ns});
        if (!table.append(*message, &buffer, buffer.bytes.data(), part.offset, part.bytes, part.time_ns) ||
            table.add_range(*message, part.offset, part.offset + part.bytes) != RangeResult::added)
            faults_ += "a part does not fit\n";
    }
    message->total = total;
    message->total_known = true;
    message->complete = message->received_bytes == total;
    table.bind_and_deliver(*message, number, now);
    exchange();
}

void Harness::advance(TimeNs now) {
    now_ = std::max(now_, now);
    for (auto& table : tables_) table->expire(now_);
    exchange();
}

void Harness::finish() {
    for (auto& table : tables_) table->finish(now_);
    exchange();
    finish_builders();
    exchange();
}

void Harness::finish_builders() {
    std::vector<std::span<const TimeNs>> newest_whole;
    for (auto& builder : builders_) {
        builder->end_input();
        newest_whole.push_back(builder->newest_whole());
    }
    for (auto& builder : builders_) {
        builder->advance(now_);
        builder->finish(newest_whole);
        builder->meet_shards();
    }
}

void Harness::exchange() {
    for (bool moved = true; moved;) {
        moved = false;
        for (auto& table : tables_) {
            for (std::uint32_t shard = 0; shard < table->shards(); ++shard) {
                std::uint32_t taken = 0;
                for (const Descriptor& descriptor : table->pending(shard)) {
                    if (!builders_[shard]->offer(descriptor)) break;
                    ++taken;
                }
                table->consume_pending(taken, shard);
                moved |= taken > 0;
            }
        }
        for (auto& builder : builders_) {
            builder->advance(now_);
            builder->meet_shards();
        }
        for (std::uint32_t shard = 0; shard < limits_.shards; ++shard) {
            const std::size_t before = events.size();
            pop_events(shard);
            moved |= events.size() > before;
            for (std::uint32_t rx = 0; rx < limits_.rx_count; ++rx) {
                const auto commands = builders_[shard]->commands(rx);
                const auto count = static_cast<std::uint32_t>(commands.size());
                for (const Command& command : commands) tables_[rx]->execute(command, now_);
                builders_[shard]->consume_commands(rx, count);
                tables_[rx]->end_burst();
                moved |= count > 0;
            }
        }
    }
}

void Harness::pop_events(std::uint32_t shard) {
    while (Event* event = builders_[shard]->pop_closed()) {
        events.push_back(result_of(*event));
        if (frozen_)
            held_.emplace_back(event, shard);
        else
            give_back(*event, shard);
    }
}

void Harness::thaw() {
    frozen_ = false;
    for (; !held_.empty(); held_.pop_front()) give_back(*held_.front().first, held_.front().second);
    exchange();
}

void Harness::give_back(Event& event, std::uint32_t shard) {
    for (Message* message : event.messages)
        if (message != nullptr)
            tables_[message->owner]->execute({Command::Kind::recycle, message->source, message->number, message}, now_);
    builders_[shard]->release(event);
}

const Harness::Buffer* Harness::buffer_of(const FragmentRef& ref, const Message& message) const {
    if (ref.buffer != nullptr) return static_cast<const Buffer*>(ref.buffer);
    for (const Buffer& buffer : buffers_)
        if (buffer.source == message.source && (buffer.number ^ message.number) << (64 - limits_.number_bits) == 0 &&
            buffer.offset == ref.offset && buffer.time_ns == ref.time_ns && buffer.bytes.size() == ref.bytes &&
            has_content(ref, buffer))
            return &buffer;
    return nullptr;
}

bool Harness::has_content(const FragmentRef& ref, const Buffer& buffer) {
    for (std::size_t i = 0; i < ref.bytes; ++i)
        if (ref.data[i] != content(buffer, i)) return false;
    return true;
}

void Harness::check_ref(const FragmentRef& ref, const Buffer& buffer) {
    const bool copied = ref.buffer == nullptr;
    copied_ += copied ? 1 : 0;
    if (!copied && buffer.released != 0) faults_ += "a buffer was released before its event left\n";
    if (copied && ref.bytes > limits_.copies.at_once_bytes) faults_ += "a payload should not have been copied\n";
    if ((ref.data == buffer.bytes.data()) == copied || ref.bytes != buffer.bytes.size())
        faults_ += "a reference is not a packet\n";
    if (!has_content(ref, buffer)) faults_ += "payload changed\n";
}

EventResult Harness::result_of(const Event& event) {
    EventResult result{event.number, event.sequence, event.epoch, event.cause, event.first_ns, event.last_ns, {}};
    for (std::uint32_t source = 0; source < limits_.sources; ++source) {
        Message* message = event.messages[source];
        if (message == nullptr) continue;
        if (message->source != source || message->epoch != event.epoch) faults_ += "a foreign message\n";
        MessageResult& to = result.messages[source];
        to.complete = message->complete;
        to.total_known = message->total_known;
        to.total = message->total_known ? message->total : 0;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> have;
        std::uint32_t bytes = 0;
        std::uint32_t packets = 0;
        MessageTable::for_each_ref(*message, [&](const FragmentRef& ref) {
            if (ref.bytes == 0 && !(message->total_known && message->total == 0)) return;  // trimmed
            const Buffer* const buffer = buffer_of(ref, *message);
            if (buffer == nullptr) {
                faults_ += "a copy of nothing\n";
                return;
            }
            check_ref(ref, *buffer);
            have.emplace_back(ref.offset, ref.offset + ref.bytes);
            bytes += ref.bytes;
            if (buffer->continued) return;
            to.packets.push_back(buffer->packet);
            ++packets;
        });
        if (bytes != message->received_bytes || packets != message->packets) faults_ += "message sums are off\n";
        placed_bytes_ += bytes;
        std::ranges::sort(to.packets);
        std::ranges::sort(have);
        std::uint32_t at = 0;
        for (const auto& [begin, end] : have) {
            if (begin < at) faults_ += "placed twice\n";
            if (begin > at) to.missing.emplace_back(at, begin);
            at = end;
        }
        if (message->total_known && at > message->total) faults_ += "placed outside\n";
        if (message->total_known && at < message->total) to.missing.emplace_back(at, message->total);
        if (to.complete != (message->total_known && to.missing.empty())) faults_ += "complete, or not?\n";
    }
    return result;
}

// Spread.

void Harness::poll_rx(Rx& rx, MessageTable& table, std::mt19937_64& random) {
    for (std::deque<Command>& commands : rx.commands)
        for (std::size_t n = random() % (commands.size() + 1); n > 0; --n) {
            table.execute(commands.front(), rx.time);
            commands.pop_front();
        }
    std::vector<Numbered> burst;
    for (std::size_t left = random() % 32; left > 0 && !rx.input.empty(); --left) {
        burst.push_back(rx.input.front());
        rx.input.pop_front();
    }
    if (!burst.empty()) rx.time = burst.back().packet->time_ns;
    add_to(table, burst);
    table.expire(rx.time);
    if (rx.input.empty() && !rx.input_done) {
        rx.input_done = true;
        table.finish(rx.time);
    }
    for (std::uint32_t shard = 0; shard < table.shards(); ++shard) {
        const auto pending = table.pending(shard);
        const auto sent =
            static_cast<std::uint32_t>(random() % 2 == 0 ? pending.size() : random() % (pending.size() + 1));
        rx.descriptors[shard].insert(rx.descriptors[shard].end(), pending.begin(), pending.begin() + sent);
        table.consume_pending(sent, shard);
    }
    table.end_burst();
    if (!table.all_sent()) return;
    rx.watermark = rx.time;
    rx.finished = rx.input_done;
}

void Harness::poll_builder(std::uint32_t shard, std::vector<Rx>& rxs, std::mt19937_64& random) {
    EventBuilder& builder = *builders_[shard];
    for (std::size_t n = random() % 64; n > 0; --n) {
        Rx* next = nullptr;
        TimeNs bound = std::numeric_limits<TimeNs>::max();
        for (Rx& rx : rxs) {
            if (rx.descriptors[shard].empty()) {
                if (!rx.finished) bound = std::min(bound, rx.watermark);
            } else if (next == nullptr ||
                       rx.descriptors[shard].front().time_ns < next->descriptors[shard].front().time_ns) {
                next = &rx;
            }
        }
        if (next == nullptr || next->descriptors[shard].front().time_ns > bound) {
            if (bound != std::numeric_limits<TimeNs>::max()) builder.advance(bound);
            break;
        }
        if (!builder.offer(next->descriptors[shard].front())) break;
        next->descriptors[shard].pop_front();
    }
    for (std::uint32_t i = 0; i < rxs.size(); ++i) {
        const auto commands = builder.commands(i);
        const auto count = static_cast<std::uint32_t>(random() % (commands.size() + 1));
        rxs[i].commands[shard].insert(rxs[i].commands[shard].end(), commands.begin(), commands.begin() + count);
        builder.consume_commands(i, count);
    }
    builder.meet_shards();
    while (Event* event = builder.pop_closed()) {
        events.push_back(result_of(*event));
        held_.emplace_back(event, shard);
    }
    for (std::size_t n = random() % (held_.size() + 1); n > 0; --n) {
        give_back(*held_.front().first, held_.front().second);
        held_.pop_front();
    }
}

void Harness::run_spread(std::span<const Packet> packets, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Rx> rxs(limits_.rx_count);
    for (Rx& rx : rxs) {
        rx.descriptors.resize(limits_.shards);
        rx.commands.resize(limits_.shards);
    }
    for (std::size_t i = 0; i < packets.size(); ++i)
        rxs[packets[i].source % limits_.rx_count].input.push_back({&packets[i], i});
    const auto done = [](const Rx& rx) {
        return rx.finished && std::ranges::all_of(rx.descriptors, [](const auto& queue) { return queue.empty(); });
    };
    while (!std::ranges::all_of(rxs, done)) {
        const std::size_t who = random() % (rxs.size() + limits_.shards);
        if (who < rxs.size())
            poll_rx(rxs[who], *tables_[who], random);
        else
            poll_builder(static_cast<std::uint32_t>(who - rxs.size()), rxs, random);
    }
    for (std::size_t i = 0; i < rxs.size(); ++i) {
        for (const auto& commands : rxs[i].commands)
            for (const Command& command : commands) tables_[i]->execute(command, rxs[i].time);
        now_ = std::max(now_, rxs[i].time);
    }
    finish_builders();
    thaw();
}

// What came of it.

const EventResult* Harness::find(std::uint64_t number, std::uint32_t epoch) const {
    const auto found =
        std::ranges::find_if(events, [&](const EventResult& e) { return e.number == number && e.epoch == epoch; });
    return found != events.end() ? &*found : nullptr;
}

namespace {
template <class Tallies, class Counter>
std::uint64_t sum(const Tallies& tallies, Counter counter) {
    std::uint64_t total = 0;
    for (const auto& tally : tallies) total += tally.get(counter);
    return total;
}
}  // namespace

std::uint64_t Harness::count(PacketCounter counter) const {
    return sum(packet_tallies_, counter);
}
std::uint64_t Harness::count(MessageCounter counter) const {
    return sum(message_tallies_, counter);
}
std::uint64_t Harness::count(EventCounter counter) const {
    return sum(event_tallies_, counter);
}

std::vector<std::uint64_t> Harness::opened_by_shard() const {
    std::vector<std::uint64_t> opened;
    for (const auto& tally : event_tallies_) opened.push_back(tally.get(EventCounter::opened));
    return opened;
}

std::uint64_t Harness::left_side() const {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i) total += count(static_cast<PacketCounter>(i));
    return total;
}

std::string Harness::faults() const {
    std::string text = faults_;
    const auto expect = [&](bool good, const char* what) {
        if (!good) text += std::string(what) + "\n";
    };
    for (const Buffer& buffer : buffers_)
        if (buffer.released != 1) {
            text += "packet " + std::to_string(buffer.packet) + " released " + std::to_string(buffer.released) + " x\n";
            break;
        }
    std::size_t placed = 0;
    for (const EventResult& event : events)
        for (const auto& [source, message] : event.messages) placed += message.packets.size();
    const auto added = std::ranges::count(buffers_, false, &Buffer::continued);
    expect(left_side() == static_cast<std::uint64_t>(added), "packets: the counters do not add up to what was added");
    expect(count(PacketCounter::placed) == placed, "packets: placed is not what is in the events");
    std::uint64_t placed_bytes = 0;
    for (const auto& builder : builders_) placed_bytes += builder->placed_bytes();
    expect(placed_bytes == placed_bytes_, "bytes: placed is not what is in the events");
    expect(count(PacketCounter::in_flight) == 0, "packets: some are still in flight");
    std::uint64_t ended = 0;
    for (std::size_t i = 1; i < core::count_of<MessageCounter>; ++i) ended += count(static_cast<MessageCounter>(i));
    expect(count(MessageCounter::opened) == ended, "messages: opened is not delivered + refused");
    const std::uint64_t closed = count(EventCounter::complete) + count(EventCounter::incomplete_timeout) +
                                 count(EventCounter::incomplete_evicted) + count(EventCounter::incomplete_end_of_run) +
                                 count(EventCounter::incomplete_no_room) + count(EventCounter::incomplete_ended) +
                                 count(EventCounter::incomplete_node_down);
    expect(count(EventCounter::opened) == closed, "events: opened is not complete + incomplete");
    expect(closed == events.size() + count(EventCounter::dropped_no_room), "events: some did not leave");
    for (const auto& builder : builders_)
        expect(builder->in_use() == 0 && builder->open_count() == 0 && builder->queued_count() == 0, "events: held");
    for (const auto& table : tables_) {
        expect(table->buffers_held() == 0, "a table holds buffers");
        expect(table->cells_held() == 0, "a table holds copies");
        expect(table->messages_free() == limits_.messages_max, "a table lost message slots");
        expect(table->all_sent(), "descriptors were left");
    }
    return text;
}

}  // namespace weir::assemble::test
