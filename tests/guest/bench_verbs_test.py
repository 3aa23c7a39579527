#!/usr/bin/env python3
"""`weir bench` through libibverbs: two guests with the soft-RoCE of Debian's kernel, one wire for packets and one for the rest.

Rates in emulation say nothing. What is tested: that messages come and are put together, and that losses are found where they were made.
usage: bench_verbs_test.py WEIR
"""

import json
import shutil
import tempfile

import guest
import live

SETUP = """
modprobe virtio_net; modprobe rdma_rxe; modprobe sch_netem
interface eth0 10.1.0.{host}/24
interface eth1 10.2.0.{host}/24
# The kernel gives ARP one second when a queue pair is connected: too little on a wire that loses, and for a guest that gets no CPU.
ip neigh replace 10.1.0.{other} lladdr {mac} dev eth0 nud permanent || fail "no neighbour"
rdma link add rxe0 type rxe netdev eth0 || fail "no soft-RoCE"
need_weir
"""
UNRELIABLE = ["verbs-send", "verbs-write"]


class BenchVerbs(live.Case):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.boot("server", 2, "listen")  # which the other one needs
        cls.client = cls.boot("client", 1, "connect")

    @classmethod
    def boot(cls, name, host, how):
        """A guest with one end of each wire."""
        folder = tempfile.mkdtemp(prefix="weir-guest-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copy(live.Weir.program, folder)
        wires = []
        for wire in (0, 1):
            wires += ["-netdev", f"socket,id=n{wire},{how}=127.0.0.1:{47911 + wire}"]
            wires += guest.nic("virtio-net-pci", f"1{2 * host + wire}", f"n{wire}")
        one = guest.Shell(folder, SETUP.format(host=host, other=3 - host, mac=guest.mac(f"1{2 * (3 - host)}")), *wires, name=name, limit_s=1200)
        cls.addClassCleanup(one.end)
        one.run("cat /sys/class/infiniband/rxe0/ports/1/state | grep ACTIVE")
        return one

    @classmethod
    def tearDownClass(cls):
        for one in (cls.client, cls.server):
            one.close()

    def bench(self, *options, server=(), address="10.1.0.2", status=0):
        """The client's results against a server that is started for it."""
        told = " ".join(map(str, server))
        self.server.run(f"weir bench --server --token word --listen 10.2.0.2 {told} >/tmp/server 2>&1 & echo $! >/tmp/pid\n"
                        "until grep -q 'waiting at' /tmp/server; do kill -0 $(cat /tmp/pid) || { cat /tmp/server; exit 1; }; sleep 0.1; done")
        try:
            told = " ".join(map(str, options))
            (self.client.folder / "bench.json").unlink(missing_ok=True)
            self.said = self.client.run(f"weir bench --client 10.2.0.2 --token word --address {address} {told} --json $share/bench.json", status)
        finally:
            self.said_there = self.server.run("kill $(cat /tmp/pid); cat /tmp/server", None)
        return json.loads((self.client.folder / "bench.json").read_text())["results"]

    def at_a_rate(self, *options, **more):
        """So slow that an emulated guest may stop for a while: nothing is given up or sent again for that."""
        return self.bench("--at", "20pps", "--seconds", 2, *options, **more)

    def whole(self, count, *options):
        """So many results, each of a trial that lost nothing. An emulated guest that gets no CPU for long enough ends a trial too early or
        gives a message up, and its clock may be wrong by a factor: what lost something is done again, as often as five times."""
        found = {}
        for _ in range(5):
            for result in self.at_a_rate(*options):
                self.trial_of(result)
                key = tuple(result[name] for name in ("transport", "depth", "bytes", "addresses"))
                if key not in found or any(found[key]["trials"][0]["lost"].values()):
                    found[key] = result
            if not any(any(result["trials"][0]["lost"].values()) for result in found.values()):
                break
        self.assertEqual(len(found), count)
        return found.values()

    def trial_of(self, result):
        self.assertEqual(result["not_available"], "", self.said_there)
        self.assertEqual(result["sender"], "verbs")
        trial = result["trials"][0]
        self.assertGreater(trial["sent"], 0)
        whole = trial["received"] if trial["assembled"] is None else trial["assembled"]
        self.assertEqual(sum(trial["lost"].values()), trial["sent"] - whole, trial)
        return trial

    def test_every_message_comes_and_is_counted(self):
        for result in self.whole(12, "--transport", "verbs-send,verbs-write,verbs-write-rc", "--depth", "receive,assemble", "--bytes", "2048,8240",
                                 "--message-bytes", 20000):
            with self.subTest(transport=result["transport"], depth=result["depth"], bytes=result["bytes"]):
                trial = self.trial_of(result)
                self.assertEqual(trial["received"], trial["sent"], trial)
                self.assertEqual(trial["damaged"], 0, trial)
                # Nothing keeps an unreliable connection from giving out what comes twice. The device has counted it then, too.
                twice = trial["duplicates"] if trial["arrived"] is not None else 0
                self.assertEqual(trial["duplicates"], twice, trial)
                if result["depth"] == "assemble":
                    self.assertEqual(trial["assembled"], trial["sent"], trial)
                    self.assertEqual(trial["messages"] * result["packets_per_message"], trial["sent"])
                self.assertIn(trial["on_wire"] - trial["sent"], (0, twice), trial)
                if result["transport"] in UNRELIABLE and result["bytes"] == 2048:  # a packet for each message, which soft-RoCE counts
                    self.assertEqual((trial["arrived"], trial["device_dropped"]), (trial["sent"] + twice, 0), trial)
                else:
                    self.assertEqual((trial["arrived"], trial["device_dropped"]), (None, None))

    def test_writes_go_to_as_many_places_as_are_asked_for(self):
        for result in self.whole(4, "--transport", "verbs-send,verbs-write", "--bytes", 1000, "--addresses", "1,20000"):
            trial = self.trial_of(result)
            self.assertEqual(trial["received"], trial["sent"], result)

    def test_what_a_wire_loses_is_lost_without_a_connection_that_repeats(self):
        self.client.run("tc qdisc add dev eth0 root netem loss 20%")
        try:
            results = self.at_a_rate("--transport", "verbs-send,verbs-write,verbs-write-rc", "--bytes", 2048)
        finally:
            self.client.run("tc qdisc del dev eth0 root", None)
        for result in results:
            with self.subTest(transport=result["transport"]):
                trial = self.trial_of(result)
                lost = trial["lost"]
                if result["transport"] in UNRELIABLE:
                    self.assertGreater(lost["wire"], 0, trial)
                    self.assertEqual(trial["on_wire"], trial["sent"])
                    self.assertEqual(lost["wire"], trial["sent"] - trial["arrived"])
                    self.assertEqual(lost["application"] + lost["kernel"], 0)
                else:
                    self.assertEqual(sum(lost.values()), 0, trial)

    def test_what_the_program_loses_is_the_programs(self):
        live.repeated(lambda _: self.lose_in_the_program())

    def lose_in_the_program(self):
        results = self.at_a_rate("--transport", "verbs-send,verbs-write", "--bytes", 2048, server=("--receiver-fault", "loss=0.3"))
        for trial in map(self.trial_of, results):
            if trial["lost"]["device"] > 0 and not trial["valid"]:
                raise live.Disturbed(f"the device lost some as well: {trial['why']}")
        for trial in map(self.trial_of, results):
            self.assertGreater(trial["lost"]["application"], 0)
            self.assertEqual(trial["lost"]["application"], sum(trial["lost"].values()), trial)

    def test_messages_that_nobody_has_asked_for_are_lost_in_the_device(self):
        # A receiver that takes next to nothing has all of its requests answered soon.
        result, = self.bench("--transport", "verbs-send", "--bytes", 200, "--at", "3000pps", "--seconds", 4, server=("--receiver-fault", "rate=20"))
        trial = self.trial_of(result)
        self.assertGreater(trial["lost"]["device"], 0, trial)

    def test_a_search_ends(self):
        result, = self.bench("--transport", "verbs-write", "--bytes", 1000, "--most", "200pps", "--search-seconds", 5)
        self.trial_of(result)
        self.assertGreater(result["ceiling_gbps"], 0)

    def test_what_is_missing_is_said(self):
        result, = self.at_a_rate("--transport", "verbs-raw", "--bytes", 1000)
        self.assertRegex(result["not_available"], "RDMA device 'rxe0' gives no raw packet queue pair: ")
        for result in self.at_a_rate("--transport", "verbs-send,verbs-write", "--bytes", 1000, address="10.2.0.2"):
            self.assertEqual(result["not_available"], "no RDMA device has the address 10.2.0.2; there are: rxe0")


if __name__ == "__main__":
    guest.main()
