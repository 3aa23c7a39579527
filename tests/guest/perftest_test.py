#!/usr/bin/env python3
"""Stock ib_send_bw and ib_write_bw of Debian's perftest, over the soft-RoCE of Debian's kernel, against `weir run` as their server.

The guest has two networks: the messages go to a port of weir's (net_af_packet on a TAP), the exchange of queue pairs to the
kernel here. usage: perftest_test.py WEIR
"""

import json
import shutil
import struct
import subprocess
import tempfile

import guest
import live

SETUP = """
modprobe virtio_net; modprobe rdma_rxe; modprobe sch_netem
interface eth0 10.1.0.10/24
interface eth1 10.2.0.10/24
rdma link add rxe0 type rxe netdev eth0 || fail "no soft-RoCE"
for i in 0 1 2 3; do
    [ "$(cat /sys/class/infiniband/rxe0/ports/1/gids/$i)" = 0000:0000:0000:0000:0000:ffff:0a01:000a ] && echo $i >/tmp/gid
done
[ -e /tmp/gid ] || fail "no GID with the IPv4 address"
bw() { # bw PROGRAM OPTION...: one measurement against weir
    program=$1; shift
    timeout 240 $program -F -d rxe0 -x $(cat /tmp/gid) "$@" 10.2.0.1
}
"""

CONFIG = """name = "perftest"
[[port]]
name = "det0"
device = "net_af_packet0,iface=det0"
profile = "{profile}"
address = "10.1.0.2/24"

[[stream]]
port = "det0"
transport = "roce"
service = "{service}"
qp = {qp}
format = "{format}"
event = "{event}"
max_message_bytes = "1MiB"
exchange = "perftest"
{more}

[events]
sources = {sources}
memory = "256MiB"
timeout_ms = 30000  # an emulated sender that repeats what was lost may take long, beside compilers

[[sink]]
kind = "events"
path = "unused"
{reduce}
[lcores]
idle = "sleep"
"""


