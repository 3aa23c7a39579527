// libFuzzer target: any bytes as what another node of a cluster says: a part of a block, a message, frames of the
// control connection. What is taken of a part lies within it; what is taken of a message can be said again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cluster/message_bytes.hpp"
#include "fabric/built_block.hpp"
#include "fabric/control_frame.hpp"
#include "fabric/part_format.hpp"

namespace {

using weir::fabric::BuiltBlock;

void read_part(std::span<const std::byte> bytes) {
    // Most inputs would fail at the magic number and the length: those are put right.
    std::vector<std::byte> part(bytes.begin(), bytes.end());
    if (part.size() >= sizeof(weir::fabric::PartHead)) {
        weir::fabric::PartHead head;
        std::memcpy(&head, part.data(), sizeof head);
        head.magic = weir::fabric::part_magic;
        head.bytes = part.size();
        head.block = 0;
        std::memcpy(part.data(), &head, sizeof head);
    }
    const weir::cluster::BuiltPart built{weir::cluster::Part::whole,
                                         {part.size(), reinterpret_cast<std::uint64_t>(part.data())}};
    BuiltBlock block;
    block.fill({{0, 0, 0, 0}}, {0, 16}, {&built, 1}, [](weir::cluster::NodeId, const std::string&) {});
    for (const BuiltBlock::Event& event : block.events())
        for (const BuiltBlock::Message& message : block.messages(event))
            for (const BuiltBlock::Piece& piece : block.pieces(message))
                if (piece.data < part.data() || piece.data + piece.bytes > part.data() + part.size()) std::abort();
}

void read_message(std::span<const std::byte> bytes) {
    try {
        const weir::cluster::Message message = weir::cluster::from_bytes(bytes, 64);
        if (!(weir::cluster::from_bytes(weir::cluster::to_bytes(message), 64) == message)) std::abort();
    } catch (const std::runtime_error&) {
    }
}

void read_frames(std::span<const std::byte> bytes) {
    weir::fabric::FrameReader reader;
    reader.add(bytes);
    try {
        while (const auto frame = reader.next()) {
            if (frame->kind == weir::fabric::FrameKind::hello) {
                static_cast<void>(hello_of(*frame));
                static_cast<void>(address_of(*frame));
            }
            if (frame->kind == weir::fabric::FrameKind::expelled) static_cast<void>(expelled_of(*frame));
            if (frame->kind == weir::fabric::FrameKind::leave) static_cast<void>(leave_of(*frame));
        }
    } catch (const std::runtime_error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto copy = std::make_unique<std::byte[]>(size);
    std::memcpy(copy.get(), data, size);
    const std::span<const std::byte> bytes(copy.get(), size);
    read_part(bytes);
    read_message(bytes);
    read_frames(bytes);
    return 0;
}
