#include "cluster/message_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace weir::cluster {

namespace {

/// The numbers of a message, in front of its lists.
struct Head {
    Kind kind{};
    Part part{};
    std::uint8_t flags = 0;
    NodeId node = 0;
    Incarnation life = 0;
    Incarnation from = 0;
    Incarnation to = 0;
    Term term = 0;
    Block block = 0;
    Block end = 0;
    Block first = 0;
};

enum Flag : std::uint8_t { ended = 1, empty = 2, late = 4, managed = 8, has_lists = 16, has_report = 32, leaving = 64 };

class Out {
public:
    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* const begin = reinterpret_cast<const std::byte*>(&value);
        bytes.insert(bytes.end(), begin, begin + sizeof value);
    }
    template <class T>
    void put_list(const std::vector<T>& list) {
        put(static_cast<std::uint32_t>(list.size()));
        for (const T& value : list) put(value);
    }
    std::vector<std::byte> bytes;
};

class In {
public:
    explicit In(std::span<const std::byte> bytes) : left_(bytes) {}
    template <class T>
    T get() {
        if (left_.size() < sizeof(T)) throw std::runtime_error("a message of the cluster is cut short");
        T value;
        std::memcpy(&value, left_.data(), sizeof value);
        left_ = left_.subspan(sizeof value);
        return value;
    }
    template <class T>
    void get_list(std::vector<T>& list) {
        const auto count = get<std::uint32_t>();
        for (std::uint32_t i = 0; i < count; ++i) list.push_back(get<T>());
    }
    [[nodiscard]] bool is_empty() const noexcept { return left_.empty(); }

private:
    std::span<const std::byte> left_;
};

void put_report(Out& out, const Report& report) {
    out.put(report.first);
    out.put(report.ready);
    out.put(static_cast<std::uint8_t>(report.ended));
    out.put(report.credits);
    out.put(report.settled);
    out.put_list(report.gaps);
    for (const auto* list : {&report.released, &report.open, &report.committed, &report.done}) out.put_list(*list);
    out.put_list(report.empty);
    out.put_list(report.recorded);
    out.put_list(report.up);
    out.put_list(report.losses);
}

void check_nodes(const std::vector<NodeLife>& lives, NodeId nodes) {
    for (const NodeLife life : lives)
        if (life >> 32U >= nodes)
            throw std::runtime_error("a message of the cluster is about a node that there is not");
}

void check_losses(const std::vector<Loss>& losses) {
    for (const Loss& loss : losses)
        if (loss.cause > LossCause::late || loss.block >= loss.end)
            throw std::runtime_error("a loss of the cluster has no cause, or no numbers");
}

void check_span(const BlockSpan& span) {
    if (span.block >= span.end) throw std::runtime_error("a message of the cluster is about a block without numbers");
}

/// Of blocks, where it is about such.
void check_spans(const Message& message) {
    constexpr std::array about_one{Kind::assign, Kind::request, Kind::part, Kind::record, Kind::release};
    if (std::ranges::find(about_one, message.kind) != about_one.end()) check_span({message.block, message.end});
    const Report& report = message.report;
    for (const auto* spans : {&report.released, &report.open, &report.committed, &report.done})
        std::ranges::for_each(*spans, check_span);
    for (const Recorded& recorded : report.recorded) check_span(recorded.span);
}

void check_gaps(const std::vector<Block>& gaps) {
    for (std::size_t i = 0; i < gaps.size(); i += 2)
        if (i + 1 == gaps.size() || gaps[i] >= gaps[i + 1])
            throw std::runtime_error("a message of the cluster has a gap that is none");
}

/// What is used as a place in a list, or as the name of something.
void check(const Message& message, NodeId nodes) {
    if (message.node >= nodes) throw std::runtime_error("a message of the cluster is about a node that there is not");
    for (const auto* lives : {&message.members, &message.up, &message.gone, &message.report.up})
        check_nodes(*lives, nodes);
    for (const Recorded& recorded : message.report.recorded) check_nodes({recorded.builder}, nodes);
    check_losses(message.losses);
    check_losses(message.report.losses);
    check_losses(message.report.empty);
    check_gaps(message.gaps);
    check_gaps(message.report.gaps);
    check_spans(message);
}

Report get_report(In& in) {
    Report report;
    report.first = in.get<Block>();
    report.ready = in.get<Block>();
    report.ended = in.get<std::uint8_t>() != 0;
    report.credits = in.get<std::uint32_t>();
    report.settled = in.get<Block>();
    in.get_list(report.gaps);
    for (auto* list : {&report.released, &report.open, &report.committed, &report.done}) in.get_list(*list);
    in.get_list(report.empty);
    in.get_list(report.recorded);
    in.get_list(report.up);
    in.get_list(report.losses);
    return report;
}

}  // namespace

std::vector<std::byte> to_bytes(const Message& message) {
    const bool lists = !message.members.empty() || !message.up.empty() || !message.gone.empty() ||
                       !message.losses.empty() || !message.gaps.empty();
    const bool reports = message.kind == Kind::report;
    const int flags = (message.ended ? ended : 0) | (message.empty ? empty : 0) | (message.late ? late : 0) |
                      (message.managed ? managed : 0) | (message.leaving ? leaving : 0) | (lists ? has_lists : 0) |
                      (reports ? has_report : 0);
    Out out;
    out.put(Head{message.kind, message.part, static_cast<std::uint8_t>(flags), message.node, message.life, message.from,
                 message.to, message.term, message.block, message.end, message.first});
    if (lists) {
        out.put_list(message.members);
        out.put_list(message.up);
        out.put_list(message.gone);
        out.put_list(message.losses);
        out.put_list(message.gaps);
    }
    if (reports) put_report(out, message.report);
    return out.bytes;
}

Message from_bytes(std::span<const std::byte> bytes, NodeId nodes) {
    In in(bytes);
    const auto head = in.get<Head>();
    if (head.kind > Kind::expelled || head.part > Part::late) throw std::runtime_error("no message of the cluster");
    const auto has = [&head](Flag flag) { return (head.flags & flag) != 0; };
    if (has(has_report) != (head.kind == Kind::report)) throw std::runtime_error("no message of the cluster");
    Message message{.kind = head.kind,
                    .part = head.part,
                    .ended = has(ended),
                    .empty = has(empty),
                    .late = has(late),
                    .managed = has(managed),
                    .leaving = has(leaving),
                    .node = head.node,
                    .life = head.life,
                    .from = head.from,
                    .to = head.to,
                    .term = head.term,
                    .block = head.block,
                    .end = head.end,
                    .first = head.first};
    if (has(has_lists)) {
        in.get_list(message.members);
        in.get_list(message.up);
        in.get_list(message.gone);
        in.get_list(message.losses);
        in.get_list(message.gaps);
    }
    if (has(has_report)) message.report = get_report(in);
    if (!in.is_empty()) throw std::runtime_error("a message of the cluster is too long");
    check(message, nodes);
    return message;
}

}  // namespace weir::cluster
