#!/usr/bin/env python3
"""The events sink beside `fio`, on the same disk, in turns: sequential writes of 1 MiB past the page cache, synced at the end.

usage: sink_bench.py SINK_FEED FOLDER [--mib N] [--rounds N] [--json FILE]

Each round writes the same amount once with fio and once through the run writer, for each queue depth and number of files; who goes
first alternates. Printed are medians, in brackets the smallest and largest, and the part of fio's rate that the sink has.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile


def fio(folder, mib, depth, files):
    done = subprocess.run(["fio", "--name=w", f"--directory={folder}", "--rw=write", "--bs=1M", f"--size={mib // files}M", f"--numjobs={files}",
                           "--ioengine=io_uring", "--direct=1", f"--iodepth={depth}", "--end_fsync=1", "--fallocate=posix",
                           "--group_reporting", "--output-format=json"], capture_output=True, text=True, check=True)
    for path in folder.iterdir():
        path.unlink()
    return json.loads(done.stdout)["jobs"][0]["write"]["bw_bytes"] / 2**20


def sink(feed, folder, mib, depth, files):
    done = subprocess.run([feed, str(folder / "run"), str(mib), str(depth), str(files), "auto"], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    for path in folder.iterdir():
        shutil.rmtree(path)
    return result["mib_per_s"], result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("feed")
    parser.add_argument("folder")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    print(f"{'depth':>5} {'files':>5} {'fio MiB/s':>26} {'sink MiB/s':>26} {'part':>6}")
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="weir-sink-bench-") as name:
        folder = pathlib.Path(name)
        for depth, files in ((1, 1), (8, 1), (8, 2), (8, 4)):
            rates = {"fio": [], "sink": []}
            how = {}
            for turn in range(options.rounds):
                for who in ("fio", "sink") if turn % 2 == 0 else ("sink", "fio"):
                    if who == "fio":
                        rates["fio"].append(fio(folder, options.mib, depth, files))
                    else:
                        rate, how = sink(options.feed, folder, options.mib, depth, files)
                        rates["sink"].append(rate)
            median = {who: statistics.median(values) for who, values in rates.items()}
            text = {who: f"{median[who]:.0f} ({min(values):.0f} to {max(values):.0f})" for who, values in rates.items()}
            print(f"{depth:5} {files:5} {text['fio']:>26} {text['sink']:>26} {median['sink'] / median['fio']:6.0%}"
                  + (f"  {how['note']}" if "note" in how else ""), flush=True)
            rows.append({"depth": depth, "files": files, **{who: sorted(values) for who, values in rates.items()}, "how": how})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
