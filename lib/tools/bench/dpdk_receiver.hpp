// Receives with DPDK, as weir itself does: a poll mode driver, buffers that packets stay in.
#pragma once

#include <memory>
#include <string_view>

#include "bench/frame_kind.hpp"
#include "bench/receiver.hpp"

namespace weir::bench {

/// On ReceiverSpec::device, or with `driver` on top of its interface. The first one starts EAL, which stays until the
/// process ends. One for each process: net_af_xdp of DPDK 22.11 keeps the interface's queue after it has been closed.
/// Throws core::RunError with what DPDK said.
[[nodiscard]] std::unique_ptr<Receiver> open_dpdk_receiver(const ReceiverSpec& spec, std::string_view driver);

/// The same for RoCE frames with messages of one packet. What is wrong with them is counted (Receiver::refused()). A
/// payload that was written is read where it was written to. Throws core::RunError also where no RoCE packet has so
/// many bytes.
[[nodiscard]] std::unique_ptr<Receiver> open_dpdk_roce_receiver(const ReceiverSpec& spec, FrameKind::Is frames);

}  // namespace weir::bench
