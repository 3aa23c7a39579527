#!/usr/bin/env python3
"""Event building over RDMA: two readout nodes and two builders in one guest, whose parts go over the soft-RoCE of Debian's kernel.

Rates in emulation say nothing. What is tested: that UCX takes the RDMA device, that the events are those of one node that gets all packets,
and that every part is accounted for at both of its ends.
usage: cluster_test.py WEIR
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import guest
import live

NODES = {"ru0": "readout", "ru1": "readout", "bu0": "builder", "bu1": "builder"}
EVENTS = 200
ADDRESS = "10.1.0.1"

# Of soft-RoCE, UCX takes datagrams between processes of one host for somebody else's, and would drop them without a word.
JOB = f"""
modprobe virtio_net; modprobe rdma_rxe
interface eth0 {ADDRESS}/24
rdma link add rxe0 type rxe netdev eth0 || fail "no soft-RoCE"
need_weir
ulimit -l unlimited
export UCX_UD_ETH_DGID_CHECK=n
cp $share/cluster.toml $share/all.pcap /tmp/
cd /tmp
node() {{ # node NAME WORD...: in the background
    local name=$1; shift
    weir "$@" --config cluster.toml --node $name --report $name.json >$name.txt 2>&1 &
    eval $name=$!
}}
end() {{ # end NAME: as it should
    eval wait \\$$1 || {{ cat *.txt; fail "$1"; }}
}}
node bu0 run; node bu1 run
node ru0 replay all.pcap; node ru1 replay all.pcap
for name in ru0 ru1 bu0 bu1; do end $name; done
echo "packets by RDMA: $(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)"
cat *.txt
cp -r bu0 bu1 *.json $share/
"""


def configuration(in_cluster):
    text = 'name = "cluster"\n'
    if in_cluster:
        # Emulated nodes may stand still for long: where a host is busy, they take half a minute to make their RDMA endpoints.
        text += '[cluster]\ntransports = "rc"\n'
        text += "".join(f"{key}_ms = 300000\n" for key in ("silence", "join_wait", "timeout", "leave", "alone"))
        for place, (name, role) in enumerate(NODES.items()):
            text += f'[[node]]\nname = "{name}"\naddress = "{ADDRESS}:{7471 + place}"\nrole = "{role}"\n'
    text += '[[port]]\nname = "det0"\ndevice = "net_null0"\n'
    for name, ports in (("ru0", [50001, 50002]), ("ru1", [50003, 50004])):
        text += f'[[stream]]\nport = "det0"\ntransport = "udp"\nudp_dst = {ports}\nformat = "ejfat"\n'
        text += f'node = "{name}"\n' if in_cluster else ""
    text += '[events]\nsources = 4\nmemory = "32MiB"\ntimeout_ms = 5000\n'
    return text + '[[sink]]\nkind = "events"\npath = "{node}"\n[lcores]\nidle = "sleep"\n'.replace("{node}", "{node}" if in_cluster else "one")


class Cluster(live.Case):
    def setUp(self):
        super().setUp()
        self.shared = pathlib.Path(tempfile.mkdtemp(prefix="weir-guest-"))
        self.addCleanup(shutil.rmtree, self.shared, ignore_errors=True)
        shutil.copy(live.Weir.program, self.shared)

    def on_the_host(self, *words):
        return subprocess.run([live.Weir.program, *map(str, words)], cwd=self.shared, check=True, capture_output=True, text=True, timeout=120).stdout

    def events_of(self, *runs):
        """What was found of each event: its digest, and whether it is complete."""
        found = {}
        for run in runs:
            for event in json.loads(self.on_the_host("inspect", run, "--json", "--digest", "sha256"))["events"]:
                self.assertNotIn(event["id"], found, "twice")
                found[event["id"]] = (event["sha256"], event["complete"])
        return found

    def report(self, name):
        return json.loads((self.shared / f"{name}.json").read_text())

    def test_the_events_are_those_of_one_node(self):
        self.on_the_host("send", "--quiet", "--format", "ejfat", "--sources", 4, "--port", 50001, "--bytes", 20000, "--events", EVENTS, "--rate", 500,
                         "--drop", 0.002, "--seed", 3, "--to", "all.pcap")
        for name, in_cluster in (("cluster.toml", True), ("one.toml", False)):
            (self.shared / name).write_text(configuration(in_cluster))
        self.on_the_host("replay", "all.pcap", "--config", "one.toml", "--out", "one")
        network = ["-netdev", "user,id=n0,restrict=on", *guest.nic("virtio-net-pci", "10", "n0")]
        said = guest.Guest(self.shared, JOB, *network, cpus=2, memory=1536, limit_s=1000).wait()

        expected, found = self.events_of("one"), self.events_of("bu0", "bu1")
        self.assertEqual(len(expected), EVENTS)
        self.assertEqual(found, expected)
        self.assertIn(False, [complete for _, complete in expected.values()], "the sender dropped packets")

        reports = {name: self.report(name) for name in NODES}
        for name, report in reports.items():
            self.assertTrue(report["balanced"], name)
        for readout in ("ru0", "ru1"):
            handed = {one["node"]: one["handed_over"] for one in reports[readout]["cluster"]["readout"]["builders"]}
            for builder in ("bu0", "bu1"):
                received = {one["node"]: one["received"] for one in reports[builder]["cluster"]["builder"]["readouts"]}
                self.assertEqual(handed[builder], received[readout], (readout, builder))
                self.assertGreater(received[readout], 0)
        # All of the payload went over the RDMA device, whose packets hold 4096 bytes at most.
        sent = int(re.search(r"(?m)^packets by RDMA: (\d+)$", said)[1])
        self.assertGreater(sent, (self.shared / "all.pcap").stat().st_size // 4096, said)



if __name__ == "__main__":
    live.main(sandbox_required=True)
