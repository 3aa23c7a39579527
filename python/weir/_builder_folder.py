"""A folder with the runs of a cluster's builders: which of what lies there is of them."""
import json
import os

from . import _files
from ._run_directory import RunDirectory
from ._scan import RunError

_MARKS = ("events-000000.weir", "manifest.json", "master.h5")  # a directory with one of these is a run


class BuilderFolder:
    """The runs of a cluster's builders in a folder, or one level deeper in it. It has none if it is itself a run.

    runs    a RunDirectory each, in the order of their names; of several sinks of a builder the first
    files   open files of all of them
    """

    def __init__(self, path, max_event):
        self.path, self.max_event, self.files = path, max_event, _files.Files()
        self.runs, self._clusters, self._accounts = [], {}, {}
        if not _is_a_run(path):
            self.look()

    def look(self):
        """Finds runs that have come since. RunError if one is of another cluster than the others."""
        places = [place for folder in self._folders(self.path) for place in ([folder] if _is_a_run(folder) else self._folders(folder))]
        for run in self._clusters:
            run._follow_rename()  # after the listing: a run that got its final name in between is no new one
        known = {run.path for run in self._clusters}
        for place in sorted((place for place in places if place not in known), key=self._order):
            self._add(place, known)
        runs = sorted(self._clusters, key=lambda run: self._order(run.path))
        accounts = [self._account(run) for run in runs]
        # Two sinks of one builder have the same account, and the same events.
        self.runs = [run for i, run in enumerate(runs) if accounts[i] is None or accounts[i] not in accounts[:i]]

    def name(self, run):
        return str(run.path.relative_to(self.path))

    @staticmethod
    def _folders(path):
        try:
            return [entry for entry in path.iterdir() if entry.is_dir()]
        except OSError:
            return []

    def _order(self, path):
        """An unfinished run stands where it will be when it is finished."""
        return [os.fsencode(_final_name(part)) for part in path.relative_to(self.path).parts], os.fsencode(path)

    def _add(self, place, known):
        run = self._open(place)
        if not place.is_dir():  # it has got its final name just now
            run = self._open(place.with_name(_final_name(place.name)))
        cluster = None if run is None or run.path in known else _cluster_of(run)
        if cluster is None:
            return
        first = next(iter(self._clusters), run)
        if self._clusters.get(first, cluster) != cluster:
            raise RunError(f"{self.path} holds runs of different clusters: {self.name(first)} and {self.name(run)} have other nodes or blocks")
        self._clusters[run] = cluster
        known.add(run.path)

    def _open(self, path):
        """None if it is no run, or cannot be read: `weir inspect` says why."""
        try:
            return RunDirectory(path, self.max_event, self.files) if _is_a_run(path) else None
        except RunError:
            return None

    def _account(self, run):
        """The account of its builder, as text; None if it has left none."""
        if run not in self._accounts and _account_of(run):
            self._accounts[run] = json.dumps(run.manifest["cluster"], sort_keys=True)
        return self._accounts.get(run)


def _is_a_run(path):
    return any(os.path.lexists(path / mark) for mark in _MARKS)


def _final_name(name):
    """.bu1.part → bu1"""
    return name[1:-5] if name.startswith(".") and name.endswith(".part") and len(name) > 6 else name


def _cluster_of(run):
    """What tells clusters apart: (nodes, block). None if the run is of no cluster."""
    account = _account_of(run)
    if account:
        return _nodes(account.get("nodes")), account["block"]
    cluster = run.config.get("cluster")
    return (_nodes(run.config.get("node")), _number(cluster, "block")) if isinstance(cluster, dict) else None


def _account_of(run):
    account = run.manifest.get("cluster")
    return account if _text(account, "node") and _text(account, "role") and _number(account, "block") else None


def _nodes(listed):
    return [(_text(node, "name"), _text(node, "role")) for node in listed] if isinstance(listed, list) else []


def _text(value, key):
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def _number(value, key):
    member = value.get(key) if isinstance(value, dict) else None
    return member if type(member) is int and 0 <= member < 1 << 64 else 0
