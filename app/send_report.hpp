// The account of `weir send`: as JSON, and in a few lines for people.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "send_options.hpp"
#include "simulate/frame_target.hpp"
#include "simulate/paced_sender.hpp"
#include "simulate/rc_sender.hpp"

namespace weir::app {

nlohmann::json send_report(const SendOptions& options, const simulate::Simulator& simulator,
                           const simulate::PacedSender::Result& run, const simulate::FrameTarget& target);
/// The same keys, and what came of the messages.
nlohmann::json rc_send_report(const SendOptions& options, simulate::Simulator& simulator,
                              const simulate::RcSender::Result& run, std::uint64_t lost);

void print_send_summary(const nlohmann::json& report);
/// Throws core::RunError.
void write_send_report(const std::string& path, const nlohmann::json& report);

}  // namespace weir::app
