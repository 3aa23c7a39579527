#include "fabric/transfers.hpp"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "cluster/message_bytes.hpp"

namespace weir::fabric {

namespace {

constexpr const char* not_understood = "a message came over UCX that no node of this cluster sends; it was dropped";

/// What goes with one active message: an eager one of TCP's in UCX, without another copy.
constexpr std::size_t words_bytes_max = 4096;
using WordLength = std::uint32_t;

/// The first of these words; `words` are the others then. Throws std::runtime_error if there is none.
std::span<const std::byte> take_word(std::span<const std::byte>& words) {
    WordLength length = 0;
    if (words.size() < sizeof length) throw std::runtime_error("a word is cut short");
    std::memcpy(&length, words.data(), sizeof length);
    words = words.subspan(sizeof length);
    if (words.size() < length) throw std::runtime_error("a word is cut short");
    const auto word = words.first(length);
    words = words.subspan(length);
    return word;
}

void append_word(std::vector<std::byte>& words, std::span<const std::byte> bytes) {
    const auto length = static_cast<WordLength>(bytes.size());
    const auto prefix = std::as_bytes(std::span(&length, 1));
    words.insert(words.end(), prefix.begin(), prefix.end());
    words.insert(words.end(), bytes.begin(), bytes.end());
}

}  // namespace

struct Transfers::Sending {
    Transfers& owner;
    std::vector<std::byte> header;  ///< UCX reads it until the message has left
    std::vector<std::byte> words;
    std::shared_ptr<UcxEndpoint::State> way;
    bool has_block = false;
    cluster::NodeId to = 0;
    cluster::Block block = 0;
};

struct Transfers::Landing {
    Transfers& owner;
    ActiveHead head;
    cluster::Message message;
    std::byte* memory;
    std::size_t bytes;
};

/// What UCX calls: nothing may be thrown into it.
template <ucs_status_t (Transfers::*take)(const ActiveHead&, std::span<const std::byte>, void*, std::size_t, bool)>
ucs_status_t Transfers::on_active(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param) noexcept {
    auto& transfers = *static_cast<Transfers*>(self);
    try {
        ActiveHead head;
        if (header_bytes >= sizeof head) {
            std::memcpy(&head, header, sizeof head);
            const std::span all(static_cast<const std::byte*>(header), header_bytes);
            const bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
            return (transfers.*take)(head, all.subspan(sizeof head), data, bytes, is_rendezvous);
        }
        transfers.deferred_.say(not_understood);
    } catch (const std::exception&) {  // not a message, or no memory for it
        try {
            transfers.deferred_.say(not_understood);
        } catch (const std::exception&) {
        }
    }
    return UCS_OK;
}

Transfers::Transfers(UcxWorker& worker, LinkTable& table, DeferredEvents& deferred, Receiver& receiver,
                     cluster::NodeId self)
    : worker_(worker), table_(table), deferred_(deferred), receiver_(receiver), self_(self) {
    worker.receive(ActiveId::words, &on_active<&Transfers::take_words>, this);
    worker.receive(ActiveId::part, &on_active<&Transfers::take_part>, this);
    worker.receive(ActiveId::beat, &on_active<&Transfers::take_beat>, this);
}

Transfers::~Transfers() = default;

void Transfers::give_up() {
    for (const auto& [key, landing] : landings_) receiver_.give_back(landing->memory, landing->bytes);
    landings_.clear();
    sendings_.clear();
}

bool Transfers::open(Link& link, std::span<const std::byte> address) noexcept {
    if (link.endpoint.is_open()) return true;
    try {
        link.endpoint = UcxEndpoint(worker_, address);
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

void Transfers::send(Link& link, const cluster::Message& message, cluster::Payload payload) {
    if (!has_payload(message)) return add_word(link, message);
    auto sending = make_sending(link);
    const auto bytes = cluster::to_bytes(message);
    sending->header.insert(sending->header.end(), bytes.begin(), bytes.end());
    sending->has_block = true;
    sending->to = link.node;
    sending->block = message.block;
    post(link, ActiveId::part, std::move(sending), {memory_of(payload), payload.bytes});
}

namespace {

/// Whether a Kind::ready says what comes after another one; then that one says both.
bool goes_on(cluster::Message& ready, const cluster::Message& after) {
    constexpr std::size_t gaps_max = 128;
    if (ready.term != after.term || ready.block != after.first || ready.gaps.size() > gaps_max) return false;
    ready.block = after.block;
    ready.ended |= after.ended;
    ready.gaps.insert(ready.gaps.end(), after.gaps.begin(), after.gaps.end());
    return true;
}

}  // namespace

void Transfers::add_word(Link& link, const cluster::Message& message) {
    if (link.words.empty() && !link.ready) links_with_words_.push_back(link.node);
    if (message.kind == cluster::Kind::ready) {
        if (link.ready && goes_on(*link.ready, message)) return;
        if (const auto before = std::exchange(link.ready, message)) add_bytes(link, cluster::to_bytes(*before));
        return;
    }
    add_bytes(link, cluster::to_bytes(message));
}

void Transfers::add_bytes(Link& link, const std::vector<std::byte>& bytes) {
    if (link.words.size() + sizeof(WordLength) + bytes.size() > words_bytes_max) post_words(link);
    append_word(link.words, bytes);
}

void Transfers::flush() {
    for (const cluster::NodeId node : links_with_words_) post_words(table_.links[node]);
    links_with_words_.clear();
}

void Transfers::post_words(Link& link) {
    if (const auto ready = std::exchange(link.ready, std::nullopt)) append_word(link.words, cluster::to_bytes(*ready));
    if (link.words.empty()) return;
    auto sending = make_sending(link);
    sending->words.swap(link.words);
    post(link, ActiveId::words, std::move(sending), {});
}

void Transfers::send_beat(Link& link) {
    post(link, ActiveId::beat, make_sending(link), {});
}

std::unique_ptr<Transfers::Sending> Transfers::make_sending(const Link& link) {
    const ActiveHead head{.session = link.its_session, .node = self_};
    const auto bytes = std::as_bytes(std::span(&head, 1));
    return std::unique_ptr<Sending>(
        new Sending{.owner = *this, .header = {bytes.begin(), bytes.end()}, .words = {}, .way = link.endpoint.state()});
}

void Transfers::post(Link& link, unsigned id, std::unique_ptr<Sending> sending, std::span<const std::byte> data) {
    if (sending->header.size() > worker_.header_bytes_max() || link.endpoint.has_failed() || !link.endpoint.is_open())
        return finish(*sending);
    if (id == ActiveId::words) data = sending->words;
    Sending* const key = sending.get();
    sendings_.emplace(key, std::move(sending));
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                         UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.cb.send = &on_sent;
    param.user_data = key;
    param.flags = id == ActiveId::part ? 0U : static_cast<std::uint32_t>(UCP_AM_SEND_FLAG_EAGER);
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    ++link.posted;
    link.posted_at = table_.now;
    void* const request = ucx().ucp_am_send_nbx(link.endpoint.get(), id, key->header.data(), key->header.size(),
                                                data.data(), data.size(), &param);
    if (UCS_PTR_IS_PTR(request)) return;  // on_sent() is called
    key->way->may_close |= UCS_PTR_STATUS(request) == UCS_OK;
    finish(*key);
    sendings_.erase(key);
}

void Transfers::on_sent(void* request, ucs_status_t status, void* sending) noexcept {
    ucx().ucp_request_free(request);
    auto* const done = static_cast<Sending*>(sending);
    done->way->may_close |= status == UCS_OK;
    Transfers& owner = done->owner;
    owner.finish(*done);
    owner.sendings_.erase(done);
}

void Transfers::finish(Sending& sending) {
    if (sending.has_block) deferred_.sent(sending.to, sending.block);
}

/// Null: none that may send now.
Link* Transfers::sender_of(const ActiveHead& head) {
    if (head.node >= table_.links.size() || head.session == 0 || table_.links[head.node].own_session != head.session) {
        if (!table_.sessions.contains(head.session)) deferred_.say(not_understood);
        return nullptr;
    }
    Link& link = table_.links[head.node];
    if (link.stage == Link::Stage::greeted) link.come_up(deferred_, table_.now);  // its word for that comes later
    if (!link.is_up()) return nullptr;
    link.heard_at = link.messaged_at = table_.now;
    return &link;
}

ucs_status_t Transfers::take_beat(const ActiveHead& head, std::span<const std::byte> /*more*/, void* /*data*/,
                                  std::size_t /*bytes*/, bool /*is_rendezvous*/) {
    if (Link* const link = sender_of(head)) ++link->arrived;
    return UCS_OK;
}

ucs_status_t Transfers::take_words(const ActiveHead& head, std::span<const std::byte> /*more*/, void* data,
                                   std::size_t bytes, bool is_rendezvous) {
    Link* const link = sender_of(head);
    if (link == nullptr) return UCS_OK;
    ++link->arrived;
    if (!takes_) return UCS_OK;
    std::span left(static_cast<const std::byte*>(data), is_rendezvous ? 0 : bytes);  // nobody sends words like that
    do {
        auto message = cluster::from_bytes(take_word(left), nodes());
        if (has_payload(message)) throw std::runtime_error("a part is no word");
        deferred_.received(head.node, std::move(message), {});
    } while (!left.empty());
    return UCS_OK;
}

ucs_status_t Transfers::take_part(const ActiveHead& head, std::span<const std::byte> more, void* data,
                                  std::size_t bytes, bool is_rendezvous) {
    Link* const link = sender_of(head);
    if (link == nullptr) return UCS_OK;
    auto message = cluster::from_bytes(more, nodes());
    if (!takes_ || !has_payload(message)) {
        if (takes_) deferred_.say(not_understood);
        ++link->arrived;
        return UCS_OK;
    }
    std::byte* const memory = receiver_.room(bytes);
    auto landing = std::unique_ptr<Landing>(new Landing{*this, head, std::move(message), memory, bytes});
    if (is_rendezvous) return land(std::move(landing), data);
    if (bytes > 0) std::memcpy(memory, data, bytes);
    finish(*landing, true);
    return UCS_OK;
}

ucs_status_t Transfers::land(std::unique_ptr<Landing> landing, void* data) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.cb.recv_am = &on_landed;
    param.user_data = landing.get();
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    Landing* const key = landing.get();
    landings_.emplace(key, std::move(landing));
    void* const request = ucx().ucp_am_recv_data_nbx(worker_.get(), data, key->memory, key->bytes, &param);
    if (UCS_PTR_IS_PTR(request)) return UCS_INPROGRESS;  // on_landed() may have been called already, if it failed
    finish(*key, UCS_PTR_STATUS(request) == UCS_OK);
    landings_.erase(key);
    return UCS_OK;
}

void Transfers::on_landed(void* request, ucs_status_t status, std::size_t bytes, void* landing) noexcept {
    ucx().ucp_request_free(request);
    auto* const done = static_cast<Landing*>(landing);
    Transfers& owner = done->owner;
    owner.finish(*done, status == UCS_OK && bytes == done->bytes);
    owner.landings_.erase(done);
}

/// What lands after its sender counts as gone is nobody's any more.
void Transfers::finish(const Landing& landing, bool has_come) {
    Link& link = table_.links[landing.head.node];
    if (has_come && link.is_up() && link.own_session == landing.head.session) {
        ++link.arrived;
        link.heard_at = link.messaged_at = table_.now;
        deferred_.received(landing.head.node, landing.message, {landing.bytes, handle_of(landing.memory)});
    } else {
        receiver_.give_back(landing.memory, landing.bytes);
    }
}

}  // namespace weir::fabric
