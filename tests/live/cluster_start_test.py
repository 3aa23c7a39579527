#!/usr/bin/env python3
"""The nodes of a cluster as systemd and Slurm start them: each host is a namespace of its own, which has a name; the service manager and Slurm are
what they say they are to a process (NOTIFY_SOCKET; srun starts a program once on each host of the job).

usage: cluster_start_test.py WEIR
"""

import json
import os
import re
import shlex
import signal
import subprocess

import live
from cluster_serve_test import NODES, SENT, ClusterCase, configuration

UNIT = live.ROOT / "systemd" / "weir-node@.service"
JOB = live.ROOT / "examples" / "cluster.sbatch"
# Starts what it is given once for each host of the job, with that host's name. A signal reaches them by itself; it ends after them.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
IFS=, read -ra hosts <<<"$SLURM_JOB_NODELIST"
for host in "${hosts[@]}"; do
    unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@" &
    steps+=($!)
done
trap : INT # all of the process group have got it
status=0
for step in "${steps[@]}"; do
    until wait "$step"; code=$?; ! kill -0 "$step" 2>/dev/null; do :; done
    [[ $code -eq 0 ]] || status=$code
done
exit $status
"""


class StartTest(ClusterCase):
    def program_folder(self):
        """A folder for PATH, in which weir is the one that is tested."""
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "weir").symlink_to(live.Weir.program)
        return folder

    def test_by_the_service_manager(self):
        unit = UNIT.read_text()
        command = re.search(r"(?m)^ExecStart=(.*)$", unit)[1]
        self.assertIn("Type=notify\n", unit)
        for name in NODES:
            words = shlex.split(command.replace("%i", name).replace("/usr/bin/weir", live.Weir.program).replace("/etc/weir", str(self.folder)))
            notified = live.Notified(self.folder / f"{name}.notify")
            self.addCleanup(notified.close)
            self.start_words(name, words, notified.environment)
            live.wait_for(lambda: any("READY=1" in text for _, text in notified.heard), f"word that {name} is ready")
        self.assertRegex(self.ctl("bu0", "--cluster", "start"), "run 1, started on 5 nodes")
        self.take(20)
        self.ctl("ru0", "--cluster", "stop")
        self.check_run(1, 20)
        number = getattr(signal, re.search(r"(?m)^KillSignal=(\w+)$", unit)[1])
        for service in self.services.values():
            service.end(number)

    def test_as_a_job_of_slurm(self):
        folder = self.program_folder()
        (folder / "srun").write_text(SRUN)
        (folder / "srun").chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": ",".join(NODES)}
        with open(self.folder / "job.txt", "w") as output:
            job = subprocess.Popen(["bash", str(JOB), "cluster.toml", "runs/det-004711"], cwd=self.folder, env=environment, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(job.wait)
        self.addCleanup(lambda: job.poll() is None and os.killpg(job.pid, signal.SIGKILL))
        said = self.folder / "job.txt"
        # The manager has no lcores, and so says less.
        live.wait_for(lambda: (said.read_text().count("running:"), said.read_text().count("watch at")) == (4, 5) or job.poll() is not None, "nodes that run")
        self.take(20)
        steps = json.loads(self.ctl("ru0", "--cluster", "--json"))
        self.assertEqual((steps["run"], {node["mode"] for node in steps["nodes"]}), (4711, {"run"}))
        self.assertIn("not run by weir serve", self.ctl("ru0", "--cluster", "stop", status=1))
        os.killpg(job.pid, signal.SIGINT)
        self.assertEqual(job.wait(live.PATIENCE_S), 0, said.read_text()[-4000:])
        self.check_events(4711, 20)


if __name__ == "__main__":
    live.main(sandbox_required=True)
