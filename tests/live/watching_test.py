#!/usr/bin/env python3
"""What a run shows of itself: the document agrees with the report, the metrics with both, and the picture with the event file.

usage: watching_test.py WEIR
"""

import itertools
import re
import shutil
import socket
import struct
import subprocess
import threading
import urllib.request

import live
from serve_test import Service
from stop_test import SIMULATED, config


def in_the_tree(value):
    """As the tree of parameters names it: with letters, digits and underscores."""
    return {re.sub(r"[^A-Za-z0-9]", "_", key): in_the_tree(one) for key, one in value.items()} if isinstance(value, dict) else value


THREE_SOURCES = """name = "live"
[[format]]
name = "boards"
byte_order = "little"
header_bytes = 16
event = { offset = 0, bytes = 8 }
index = { offset = 8, bytes = 4 }
payload_bytes = 184
packets = 1
[[port]]
name = "det0"
device = "kernel,iface=det0"
address = "10.1.0.2/24"
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002, 50003]
format = "boards"
[events]
sources = 3
memory = "128MiB"
timeout_ms = 200
[[sink]]
kind = "null"
[lcores]
idle = "sleep"
"""
PLACES = ["way", "nic", "kernel", "weir"]


def series(text):
    """{name with labels: value} of Prometheus's text format."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert name not in found, name
            found[name] = float(value)
    return found


def total(found, family):
    return sum(value for name, value in found.items() if name.split("{")[0] == family)


class WatchingTest(live.Case):
    def service(self, text):
        service = Service(self.folder, text)
        self.addCleanup(service.close)
        return service

    def fetch(self, service, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{service.port}{path}", timeout=live.PATIENCE_S) as answer:
            return answer.read(), answer.headers

    def scrape(self, service):
        text, headers = self.fetch(service, "/metrics")
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        return text.decode()

    def check(self, text):
        if shutil.which("promtool") is None:
            self.skipTest("there is no program 'promtool'")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=live.PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_last_document_is_the_report(self):
        service = self.service(config(SIMULATED + ",drop=0.003"))
        service.command("start")
        going_on = {}

        def shows_all():
            """Rates, and points of seconds: what it shows of a machine that stands still is right, and not what is looked for."""
            going_on.update(service.get(""))
            sources = going_on["sources"]
            return (going_on["rates"]["packets_per_s"] > 1000 and sources["per_s"][0] > 1000 and sources["last_seen_s"][0] < 2
                    and len(going_on["history"]["time_s"]) >= 2)

        live.wait_for(shows_all, "rates and their history")
        service.command("stop")
        document = service.get("")
        report = service.report(1)
        for key in ("packets", "bytes", "messages", "events", "balanced", "wire_loss", "devices", "device_missed", "unmatched"):
            self.assertEqual(document["ledger"][key], in_the_tree(report[key]), key)
        self.assertTrue(document["ledger"]["balanced"])
        self.assertNotIn("balanced", going_on["ledger"], "what is on its way between lcores is not counted yet")
        self.assertEqual(document["sources"]["packets"], [source["packets"] for source in report["sources"]])
        self.assertEqual(document["sources"]["missing"], [source["missing_packets"] for source in report["sources"]])
        self.assertEqual(document["sources"]["lagging"], [False, False])
        self.assertEqual([place["place"] for place in document["where"]], PLACES)
        lost = {place["place"]: place["packets"] for place in document["where"]}
        evidence = [place["evidence"] for place in document["where"]]
        lost_here = sum(report["packets"]["dropped"].values())
        self.assertEqual((lost["nic"], lost["kernel"]), (report["device_missed"], 0), evidence)
        if sum(report["events"]["dropped"].values()) == 0:
            self.assertEqual(lost["weir"], lost_here, evidence)
        else:  # with about as many packets as were in them
            self.assertGreater(lost["weir"], lost_here, evidence)
        if report["device_missed"] + lost_here == 0:
            self.assertGreater(lost["way"], 0, evidence)
            self.assertEqual(lost["way"], report["wire_loss"], evidence)
        else:  # on a machine that is busy with other things
            missing = sum(source["missing_packets"] for source in report["sources"])
            self.assertLessEqual(lost["way"] or 0, missing, evidence)
        self.assertEqual([finding["counter"] for finding in document["findings"]], [finding["counter"] for finding in report["findings"]])
        self.assertEqual(document["bottleneck"], {key: report["bottleneck"][key] for key in ("part", "sentence")})
        self.assertEqual(document["pipeline"]["sinks"][0]["written"], report["events"]["written"])
        self.assertEqual({ring["name"] for ring in document["pipeline"]["rings"]}, set(report["levels"]["rings"]))
        stages = {stage["name"] for stage in document["pipeline"]["stages"]}
        for ring in document["pipeline"]["rings"]:
            for end in ("from", "to"):
                self.assertTrue(ring[end] in stages or ring[end] == "sink0", ring)
        self.assertGreater(document["pipeline"]["longest_poll_s"], 0)
        # While it went on: a point for each second.
        times = going_on["history"]["time_s"]
        self.assertTrue(all(later - earlier > 0.9 for earlier, later in zip(times, times[1:])), times)
        self.assertEqual(len(going_on["history"]["lost_per_s"]["missing"]), len(going_on["history"]["time_s"]))
        service.end()

    def test_metrics_of_a_run_and_of_the_next(self):
        service = self.service(config(SIMULATED))
        idle = self.scrape(service)
        self.check(idle)
        self.assertEqual(series(idle)['weir_state{state="idle"}'], 1)
        self.assertEqual(total(series(idle), "weir_packets_received_total"), 0)
        service.command("start")
        scrapes = [self.scrape(service)]
        placed = lambda text: total(series(text), "weir_packets_placed_total")

        def grows():
            """Another scrape, if there is something new in it."""
            text = self.scrape(service)
            if placed(text) > placed(scrapes[-1]):
                scrapes.append(text)
            return len(scrapes) >= 8 and placed(text) > 5000

        live.wait_for(grows, "eight scrapes, each with more packets")
        self.check(scrapes[-1])
        counters = set(re.findall(r"# TYPE (\w+) counter", scrapes[-1]))
        for before, after in zip(scrapes, scrapes[1:], strict=False):
            now = series(after)
            for name, value in series(before).items():
                if name.split("{")[0] in counters:
                    self.assertGreaterEqual(now[name], value, f"{name} went back")
        self.assertGreater(total(series(scrapes[-1]), "weir_packets_placed_total"), 1000)
        service.command("stop")
        text = self.scrape(service)
        self.check(text)
        found = series(text)
        report = service.report(1)
        self.assertEqual(total(found, "weir_packets_received_total"), report["packets"]["received"])
        for family, part in (("weir_packets_dropped_total", report["packets"]["dropped"]), ("weir_events_incomplete_total", report["events"]["incomplete"])):
            self.assertEqual(total(found, family), sum(part.values()))
            for cause, value in part.items():
                self.assertEqual(found[f'{family}{{cause="{cause}"}}'], value)
        self.assertEqual(total(found, "weir_source_packets_total"), sum(source["packets"] for source in report["sources"]))
        self.assertEqual(found['weir_sink_written_events{sink="0",kind="events"}'], report["events"]["written"])
        self.assertEqual(found['weir_run_info{name="live",host="%s",run="1",mode="serve"}' % service.get("host")], 1)
        service.command("start")
        service.wait_packets()
        again = series(self.scrape(service))
        service.command("stop")
        self.assertLessEqual(total(again, "weir_packets_received_total"), service.report(2)["packets"]["received"], "the next run begins to count again")
        service.end()

    def test_the_picture_is_the_event(self):
        self.picture_is_the_event(config(SIMULATED))

    def test_the_picture_is_the_event_also_where_it_is_packed(self):
        self.picture_is_the_event(config(SIMULATED) + '[[reduce]]\nkind = "pack"\ncodec = "bitshuffle-lz4"\n')

    def picture_is_the_event(self, text):
        service = self.service(text)
        service.command("start")
        live.wait_for(lambda: service.get("picture/available"), "a first picture")
        generation = 0
        for _ in range(3):  # each asks for the next

            def next_one():
                nonlocal pixels, headers
                pixels, headers = self.fetch(service, "/picture")
                return int(headers["X-Weir-Generation"]) > generation

            pixels = headers = None
            live.wait_for(next_one, "next picture")
            generation = int(headers["X-Weir-Generation"])
        seen = service.get("picture")
        self.assertEqual((seen["width"], seen["height"], seen["type"]), (1024, 1024, "u16"))
        self.assertLess(seen["seconds_ago"], live.PATIENCE_S)
        service.command("stop")
        self.assertEqual((headers["X-Weir-Type"], headers["X-Weir-Width"], headers["X-Weir-Height"]), ("u16", "1024", "1024"))
        event = headers["X-Weir-Event"]
        exported = self.folder / "event.raw"
        done = subprocess.run([live.Weir.program, "inspect", str(self.folder / "runs" / "live-1"), "--export", event, str(exported)], capture_output=True,
                              text=True, timeout=live.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pixels, exported.read_bytes())
        self.assertEqual(struct.calcsize("<1048576H"), len(pixels))
        service.end()

    def test_a_run_that_writes_nothing_has_no_picture(self):
        text = config(SIMULATED)
        service = self.service(text[:text.index("[[sink]]")] + '[[sink]]\nkind = "null"\n' + text[text.index("[lcores]"):])
        service.command("start")
        live.wait_for(lambda: service.get("ledger/packets/placed") > 0, "packets")
        self.assertEqual(service.get("picture/available"), False)
        self.assertIn("writes no events", service.get("picture/why"))
        service.end()

    def send_on(self, network, numbers, ports):
        """A packet to each of the ports for each number, a hundred a second, until the test ends."""
        over = threading.Event()

        def send():
            with network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                while not over.wait(0.01):
                    packet = struct.pack("<QII", next(numbers), 0, 0) + bytes(184)
                    for port in list(ports):
                        sender.sendto(packet, (live.RECEIVER, port))

        sending = threading.Thread(target=send)
        sending.start()
        self.addCleanup(sending.join)
        self.addCleanup(over.set)

    def test_a_source_that_falls_silent_stands_out(self):
        network = live.Network()
        self.addCleanup(network.close)
        service = self.service(THREE_SOURCES)
        service.command("start")
        ports = [50001, 50002, 50003]
        self.send_on(network, itertools.count(), ports)

        def shown(lagging, last_seen):
            sources = service.get("sources")
            return sources["lagging"] == lagging and [seconds is not None and seconds < 1 for seconds in sources["last_seen_s"]] == last_seen

        live.wait_for(lambda: service.get("sources/packets")[2] > 200 and shown([False, False, False], [True, True, True]), "three sources")
        ports.pop()
        live.wait_for(lambda: shown([False, False, True], [True, True, False]), "one that lags")
        live.wait_for(lambda: 'weir_source_lagging{source="2",name="det0 udp 50003"} 1' in self.scrape(service), "it in the metrics")
        # The kernel is on the way of these packets, and no card.
        places = {place["place"]: place for place in service.get("where")}
        self.assertEqual(places["nic"]["packets"], 0)
        self.assertIn("no card is behind det0", places["nic"]["evidence"])
        self.assertEqual(places["kernel"]["packets"], 0)
        service.end()

    def test_whole_events_that_never_came_show_while_the_run_goes_on(self):
        network = live.Network()
        self.addCleanup(network.close)
        # A sender that is held up for seconds in the middle of an event has lost nothing.
        service = self.service(THREE_SOURCES.replace("timeout_ms = 200", "timeout_ms = 4000"))
        service.command("start")
        skipped = []

        def numbers():
            number = -1
            while True:
                number += 1 + (skipped.pop() if skipped else 0)
                yield number

        self.send_on(network, numbers(), [50001, 50002, 50003])

        def way():
            return next(place for place in service.get("where") if place["place"] == "way")

        live.wait_for(lambda: re.search(r"and no event number up to \d+", way()["evidence"]), "word of event numbers")
        self.assertEqual(way()["packets"], 0, way())
        skipped.append(20)
        live.wait_for(lambda: way()["packets"] == 60, "packets of the events that never came")
        self.assertIn("of 20 events among them of which nothing came", way()["evidence"])
        self.assertIn('weir_lost_packets{place="way"} 60', self.scrape(service))
        service.end()


if __name__ == "__main__":
    live.main(sandbox_required=True)
