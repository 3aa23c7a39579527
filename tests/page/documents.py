"""Documents as weir makes them, of the situations that the page must show."""
import copy
import math
import random

COMMANDS = ("start", "stop", "new_run", "snapshot", "flight_record", "abort")
CAUSES = ("late", "missing", "device", "no_room", "queue_full", "malformed.header")


def _level(used, size, highest=None):
    return {"used": used, "size": size, "highest": highest if highest is not None else used}


def _ring(name, source, target, used, size=1024, highest=None, full=0, dropped=0):
    return {"name": name, "from": source, "to": target, **_level(used, size, highest), "times_full": full, "dropped": dropped}


def pipeline(rx=1, build=1, work=1, sinks=None, queues=None, fused=False):
    """As many stages as asked for, each on an lcore of its own, or all on lcore 0; with the rings between them."""
    random.seed(5)
    stages, rings, lcore = [], [], 1
    for kind, number in (("rx", rx), ("build", build), ("work", work)):
        for i in range(number):
            stages.append({"name": f"{kind}{i}", "kind": kind, "lcore": 0 if fused else lcore + 1, "busy": round(random.uniform(0.2, 0.7), 3), "blocked": 0.0, "blocked_by": ""})
            lcore += 1
    name = lambda kind, i, j: f"{kind}{i}" if build == 1 else f"{kind}{i}.{j}"
    for i in range(rx):
        for j in range(rx):
            if i != j:
                rings.append(_ring(f"steer{i}.{j}", f"rx{i}", f"rx{j}", 0, 256))
        for j in range(build):
            rings.append(_ring(name("descriptors", i, j), f"rx{i}", f"build{j}", random.randint(20, 300), 4096, 900))
            rings.append(_ring(name("commands", i, j), f"build{j}", f"rx{i}", 2, 4096, 40))
    for i in range(work):
        for j in range(build):
            rings.append(_ring(name("events", i, j), f"build{j}", f"work{i}", random.randint(2, 30), 256, 61))
            rings.append(_ring(name("released", i, j), f"work{i}", f"build{j}", 1, 256, 12))
        rings.append(_ring(f"full{i}", f"work{i}", "sink0", 3, 16, 9))
        rings.append(_ring(f"free{i}", "sink0", f"work{i}", 13, 16, 16))
    queues = queues or [{"port": 0, "queue": i, "stage": f"rx{i}"} for i in range(rx)]
    return {
        "ports": [{"name": "det0", "device": "0000:3b:00.0", "driver": "net_mlx5", "queues": rx, "link_up": True, "mbps": 100000, "received": 48211903, "missed": 0, "no_buffer": 0}],
        "queues": queues, "stages": stages, "rings": rings,
        "levels": {"buffers": _level(12000, 131072, 30112), "memory": _level(310000000, 2147483648, 801000000), "open": _level(41, 512, 77), "queued": _level(12, 1024, 88), "writer": _level(3, 16, 9)},
        "longest_poll_s": 0.00031,
        "sinks": sinks or [{"kind": "events", "path": "/data/det-000007", "written": 93121, "lost": 0, "synced": 92810, "bytes": 391873204224, "error": "", "free_bytes": 3301873204224, "hours_left": 7.41, "dropped": {}}],
        "recorder": {"mode": "incomplete", "seconds_held": 9.8, "files": 2, "left_out": 0, "stopped": ""},
    }


def history(points=300, base=402000, lost=None, seed=3):
    random.seed(seed)
    times = list(range(points))
    packets = [base * (1 + 0.04 * math.sin(t / 17) + random.uniform(-0.02, 0.02)) for t in times]
    return {"step_s": 1, "time_s": times, "packets_per_s": packets, "gbps": [p * 8240 * 8e-9 for p in packets], "events_per_s": [p / 128 for p in packets],
            "lost_per_s": lost or {}}


def sources(number=4, per_s=100500.0):
    random.seed(11)
    return {"label": [f"det0 udp {50001 + i}" for i in range(number)], "packets": [12052975 - 7 * i for i in range(number)], "missing": [0] * number,
            "per_s": [round(per_s * random.uniform(0.9, 1.0), 1) for _ in range(number)], "last_seen_s": [0.01] * number, "lagging": [False] * number}


