// In builds without libibverbs.
#include "bench/verbs_transports.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

[[noreturn]] void no_verbs() {
    throw core::RunError("this weir was built without libibverbs (meson setup -Dverbs=enabled)");
}

}  // namespace

std::unique_ptr<Receiver> open_verbs_receiver(const ReceiverSpec& /*spec*/, VerbsKind /*kind*/) {
    no_verbs();
}
std::unique_ptr<Receiver> open_verbs_raw_receiver(const ReceiverSpec& /*spec*/) {
    no_verbs();
}
std::unique_ptr<Sender> open_verbs_sender(const Endpoint& /*to*/) {
    no_verbs();
}

}  // namespace weir::bench
