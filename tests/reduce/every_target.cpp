// Built with the flags of the SIMD code itself (lib/data/reduce/meson.build): Highway's headers refuse baselines that
// hold more than its dispatch tells apart, as -march=native is on some processors.
#include "every_target.hpp"

#include <hwy/targets.h>

namespace weir::reduce {

std::int64_t supported_targets() {
    return hwy::SupportedTargets();
}

const char* name_of(std::int64_t target) {
    return hwy::TargetName(target);
}

void use_targets(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace weir::reduce
