// The words of the configuration and the values they stand for: one table per choice, used for reading, for printing
// and for the list of what is accepted.
#pragma once

#include <array>

#include "config/run_config.hpp"
#include "options/text.hpp"

namespace weir::config::detail {

using options::name_of;
using options::Named;

inline constexpr std::array transport_names{Named{"udp", Transport::udp}, Named{"roce", Transport::roce}};
inline constexpr std::array source_by_names{Named{"port", SourceBy::port}, Named{"address", SourceBy::address},
                                            Named{"header", SourceBy::header}};
inline constexpr std::array senders_names{Named{"one", Senders::one}, Named{"any", Senders::any}};
inline constexpr std::array event_by_names{Named{"format", EventBy::format}, Named{"immediate", EventBy::immediate},
                                           Named{"count", EventBy::count}, Named{"arrival", EventBy::arrival}};
inline constexpr std::array icrc_names{Named{"check", IcrcMode::check}, Named{"ignore", IcrcMode::ignore}};
inline constexpr std::array backing_names{Named{"none", false}, Named{"memory", true}};
inline constexpr std::array service_names{Named{"listen", roce::Service::listen}, Named{"rc", roce::Service::rc},
                                          Named{"uc", roce::Service::uc}, Named{"ud", roce::Service::ud}};
inline constexpr std::array exchange_names{Named{"none", Exchange::none}, Named{"perftest", Exchange::perftest}};
inline constexpr std::array incomplete_names{Named{"keep", IncompleteMode::keep}, Named{"drop", IncompleteMode::drop}};
inline constexpr std::array assembly_names{Named{"auto", AssemblyMode::automatic},
                                           Named{"reference", AssemblyMode::reference},
                                           Named{"copy", AssemblyMode::copy}};
/// Of those that are one word; "prescale:N" is the other.
inline constexpr std::array overload_names{Named{"evict-oldest", OverloadMode::evict_oldest},
                                           Named{"refuse-new", OverloadMode::refuse_new},
                                           Named{"wait", OverloadMode::wait}};
inline constexpr std::array toggle_names{Named{"auto", Toggle::automatic}, Named{"on", Toggle::on},
                                         Named{"off", Toggle::off}};
inline constexpr std::array on_error_names{Named{"stop", SinkError::stop}, Named{"continue", SinkError::carry_on}};
inline constexpr std::array steer_names{Named{"auto", SteerMode::automatic}, Named{"rules", SteerMode::rules},
                                        Named{"software", SteerMode::software}};
inline constexpr std::array refusal_names{Named{"software", RefusalMode::software}, Named{"fail", RefusalMode::fail}};
inline constexpr std::array idle_names{Named{"spin", IdleMode::spin}, Named{"pause", IdleMode::pause},
                                       Named{"sleep", IdleMode::sleep}};
inline constexpr std::array flow_control_names{
    Named{"leave", config::FlowControl::leave}, Named{"off", config::FlowControl::off},
    Named{"rx", config::FlowControl::rx}, Named{"tx", config::FlowControl::tx},
    Named{"full", config::FlowControl::full}};
inline constexpr std::array timestamps_names{Named{"auto", config::Timestamps::automatic},
                                             Named{"hardware", config::Timestamps::hardware},
                                             Named{"software", config::Timestamps::software}};
inline constexpr std::array checksums_names{Named{"auto", config::Checksums::automatic},
                                            Named{"ignore", config::Checksums::ignore}};
inline constexpr std::array byte_order_names{Named{"little", wire::ByteOrder::little},
                                             Named{"big", wire::ByteOrder::big}};

inline constexpr std::array strategy_names{Named{"pull", cluster::Strategy::pull},
                                           Named{"push", cluster::Strategy::push}};
inline constexpr std::array send_order_names{Named{"linear", cluster::Order::linear},
                                             Named{"random", cluster::Order::random},
                                             Named{"listed", cluster::Order::listed}};
inline constexpr std::array quorum_names{
    Named{"nodes", cluster::QuorumOf::nodes}, Named{"readouts", cluster::QuorumOf::readouts},
    Named{"managers", cluster::QuorumOf::managers}, Named{"none", cluster::QuorumOf::none}};
inline constexpr std::array keep_names{Named{"assembled", cluster::Keep::assembled},
                                       Named{"written", cluster::Keep::written}};
inline constexpr std::array role_names{Named{"readout", NodeRole::readout}, Named{"builder", NodeRole::builder},
                                       Named{"manager", NodeRole::manager}};

}  // namespace weir::config::detail
