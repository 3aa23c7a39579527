// The hdf5 sink beside what it cannot be faster than: the HDF5 library writing the same chunks and nothing else, the
// event file with the same blocks, and write(2) of the same bytes. All sync at the end. The files lie in
// $WEIR_BENCH_FOLDER, else in the current folder; about 130 MiB at a time.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "store/block_writer.hpp"
#include "store/hdf5/handle.hpp"
#include "store/hdf5/writer.hpp"
#include "store/run_writer.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t events = 64;
constexpr std::uint32_t modules = 2;
constexpr std::size_t module_bytes = std::size_t{512} * 1024 * 2;
constexpr std::size_t piece_bytes = std::size_t{256} << 10U;
constexpr std::size_t event_bytes = modules * module_bytes;

std::filesystem::path folder() {
    const char* const given = std::getenv("WEIR_BENCH_FOLDER");
    return std::filesystem::path(given == nullptr ? "." : given) / "weir-bench-hdf5";
}

/// Blocks of one event of JUNGFRAU modules, in one buffer as a worker fills it. Its number is the same in all events.
class Blocks {
public:
    Blocks() : memory_(event_bytes + (std::size_t{1} << 20U)) {
        const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
        writer_.reset(std::span(memory_).subspan((64 - at % 64) % 64, event_bytes + (std::size_t{1} << 19U)));
        store::EventRecord event;
        event.id = 1;
        event.sources = modules;
        event.complete = true;
        event.payload_bytes = event_bytes;
        bool good = writer_.put_event(event);
        for (std::uint32_t module = 0; module < modules; ++module) {
            store::SourceRecord source;
            source.source = module;
            source.declared_bytes = source.received_bytes = module_bytes;
            source.packets = 128;
            good = good && writer_.put_source(source, {});
        }
        for (std::size_t at_byte = 0; good && at_byte < event_bytes; at_byte += piece_bytes) {
            const std::span<std::byte> room = writer_.open_payload();
            for (std::size_t i = 0; i < piece_bytes; ++i) room[i] = static_cast<std::byte>((at_byte + i) * 131 >> 5U);
            writer_.close_payload(piece_bytes, piece_bytes, store::Encoding::raw, at_byte + piece_bytes == event_bytes);
        }
        if (!good) std::abort();
    }
    [[nodiscard]] std::span<std::byte> get() const { return writer_.blocks(); }

private:
    std::vector<std::byte> memory_;
    store::BlockWriter writer_;
};

constexpr const char* start_json = R"({"config": {"stream": [{"format": "jungfrau"}]}})";

template <class Sink>
void append_events(benchmark::State& state) {
    const Blocks blocks;
    for (auto _ : state) {
        state.PauseTiming();
        std::filesystem::remove_all(folder());
        std::filesystem::create_directory(folder());
        typename Sink::Config config;
        config.path = folder() / "run";
        config.start_json = start_json;
        state.ResumeTiming();
        Sink sink(config);
        for (std::size_t i = 0; i < events; ++i) sink.append(blocks.get());
        sink.finish_data();
        sink.close(nlohmann::json::object());
    }
    std::filesystem::remove_all(folder());
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * events * event_bytes));
}

void sink(benchmark::State& state) {
    append_events<store::hdf5::Writer>(state);
}

void events_sink(benchmark::State& state) {
    append_events<store::RunWriter>(state);
}

/// Chunks of the same size in one dataset: no tables, no readers, no master.
void library(benchmark::State& state) {
    const std::vector<std::byte> chunk(piece_bytes, std::byte{7});
    for (auto _ : state) {
        state.PauseTiming();
        std::filesystem::remove_all(folder());
        std::filesystem::create_directory(folder());
        state.ResumeTiming();
        const store::hdf5::Session session;
        const store::hdf5::Library library(folder() / "plain.h5");
        store::hdf5::Handle file =
            library.own(H5Fcreate(library.path().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
        const hsize_t shape[] = {events, modules * 512, 1024};
        const hsize_t chunk_shape[] = {1, 128, 1024};
        const auto space = library.own(H5Screate_simple(3, shape, nullptr), H5Sclose);
        const auto creation = library.own(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        library.check(H5Pset_chunk(creation.get(), 3, chunk_shape));
        auto data = library.own(
            H5Dcreate2(file.get(), "data", H5T_STD_U16LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
            H5Dclose);
        for (hsize_t event = 0; event < events; ++event)
            for (hsize_t row = 0; row < modules * 512; row += 128) {
                const hsize_t offset[] = {event, row, 0};
                library.check(H5Dwrite_chunk(data.get(), H5P_DEFAULT, 0, offset, chunk.size(), chunk.data()));
            }
        library.check(H5Fflush(file.get(), H5F_SCOPE_LOCAL));
        void* descriptor = nullptr;
        library.check(H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &descriptor));
        if (::fdatasync(*static_cast<const int*>(descriptor)) != 0) state.SkipWithError("cannot sync");
        data.reset();
        file.reset();
    }
    std::filesystem::remove_all(folder());
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * events * event_bytes));
}

void plain_write(benchmark::State& state) {
    const std::vector<std::byte> bytes(event_bytes, std::byte{7});
    for (auto _ : state) {
        state.PauseTiming();
        std::filesystem::remove_all(folder());
        std::filesystem::create_directory(folder());
        state.ResumeTiming();
        store::File file = store::File::create(folder() / "plain");
        for (std::size_t i = 0; i < events; ++i) file.write_at(i * event_bytes, bytes);
        file.sync();
    }
    std::filesystem::remove_all(folder());
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * events * event_bytes));
}

BENCHMARK(sink)->Name("hdf5/sink")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(library)->Name("hdf5/library_alone")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(events_sink)->Name("hdf5/event_file")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(plain_write)->Name("hdf5/plain_write")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::bench
