#!/usr/bin/env python3
"""Every command that README, docs/ and the comments of examples/ show is run, in the order of the page, in a folder that looks like a
fresh checkout, in namespaces of its own. What cannot be run here is in NOT_RUN, with the reason.

`weir run` without an end stays until the page goes on to something else; a sender without an end sends for a while. Both are then
ended as Ctrl-C does, and a run must have a complete event. usage: documented_test.py WEIR
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import documented
import live

sys.path.insert(0, str(live.ROOT / "tests" / "end_to_end"))

import mfp_packets  # noqa: E402
import packets  # noqa: E402

# (page, command, why it cannot be run here)
NOT_RUN = [
    ("docs/guides/REPLAY_ONTO_A_WIRE.md", r"chrt", "needs the right to real-time priorities; the same command without it is run"),
    ("README.md", r"scripts/test", "all tests, this one too"),
    ("README.md", r"meson (setup|test)", "builds everything; scripts/test does the same"),
    ("README.md", r"apt |systemctl|weir probe yesterday|weir doctor --config /etc", "changes the machine; tests/guest/install_test.py does it on a bare Debian"),
    ("docs/guides/APPLIANCE.md", r"meson|systemctl|systemd-|weir-setup", "changes the machine; appliance_setup_test.py does it on trees that stand for one"),
    ("docs/guides/INSTALL.md", r"apt |pip |meson|ninja|scripts/(install-deps|package|site)",
     "installs on this machine; package_test.py does it in a root of its own, site_test.py and pip's test the others"),
    ("docs/reference/formats/ejfat.md", r"weir run|kill", "needs a load balancer of EJFAT's, and E2SAR's tools"),
    ("docs/internals/GUEST.md", r"scripts/test|meson|ninja", "the tests in a guest, which scripts/test runs"),
    ("docs/guides/IMAGE.md", r"(sudo )?(scripts/(package|make-image)|dd) ", "makes and writes a disk; appliance_test.py does it for a machine in QEMU"),
    ("docs/guides/DEVICES.md", r"devlink", "a setting of a physical card"),
    ("docs/guides/LCORES.md", r"echo .*/hugepages-2048kB/", "changes the machine, and needs a second NUMA node"),
    ("docs/reference/PROGRESS.md", r"dpdk-telemetry", "a program of DPDK's that waits for a terminal; telemetry_test.py has the protocol"),
    ("docs/guides/PERFTEST.md", r"ib_write_bw", "needs an RDMA device; the guest suite runs it against soft-RoCE"),
    ("docs/guides/BENCH.md", r"weir bench --(server|client)", "two hosts; bench_test.py makes them"),
    ("docs/guides/SERVE.md", r"systemctl", "changes the machine; serve_test.py has the protocol of the service manager"),
    ("docs/guides/TOP.md", r"weir top(?!.*--once)", "waits for a terminal, or asks another host; top_test.py has both"),
    ("README.md", r"weir top", "waits for a terminal or for many nodes; top_test.py and cluster_serve_test.py have them"),
    ("docs/guides/WATCHING.md", r"ssh", "needs another host"),
    ("docs/guides/STREAMING.md", r"weir receive", "needs another host; stream_test.py has one"),
    ("docs/guides/CLUSTER.md", r"weir (run|replay|serve|ctl|top|export)|systemctl", "needs many nodes; cluster_test.py, cluster_serve_test.py and cluster_start_test.py have them"),
    ("README.md", r"weir (serve .*--node|ctl --cluster|inspect /data)", "needs many nodes; cluster_serve_test.py has them"),
    ("docs/guides/INSPECT.md", r"weir inspect folder", "needs the runs of many nodes; cluster_test.py and scripts/cluster-demo make them"),
    ("docs/guides/EXPORT.md", r"weir export .*--virtual", "needs the HDF5 files of many nodes; cluster_test.py has them"),
    ("docs/reference/HDF5.md", r"weir export .*--virtual", "likewise"),
    ("docs/guides/SOAK.md", r"scripts/soak --minutes 60 --out", "an hour; soak_test.py has a minute of it"),
    ("docs/guides/BENCH.md", r"rdma link add", "needs soft-RoCE in the kernel; the guest suite makes one"),
    ("examples/live-perftest.toml", r"ib_write_bw", "needs an RDMA device; the guest suite runs it against soft-RoCE"),
]
# Programs that change the machine: never run, so each command of them needs an entry above.
NEVER = {"apt", "apt-get", "dpkg", "systemctl", "journalctl", "reboot", "poweroff", "shutdown", "dd", "mount", "umount", "parted", "update-grub",
         "hostnamectl", "timedatectl", "useradd", "scripts/appliance-setup", "weir-setup", "scripts/make-image", "scripts/package"}
# Pages whose networks are those that NETWORK makes first.
NETWORK = "docs/start/LIVE_ON_ONE_MACHINE.md"
ON_THE_VETH = {"examples/live-af-packet.toml", "examples/live-af-xdp.toml", "examples/live-perftest.toml", "examples/live-roce-rc.toml",
               "examples/flow-rules.toml"}
# Pages that take a weir for granted which can be asked.
ASKED = {"docs/guides/TOP.md", "docs/reference/WATCH_API.md"}
SEND_S = 5  # how long a sender without an end sends where no run writes
TREE = ("README.md", "docs", "examples", "formats", "flows", "pmd-config", "scripts", "systemd", "python")

EJFAT = """[[port]]
name = "det0"
device = "{device}"
[[stream]]
port = "det0"
transport = "{transport}"
{stream}
[events]
sources = 2
memory = "256MiB"
timeout_ms = 5000
[[sink]]
kind = "events"
path = "runs/{{name}}-{{run:06}}"
{more}
[lcores]
idle = "sleep"
"""
UDP = 'udp_dst = [19522, 19523]\nformat = "ejfat"'


class Documented(unittest.TestCase):
    def setUp(self):
        if not os.environ.get("WEIR_LIVE_SANDBOX"):
            self.skipTest("needs namespaces")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-documented-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in TREE:
            source = live.ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, self.folder / name)
        (self.folder / "bin").mkdir()
        shutil.copy(live.Weir.program, self.folder / "bin" / "weir")
        # For scripts/demo: a build that is finished.
        (self.folder / "build" / "app").mkdir(parents=True)
        (self.folder / "build" / "app" / "weir").symlink_to(self.folder / "bin" / "weir")
        (self.folder / "build" / "build.ninja").write_text("build app/weir: phony\n")
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        self.environment.pop("XDG_RUNTIME_DIR", None)  # sockets are in /run/weir then, as for a system's services
        # /tmp and /run are the page's own, so that names in them are free.
        (self.folder / "tmp").mkdir()
        subprocess.run(["mount", "--bind", self.folder / "tmp", "/tmp"], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", "/tmp"])
        self.run_now = None

    def shell(self, text, timeout_s=3 * live.PATIENCE_S):
        """Runs it; an endless sender is ended as Ctrl-C does. The exit status, and what was said."""
        endless = "weir send" in text and not re.search(r"--(events|duration)\b", text)
        process = subprocess.Popen(["bash", "-c", f"exec {text}" if endless else text], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        if endless:
            self.let_send(process)
            process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + f"\n(did not end within {timeout_s} s)"
        return process.returncode, said

    def measured(self, text):
        status, said = self.shell(text)
        if status != 0 and live.NOT_HEARD in said:
            raise live.Disturbed(said)
        return status, said

    def let_send(self, process):
        """Until the page's run has written something; there may be none."""
        before = self.written()
        if self.run_now is None or self.run_now.poll() is not None or self.serves:
            time.sleep(SEND_S)
            return
        live.wait_for(lambda: self.written() >= before + (1 << 20) or process.poll() is not None or self.run_now.poll() is not None, "events of the page's run")

    def written(self):
        """Bytes of the runs that are being written."""
        folders = [*self.folder.glob("runs/.*.part"), *self.folder.glob("tmp/.*.part")]
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*") if file.exists())

    def start(self, text):
        """`weir run` or `weir serve` in the background; waits until it takes packets or commands, or has failed."""
        self.serves = text.startswith("weir serve")
        self.run_said = open(self.folder / "said", "w+")
        self.run_now = subprocess.Popen(["bash", "-c", f"exec {text}"], cwd=self.folder, env=self.environment, stdout=self.run_said,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(self.run_now.kill)
        live.wait_for(lambda: self.run_now.poll() is not None or re.search("(?m)^(running|serving)", self.said()), "line that says running")

    def said(self):
        return (self.folder / "said").read_text()

    def finish(self):
        """Ends the run that a page started, and looks whether it came to something. What is wrong, or nothing."""
        run, self.run_now = self.run_now, None
        if run is None:
            return ""
        if run.poll() is None:
            self.let_take(run)
            run.send_signal(signal.SIGINT)
        try:
            run.wait(live.PATIENCE_S)
        except subprocess.TimeoutExpired:
            run.kill()
            return "weir run did not end\n" + self.said()
        self.run_said.close()
        said = self.said()
        if run.returncode != 0:
            return f"weir run: exit status {run.returncode}\n{said}"
        if self.serves:
            return ""
        written = re.search(r"(?m)^written to (\S+)", said)
        if not written:
            return f"weir run says not where the events are\n{said}"
        _, inspected = self.shell(f"weir inspect {written[1]} --json")
        if not any(event["complete"] for event in json.loads(inspected)["events"]):
            return f"weir run: no event is complete\n{said}"
        return ""

    def let_take(self, run):
        """Until it has written an event, if it is one that writes."""
        events = lambda: [event for folder in (*self.folder.glob("runs/.*.part"), *self.folder.glob("tmp/.*.part")) for event in live.whole_events_in(folder)]
        if not self.serves:
            live.wait_for(lambda: run.poll() is not None or events(), "event of the page's run")

    def run_page(self, page, commands):
        problems = []
        for command in commands:
            if any(page == where and re.match(pattern, command.text) for where, pattern, _ in NOT_RUN):
                continue
            if command.text.removeprefix("sudo ").split()[0] in NEVER:
                problems.append(f"{command}: changes the machine; NOT_RUN must say why it is not run, and what runs it instead")
                continue
            background = command.text.startswith(("weir run", "weir serve")) and not re.search(r"--(idle-exit|duration|print-config)", command.text)
            problem = self.finish() if background else ""
            if problem:
                problems.append(f"{page}: before line {command.line}: {problem}")
            text = self.prepare(page, command.text)
            if background:
                self.start(text)
                if self.run_now.poll() is not None and self.run_now.returncode != 0:
                    problems.append(f"{command}: exit status {self.run_now.returncode}\n{self.said()[-1500:]}")
                    self.run_now = None
            else:
                status, said = live.repeated(lambda _: self.measured(text))
                if status != 0:
                    problems.append(f"{command}: exit status {status}\n{said[-1500:]}")
        problem = self.finish()
        if problem:
            problems.append(f"{page}: at its end: {problem}")
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    # What a page takes for granted.

    def prepare(self, page, text):
        """The command, with the page's placeholders filled in."""
        if page in ("docs/guides/INSPECT.md", "docs/guides/EXPORT.md", "docs/reference/reduce/mfp.md") and "run7" in text:
            (self.make_blocks if "mdf" in text else self.make_images)()
        if page == "docs/reference/PROGRESS.md" and "--config F" in text:
            (self.folder / "det.toml").write_text(EJFAT.format(device="sim,format=ejfat,rate=100,events=50", transport="udp", stream=UDP, more=""))
            return text.replace("--config F", "--config det.toml")
        if page == "docs/guides/SERVE.md":
            self.make_detector()
        if page == "docs/guides/DOCTOR.md":
            (self.folder / "det.toml").write_text(EJFAT.format(device="sim,format=ejfat,rate=100,events=50", transport="udp", stream=UDP, more=""))
            (self.folder / "runs").mkdir(exist_ok=True)
        if text.startswith("weir bench --loopback") and "--at " not in text:
            # One rate and one transport: what a search finds is for bench_test.py.
            return text + " --at 2kpps --seconds 0.1" + ("" if "--transport" in text else " --transport packet-mmap --bytes 2000")
        if page == "README.md" and "detector.toml" in text:
            block = next(block for block in re.findall(r"```toml\n(.*?)```", (self.folder / "README.md").read_text(), re.S) if "[[port]]" in block)
            block, devices = re.subn(r'device = "[0-9a-f:.]+"', 'device = "sim,format=jungfrau,events=20,rate=20"', block)
            self.assertEqual(devices, 1, "README.md: the configuration has a PCI device")
            (self.folder / "detector.toml").write_text(block.replace('"/data/', '"data/'))
            (self.folder / "data").mkdir(exist_ok=True)
        return text

    def make_detector(self):
        """det.toml: a detector that sends for ever."""
        (self.folder / "runs").mkdir(exist_ok=True)
        (self.folder / "det.toml").write_text('name = "det"\n' + EJFAT.format(device="sim,format=ejfat,rate=100", transport="udp", stream=UDP, more=""))

    def make_images(self):
        """run7 for INSPECT.md and EXPORT.md: JUNGFRAU, two modules, events 1 to 4 and 100 to 101."""
        shutil.rmtree(self.folder / "run7", ignore_errors=True)
        for name, options in (("a", "--events 4 --drop 0.001"), ("b", "--events 2 --first-event 100")):
            (self.folder / f"{name}.pcap").unlink(missing_ok=True)
            self.must(f"weir send --sources 2 {options} --to {name}.pcap --quiet")
        self.must("weir replay a.pcap b.pcap --config examples/jungfrau-2-modules.toml --out run7 --quiet")

    def make_blocks(self):
        """run7 as the reducer mfp leaves it."""
        shutil.rmtree(self.folder / "run7", ignore_errors=True)
        message = mfp_packets.block(1000, [(1, b"abc"), (2, b"defg")])
        frames = [packets.udp(packets.ejfat(1000, message, 0, len(message)), packets.EJFAT_PORT + source) for source in range(2)]
        (self.folder / "mfp.pcap").write_bytes(packets.pcap_bytes(packets.stamped(frames)))
        (self.folder / "mfp.toml").write_text(EJFAT.format(device="net_null0", transport="udp", stream=UDP, more='[[reduce]]\nkind = "mfp"\n'))
        self.must("weir replay mfp.pcap --config mfp.toml --out run7 --quiet")

    def make_network(self):
        """The two namespaces of NETWORK, by its own commands."""
        for command in documented.in_tree(self.folder)[NETWORK]:
            if re.match(r"(ip (?!netns exec)|ethtool|ip netns exec sender ethtool)", command.text):
                self.must(command.text)

    def make_responder(self):
        """The other end of docs/guides/SEND_RELIABLE.md's reliable connections."""
        stream = ('service = "rc"\nformat = "message"\nevent = "immediate"\nqp = [0x11, 0x12]\npeer = [{ qp = 0x11 }, { qp = 0x12 }]\n'
                  'region = { va = 0x10000000, bytes = "16MiB", rkey = 0x1234, count = 2, stride = 0x10000000 }')
        text = EJFAT.format(device="net_memif0,socket=/run/weir.sock,socket-abstract=no", transport="roce", stream=stream, more="")
        text = text.replace('\n[[stream]]', f'\nprofile = "{self.folder}/pmd-config/net_memif.toml"\naddress = "10.1.0.2/24"\n[[stream]]', 1)
        (self.folder / "responder.toml").write_text(text)
        self.start("weir run --config responder.toml")

    def must(self, text):
        status, said = self.shell(text)
        self.assertEqual(status, 0, f"{text}\n{said}")


def test_of(page, commands):
    def test(self):
        if page in ON_THE_VETH:
            self.make_network()
        if page in ON_THE_VETH | {NETWORK}:
            self.addCleanup(subprocess.run, "ip netns delete sender; ip link delete det0", shell=True, stderr=subprocess.DEVNULL)
        if page == "docs/guides/SEND_RELIABLE.md":
            self.make_responder()
        if page in ASKED:
            self.make_detector()
            self.start("weir serve --config det.toml")
        self.run_page(page, commands)
    return test


for its_page, its_commands in documented.in_tree(live.ROOT).items():
    setattr(Documented, "test_" + re.sub(r"\W", "_", its_page), test_of(its_page, its_commands))


class Mentioned(unittest.TestCase):
    def help_of(self, command):
        done = subprocess.run([live.Weir.program, command, "--help"], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def commands(self):
        """All that weir has, by its own help."""
        text = subprocess.run([live.Weir.program, "--help"], check=True, capture_output=True, text=True).stdout
        listed = text.split("usage: weir COMMAND")[1].split("--version")[0]
        return [name for name in re.findall(r"(?m)^  ([a-z]+) ", listed) if name != "help"]

    def test_what_is_mentioned_has_the_options_that_are_mentioned(self):
        found = []
        pages = {str(file.relative_to(live.ROOT)): file.read_text() for file in (live.ROOT / "README.md", *sorted((live.ROOT / "docs").rglob("*.md")))}
        commands = [command for page, text in pages.items() for command in documented.mentioned(page, text)]
        helps = {name: self.help_of(name) for name in self.commands()}
        for name, text in helps.items():
            commands += documented.of_help(f"weir {name} --help", text)
        self.assertGreater(len(commands), 60)
        for command in commands:
            if command.text.startswith("scripts/"):
                found += self.wrong_in_script(command)
                continue
            name = command.text.split()[1]
            if name not in helps:
                found.append(f"{command}: there is no command {name}")
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", command.text):
                if not re.search(rf"{option}(?![\w-])", re.split(r"(?m)^examples?:", helps[name])[0]) and option != "--help":
                    found.append(f"{command}: weir {name} has no {option}")
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def wrong_in_script(self, command):
        """A script says itself, in its first comment or in its code, which words and options it takes."""
        program, *words = command.text.replace("\\|", " ").split()
        file = live.ROOT / program
        if not file.exists():
            return [f"{command}: there is no {program}"]
        text = file.read_text()
        if program == "scripts/bench":  # passes options on to the programs that it builds
            text += "".join(source.read_text() for source in sorted((live.ROOT / "bench").rglob("*.[ch]pp")))
        words = [word.strip("[],.") for word in words if word != "--"]
        wanted = [word for at, word in enumerate(words) if re.fullmatch(r"--[a-z][a-z-]*", word) or (at == 0 and re.fullmatch(r"[a-z][a-z-]+", word))]
        return [f"{command}: {program} has no {word}" for word in wanted if not re.search(rf"(?<![\w-]){word}(?![\w-])", text)]

    def test_every_command_can_be_seen(self):
        """Commands are looked for in indented blocks and in those that say sh: a block of another kind must not have any."""
        hidden = [f"{page}:{line}: {text}" for page, line, text in documented.commands_in_other_blocks(live.ROOT)]
        self.assertEqual(hidden, [], "\n".join(hidden))

    def test_nothing_is_left_out_for_nothing(self):
        tree = documented.in_tree(live.ROOT)
        for page, pattern, _ in NOT_RUN:
            self.assertTrue(any(re.match(pattern, command.text) for command in tree.get(page, ())), f"{page} has no command {pattern}")


if __name__ == "__main__":
    live.main()
