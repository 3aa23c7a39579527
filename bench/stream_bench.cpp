// The stream sink beside a plain ZeroMQ sender, on the loopback, in turns: one worker's buffers with images, to one
// consumer in a process of its own, which reads every message and counts its bytes. scripts/bench stream runs it.
//
// usage: stream_bench [--mib N] [--rounds N] [--image KIB] [--json FILE]
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/huge_bytes.hpp"
#include "reduce/pack/packer.hpp"
#include "store/block_writer.hpp"
#include "stream/sink.hpp"
#include "stream/zmq_library.hpp"

namespace {

using namespace weir;
using std::chrono::steady_clock;

constexpr std::uint32_t columns = 1024;
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::size_t different_images = 16;
/// Messages on their way, for both.
constexpr int queue = 64;

struct Options {
    std::size_t mib = 4096;
    std::size_t rounds = 7;
    std::size_t image_bytes = std::size_t{1024} << 10;
    std::string json;
};

/// An event with one image, as a worker formats it, and the payload on its own.
struct Image {
    std::vector<std::byte> pixels;
    std::span<std::byte> blocks;
};

Image make_image(std::span<std::byte> memory, std::uint64_t number, std::size_t bytes, bool packed) {
    Image image;
    image.pixels.resize(bytes);
    for (std::size_t i = 0; i + 1 < bytes; i += 2) {
        const auto value = static_cast<std::uint16_t>(2700 + ((i * 2654435761U >> 13U) ^ number) % 30);
        std::memcpy(image.pixels.data() + i, &value, sizeof value);
    }
    store::BlockWriter writer;
    writer.reset(memory);
    store::EventRecord event;
    event.id = number;
    event.complete = true;
    event.sources = 1;
    event.content = store::Content::pixels;
    event.payload_bytes = event.reduced_bytes = bytes;
    store::SourceRecord source;
    source.declared_bytes = source.received_bytes = source.reduced_bytes = bytes;
    static_cast<void>(writer.put_event(event) && writer.put_source(source, {}));
    reduce::pack::Packer packer({reduce::pack::Codec::bitshuffle_lz4, 1, 2, false}, piece_bytes);
    for (std::size_t at = 0; at < bytes; at += piece_bytes) {
        const auto piece = std::span<const std::byte>(image.pixels).subspan(at, std::min(piece_bytes, bytes - at));
        const std::span<std::byte> room = writer.open_payload();
        std::size_t stored = piece.size();
        if (packed)
            stored = packer.pack(piece, room);
        else
            std::ranges::copy(piece, room.begin());
        writer.close_payload(static_cast<std::uint32_t>(stored), static_cast<std::uint32_t>(piece.size()),
                             packed ? store::Encoding::bitshuffle_lz4 : store::Encoding::raw,
                             at + piece.size() == bytes, packed ? 2 : 0);
    }
    image.blocks = writer.blocks();
    return image;
}

/// The consumer: takes messages until an empty one or the end of a series, and answers with how many bytes came.
[[noreturn]] void consume(const std::string& address, int answer) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    void* const context = stream::zmq().zmq_ctx_new();
    void* const socket = stream::zmq().zmq_socket(context, ZMQ_PULL);
    stream::zmq().zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue);
    stream::zmq().zmq_connect(socket, address.c_str());
    std::uint64_t bytes = 0;
    for (bool last = false; !last;) {
        zmq_msg_t message;
        stream::zmq().zmq_msg_init(&message);
        if (stream::zmq().zmq_msg_recv(&message, socket, 0) < 0) ::_exit(1);
        const std::string_view text(static_cast<const char*>(stream::zmq().zmq_msg_data(&message)),
                                    stream::zmq().zmq_msg_size(&message));
        bytes += text.size();
        // The end of a series begins with a map and "type": "end".
        last = text.empty() || text.substr(0, 32).find("cend") != std::string_view::npos;
        stream::zmq().zmq_msg_close(&message);
    }
    const bool told = ::write(answer, &bytes, sizeof bytes) == sizeof bytes;
    ::_exit(told ? 0 : 1);
}

/// A consumer in a process of its own.
class ConsumerProcess {
public:
    explicit ConsumerProcess(const std::string& address) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
        child_ = ::fork();
        if (child_ == 0) consume(address, ends[1]);
        ::close(ends[1]);
        answer_ = ends[0];
    }
    ~ConsumerProcess() {
        ::close(answer_);
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    /// Bytes that came, once it has seen the last message.
    std::uint64_t bytes() const {
        std::uint64_t bytes = 0;
        if (::read(answer_, &bytes, sizeof bytes) != sizeof bytes) throw std::runtime_error("the consumer failed");
        return bytes;
    }

private:
    pid_t child_ = -1;
    int answer_ = -1;
};

std::string free_address() {
    const stream::ZmqContext context;
    stream::ZmqSocket socket(context, ZMQ_PUSH);
    return socket.bind("tcp://127.0.0.1:*");
}

double mib_per_s(std::uint64_t bytes, steady_clock::time_point begin) {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    return static_cast<double>(bytes) / seconds / (1 << 20);
}

