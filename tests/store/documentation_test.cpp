// The Python reader in docs/reference/EVENT_FILE_READER.md, as it stands there, reads a run that was just written.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "core/sha256.hpp"
#include "source_root.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string output_of(const std::string& command, int& status) {
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) text.append(piece.data(), n);
    status = ::pclose(pipe);
    return text;
}

class Documentation : public testing::TestWithParam<std::uint16_t> {};

TEST_P(Documentation, ItsPythonReaderReadsARun) {
    const bool reduced = GetParam() >= format_version_reduced;
    const std::string page = text_of(weir::test::source_root() / "docs" / "reference" / "EVENT_FILE_READER.md");
    const std::string fence = "```python\n";
    const std::size_t start = page.find(fence);
    ASSERT_NE(start, std::string::npos);
    const std::size_t end = page.find("```", start + fence.size());
    const std::string code = page.substr(start + fence.size(), end - start - fence.size());

    const TemporaryDirectory directory;
    write_file(directory / "reader.py", bytes_of(code));
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<TestEvent> events;
    std::ostringstream expected;
    for (std::uint64_t id = 0; id < 12; ++id) {
        events.push_back(reduced ? random_reduced_event(random, id << 40, 3, 3000)
                                 : random_event(random, id << 40, 3, 3000));
        const TestEvent& event = events.back();
        std::uint64_t missing = 0;
        for (const TestSource& source : event.sources)
            for (const auto& range : source.missing) missing += range.end - range.begin;
        core::Sha256 digest;
        digest.update(event.payload());
        expected << event.epoch << ' ' << event.id << ' ' << (event.cause == Cause::complete) << ' '
                 << event.payload().size() << ' ' << missing << ' ' << digest.hex() << '\n';
    }
    write_run(directory / "run", events, false, 20'000, GetParam());
    int status = 0;
    const std::string command = "python3 " + (directory / "reader.py").string() + " ";
    EXPECT_EQ(output_of(command + (directory / "run").string(), status), expected.str());
    EXPECT_EQ(status, 0);

    auto bytes = read_file(directory / "run" / "events-000000.weir");
    bytes[bytes.size() / 2] ^= std::byte{1};
    write_file(directory / "run" / "events-000000.weir", bytes);
    output_of(command + (directory / "run").string() + " 2>/dev/null", status);
    EXPECT_NE(status, 0);
}
INSTANTIATE_TEST_SUITE_P(Versions, Documentation, testing::Values(format_version, format_version_reduced));

}  // namespace
}  // namespace weir::store::test
