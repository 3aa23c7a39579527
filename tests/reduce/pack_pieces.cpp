// Packs what comes in by standard input as one piece, or unpacks it: pack_filters_test.py holds the bytes to other
// programs. usage: pack_pieces CODEC ELEMENT_BYTES LEVEL             prints nothing if the piece does not get shorter
//        pack_pieces CODEC ELEMENT_BYTES unpack RAW_BYTES
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "reduce/pack/packer.hpp"
#include "reduce/pack/unpacker.hpp"

namespace {

using namespace weir::reduce::pack;

std::vector<std::byte> standard_input() {
    std::vector<std::byte> all;
    std::vector<std::byte> part(std::size_t{1} << 20U);
    while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), stdin))
        all.insert(all.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(bytes));
    return all;
}

int run(const std::vector<std::string>& words) {
    const auto found = std::ranges::find(codec_names, words.at(0));
    if (found == codec_names.end()) return 2;
    const auto codec = static_cast<Codec>(found - codec_names.begin());
    const std::size_t element_bytes = std::stoul(words.at(1));
    const std::vector<std::byte> in = standard_input();
    std::vector<std::byte> out;
    if (words.at(2) == "unpack") {
        out.resize(std::stoul(words.at(3)));
        const std::string wrong(Unpacker().unpack(codec, element_bytes, in, out));
        if (!wrong.empty()) {
            std::fprintf(stderr, "%s\n", wrong.c_str());
            return 1;
        }
    } else {
        Packer packer({codec, std::stoi(words.at(2)), element_bytes, false}, in.size());
        out.resize(packer.bound(in.size()));
        out.resize(packer.pack(in, out));
    }
    return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    try {
        return run({words + 1, words + count});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pack_pieces: %s\n", error.what());
        return 2;
    }
}