/// zmq_send() of the same bytes.
double plain(const std::vector<std::vector<std::byte>>& messages, std::size_t count) {
    const std::string address = free_address();
    const ConsumerProcess consumer(address);  // before the threads of ZeroMQ
    const stream::ZmqContext context;
    stream::ZmqSocket socket(context, ZMQ_PUSH);
    socket.set(ZMQ_SNDHWM, queue);
    socket.set(ZMQ_LINGER, -1);
    static_cast<void>(socket.bind(address));
    stream::zmq().zmq_send(socket.get(), "start", 5, 0);  // blocks until the consumer is there
    const auto begin = steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        const auto& message = messages[i % messages.size()];
        stream::zmq().zmq_send(socket.get(), message.data(), message.size(), 0);
    }
    stream::zmq().zmq_send(socket.get(), "", 0, 0);
    return mib_per_s(consumer.bytes(), begin);
}

double sink(const std::vector<Image>& images, std::size_t count) {
    stream::Sink::Config config;
    config.listen = {free_address()};
    config.wait = true;
    config.queue = queue;
    config.linger = std::chrono::milliseconds(60'000);
    config.start_timeout = std::chrono::milliseconds(10'000);
    config.name = "bench";
    config.start_json = R"({"payload": {"content": "pixels", "type": "u16", "columns": 1024}})";
    const ConsumerProcess consumer(config.listen.front());
    stream::Sink sink(config);
    const auto begin = steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) sink.append(images[i % images.size()].blocks);
    sink.finish_data();
    const double rate = mib_per_s(consumer.bytes(), begin);
    if (sink.stats().events != count) throw std::runtime_error("the sink did not send everything");
    return rate;
}

struct Series {
    std::vector<double> rates;
    [[nodiscard]] double median() const {
        std::vector<double> sorted = rates;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 2];
    }
};

void measure(const Options& options, bool packed, nlohmann::json& results) {
    const std::size_t room = options.image_bytes + options.image_bytes / 8 + (std::size_t{64} << 10);
    const core::HugeBytes memory(room * different_images);
    std::vector<Image> images;
    std::vector<std::vector<std::byte>> messages;
    for (std::size_t i = 0; i < different_images; ++i) {
        images.push_back(make_image(memory.span().subspan(i * room, room), i, options.image_bytes, packed));
        messages.emplace_back(images.back().blocks.begin(), images.back().blocks.end());
    }
    const std::size_t count = (options.mib << 20) / messages.front().size();
    std::map<std::string, Series> series;
    for (std::size_t round = 0; round < options.rounds; ++round)
        for (const bool first : {round % 2 == 0, round % 2 != 0}) {
            if (first)
                series["plain"].rates.push_back(plain(messages, count));
            else
                series["sink"].rates.push_back(sink(images, count));
        }
    const auto text = [](const Series& one) {
        const auto [lowest, highest] = std::ranges::minmax(one.rates);
        return fmt::format("{:.0f} ({:.0f} to {:.0f})", one.median(), lowest, highest);
    };
    fmt::print("{:8} {:10} {:>26} {:>26} {:6.0f}%\n", packed ? "bslz4" : "plain", messages.front().size(),
               text(series["plain"]), text(series["sink"]), 100 * series["sink"].median() / series["plain"].median());
    results.push_back({{"images", packed ? "bslz4" : "plain"},
                       {"message_bytes", messages.front().size()},
                       {"messages", count},
                       {"plain_mib_per_s", series["plain"].rates},
                       {"sink_mib_per_s", series["sink"].rates}});
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string key = argv[i];
        if (key == "--json")
            options.json = argv[i + 1];
        else if (key == "--mib")
            options.mib = std::stoul(argv[i + 1]);
        else if (key == "--rounds")
            options.rounds = std::max(1UL, std::stoul(argv[i + 1]));
        else if (key == "--image")
            options.image_bytes = std::max(16UL, std::stoul(argv[i + 1])) << 10;
        else
            throw std::invalid_argument(key);
    }
    if (argc % 2 == 0) throw std::invalid_argument(argv[argc - 1]);
    options.image_bytes = options.image_bytes / (2 * columns) * (2 * columns);
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Options options = parse(argc, argv);
        double load = 0;
        ::getloadavg(&load, 1);
        fmt::print(
            "load before: {:.1f} on {} CPUs; {} rounds of {} MiB, in turns; MiB/s: median (smallest to largest)\n",
            load, ::sysconf(_SC_NPROCESSORS_ONLN), options.rounds, options.mib);
        fmt::print("{:8} {:>10} {:>26} {:>26} {:>7}\n", "images", "bytes", "zmq_send()", "sink", "");
        nlohmann::json results = nlohmann::json::array();
        measure(options, false, results);
        measure(options, true, results);
        if (!options.json.empty())
            std::ofstream(options.json) << nlohmann::json{{"load", load}, {"results", results}}.dump(1) << '\n';
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "stream_bench: {}\nusage: stream_bench [--mib N] [--rounds N] [--image KIB] [--json FILE]\n",
                   error.what());
        return 2;
    }
}
