// Documents of a running weir, for tests of what is made of them.
#pragma once

#include <nlohmann/json.hpp>

namespace weir::app {

/// A run of three lcores in which all is well.
inline nlohmann::json watched_run() {
    return nlohmann::json::parse(R"({
      "name": "det", "host": "daq1", "status": {"state": "running", "error": ""},
      "run": {"number": 7, "paths": ["/data/det-000007"], "seconds": 120.4, "stop_reason": ""},
      "rates": {"packets_per_s": 401812.4, "gbps": 26.48, "events_per_s": 3139.2, "sink_bytes_per_s": 3.2e9, "lost_per_s": 0},
      "ledger": {"packets": {"received": 48211903}},
      "where": [{"place": "way", "title": "on the way", "packets": 0, "evidence": "by sequence"},
                {"place": "nic", "title": "in the NIC", "packets": 0, "evidence": "the device's counters"},
                {"place": "kernel", "title": "in the kernel", "packets": 0, "evidence": "no kernel between"},
                {"place": "weir", "title": "in weir", "packets": 0, "evidence": "the ledger balances"}],
      "losses": [],
      "sources": {"label": ["det0 udp 1", "det0 udp 2", "det0 udp 3"], "packets": [10, 10, 10], "missing": [0, 0, 0],
                  "per_s": [100.5, 300, 200], "last_seen_s": [0.1, 0.1, 0.1], "lagging": [false, false, false]},
      "pipeline": {
        "stages": [{"name": "rx0", "kind": "rx", "lcore": 2, "busy": 0.51, "blocked": 0, "blocked_by": ""},
                   {"name": "build0", "kind": "build", "lcore": 3, "busy": 0.25, "blocked": 0.25, "blocked_by": "queue"},
                   {"name": "work0", "kind": "work", "lcore": 4, "busy": 0.97, "blocked": 0, "blocked_by": ""}],
        "rings": [{"name": "descriptors0", "from": "rx0", "to": "build0", "used": 10, "size": 100, "highest": 20, "times_full": 0, "dropped": 0},
                  {"name": "events0", "from": "build0", "to": "work0", "used": 90, "size": 100, "highest": 100, "times_full": 3, "dropped": 0},
                  {"name": "free0", "from": "sink0", "to": "work0", "used": 16, "size": 16, "highest": 16, "times_full": 0, "dropped": 0}],
        "levels": {"buffers": {"used": 12000, "size": 131072, "highest": 30112}, "memory": {"used": 50, "size": 100, "highest": 60}},
        "longest_poll_s": 0.00031,
        "sinks": [{"kind": "events", "path": "/data/det-000007", "written": 93121, "lost": 0, "bytes": 391873204224, "error": "", "free_bytes": 3301873204224, "hours_left": 7.41}]},
      "bottleneck": {"part": "work0", "sentence": "work0: busy 97 % of the time on lcore 4"},
      "findings": [{"severity": "warning", "text": "something", "page": "LOSSES.md#late"}],
      "runs": [{"number": 6, "events": 100, "lost_packets": 0, "lossless": "yes"}]
    })");
}

}  // namespace weir::app
