"""What the tests in a guest share: a small Debian in QEMU (scripts/guest), jobs for it, and what they leave behind.

A job is a shell script. It finds `weir` in its path, and its folder is the test's own, so files are results. Each test program
runs in namespaces of its own, as the live tests do: no guest, interface or process outlives it. Where there is no QEMU, or
no package for the guest, the test is skipped: exit status 77, with the reason printed.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))

import live  # noqa: E402

SCRIPT = ROOT / "scripts" / "guest"

# What every job begins with. `share` is the job's folder as the guest sees it.
PROLOGUE = """set -u
share=/share
cp $share/weir /usr/bin/weir 2>/dev/null || { mkdir -p /tmp/bin; cp $share/weir /tmp/bin/weir; PATH=/tmp/bin:$PATH; }
fail() { echo "FAILED: $*"; exit 1; }
emulated() { # emulated STATUS: ends the job if weir ended so because of an instruction that QEMU does not have
    [ $1 -ne 132 ] || { echo "this weir is built for instructions that QEMU does not emulate: -Dmarch=x86-64-v3"; exit 77; }
}
need_weir() { # ends the job where weir cannot run in the guest; --version alone is no proof
    rm -f /tmp/probe.pcap
    weir send --format message --events 1 --quiet --to /tmp/probe.pcap
    emulated $?
}
wait_for() { # wait_for SECONDS COMMAND...: until the command succeeds
    local n=$(($1 * 10)); shift
    while ! "$@" >/dev/null 2>&1; do n=$((n - 1)); [ $n -gt 0 ] || return 1; busybox usleep 100000; done
}
start_run() { # start_run OPTION...: weir run in the background; its messages go to /tmp/errors
    weir run --config $share/config.toml --out /tmp/run --report $share/report.json "$@" 2>/tmp/errors &
    run=$!
    wait_for 300 sh -c "grep -q ^running /tmp/errors || ! kill -0 $run"
    grep -q ^running /tmp/errors || { wait $run; emulated $?; cat /tmp/errors; fail "weir run did not get going"; }
}
end_run() { # waits for its end
    wait $run || { cat /tmp/errors; fail "weir run"; }
    cat /tmp/errors
    weir inspect /tmp/run --json --digest sha256 >$share/inspect.json || fail "weir inspect"
}
hugepages() { # hugepages MIB
    echo $(($1 / 2)) >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
    mount -t hugetlbfs none /dev/hugepages
}
interface() { # interface NAME ADDRESS: up, jumbo frames, no offloads
    wait_for 60 test -d /sys/class/net/$1 || fail "there is no $1"
    ip link set $1 mtu 9000 up; ip address add $2 dev $1
    ethtool -K $1 tx off tso off gso off gro off >/dev/null 2>&1
}
"""


class Guest:
    """One guest at work. `wait` returns what the job printed."""

    def __init__(self, folder, job, *qemu, name="job", cpus=1, memory=768, append="", limit_s=600):
        self.folder, self.name, self.limit_s = pathlib.Path(folder), name, limit_s
        script = self.folder / f"{name}.sh"
        script.write_text(PROLOGUE + job)
        self.process = subprocess.Popen(
            [str(SCRIPT), "run", "--name", name, "--cpus", str(cpus), "--memory", str(memory), "--append", append, "--timeout",
             str(limit_s), str(script), "--", *qemu], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)

    def wait(self, status=0):
        said, _ = self.process.communicate(timeout=self.limit_s + 30)
        log = self.folder / f"{self.name}.log"
        text = log.read_text(errors="replace") if log.exists() else "(no output)"
        if self.process.returncode == live.SKIPPED:
            raise unittest.SkipTest(text.strip().splitlines()[-1])
        if self.process.returncode != status:
            raise AssertionError(f"the guest's job ended with {self.process.returncode}, not {status}\n{said}\n{text}")
        return text

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Commands:
    """What a guest is told to do while it runs, by files in the folder that it shares. What mixes this in has `folder` and `process`."""

    LOOP = """
