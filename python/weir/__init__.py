"""Reads the runs that weir writes, in pure Python with numpy.

    import weir
    with weir.open("run7") as run:
        for event in run:
            print(event.epoch, event.id, event.complete, event.bytes)
        image = run[7].array()                    # raw images: (sources, rows, columns), masked where bytes are missing
        data = run[7].array("<u4", (100, 32))     # anything else: say what a message is
        last, some = run[-1], run[10:20]          # places, as in a list

docs/guides/READING.md has more. Errors are weir.RunError; run[...] raises KeyError where there is no such event.
"""
import pathlib

from ._builder_folder import BuilderFolder
from ._crc32c import crc32c
from ._event import Csr, Event
from ._joined_run import JoinedRun
from ._mep import MISSING_TYPE, MultiEvent
from ._run import Events, Image, Run
from ._run_directory import MAX_EVENT, RunDirectory
from ._scan import CAUSES, CONTENTS, STATES, VETOES, RunError, Source

__all__ = ["open", "Run", "Event", "Events", "Source", "Image", "Csr", "MultiEvent", "RunError", "MISSING_TYPE", "CAUSES", "CONTENTS", "STATES",
           "VETOES", "MAX_EVENT", "crc32c", "__version__"]

__version__ = "0.1.0"


def open(path, max_event=MAX_EVENT):
    """The run in this directory, finished or not. One that is being written is found by the name that it will have, too. A folder with
    the runs of a cluster's builders is opened as one run. An event of more than `max_event` bytes, those that are missing included, is
    refused: a damaged file may speak of any number."""
    folder = BuilderFolder(pathlib.Path(path), max_event)
    return JoinedRun(folder) if folder.runs else RunDirectory(path, max_event)
