#include "stream/receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/foreign_json.hpp"
#include "core/printable.hpp"
#include "store/run_path.hpp"
#include "stream/zmq_library.hpp"

namespace weir::stream {

namespace {

/// An image, and what is said of it.
constexpr std::int64_t message_bytes_max = static_cast<std::int64_t>(channel_bytes_max) + (std::int64_t{64} << 20);
constexpr int messages_waiting = 64;
constexpr std::size_t problems_listed = 20;
constexpr std::size_t start_json_max = std::size_t{1} << 20;

/// Other people's text as a name of a folder.
std::string as_name(std::string_view text) {
    constexpr std::size_t longest = 64;
    std::string name(text.substr(0, longest));
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.') c = '_';
    if (name.empty() || name.front() == '.') name = "series" + name;
    return name;
}

/// What a weir that sends knows of its run: the same as in its event files.
nlohmann::json sender_start(const StreamMessage& start) {
    const CborValue* const text = start.extra("start_json");
    const std::string_view json = text != nullptr ? text->as_text() : std::string_view{};
    if (json.size() > start_json_max) return nlohmann::json::object();
    std::optional<nlohmann::json> read = core::read_json(json);
    return read && read->is_object() ? *std::move(read) : nlohmann::json::object();
}

nlohmann::json scalar_json(const CborValue& value) {
    switch (value.kind) {
        case CborValue::Kind::boolean:
            return value.number != 0;
        case CborValue::Kind::integer:
            return value.number;
        case CborValue::Kind::negative:
            return value.as_signed() ? nlohmann::json(*value.as_signed()) : nlohmann::json();
        case CborValue::Kind::real:
            return value.real;
        case CborValue::Kind::text:
            return std::string(value.text);
        default:
            return {};
    }
}

/// What the start says, as far as it is a number or a text; also of other senders.
nlohmann::json start_members(const StreamMessage& start, const std::string& address) {
    nlohmann::json out{{"from", address}};
    const auto& items = start.value.items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const CborValue* value = &items[i + 1];
        if (const CborValue* const date = value->tagged(tag_date)) value = date;
        const std::string_view key = items[i].as_text();
        if (key.empty()) continue;
        if (value->kind == CborValue::Kind::array) {
            nlohmann::json list = nlohmann::json::array();
            constexpr std::size_t longest = 64;
            for (std::size_t at = 0; at < std::min(value->items.size(), longest); ++at)
                list.push_back(scalar_json(value->items[at]));
            out[std::string(key)] = list;
        } else if (nlohmann::json scalar = scalar_json(*value); !scalar.is_null()) {
            out[std::string(key)] = std::move(scalar);
        }
    }
    return out;
}

std::string text_of(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ZmqSocket pull_from(const ZmqContext& context, const std::string& address) {
    ZmqSocket socket(context, ZMQ_PULL);
    socket.set(ZMQ_RCVHWM, messages_waiting);
    if (zmq().zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &message_bytes_max, sizeof message_bytes_max) != 0)
        throw core::RunError("ZeroMQ refuses a limit of the size of messages");
    try {
        socket.connect(address);
    } catch (const core::RunError& error) {
        throw core::UsageError(fmt::format("{}; accepted: tcp://HOST:PORT", error.what()));
    }
    return socket;
}

/// A member of the end's user_data that is a number, or the sum of a map of them.
std::optional<std::uint64_t> total(const StreamMessage& end, std::string_view key) {
    const CborValue* const value = end.extra(key);
    if (value == nullptr) return {};
    if (value->kind != CborValue::Kind::map) return value->as_unsigned();
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < value->items.size(); i += 2)
        if (__builtin_add_overflow(sum, value->items[i].as_unsigned().value_or(0), &sum)) return UINT64_MAX;
    return sum;
}

}  // namespace

std::string_view SeriesAccount::lossless(std::string& why) const {
    if (unwritten > 0) {
        why = fmt::format("{} events of series {} came and could not be written: {}", unwritten, id, unwritten_cause);
        return "no";
    }
    if (conflicts > 0) {
        why = fmt::format(
            "{} messages of series {} contradict others: an event under two image ids, or an image id for two events",
            conflicts, id);
        return "no";
    }
    const std::uint64_t gone = missing + refused;
    if (gone > 0 || dropped.value_or(0) > 0) {
        why = fmt::format("{} events of series {} never came{}", missing, id,
                          refused > 0 ? fmt::format(", {} could not be understood", refused) : "");
        if (dropped) why += fmt::format("; the sender says that it dropped {}", *dropped);
        return "no";
    }
    if (incomplete > 0) {
        why = fmt::format("{} events of series {} are incomplete: the sender had no more of them", incomplete, id);
        return "no";
    }
    if (announced && *announced < received)
        why = fmt::format("the sender of series {} says that it had {} events, and {} came", id, *announced, received);
    else if (!ended)
        why = fmt::format("the end of series {} never came", id);
    else if (!announced)
        why = fmt::format("the sender of series {} does not say how many events there were", id);
    return why.empty() ? "yes" : "unknown";
}