n=1
while [ -e $share/begun.$n ]; do n=$((n + 1)); done # one that was rebooted goes on
while :; do
    while [ ! -e $share/do.$n ]; do sleep 0.05; done
    [ -s $share/do.$n ] || exit 0
    : >$share/begun.$n
    (. $share/do.$n) >$share/said.$n 2>&1
    echo $? >$share/status.new; mv $share/status.new $share/status.$n
    n=$((n + 1))
done
"""
    count = 0

    def give(self, text):
        self.count += 1
        new = self.folder / "do.new"
        new.write_text(text)
        new.rename(self.folder / f"do.{self.count}")

    def run(self, commands, status=0, limit_s=400):
        """What the commands printed; their exit status must be this."""
        self.give(commands + "\n")
        ended = self.folder / f"status.{self.count}"
        live.wait_for(lambda: ended.exists() or self.process.poll() is not None, f"end of: {commands}", limit_s)
        if not ended.exists():
            self.wait()
            raise AssertionError("the guest has ended")
        said = (self.folder / f"said.{self.count}").read_text(errors="replace")
        if status is not None and int(ended.read_text()) != status:
            raise AssertionError(f"{commands}\nended with {ended.read_text().strip()}, not {status}\n{said}")
        return said


class Shell(Commands, Guest):
    """A guest that waits for what to do next, so that several tests share one boot."""

    def __init__(self, folder, setup, *qemu, **more):
        super().__init__(folder, setup + self.LOOP, *qemu, **more)

    def close(self):
        """Power off, in order."""
        if self.process.poll() is None:
            self.give("")
            self.wait()


# For the kernel of a machine that is emulated: no time for what protects it from others, and no giving up where a busy host lets it
# see no tick of a timer for too long.
EMULATED = "mitigations=off tsc=reliable no_timer_check"


class Machine:
    """A machine that starts like a real one: firmware, boot loader, a disk that keeps what is written. All that it says comes over its
    serial console. Power can be cut at any time."""

    def __init__(self, folder, *qemu, name="machine", cpus=2, memory=1536):
        self.folder = pathlib.Path(folder)
        self.console = self.folder / f"{name}.console"
        self.monitor = self.folder / f"{name}.monitor"
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", str(cpus),
             "-m", str(memory), "-nodefaults", "-vga", "none", "-display", "none", "-serial", f"file:{self.console}", "-monitor",
             f"unix:{self.monitor},server=on,wait=off", *map(str, qemu)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def said(self):
        """Without what steers a terminal: results are written as XML, which has no place for it."""
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return re.sub(r"\x1b\[[0-9;=?]*[A-Za-z]|[^\t\n -~]", "", text)

    def wait_for(self, pattern, limit_s, after=0):
        """Until the console has said that, from character `after` on; returns the match."""
        end = time.monotonic() + limit_s
        while True:
            ended = self.process.poll() is not None
            found = re.compile(pattern).search(self.said(), after)
            if found:
                return found
            if ended or time.monotonic() > end:
                what = f"the machine ended: {self.process.stdout.read()}" if ended else f"not within {limit_s} s"
                raise AssertionError(f"{pattern!r}: {what}\n{self.said()[-6000:]}")
            time.sleep(0.1)

    def seconds(self):
        return time.monotonic() - self.started

    def cut_power(self):
        """At once, whatever it is doing. What it handed to its disk is there: the host lives on, with its page cache."""
        self.process.kill()
        self.end()

    def press_power_button(self):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.monitor))
            monitor.settimeout(30)
            monitor.sendall(b"system_powerdown\n")
            said = b""
            while not said.endswith(b"system_powerdown\x1b[K\r\n(qemu) "):  # a connection that ends takes the rest of the line with it
                said += monitor.recv(4096)

    def wait_off(self, limit_s):
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it is still on after {limit_s} s\n{self.said()[-6000:]}") from None

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Case(live.Case):
    """A folder per test, which its guests see as /share."""

    def setUp(self):
        super().setUp()
        shutil.copy(live.Weir.program, self.folder / "weir")

    def guest(self, job, *qemu, **more):
        guest = Guest(self.folder, job, *qemu, **more)
        self.addCleanup(guest.end)
        return guest

    def load(self, name):
        return json.loads((self.folder / name).read_text())

    def assert_balanced(self, report):
        packets = report["packets"]
        self.assertIs(report["balanced"], True)
        self.assertEqual(packets["in_flight"], 0)
        parts = sum(packets["dropped"].values()) + sum(packets["not_for_us"].values())
        self.assertEqual(packets["received"], packets["placed"] + packets["control"] + packets["unsteered"] + parts)


def mac(place):
    return f"52:54:00:00:77:{place}"


def nic(model, place, identity, options=""):
    """QEMU arguments of a NIC at PCI address 00:PLACE.0 (hexadecimal) on the network `identity`."""
    return ["-device", f"{model},netdev={identity},addr=0x{place},romfile=,mac={mac(place)}{options}"]


def tap(name, identity, address=None):
    """Makes a TAP interface, jumbo frames, no offloads; QEMU arguments of the network behind it."""
    ip = lambda *words: subprocess.run(["ip", *words], check=True)
    ip("tuntap", "add", "dev", name, "mode", "tap")
    ip("link", "set", name, "mtu", "9000", "up")
    if address is not None:
        ip("address", "add", address, "dev", name)
    subprocess.run(["ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return ["-netdev", f"tap,id={identity},ifname={name},script=no,downscript=no,vnet_hdr=off"]


def hub(*identities):
    """QEMU arguments of networks that are one wire within the guest."""
    return [word for identity in identities for word in ("-netdev", f"hubport,id={identity},hubid=0")]


BUILD = pathlib.Path(sys.argv[1]).resolve().parent.parent if len(sys.argv) > 1 else ROOT / "build"
PACKAGES = BUILD / "guest-packages"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weir-guest"


def make_package():
    """weir's package of the build that is tested, unless it is there and nothing in it is newer."""
    if os.environ.get("WEIR_PACKAGE"):
        return
    for tool in ("dpkg-buildpackage", "dh"):
        if shutil.which(tool) is None:
            print(f"skipped: there is no program '{tool}' (scripts/install-deps --package installs it)")
            sys.exit(live.SKIPPED)
    parts = [pathlib.Path(sys.argv[1]), *(ROOT / "debian").iterdir(), *(ROOT / "systemd").iterdir(), ROOT / "scripts" / "appliance-setup"]
    made = list(PACKAGES.glob("weir_*.deb"))
    if made and min(path.stat().st_mtime for path in made) > max(path.stat().st_mtime for path in parts):
        return
    shutil.rmtree(PACKAGES, ignore_errors=True)
    make(ROOT / "scripts" / "package", "--prebuilt", BUILD, "--out", PACKAGES)


def package():
    """The file that make_package() left; or the one that WEIR_PACKAGE names, made before."""
    return pathlib.Path(os.environ.get("WEIR_PACKAGE") or next(PACKAGES.glob("weir_*.deb")))


def make(*command):
    """Runs what makes something that the tests start from; what cannot be had here skips them."""
    made = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if made.returncode == live.SKIPPED:
        print(f"skipped: {made.stderr.strip()}")
    if made.returncode != 0:
        print(made.stdout, made.stderr)
        sys.exit(made.returncode)


def main(prepare=lambda: make(SCRIPT, "make", *sys.argv[1:2])):
    """usage: NAME_test.py WEIR [unittest options]"""
    if not os.environ.get("WEIR_LIVE_SANDBOX"):  # the packages come over the network, which the sandbox does not have
        if shutil.which("qemu-system-x86_64") is None:
            print("skipped: there is no program 'qemu-system-x86_64' (scripts/install-deps --guest installs it)")
            sys.exit(live.SKIPPED)
        prepare()
    live.main(sandbox_required=True)
