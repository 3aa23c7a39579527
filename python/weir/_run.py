"""What a run is to those who read it, in one directory or spread over several."""
import collections
import time

import numpy as np

from ._scan import RunError

# What array() gives without being told: `sources` images of rows x columns elements of `dtype`.
Image = collections.namedtuple("Image", "dtype sources rows columns")
ENTRY = np.dtype([("event", "<u8"), ("epoch", "<u4"), ("segment", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])


def in_order(index):
    """Entries by epoch and number: in the file they are in the order in which workers finished them."""
    return index[np.lexsort((index["event"], index["epoch"]))]


class Run:
    """A run. len(run), `for event in run` (by epoch and number), run[id] and run[epoch, id] find events by its index. A slice and a
    negative index count places, as in a list: run[:10] are the first ten events, run[-1] is the last.

    closed          it was finished: it has a good manifest
    being_written   a program of this machine is writing it; follow() and refresh() see what comes
    name, number    as configured; number is None if runs are not numbered
    created_ns      when it was begun
    version         of the format: 1 or 2
    payload         what the payload is, if it is not what was received: {"content": "pixels", "type": "f32", "unit": …}; else empty
    config, ledger  the configuration, and the account of packets and events (empty if the run was not closed)
    lossless        "yes", "no" or "unknown": whether something was lost; evidence says how that is known, one sentence each
    manifest        all of the manifest
    image           what array() gives without being told, an Image; None if the run does not say
    max_event       bytes of an event, its missing ones included, above which it is refused
    index           where the events lie, by epoch and number, as a numpy array with the fields event, epoch, segment, offset, bytes
    runs            the runs of the builders that it is joined of, a Run each; [itself] for a run in one directory
    copies          events that are left out because they are in the run of another builder, too
    """
    _same_event = slice(2, 4)  # fields of an entry by which follow() knows an event that it has given: its place

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = "finished" if self.closed else "being written" if self.being_written else "not closed"
        count = self._known_events()
        events = "not read yet" if count is None else f"{count} events" if self.closed else f"{count} events found"
        name = f" ({self.name}{'' if self.number is None else f', number {self.number}'})" if self.name else ""
        content = self.payload.get("content", "received")
        image = "" if self.image is None else " of {} x {} x {} {}".format(*self.image[1:], np.dtype(self.image.dtype).name)
        return f"<run {self.path}{name}{self._extent()}: {state}, {events}{image}, payload {content}, lossless: {self.lossless}>"

    def _extent(self):
        return ""

    @property
    def lossless(self):
        said = self.ledger.get("lossless")
        return said if said in ("yes", "no", "unknown") else "unknown"

    @property
    def runs(self):
        return [self]

    @property
    def copies(self):
        return 0

    def follow(self, poll_s=0.2, timeout_s=None):
        """Every event once, as it is written, until the run is finished, its program has ended, or nothing has come for `timeout_s`
        seconds. `closed` says which. Where a file system has no locks, only a finished run and `timeout_s` end it. In a folder of
        builders' runs it ends when that holds for all of them; runs that begin later are followed, too."""
        given, ended, quiet_since = set(), set(), time.monotonic()
        while True:
            runs = self._present_runs()
            for run in runs:
                has_ended = run._has_ended()  # asked before looking: nothing comes between the two
                run.refresh()
                for entry in [] if run in ended else run._as_written():
                    if entry[self._same_event] not in given:
                        given.add(entry[self._same_event])
                        yield run._event(np.array(entry, ENTRY))
                        quiet_since = time.monotonic()
                if has_ended:
                    ended.add(run)
            if ended.issuperset(runs) or (timeout_s is not None and time.monotonic() - quiet_since > timeout_s):
                return
            time.sleep(poll_s)

    def _present_runs(self):
        return self.runs

    @property
    def _view(self):
        """What finds and reads the events of `index`, also when the run has grown since."""
        return self

    def __len__(self):
        return len(self.index)

    def __iter__(self):
        """By epoch and number. Raises RunError at one whose description is damaged."""
        return iter(self[:])

    def __contains__(self, key):
        return len(_named(self.index, key)) > 0

    def __getitem__(self, key):
        """run[id] or run[epoch, id]; run[-1] is the last, run[a:b] are those at places a to b. KeyError (for a negative index IndexError)
        if there is none, RunError if it is damaged or in several epochs."""
        view = self._view
        if isinstance(key, slice):
            return Events(view, view.index[key])
        if not isinstance(key, tuple) and key < 0:
            return view._event(view.index[key])
        found = _named(view.index, key)
        if len(found) == 0:
            raise KeyError(key)
        if len(found) > 1:
            raise RunError(f"event {key} is there more than once, in epochs {', '.join(map(str, found['epoch']))}")
        return view._event(found[0])

    def event(self, number, epoch=None):
        """The same as run[number] or run[epoch, number]."""
        return self[number if epoch is None else (epoch, number)]


class Events:
    """Some events of a run, in its order. They are read when they are asked for; events[i] counts places."""

    def __init__(self, run, entries):
        self._run, self._entries = run, entries

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        for entry in self._entries:
            yield self._run._event(entry)

    def __getitem__(self, place):
        return Events(self._run, self._entries[place]) if isinstance(place, slice) else self._run._event(self._entries[place])

    def __repr__(self):
        names = [f"{entry['epoch']}:{entry['event']}" for entry in self._entries[[0, -1] if len(self) > 1 else slice(None)]]
        return f"<{len(self)} events of {self._run.path}{': ' if names else ''}{' to '.join(names)}>"


def _named(index, key):
    epoch, number = key if isinstance(key, tuple) else (None, key)
    if not 0 <= number < 1 << 64:
        return index[:0]
    found = index["event"] == np.uint64(number)
    return index[found if epoch is None else found & (index["epoch"] == epoch)]