std::uint64_t ReceiveAccount::events() const noexcept {
    std::uint64_t sum = 0;
    for (const SeriesAccount& one : series) sum += one.received;
    return sum;
}

std::string_view ReceiveAccount::lossless(std::vector<std::string>& why) const {
    std::string_view all = series.empty() ? "unknown" : "yes";
    if (series.empty()) why.emplace_back("no series came");
    if (!failed.empty()) {
        all = "no";
        why.push_back(failed);
    }
    if (malformed > 0) {
        all = "no";
        why.push_back(fmt::format("{} messages could not be understood", malformed));
    }
    for (const SeriesAccount& one : series) {
        std::string its_why;
        const std::string_view its = one.lossless(its_why);
        if (!its_why.empty()) why.push_back(its_why);
        if (its == "no" || all == "yes") all = its == "yes" ? all : its;
    }
    return all;
}

Receiver::Receiver(const std::string& address, const std::filesystem::path& folder)
    : address_(address), folder_(folder), socket_(pull_from(context_, address)) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw core::RunError(fmt::format("cannot create {}: {}", folder_.string(), error.message()));
}

Receiver::~Receiver() = default;

bool Receiver::receive(std::chrono::milliseconds patience) {
    zmq_pollitem_t item{socket_.get(), 0, ZMQ_POLLIN, 0};
    if (zmq().zmq_poll(&item, 1, static_cast<long>(patience.count())) <= 0) return false;
    zmq_msg_t message;
    zmq().zmq_msg_init(&message);
    const bool came = zmq().zmq_msg_recv(&message, socket_.get(), ZMQ_DONTWAIT) >= 0;
    try {
        if (came) take({static_cast<const std::byte*>(zmq().zmq_msg_data(&message)), zmq().zmq_msg_size(&message)});
    } catch (const std::exception&) {
        zmq().zmq_msg_close(&message);
        throw;
    }
    zmq().zmq_msg_close(&message);
    return came;
}

void Receiver::take(std::span<const std::byte> bytes) {
    ++account_.messages;
    account_.bytes += bytes.size();
    std::string problem;
    const auto message = read_message(bytes, problem);
    if (!message) {
        ++account_.malformed;
        complain(problem);
        return;
    }
    switch (message->type) {
        case MessageType::start:
            return take_start(*message);
        case MessageType::image:
        case MessageType::event:
            return take_event(*message);
        case MessageType::end:
            return take_end(*message);
        case MessageType::other:
            ++account_.unknown;
    }
}

void Receiver::complain(const std::string& what) {
    if (account_.problems.size() < problems_listed)
        account_.problems.push_back(fmt::format("message {}: {}", account_.messages, core::printable(what)));
}

bool Receiver::is_open(const StreamMessage& message) const {
    return run_ != nullptr && account_.series.back().id == message.series_id &&
           account_.series.back().unique_id == message.series_unique_id;
}

/// A sender repeats the start to who comes again: that is no other series.
void Receiver::take_start(const StreamMessage& message) {
    if (is_open(message)) return;
    begin(message);
    SeriesAccount& series = account_.series.back();
    series.started = true;
    const CborValue* const images = message.value.find("number_of_images");
    const auto number = images != nullptr ? images->as_unsigned() : std::nullopt;
    if (number && *number > 0) series.announced = number;
}

std::filesystem::path Receiver::free_path(const StreamMessage& message) const {
    const std::string name = as_name(message.series_unique_id);
    std::filesystem::path path = folder_ / name;
    for (unsigned again = 2; std::filesystem::exists(path) || std::filesystem::exists(store::hidden_path(path));
         ++again)
        path = folder_ / fmt::format("{}-{}", name, again);
    return path;
}

void Receiver::begin(const StreamMessage& message) {
    finish();
    nlohmann::json start = sender_start(message);
    start["stream"] = start_members(message, address_);
    SeriesRun::Config config;
    config.path = free_path(message);
    config.name = as_name(message.series_unique_id);
    config.series_id = message.series_id;
    config.start_json = text_of(start);
    next_image_ = taken_ = 0;
    ids_ = numbers_ = SeenNumbers();
    SeriesAccount account;
    account.id = message.series_id;
    account.unique_id = message.series_unique_id;
    account.path = config.path.string();
    account_.series.push_back(std::move(account));  // first: what cannot be written belongs to it
    run_ = std::make_unique<SeriesRun>(config);
    account_.series.back().path = run_->path().string();
}

