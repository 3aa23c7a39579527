#!/usr/bin/env python3
"""What weir proposes on this machine is printed, reported and kept to; several pools lose no buffer."""
import json
import os

from support import Case, main, weir

CPUS = sorted(os.sched_getaffinity(0))


def live(events, sources, memory="64MiB", more="", ports=1, timeout_ms=60000):
    """Simulated detectors, one module each but the first, which has the rest."""
    counts = [sources - ports + 1] + [1] * (ports - 1)
    text = ""
    for port, count in enumerate(counts):
        first = 50001 + 100 * port
        text += f'[[port]]\nname = "det{port}"\ndevice = "sim,format=jungfrau,events={events},port={first}"\nqueues = 1\n'
        text += f'[[stream]]\nport = "det{port}"\ntransport = "udp"\nudp_dst = "{first}-{first + count - 1}"\nformat = "jungfrau"\n'
    return text + (f'[events]\nsources = {sources}\nmemory = "{memory}"\ntimeout_ms = {timeout_ms}\n[[sink]]\nkind = "null"\n{more}\n')


class Placement(Case):
    def run_live(self, text):
        report = self.path("report.json")
        done = weir("run", "--config", self.path("run.toml", text), "--report", report)
        with open(report) as file:
            return json.load(file), done

    def test_the_proposal_is_printed_and_reported(self):
        text = live(3, 1, more='[lcores]\nidle = "sleep"')
        printed = weir("run", "--config", self.path("run.toml", text), "--print-config").stdout
        report, _ = self.run_live(text)
        placement, topology = report["machine"]["placement"], report["machine"]["topology"]
        self.assertTrue(placement["proposed"])
        for line in placement["text"]:
            self.assertIn(f"#   {line}\n", printed)
        used = {item["lcore"] for item in placement["lcores"]}
        self.assertEqual([item["rx"] for item in placement["lcores"] if item["rx"]], [[0]])
        if len(CPUS) < 4:
            self.assertFalse(placement["bound"])
            self.assertEqual(len(used), 1)
        self.assertGreaterEqual(len(topology["nodes"]), 1)
        self.assertGreater(topology["nodes"][0]["memory_bytes"], 0)

    def test_a_given_placement_is_kept_and_warned_of(self):
        first = CPUS[0]
        report, done = self.run_live(live(3, 1, more=f'[lcores]\nrx = [{first}]\nbuild = [{first}]\nwork = [126]\nidle = "sleep"'))
        placement = report["machine"]["placement"]
        self.assertFalse(placement["proposed"])
        self.assertEqual([item["lcore"] for item in placement["lcores"]], [first, 126])
        warnings = [text for text in report["warnings"] if text.startswith("lcore 126: ")]
        self.assertEqual(len(warnings), 1, report["warnings"])
        self.assertIn("this machine has no such CPU", warnings[0])
        self.assertIn(f"warning: {warnings[0]}", done.stderr)

    def test_buffers_go_back_to_the_pool_that_they_came_from(self):
        """Six modules come through the first port, and the lcore of the second port assembles two of them. The detectors wait
        for buffers, of which there are far fewer than packets: none may get lost on the way."""
        lcores = '[lcores]\nrx = [0, 1]\nbuild = [0]\nwork = [1]\nidle = "sleep"'
        report, done = self.run_live(live(60, 7, ports=2, more=lcores))
        self.assertIn("in 2 pools, one for each lcore with queues", done.stderr)
        self.assertLess(report["plan"]["buffers"], 60 * 7 * 128 / 2)
        self.assertTrue(report["balanced"])
        self.assertEqual(report["packets"]["received"], 60 * 7 * 128)
        self.assertEqual(report["packets"]["in_flight"], 0)


if __name__ == "__main__":
    main()
