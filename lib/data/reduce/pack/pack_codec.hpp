// The `pack` reducer in the worker's chain.
#pragma once

#include <memory>

#include "reduce/chain/piece_store.hpp"
#include "reduce/pack/packer.hpp"

namespace weir::reduce {

/// All memory is taken here. Throws core::RunError if there is none.
[[nodiscard]] std::unique_ptr<PieceCodec> make_pack_codec(const pack::PackOptions& options);

}  // namespace weir::reduce
