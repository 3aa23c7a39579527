// Messages and payloads as active messages of UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fabric/deferred_events.hpp"
#include "fabric/link.hpp"
#include "fabric/ucx_worker.hpp"

namespace weir::fabric {

/// The beginning of each active message's header.
struct ActiveHead {
    std::uint64_t session = 0;  ///< as the receiver's hello said
    std::uint16_t node = 0;     ///< the sender
    std::uint16_t zeros[3] = {};
};

/// The numbers of active messages.
struct ActiveId {
    static constexpr unsigned words = 1;  ///< cluster::Messages, each after its length in four bytes
    static constexpr unsigned part = 2;   ///< one whose payload is the data; the message follows the head
    static constexpr unsigned beat = 3;   ///< nothing: the way is open
};

class Transfers {
public:
    Transfers(UcxWorker& worker, LinkTable& table, DeferredEvents& deferred, Receiver& receiver, cluster::NodeId self);
    ~Transfers();
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;

    /// Makes an endpoint if there is none. It has to be there before the other side sends: for a connection that only
    /// the other side knows of UCX would make one that nobody could close. False: there is no way.
    [[nodiscard]] bool open(Link& link, std::span<const std::byte> address) noexcept;
    /// A payload leaves at once. Words (messages without one) wait for others to the same node until flush(): each
    /// active message costs a system call at both ends over TCP, more than anything else does about a small part.
    void send(Link& link, const cluster::Message& message, cluster::Payload payload);
    void flush();
    void send_beat(Link& link);
    [[nodiscard]] bool is_flushed() const noexcept { return sendings_.empty() && links_with_words_.empty(); }
    /// Nothing that comes is taken any more.
    void stop_taking() noexcept { takes_ = false; }
    /// Gives back memory of payload that is on its way. UCX must not run any more.
    void give_up();

private:
    struct Sending;
    struct Landing;
    using Sendings = std::unordered_map<Sending*, std::unique_ptr<Sending>>;
    using Landings = std::unordered_map<Landing*, std::unique_ptr<Landing>>;

    template <ucs_status_t (Transfers::*take)(const ActiveHead&, std::span<const std::byte>, void*, std::size_t, bool)>
    static ucs_status_t on_active(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param) noexcept;
    static void on_sent(void* request, ucs_status_t status, void* sending) noexcept;
    static void on_landed(void* request, ucs_status_t status, std::size_t bytes, void* landing) noexcept;

    [[nodiscard]] std::unique_ptr<Sending> make_sending(const Link& link);
    void post(Link& link, unsigned id, std::unique_ptr<Sending> sending, std::span<const std::byte> data);
    void add_word(Link& link, const cluster::Message& message);
    void add_bytes(Link& link, const std::vector<std::byte>& bytes);
    void post_words(Link& link);
    void finish(Sending& sending);
    [[nodiscard]] Link* sender_of(const ActiveHead& head);
    ucs_status_t take_words(const ActiveHead& head, std::span<const std::byte> more, void* data, std::size_t bytes,
                            bool is_rendezvous);
    ucs_status_t take_part(const ActiveHead& head, std::span<const std::byte> more, void* data, std::size_t bytes,
                           bool is_rendezvous);
    ucs_status_t take_beat(const ActiveHead& head, std::span<const std::byte> more, void* data, std::size_t bytes,
                           bool is_rendezvous);
    ucs_status_t land(std::unique_ptr<Landing> landing, void* data);
    void finish(const Landing& landing, bool has_come);

    UcxWorker& worker_;
    [[nodiscard]] cluster::NodeId nodes() const noexcept { return static_cast<cluster::NodeId>(table_.links.size()); }

    LinkTable& table_;
    DeferredEvents& deferred_;
    Receiver& receiver_;
    cluster::NodeId self_;
    std::vector<cluster::NodeId> links_with_words_;
    Sendings sendings_;
    Landings landings_;
    bool takes_ = true;
};

}  // namespace weir::fabric
