"""What the page and `weir top` have to say of a document, each in its own language: one table for both."""

import copy

import documents


def _failed(name, error):
    document = documents.made(name)
    document["status"]["error"] = error
    return document


def _manager(builder_down=0, nothing_held=0, node_down=0, late=0, away=(), manages=True, spares=()):
    document = copy.deepcopy(documents.made("manager"))
    cluster = document["cluster"]
    cluster["lost_blocks"] = {"builder_down": builder_down, "nothing_held": nothing_held, "node_down": node_down, "late": late}
    cluster["manager"]["manages"] = manages
    for node in cluster["nodes"]:
        node["up"] = node["name"] not in away
        node["spare"] = node["name"] in spares
    return document


def table():
    """(what it is, its document, level, headline, words in the detail)"""
    made = documents.made
    given_out = "58,912 blocks given out, 5 of them again."
    return (
        ("running", made("running"), "ok", "Nothing lost", "48,211,903 packets received"),
        ("losing", made("losing"), "losing", "Losing data: 12 packets/s late, in weir", "4 packets/s missing, on the way"),
        ("lost before", made("lost_before"), "lost", "Lost in this run: 4,110 packets late, in weir", "Nothing is being lost now"),
        ("unknown", made("unknown"), "unknown", "No loss seen; unknown on the way", "no sequence numbers in this format"),
        ("thousand", made("thousand"), "losing", "Losing data: 0.5 packets/s missing, on the way", "82"),
        ("idle", made("idle"), "idle", "No run", "Run 6"),
        ("failed", _failed("idle", "the disk is full"), "lost", "No run: the disk is full", "The last command failed"),
        ("a node is away", made("manager"), "unknown", "Not here: ru1", given_out),
        ("two are away", _manager(away=("ru1", "bu0")), "unknown", "Not here: ru1, bu0", given_out),
        ("blocks are lost", _manager(builder_down=1, nothing_held=1, node_down=1, late=1, away=("ru1",)), "lost", "4 blocks lost whole", given_out),
        ("a block is lost", _manager(builder_down=1), "lost", "1 block lost whole", given_out),
        ("many are lost", _manager(nothing_held=1234), "lost", "1,234 blocks lost whole", given_out),
        ("manages", _manager(), "idle", "No node is missing, and this one manages", given_out),
        ("a spare is away", _manager(away=("bu0",), spares=("bu0",)), "idle", "No node is missing, and this one manages", given_out),
        ("another one manages", _manager(manages=False), "idle", "No node is missing, and another one manages", given_out),
        ("a manager failed", _failed("manager", "no network"), "lost", "No run: no network", "The last command failed"),
    )
