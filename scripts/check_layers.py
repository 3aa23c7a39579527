#!/usr/bin/env python3
"""Checks that the layers hold: a file includes only its own room and the rooms that its meson.build names as used.

The order comes from the `shelves` of lib/meson.build: a room uses only those before it. Nothing on the shelf `data` can use the others, because
it comes first; `operate` and `tools` do not use each other. Rooms without DPDK in `external` must not include its headers either. One line per
violation; exit status 1 if there is any.
usage: check_layers.py [ROOT]
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".cpp", ".hpp", ".c", ".h", ".in"}


class Layers:
    """The shelves of lib/meson.build: `order`, all rooms from the lowest; `shelf[room]`."""

    def __init__(self, root):
        self.lib = root / "lib"
        text = (self.lib / "meson.build").read_text()
        found = re.search(r"^shelves\s*=\s*\{(.*?)^\}", text, re.MULTILINE | re.DOTALL)
        if not found:
            raise SystemExit("check_layers: lib/meson.build has no `shelves = {...}`")
        self.shelf = {}
        for shelf, rooms in re.findall(r"'(\w+)'\s*:\s*\[([^\]]*)\]", found.group(1)):
            self.shelf |= {room: shelf for room in re.findall(r"'([^']+)'", rooms)}
        self.order = list(self.shelf)

    def meson(self, room):
        path = self.lib / self.shelf[room] / room / "meson.build"
        return path.read_text() if path.exists() else ""

    def may_use(self, room, used):
        """`used` is lower, and not on the other of the two upper shelves."""
        return (used in self.shelf and self.order.index(used) < self.order.index(room)
                and (self.shelf[used] == self.shelf[room] or self.shelf[used] == self.order_of_shelves()[0]))

    def order_of_shelves(self):
        return list(dict.fromkeys(self.shelf.values()))


def is_without_dpdk(layers, room):
    """Its meson.build names what it uses, and DPDK is not among it."""
    found = re.search(r"^external\s*=\s*\[([^\]]*)\]", layers.meson(room), re.MULTILINE)
    return found is None or "dpdk_dep" not in found.group(1)


def used_rooms(layers, room):
    """The rooms that `room` may include: those in `uses`, and what they use in turn."""
    found = re.search(r"^uses\s*=\s*\[([^\]]*)\]", layers.meson(room), re.MULTILINE)
    direct = re.findall(r"'([^']+)'", found.group(1)) if found else []
    for name in direct:
        if not layers.may_use(room, name):
            raise SystemExit(f"check_layers: lib/{layers.shelf[room]}/{room}/meson.build uses '{name}', which is not a lower layer")
    allowed = set(direct)
    for name in direct:
        allowed |= used_rooms(layers, name)
    return allowed


def is_dpdk(header):
    return pathlib.PurePath(header).name.startswith(("rte_", "dpdk", "ethdev_", "bus_"))


def check_file(path, shown, layer, allowed, order, without_dpdk=False):
    problems = []
    text = path.read_text(errors="replace")
    for kind, header in INCLUDE.findall(text):
        line = text[: text.index(header)].count("\n") + 1
        where = f"{shown}:{line}"
        first = header.split("/")[0]
        if header.startswith("..") or "/../" in header:
            problems.append(f'{where}: "{header}" climbs out of its folder; include "layer/file.hpp"')
        elif first in order and kind == "<":
            problems.append(f'{where}: <{header}> is ours: use quotes')
        elif first in order and layer is not None and first != layer and first not in allowed:
            problems.append(f'{where}: {layer} must not include "{header}" (it may use: {", ".join(sorted(allowed)) or "nothing"})')
        elif first == "app" or (kind == '"' and "/" not in header and layer is not None):
            problems.append(f'{where}: "{header}" in lib/: include "layer/file.hpp", and never the program')
        elif without_dpdk and is_dpdk(header):
            problems.append(f"{where}: {layer} must compile without DPDK, but includes <{header}>")
    return problems


def check_tree(root):
    layers = Layers(root)
    problems = []
    for folder in sorted(p for shelf in layers.order_of_shelves() for p in (root / "lib" / shelf).glob("*/")):
        if layers.shelf.get(folder.name) != folder.parent.name:
            problems.append(f"lib/{folder.parent.name}/{folder.name}: not in the list of lib/meson.build")
            continue
        allowed = used_rooms(layers, folder.name)
        without_dpdk = is_without_dpdk(layers, folder.name)
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES):
            problems += check_file(path, path.relative_to(root), folder.name, allowed, layers.order, without_dpdk)
    for folder in sorted(p for p in (root / "lib").glob("*/") if p.name not in layers.order_of_shelves()):
        problems.append(f"lib/{folder.name}: not in the list of lib/meson.build")
    for path in sorted(p for p in (root / "app").rglob("*") if p.suffix in SOURCES):
        problems += check_file(path, path.relative_to(root), None, set(layers.order), layers.order)
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
