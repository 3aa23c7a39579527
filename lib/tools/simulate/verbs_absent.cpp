// In builds without libibverbs.
#include "core/error.hpp"
#include "simulate/verbs_sender.hpp"

namespace weir::simulate {

void check_verbs_device(const std::string& /*device*/) {
    throw core::UsageError("this weir was built without libibverbs (meson setup -Dverbs=enabled)");
}

std::unique_ptr<VerbsSender> open_verbs_sender(const std::string& device, Simulator& /*simulator*/,
                                               const RcSender::Config& /*config*/, const std::atomic<bool>& /*stop*/) {
    check_verbs_device(device);
    return nullptr;
}

}  // namespace weir::simulate
