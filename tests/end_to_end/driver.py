"""The program's subcommands in one process that stays (driver.cpp), and the proof that it does what the program does."""
import fcntl
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile


class Died(AssertionError):
    """The driver ended, or had to be killed, in the middle of a run."""


def output_file():
    """What a run writes to. Appending, so that it can be cut before each run."""
    descriptor = os.memfd_create("output")
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return os.fdopen(descriptor, "r+b", buffering=0)


class Driver:
    def __init__(self, program, environment, timeout):
        self.stdout, self.stderr = output_file(), output_file()
        self.socket, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen([program, str(other.fileno())], stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr,
                                            env=environment, pass_fds=[other.fileno()])
        self.socket.settimeout(timeout)
        self.answers = self.socket.makefile("r")

    def output(self):
        return [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (self.stdout, self.stderr)]

    def run(self, args, cwd):
        """As subprocess.run with the program would; raises Died with what the driver said."""
        for file in (self.stdout, self.stderr):
            file.truncate(0)
        try:
            self.socket.sendall(json.dumps({"args": args, "cwd": str(cwd)}).encode() + b"\n")
            answer = self.answers.readline()
        except TimeoutError:
            answer = "it took too long, and was killed"
            self.process.kill()
        except ConnectionError:
            answer = ""
        if not answer.startswith("{"):
            raise Died(f"weir {' '.join(args)}: {answer}\n{self.close()}")
        answer = json.loads(answer)
        if answer["left"] != 0:
            raise AssertionError(f"weir {' '.join(args)}: {answer['left']} bytes of DPDK's memory were not given back")
        return subprocess.CompletedProcess(args, answer["status"], *self.output())

    def close(self):
        """Ends it. Returns what is wrong with how it ended; empty: nothing."""
        self.answers.close()
        self.socket.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        said = self.output()[1]
        self.stdout.close()
        self.stderr.close()
        return f"the driver ended with {self.process.returncode}\n{said}" if self.process.returncode != 0 else ""


# Of a report: what takes as long as it takes, how full the disk is, how often lcores looked, what followed from both, and where it was written. Padding depends
# on which worker had what.
TIMED = {"seconds", "rates", "disk", "findings", "bottleneck", "stages", "levels", "path", "out", "cycles", "free_bytes", "queue_depth", "bytes.stored", "sinks.bytes"}


def without_times(value, name=""):
    if isinstance(value, dict):
        return {key: without_times(item, key) for key, item in value.items()
                if not {key, f"{name}.{key}"} & TIMED and not key.startswith("ns_per_") and not key.endswith(("_ns", "_us", "_ms", "_s"))}
    if isinstance(value, list):
        return [without_times(item, name) for item in value if not (name == "warnings" and "will be full soon" in item)]
    return value


def differing(theirs, ours, place=""):
    """Lines, one for each value that is not the same."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differing(theirs.get(key), ours.get(key), f"{place}.{key}")
    elif theirs != ours:
        yield f"{place}: the driver has {str(theirs):.500}, the program has {str(ours):.500}"


def can_be_repeated(args, folder):
    """A replay in this folder reads files, and writes none but those of its options."""
    if "--config" not in args or "--out" not in args or any((folder / arg).is_fifo() for arg in args):
        return False
    text = (folder / args[args.index("--config") + 1]).read_text()
    return text.count("[[sink]]") == 1 and 'kind = "stream"' not in text and "snapshots" not in text


class Twin:
    """A replay that the program does as well as the driver, into files of its own."""
    def __init__(self, args, folder):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-twin-"))
        self.args = list(args)
        self.files = {}  # by option: the driver's, and the program's
        for at, option in enumerate(args[:-1]):
            if option in ("--out", "--report", "--answers"):
                self.args[at + 1] = str(self.folder / option[2:])
                self.files[option] = (folder / args[at + 1], self.folder / option[2:])

    def differences(self, events_of):
        """What is not the same in both; `events_of`: of a run directory."""
        read = {"--out": lambda path: events_of(path) if path.is_dir() else None, "--answers": pathlib.Path.read_bytes,
                "--report": lambda path: without_times(json.loads(path.read_text()))}
        return [line for option, paths in self.files.items() for line in differing(*(read[option](path) if path.exists() else "nothing" for path in paths), option)]

    def remove(self):
        shutil.rmtree(self.folder)
