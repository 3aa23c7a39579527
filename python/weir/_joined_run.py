"""The runs of a cluster's builders, read as one run."""
import bisect
import itertools

import numpy as np

from ._run import Run, in_order
from ._scan import RunError

_LISTED = 20  # events that are there more than once, of which verify() says where


def _of_first(name):
    return property(lambda joined: getattr(joined._first, name))


class JoinedRun(Run):
    """The runs of a cluster's builders in one folder (a BuilderFolder), read as one run. Its index is that of all runs; `segment` counts
    the segments of all of them, one run after the other. An event that is in several runs counts once: one that can be read, then one
    that is complete, then the one with more bytes, then that of a run that its own writer closed, then the first.

    closed, being_written   all of them are closed; one of them is being written
    number, created_ns      what all agree on, else None; when the first was begun
    name, config, payload, image    of the first that is closed, else of the first
    """
    _same_event = slice(0, 2)  # by number and epoch: a copy of it is the same event
    name, config, payload, image = map(_of_first, ("name", "config", "payload", "image"))

    def __init__(self, folder):
        self._folder, self.path, self.max_event = folder, folder.path, folder.max_event
        self.ledger, self.manifest, self._last_view = {}, {}, None

    @property
    def runs(self):
        return list(self._folder.runs)

    @property
    def _first(self):
        return next((run for run in self._folder.runs if run.closed), self._folder.runs[0])

    @property
    def closed(self):
        return all(run.closed for run in self._folder.runs)

    @property
    def being_written(self):
        return any(run.being_written for run in self._folder.runs)

    @property
    def number(self):
        numbers = {run.number for run in self._folder.runs}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def created_ns(self):
        return min((run.created_ns for run in self._folder.runs if run.created_ns), default=0)

    @property
    def version(self):
        return max((run.version for run in self._folder.runs if run.version), default=None)

    @property
    def evidence(self):
        """How that is known, or why it is not: a list of sentences."""
        return [f"a builder knows of its share only; the accounts of all nodes are held side by side by `weir inspect {self.path}`"]

    @property
    def index(self):
        return self._view.index

    @property
    def copies(self):
        return self._view.copies

    def close(self):
        """Closes the files of all runs. They are opened again if they are needed."""
        self._folder.files.close()

    def refresh(self):
        """Looks for what was written since, runs that other builders have begun included. True if there are more events than before, or
        the run was finished."""
        events, closed = len(self), self.closed
        for run in self.runs:
            run.refresh()
        self._folder.look()
        return len(self) > events or self.closed > closed

    def verify(self):
        """Reads everything and checks all of it. Returns what is wrong, one sentence each: empty if nothing is."""
        runs, view = self.runs, self._view
        problems = [f"{self._folder.name(run)}: {problem}" for run in runs for problem in run.verify()]
        for epoch, number, places in view.repeated:
            problems.append(f"event {epoch}:{number} is in {' and '.join(self._folder.name(view.runs[place]) for place in places)}")
        more = view.repeated_count - len(view.repeated)
        return problems + ([f"{more} more event{' is' if more == 1 else 's are'} there more than once"] if more else [])

    def _extent(self):
        count = len(self._folder.runs)
        return f" of {count} builders' runs" if count > 1 else " of one builder's run"

    def _known_events(self):
        return None if self._last_view is None else len(self._last_view.index)

    def _present_runs(self):
        self._folder.look()
        return self.runs

    @property
    def _view(self):
        runs = self.runs
        indices = [run.index for run in runs]
        if self._last_view is None or not self._last_view.is_of(runs, indices):
            self._last_view = _View(self.path, runs, indices)
        return self._last_view


class _View:
    """The events of some runs at one moment, by epoch and number, each once.

    copies                     that are left out
    repeated, repeated_count   events that are there more than once: (epoch, number, places of their runs) of the first; how many they are
    """

    def __init__(self, path, runs, indices):
        self.path, self.runs, self._indices = path, runs, indices
        self._begins = [0, *itertools.accumulate(len(run._segments) for run in runs)]  # number of the first segment of each
        self.repeated, self.repeated_count = [], 0
        whole = self._concatenated()
        self.index = self._each_once(whole)
        self.copies = len(whole) - len(self.index)

    def is_of(self, runs, indices):
        return runs == self.runs and all(one is other for one, other in zip(indices, self._indices))

    def _concatenated(self):
        whole, at = np.concatenate(self._indices), 0
        for index, begin in zip(self._indices, self._begins):
            whole["segment"][at:at + len(index)] += np.uint32(begin)
            at += len(index)
        return in_order(whole)  # which leaves copies of an event in the order of the runs

    def _each_once(self, whole):
        as_next = np.zeros(len(whole) + 1, bool)  # [i]: event i - 1 is the same as event i
        as_next[1:-1] = (whole["event"][1:] == whole["event"][:-1]) & (whole["epoch"][1:] == whole["epoch"][:-1])
        if not as_next.any():
            return whole
        begins = np.flatnonzero(as_next[1:] & ~as_next[:-1])
        ends = np.flatnonzero(as_next[:-1] & ~as_next[1:]) + 1
        self.repeated_count = len(begins)
        kept = np.ones(len(whole), bool)
        for begin, end in zip(begins.tolist(), ends.tolist()):
            worth = [self._worth(entry) for entry in whole[begin:end]]
            kept[begin:end] = False
            kept[begin + worth.index(max(worth))] = True
        for begin, end in zip(begins[:_LISTED], ends[:_LISTED]):
            self.repeated.append((whole["epoch"][begin], whole["event"][begin], [self._run_of(entry) for entry in whole[begin:end]]))
        return whole[kept]

    def _worth(self, entry):
        run = self.runs[self._run_of(entry)]
        by_its_writer = run.closed and "interrupted" not in run.manifest
        try:
            event = self._event(entry)
            run._read(event._at, (event.epoch, event.id), deep=True)
        except RunError:
            return False, False, 0, by_its_writer
        return True, event.complete, event.bytes, by_its_writer

    def _run_of(self, entry):
        """A damaged index may name any segment; then the run says that it is not there."""
        return min(bisect.bisect_right(self._begins, int(entry["segment"])), len(self.runs)) - 1

    def _event(self, entry):
        run, own = self._run_of(entry), entry.copy()
        own["segment"] -= np.uint32(self._begins[run])
        return self.runs[run]._event(own)
