"""Which fault comes when: drawn from the seed before the soak begins, so that it can be printed and repeated."""

import dataclasses
import random

from soaking import faults

FIRST_S = 3  # undisturbed
EVERY_S = {"wire": 25, "box": 40}  # from one fault to the next, on the average; less in a short soak, so that each comes
TAIL = 0.25  # of the soak is one run that nothing ends, to see its memory
TAIL_S = (8, 900)


@dataclasses.dataclass
class Planned:
    at_s: float
    lane: str
    fault: faults.Fault
    drawn: dict


def tail_s(seconds):
    return min(max(TAIL * seconds, TAIL_S[0]), TAIL_S[1])


def lane(name, kinds, seed, begin, end, scale):
    """All kinds in a random order, then all again: none is rare. Where there is little time each comes once."""
    draw = random.Random(f"{seed}/{name}/{begin:g}")
    once_s = (end - begin) / len(kinds)
    every = EVERY_S[name] if once_s > EVERY_S[name] else once_s
    at, bag, planned = begin, [], []
    while at < end and not (every == once_s and len(planned) == len(kinds)):
        if not bag:
            bag = draw.sample(kinds, len(kinds))
        fault = bag.pop()
        planned.append(Planned(round(at, 2), name, fault, fault.drawn(draw, scale)))
        at += every * (draw.uniform(0.5, 1.5) if every < once_s else draw.uniform(0.6, 1))
    return planned


def drawn(seconds, seed):
    """The whole plan, by lane. The last part of the box's is a run of its own, in which only such faults come as do not end it."""
    scale = min(1.0, seconds / 600)
    last = seconds - tail_s(seconds)
    calm = [fault for fault in faults.BOX if not fault.ends_run]
    begin_last = Planned(round(last, 2), "box", faults.BOX[0], faults.BOX[0].drawn(random.Random(f"{seed}/last"), scale))
    return {"wire": lane("wire", faults.WIRE, seed, FIRST_S, seconds - FIRST_S, scale),
            "box": [*lane("box", faults.BOX, seed, FIRST_S, last, scale), begin_last,
                    *(lane("box", calm, seed, last + 60, seconds - 30, scale) if seconds - last > 180 else [])]}
