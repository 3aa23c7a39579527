// [[stream]], described. Which of its keys apply follows from the transport, the format and the service.
#pragma once

#include "config/run_config.hpp"
#include "options/option.hpp"

namespace weir::config::detail {

/// `run` has the ports, the formats, [events] and [cluster], and must outlive the description.
options::OptionTable<StreamConfig> stream_options(const RunConfig& run);

/// Why a key of RoCE does not belong to this stream; empty if it does.
std::string not_roce(const StreamConfig& stream);

/// node.
void add_node(options::OptionTable<StreamConfig>& out, const RunConfig& run);
/// exchange and listen.
void add_exchange_options(options::OptionTable<StreamConfig>& out);
/// The keys of queue pairs that weir answers: service, exchange, peer, psn, region and so on. After `qp`.
void add_responder_options(options::OptionTable<StreamConfig>& out);
/// The keys that belong to formats: interfaces, rows and so on.
void add_format_keys(options::OptionTable<StreamConfig>& out);

}  // namespace weir::config::detail