/// Image ids count all that a sender sends, and a weir says which event each is of: one event has one id, and one id
/// one event. Empty: nothing speaks against it.
std::string Receiver::contradiction(const StreamMessage& message, const std::optional<store::EventInfo>& event) const {
    if (!event) return {};
    const bool has_been = numbers_.has({event->epoch, event->id});
    const bool id_has_been = ids_.has({0, message.image_id});
    if (has_been && !id_has_been)
        return fmt::format("conflict: event {} came before under another image id than {}", event->id,
                           message.image_id);
    if (!has_been && id_has_been)
        return fmt::format("conflict: image id {} came before with another event than {}", message.image_id, event->id);
    return {};
}

void Receiver::take_event(const StreamMessage& message) {
    in_hand_ = true;
    if (!is_open(message)) begin(message);
    SeriesAccount& series = account_.series.back();
    std::string problem;
    const auto event = event_of(message, problem);
    const std::string conflict = contradiction(message, event);
    if (!conflict.empty()) {
        ++series.conflicts;
        complain(conflict);
    } else if (message.image_id < next_image_) {
        ++series.refused;
        complain(fmt::format("image {} comes after image {}", message.image_id, next_image_ - 1));
    }
    in_hand_ = false;
    if (message.image_id < next_image_) return;
    series.missing += message.image_id - next_image_;
    next_image_ = message.image_id + 1;
    ids_.add({0, message.image_id});
    if (!conflict.empty()) return;
    if (event) numbers_.add({event->epoch, event->id});
    ++taken_;
    if (problem.empty()) problem = run_->add(message, event);
    if (!problem.empty()) {
        --taken_;
        ++series.refused;
        complain(fmt::format("image {}: {}", message.image_id, problem));
    }
    series.received = run_->events();
    series.incomplete = run_->incomplete();
}

void Receiver::take_end(const StreamMessage& message) {
    if (!is_open(message)) begin(message);
    SeriesAccount& series = account_.series.back();
    series.ended = true;
    if (const auto events = total(message, "events")) series.announced = events;
    series.dropped = total(message, "dropped");
    finish();
}

void Receiver::fail(const std::string& why) {
    account_.failed = why;
    if (account_.series.empty()) return;
    SeriesAccount& series = account_.series.back();
    const std::uint64_t came = taken_ + (std::exchange(in_hand_, false) ? 1 : 0);
    if (run_ == nullptr && came == 0) return;
    series.received = run_ != nullptr ? run_->stayed() : 0;
    series.incomplete = std::min(series.incomplete, series.received);
    series.unwritten = came - std::min(came, series.received);
    series.unwritten_cause = why;
    if (run_ == nullptr) return;
    try {
        run_->close_what_stayed({{"stream", receive_json(account_)["series"].back()}});
    } catch (const core::RunError&) {
        // It stays under its hidden name, as after a crash.
    }
    series.path = run_->path().string();
    run_.reset();
}

void Receiver::finish() {
    if (run_ == nullptr) return;
    SeriesAccount& series = account_.series.back();
    if (series.announced && *series.announced > next_image_) series.missing += *series.announced - next_image_;
    nlohmann::json manifest{{"stream", receive_json(account_)["series"].back()}};
    run_->close(manifest);
    series.path = run_->path().string();
    run_.reset();
    taken_ = 0;
}

nlohmann::json receive_json(const ReceiveAccount& account) {
    nlohmann::json out{{"messages", account.messages},     {"bytes", account.bytes},
                       {"events", account.events()},       {"malformed", account.malformed},
                       {"unknown_types", account.unknown}, {"problems", account.problems},
                       {"series", nlohmann::json::array()}};
    for (const SeriesAccount& one : account.series) {
        std::string why;
        nlohmann::json series{{"series_id", one.id},
                              {"series_unique_id", one.unique_id},
                              {"path", one.path},
                              {"received", one.received},
                              {"incomplete", one.incomplete},
                              {"missing", one.missing},
                              {"refused", one.refused},
                              {"conflicts", one.conflicts},
                              {"unwritten", one.unwritten},
                              {"started", one.started},
                              {"ended", one.ended},
                              {"lossless", one.lossless(why)}};
        if (one.announced) series["announced"] = *one.announced;
        if (one.dropped) series["dropped_by_sender"] = *one.dropped;
        out["series"].push_back(std::move(series));
    }
    std::vector<std::string> why;
    out["lossless"] = account.lossless(why);
    out["evidence"] = why;
    if (!account.failed.empty()) out["error"] = account.failed;
    return out;
}

}  // namespace weir::stream
