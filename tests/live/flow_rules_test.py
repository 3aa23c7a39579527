#!/usr/bin/env python3
"""Flow rules on live devices that have no rte_flow: weir says so in the driver's words and does them itself, or does not begin.

usage: flow_rules_test.py WEIR
"""

import socket

import live

RULES = """# one module each, the rest is not wanted
flow create 0 ingress pattern eth / ipv4 / udp dst is 50001 / end actions queue index 1 / end
flow create 0 ingress pattern eth / ipv4 / udp dst is 50002 / end actions queue index 0 / end
flow create 0 priority 1 ingress pattern eth / ipv4 / udp / end actions drop / end
"""


class FlowRulesTest(live.Case):
    @classmethod
    def setUpClass(cls):
        if not live.is_real_root():
            raise live.unittest.SkipTest("net_af_packet locks its rings in memory: needs root")
        cls.network = live.Network()

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def config(self, keys, queues=2):
        return f"""[[port]]
name = "det0"
device = "net_af_packet0,iface=det0,qpairs={queues}"
profile = "{live.ROOT}/pmd-config/net_af_packet.toml"
queues = {queues}
address = "{live.RECEIVER}/24"
{keys}
[[stream]]
port = "det0"
transport = "udp"
udp_dst = [50001, 50002]
format = "jungfrau"
[events]
sources = 2
memory = "256MiB"
timeout_ms = 20000
[[sink]]
kind = "events"
path = "run"
[lcores]
rx = [0, 1]
build = [0]
work = [1]
idle = "sleep"
"""

    def receive(self, keys, *more):
        """Twelve events and some noise; returns the finished run. An lcore that a busy machine holds up may lose packets of its ring:
        rules have counted them before."""
        text = self.config(keys).replace("qpairs=2", "qpairs=2,framecnt=4096")  # room for all that is sent, through whichever queue
        run = self.weir(text, "--events", 12, "--duration", live.PATIENCE_S)
        run.wait_running()
        options = ("--sources", 2, "--events", 12, "--seed", 4)
        with self.network.socket_there(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(b"noise", (live.RECEIVER, 9))
            other.sendto(b"noise", (live.RECEIVER, 10))
        sent = self.send(*options, "--rate", 20, "--to", f"udp:{live.RECEIVER}:50001", where=self.network.there())
        run.end()
        packets, events = run.report["packets"], run.report["events"]
        lost = packets["dropped"]["ring_full.steer"]
        self.assertEqual(events["opened"], 12, f"{events} {packets} {run.errors}")
        self.assertEqual(events["complete"] == 12, lost == 0, f"{events} {packets} {run.errors}")
        self.assertEqual(packets["placed"] + lost, sent["packets"]["sent"])
        self.assertTrue(run.report["balanced"], run.errors)
        return run, run.report["flows"][0]

    def test_a_driver_without_rules_leaves_them_to_weir(self):
        (self.folder / "r.flow").write_text(RULES)
        run, flows = self.receive('flows = "r.flow"')
        self.assertEqual([rule["where"] for rule in flows["rules"]], ["software"] * 3)
        self.assertEqual([rule["effective"] for rule in flows["rules"]], [None] * 3)
        for rule in flows["rules"][:2]:
            self.assertEqual(rule["message"], "validate: Function not implemented")
        self.assertEqual(flows["rules"][2]["message"], "would take packets from line 2, which is done in software")
        self.assertEqual([rule["hits"] for rule in flows["rules"]][:2], [12 * 128, 12 * 128])
        self.assertEqual(run.report["packets"]["dropped"]["flow_rule"], 2)
        self.assertEqual(flows["rules"][2]["hits"], 2)
        self.assertIn("0 in the device and 3 in software", run.errors)

    def test_without_a_file_weir_writes_the_rules(self):
        run, flows = self.receive("")
        self.assertEqual(flows["from"], "weir")
        self.assertEqual([rule["where"] for rule in flows["rules"]], ["software"] * 2)
        self.assertIn("udp dst is 50002 / end actions queue index 1", flows["rules"][1]["text"])
        self.assertEqual(run.report["packets"]["unsteered"], 2)
        self.assertEqual(run.report["packets"]["dropped"]["flow_rule"], 0)

    def test_refusal_may_end_the_run_before_it_begins(self):
        (self.folder / "r.flow").write_text(RULES)
        for keys, words in (('flows = "r.flow"\non_refusal = "fail"', ("refuses 2 of 3 rules", "r.flow:2: validate: ", "r.flow:3: validate: ")),
                            ('isolated = true\non_refusal = "fail"', ("cannot be isolated",))):
            run = self.weir(self.config(keys), "--duration", 5, name="refused")
            run.end(status=1)
            for word in words:
                self.assertIn(word, run.errors)
            self.assertFalse(run.out.exists())

    def test_isolation_that_cannot_be_had_is_said(self):
        run, flows = self.receive("isolated = true")
        self.assertFalse(flows["isolated"])
        self.assertIn("not isolated: isolate: ", flows["remark"])
        self.assertIn("not isolated", run.errors)

    def test_memif_says_the_same(self):
        (self.folder / "r.flow").write_text(RULES.replace("queue index 1", "queue index 0"))
        text = self.config('flows = "r.flow"', queues=1).replace("net_af_packet0,iface=det0,qpairs=1", f"net_memif0,role=server,socket={self.folder}/m,socket-abstract=no,id=0") \
            .replace("net_af_packet.toml", "net_memif.toml")
        run = self.weir(text, "--duration", 1, "--allow-empty")
        report = run.end()
        self.assertEqual([rule["where"] for rule in report["flows"][0]["rules"]], ["software"] * 3)
        self.assertTrue(all(rule["message"] for rule in report["flows"][0]["rules"]))
        self.assertEqual([rule["hits"] for rule in report["flows"][0]["rules"]], [0, 0, 0])


if __name__ == "__main__":
    live.main(sandbox_required=True)