def where(way=0, nic=0, kernel=0, weir=0, evidence=None):
    evidence = evidence or {}
    words = {"way": "by sequence: every source's numbers follow one another", "nic": "the device's own counters", "kernel": "no kernel between: the driver is weir's own",
             "weir": "the ledger balances: every packet ended in one counter"}
    titles = {"way": "on the way", "nic": "in the NIC", "kernel": "in the kernel", "weir": "in weir"}
    return [{"place": place, "title": titles[place], "packets": packets, "evidence": evidence.get(place, words[place])}
            for place, packets in (("way", way), ("nic", nic), ("kernel", kernel), ("weir", weir))]


def ledger(late=0, missing=0, device=0):
    return {"packets": {"received": 48211903, "placed": 48211000 - late, "in_flight": 903, "not_for_us": {"arp": 12, "icmp": 0}, "dropped": {"late": late, "malformed.header": 0}},
            "bytes": {"received": 397266080720, "placed": 393000000000, "stored": 391873204224}, "messages": {"opened": 376655, "delivered": 376600, "refused": {}},
            "events": {"opened": 94163, "complete": 94100 - missing // 10, "incomplete": {"timeout": missing // 10}, "written": 93121, "dropped": {"queue_full": 0}},
            "device_missed": device, "wire_loss": missing}


def runs(number=6):
    made = []
    for i in range(number):
        lost = 12 if i == 2 else 0
        made.append({"number": 6 - i, "paths": [f"/data/det-{6 - i:06}"], "started": f"2026-11-25T{14 - i:02}:02:11Z", "ended": f"2026-11-25T{14 - i:02}:52:40Z", "seconds": 3029.1, "stop_reason": "duration reached" if i else "SIGINT",
                     "events": 9312100 - i, "complete": 9312100 - i - lost, "incomplete": lost, "lost_packets": lost, "lossless": "no" if lost else ("unknown" if i == 4 else "yes"), "balanced": True, "error": ""})
    return made


def running(**more):
    """A run in which all is well."""
    document = {
        "api": "0.1", "version": "0.1.0", "host": "daq1", "name": "det", "time": "2026-11-25T16:00:00.123Z", "generation": 17,
        "status": {"state": "running", "mode": "serve", "since_s": 120.4, "error": ""},
        "command": {"allowed": ["stop", "new_run", "snapshot", "flight_record", "abort"], "execute": "", "last": {"command": "start", "accepted": "2026-11-25T15:58:00Z", "done": True, "message": "", "error": ""},
                    **{name: {"allowed": name != "start", "execute": False} for name in COMMANDS}},
        "config": {"duration_s": None, "events": None, "comment": ""},
        "run": {"number": 7, "paths": ["/data/det-000007"], "started": "2026-11-25T15:58:00Z", "seconds": 120.4, "stop_reason": ""},
        "rates": {"packets_per_s": 401812.4, "gbps": 26.48, "events_per_s": 3139.2, "sink_bytes_per_s": 3.2e9, "lost_per_s": 0},
        "ledger": ledger(), "where": where(), "losses": [], "sources": sources(), "pipeline": pipeline(),
        "bottleneck": {"part": "", "sentence": "sender: nothing was waiting; the busiest lcore had 38 % of its time to spare"},
        "findings": [], "history": history(),
        "picture": {"available": True, "why": "", "epoch": 0, "event": 94100, "width": 512, "height": 256, "type": "f32", "generation": 9, "seconds_ago": 0.2},
        "runs": runs(),
    }
    document.update(more)
    return document


def builder():
    """A builder of a cluster, from which one readout node has gone away."""
    nodes = [("ru0", "readout", True), ("ru1", "readout", False), ("bu0", "builder", True), ("bu1", "builder", True)]
    missing = {"ru0": (0, 0, 2), "ru1": (1204, 3, 0)}
    return running(cluster={
        "node": "bu0", "role": "builder", "block": 16, "lives": 1, "callers_refused": 0, "has_quorum": True, "settled": 58900,
        "nodes": [{"name": name, "role": role, "up": up} for name, role, up in nodes],
        "lost_blocks": {"builder_down": 7, "nothing_held": 0, "node_down": 2, "late": 1},
        "manager": {"manages": True, "assigned": 58912, "assigned_again": 5, "committed": 58900, "lost": 7},
        "builder": {"blocks": {"assigned": 29460, "complete": 28250, "incomplete": 1207, "empty": 0, "in_hand": 3, "open_highest": 16},
                    "readouts": [{"node": name, "received": 29457 - sum(causes), "received_late": 0, "missing": dict(zip(("node_down", "not_held", "late"), causes))}
                                 for name, causes in missing.items()],
                    "malformed_parts": 0}})


def manager():
    """A node that does nothing but manage, and from which a readout node has gone away."""
    document = builder()
    kept = {key: document[key] for key in ("api", "version", "host", "name", "time", "generation")}
    cluster = {**document["cluster"], "node": "ma", "role": "manager", "lost_blocks": {"builder_down": 0, "nothing_held": 0, "node_down": 0, "late": 0}}
    del cluster["builder"]
    return {**kept, "status": {"state": "running", "mode": "run", "since_s": None, "error": ""}, "command": {"allowed": []}, "config": {}, "runs": [],
            "run": {"number": 7, "paths": [], "started": "2026-11-25T16:00:00Z", "seconds": 120.4, "stop_reason": ""}, "cluster": cluster}


def all_nodes():
    """/cluster of a builder: one node is not reached, one has lost something and waits."""
    fine = {"reached": True, "state": "running", "error": "", "run": {"number": 7, "seconds": 120.4}, "rates": {"gbps": 1.25, "events_per_s": 12500}, "lost": {}}
    return {
        "name": "det", "state": "running", "run": 7, "age_s": 0.2, "rounds": 9, "allowed": ["start", "stop", "new_run", "abort"],
        "nodes": [{**fine, "name": "ru0", "role": "readout", "lost": {"late": 3, "evicted": 1000}},
                  {"name": "ru1", "role": "readout", "reached": False, "error": "http://<b>h</b>:9321 does not answer"},
                  {**fine, "name": "bu0", "role": "builder"}],
        "waits": [{"node": "ru0", "for": "bu0", "total_s": 12.5, "share": 0.314}, {"node": "bu0", "for": "ru0", "total_s": 0.1, "share": 0.01}],
        "losses": [{"builder": "bu0", "readout": "ru1", "node_down": 1234, "not_held": 0, "late": 2}],
        "command": {"command": "start", "accepted": "2026-11-25T16:00:00Z", "done": True, "message": "run 7, started on 3 nodes", "error": ""}}


def readout():
    """A readout node of a cluster."""
    nodes = [("ru0", "readout"), ("bu0", "builder"), ("bu1", "builder")]
    return running(cluster={
        "node": "ru0", "role": "readout", "block": 16, "lives": 1, "settled": 58900, "nodes": [{"name": name, "role": role, "up": True} for name, role in nodes],
        "lost_blocks": {"builder_down": 0, "nothing_held": 0, "node_down": 0, "late": 0},
        "readout": {"parts": {"offered": 58920, "handed_over": 58912, "not_held": 0, "too_late": 0, "held": 12, "held_highest": 40},
                    "builders": [{"node": "bu0", "handed_over": 29460}, {"node": "bu1", "handed_over": 29452}],
                    "events": {"too_late": 0, "left": 0}, "memory": {"used": 1 << 20, "highest": 1 << 22, "bound": 1 << 30, "waited_s": 0.0}}})


def idle():
    document = running(run=None, where=[], losses=[], findings=[], pipeline=None, ledger={}, bottleneck={"part": "", "sentence": ""}, history=history(0))
    document["status"] = {"state": "idle", "mode": "serve", "since_s": 31.2, "error": ""}
    document["command"]["allowed"] = ["start"]
    document["rates"] = dict.fromkeys(document["rates"], 0)
    document["sources"] = {name: [] for name in document["sources"]}
    document["picture"] = {"available": False, "why": "no run", "epoch": 0, "event": 0, "width": 0, "height": 0, "type": "", "generation": 0, "seconds_ago": 0}
    return document


def losing():
    """A disk that is too slow, a source that lags, and a switch that drops."""
    lost = {"late": [0] * 200 + [12 + 3 * math.sin(i / 4) for i in range(100)], "missing": [0] * 240 + [4.0] * 60, "queue_full": [0] * 270 + [7.5] * 30}
    document = running(
        where=where(way=1520, nic=None, weir=5310, evidence={"way": "by sequence: 1,520 numbers of det0 udp 50003 never came", "nic": "net_af_packet does not count what it drops", "weir": "the ledger: late 4,110, queue full 1,200"}),
        losses=[{"cause": "late", "packets": 4110, "place": "weir", "per_s": 12.0}, {"cause": "queue_full", "packets": 1200, "place": "weir", "per_s": 7.5}, {"cause": "missing", "packets": 1520, "place": "way", "per_s": 4.0}],
        ledger=ledger(late=4110, missing=1520), history=history(lost=lost, seed=4),
        bottleneck={"part": "work0", "sentence": "work0: busy 97 % of the time on lcore 4"},
        findings=[{"severity": "error", "text": "4,110 packets of det0 udp 50003 came after their events had left: this source lags behind the others by 2.1 s.", "page": "LOSSES.md#late"},
                  {"severity": "warning", "text": "1,200 packets were refused because closed events waited for work0 and their queue was full.", "page": "docs/guides/OVERLOAD.md"},
                  {"severity": "note", "text": "The firmware of the device is older than what was tested <b>here</b> & elsewhere.", "page": "SOMEWHERE.txt#else"}])
    document["rates"]["lost_per_s"] = 23.5
    document["sources"]["lagging"][2] = True
    document["sources"]["missing"] = [0, 3, 1517, 0]
    document["sources"]["last_seen_s"][2] = 2.1
    stage = document["pipeline"]["stages"][2]
    stage.update(busy=0.97, blocked=0.02, blocked_by="output")
    document["pipeline"]["stages"][1].update(blocked=0.3, blocked_by="queue")
    for ring in document["pipeline"]["rings"]:
        if ring["name"] == "events0":
            ring.update(used=251, highest=256, times_full=1208)
        if ring["name"] == "full0":
            ring.update(used=15, highest=16, times_full=88)
    document["pipeline"]["sinks"].append({"kind": "pcapng", "path": "/data/very/long/path/to/a/place/that/does/not/fit/det-000007.pcapng", "written": 12, "lost": 3, "synced": 12, "bytes": 120000, "error": "No space left on device", "free_bytes": 0, "hours_left": None, "dropped": {"full": 3}})
    return document


def lost_before():
    document = losing()
    for loss in document["losses"]:
        loss["per_s"] = 0
    document["rates"]["lost_per_s"] = 0
    document["pipeline"]["sinks"].pop()
    return document


def unknown():
    return running(where=where(way=None, evidence={"way": "no sequence numbers in this format, and event numbers show no stride"}))


def thousand():
    """A thousand sources, of which one lags, one is silent, one never sent and three miss packets."""
    document = running(sources=sources(1000, 402.0))
    s = document["sources"]
    s["lagging"][613], s["last_seen_s"][613] = True, 3.4
    s["last_seen_s"][77], s["per_s"][77] = 61.0, 0.0
    s["last_seen_s"][800], s["per_s"][800], s["packets"][800] = None, 0.0, 0
    s["missing"][5], s["missing"][400], s["missing"][999] = 2, 71, 9
    document["where"] = where(way=82)
    document["losses"] = [{"cause": "missing", "packets": 82, "place": "way", "per_s": 0.5}]
    document["rates"]["lost_per_s"] = 0.5
    return document


def sixteen():
    document = running(pipeline=pipeline(8, 4, 4), sources=sources(32))
    document["pipeline"]["rings"][-1]["used"] = 16
    for ring in document["pipeline"]["rings"]:
        if ring["name"] == "descriptors3.2":
            ring.update(used=4090, highest=4096, times_full=44, dropped=17)
    return document


def fused():
    """All on one lcore."""
    return running(pipeline=pipeline(fused=True))


def read_only():
    """As `weir run` shows it: nothing may be changed."""
    document = running()
    document["command"] = {"allowed": []}
    document["status"]["mode"] = "run"
    return document


def hostile():
    """Names that would be markup."""
    document = losing()
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    document["name"] = document["host"] = evil
    document["sources"]["label"] = [evil] * 4
    document["findings"][0]["text"] = evil
    document["pipeline"]["ports"][0]["name"] = evil
    document["pipeline"]["sinks"][0]["path"] = document["pipeline"]["sinks"][0]["error"] = evil
    document["runs"][0]["stop_reason"] = evil
    document["losses"][0]["cause"] = evil
    return document


SITUATIONS = {"idle": idle, "running": running, "losing": losing, "lost_before": lost_before, "unknown": unknown, "thousand": thousand, "sixteen": sixteen, "fused": fused,
              "read_only": read_only, "hostile": hostile, "builder": builder, "manager": manager, "readout": readout}


def made(name):
    return copy.deepcopy(SITUATIONS[name]())