class Perftest(live.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="weir-guest-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        shutil.copy(live.Weir.program, cls.shared)
        networks = guest.tap("det0", "n0") + guest.tap("mgmt0", "n1", "10.2.0.1/24")
        cls.client = guest.Shell(cls.shared, SETUP, *networks, *guest.nic("virtio-net-pci", "10", "n0"),
                                 *guest.nic("virtio-net-pci", "11", "n1"), limit_s=1000)
        cls.addClassCleanup(cls.client.end)
        cls.client.run("cat /sys/class/infiniband/rxe0/ports/1/state | grep ACTIVE")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def weir_as_server(self, service, queue_pairs=1, more="", event="count", format="message", reduce=""):
        config = CONFIG.format(profile=live.ROOT / "pmd-config/net_af_packet.toml", service=service, sources=queue_pairs,
                               qp=[0x11 + i for i in range(queue_pairs)], event=event, more=more, format=format, reduce=reduce)
        run = self.weir(config, "--duration", 200, name=f"run-{service}")
        run.wait_running()
        return run

    def bw(self, program, *options, status=0):
        said = self.client.run("bw " + " ".join(map(str, (program, *options))), status)
        return said

    def finish(self, run):
        run.stop()
        report = run.end()
        self.assert_account(run)
        return report

    def check_events(self, run, count, message_bytes):
        """So many events, all of them whole, none of them twice."""
        inspected = run.inspect()
        self.assertTrue(inspected["verified"])
        events = {(event["epoch"], event["id"]): event for event in inspected["events"]}
        self.assertEqual(len(events), len(inspected["events"]))
        self.assertEqual(len(events), count)
        for event in events.values():
            self.assertTrue(event["complete"])
            self.assertEqual([source["bytes"] for source in event["sources"]], [message_bytes] * len(event["sources"]))

    @staticmethod
    def account_of(run):
        """For the message of a failed check."""
        return f"{run.output}\n{run.errors}\n{run.report['packets']}\n{run.report['events']}\n{run.report.get('roce')}"

    def exchange_of(self, run, **expected):
        account = run.report["exchanges"][0]
        self.assertEqual({key: account[key] for key in expected}, expected)

    def test_reliable_sends_and_writes_of_one_client_after_another(self):
        run = self.weir_as_server("rc")
        for program in ("ib_send_bw", "ib_write_bw", "ib_send_bw"):
            said = self.bw(program, "-c RC -m 4096 -s 65536 -n 20")
            self.assertRegex(said, r"(?m)^ 65536 +20 ")
        self.finish(run)
        self.exchange_of(run, clients=3, ended=3, failed=0, lost=0, queue_pairs=3)
        self.assertEqual(run.report["events"]["complete"], 60, self.account_of(run))
        self.check_events(run, 60, 65536)
        self.assertIn("done", run.errors)

    def test_two_queue_pairs_over_a_network_that_loses_packets(self):
        run = self.weir_as_server("rc", queue_pairs=2)
        self.client.run("tc qdisc add dev eth0 root netem loss 3%")
        try:
            said = self.bw("ib_write_bw", "-c RC -m 1024 -s 20000 -n 25 -q 2")
        finally:
            self.client.run("tc qdisc del dev eth0 root", None)
        self.assertRegex(said, r"(?m)^ 20000 +50 ")
        self.finish(run)
        self.exchange_of(run, clients=1, ended=1, queue_pairs=2)
        self.check_events(run, 25, 20000)
        dropped = run.report["packets"]["dropped"]
        self.assertGreater(dropped["roce.sequence"], 0, "nothing was lost on the way")

    def check_unreliable(self, service, programs, size, count, options):
        """What came is whole or accounted for; nobody sends again."""
        run = self.weir_as_server(service, more=f"message_bytes = {size}")
        for program in programs:
            self.bw(program, f"-c {service.upper()} -s {size} -n {count} {options}")
        self.finish(run)
        self.exchange_of(run, clients=len(programs), ended=len(programs), lost=0, failed=0)
        inspected = run.inspect()
        whole = [event for event in inspected["events"] if event["complete"]]
        self.assertGreater(len(whole), 0)
        self.assertEqual({event["sources"][0]["bytes"] for event in whole}, {size})
        report = run.report
        if not any(report["packets"]["dropped"].values()) and report["wire_loss"] in (0, "unknown"):
            self.assertEqual(len(whole) + sum(report["events"]["incomplete"].values()), len(inspected["events"]))
        if report["packets"]["placed"] == len(programs) * count * -(-size // int(options.split()[1])):
            self.assertEqual(len(whole), len(programs) * count)

    def test_unreliable_connections(self):
        self.check_unreliable("uc", ["ib_send_bw", "ib_write_bw"], 65536, 20, "-m 4096")

    def test_datagrams(self):
        self.check_unreliable("ud", ["ib_send_bw"], 1024, 100, "-m 1024")

    def test_weirs_own_sender_through_soft_roce(self):
        said = self.client.run("need_weir", None)
        if said:
            self.skipTest(said.strip())
        for service in ("rc", "uc"):
            run = self.weir_as_server(service, more="", event="immediate")
            self.client.run(f"weir send --format message --transport verbs-write --service {service} --to verbs:rxe0 --connect 10.2.0.1 "
                            f"--events 20 --bytes 30000 --rate 20 --seed 4 --quiet --report $share/sent.json")
            self.finish(run)
            sent = json.loads((self.client.folder / "sent.json").read_text())
            self.assertEqual(sent["messages"]["posted"], 20)
            self.assertEqual(run.report["events"]["complete"], 20, self.account_of(run))
            self.assertEqual({event["id"] for event in run.inspect()["events"]}, set(range(1, 21)))

    def test_detector_frames_through_soft_roce(self):
        said = self.client.run("need_weir", None)
        if said:
            self.skipTest(said.strip())
        rows = 64
        names = []
        for gain, value in enumerate((2700, 13600, 13600)):
            names.append(self.folder / f"g{gain}.f32")
            names[-1].write_bytes(struct.pack("<f", value) * (512 * 1024))
        reduce = f'[[reduce]]\nkind = "jungfrau"\npedestal = {json.dumps([str(name) for name in names])}\ngain = [41.0, -1.439, -0.1145]\n'
        for service in ("rc", "uc"):
            keys = f'rows = {rows}\nregion = {{ va = 0x10000000, bytes = {48 + 2048 * rows}, rkey = 0x1234, count = 8, backing = "memory" }}'
            run = self.weir_as_server(service, more=keys, event="format", format="jungfrau", reduce=reduce)
            self.client.run(f"weir send --format jungfrau --rows {rows} --transport verbs-write --service {service} --to verbs:rxe0 --connect 10.2.0.1 "
                            f"--events 20 --regions 8 --rate 10 --seed 4 --quiet --report $share/sent.json")
            self.finish(run)
            sent = json.loads((self.client.folder / "sent.json").read_text())
            self.assertEqual(sent["events"]["whole"], 20)
            self.assertEqual(run.report["events"]["complete"], 20, self.account_of(run))
            self.assertEqual({event["id"] for event in run.inspect()["events"]}, set(range(1, 21)))
            reduced = run.report["reduce"][0]
            self.assertEqual((reduced["events"], reduced["missing_pixels"]), (20, 0))

    def test_what_cannot_be_is_refused_and_said(self):
        run = self.weir_as_server("rc")
        self.bw("ib_send_bw", "-c RC -s 4096 -n 5 -q 2", status=None)
        reading = self.bw("ib_read_bw", "-c RC -s 4096 -n 5", status=None)
        self.bw("ib_send_bw", "-c RC -s 4096 -n 5")
        self.finish(run)
        self.exchange_of(run, clients=3, failed=1)
        self.assertIn("no queue pair is free", run.errors)
        self.assertGreater(run.report["packets"]["dropped"]["roce.invalid_request"], 0, reading + self.account_of(run))
        self.check_events(run, 5, 4096)


if __name__ == "__main__":
    guest.main()
