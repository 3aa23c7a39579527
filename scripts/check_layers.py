#!/usr/bin/env python3
"""Checks that the layers hold: a file includes only its own layer and the layers its meson.build names as used.

The order comes from the `libraries` list in lib/meson.build. Layers without DPDK in `external` must not include its
headers either. One line per violation; exit status 1 if there is any.
usage: check_layers.py [ROOT]
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".cpp", ".hpp", ".c", ".h", ".in"}


def layer_order(root):
    text = (root / "lib" / "meson.build").read_text()
    found = re.search(r"^libraries\s*=\s*\[([^\]]*)\]", text, re.MULTILINE)
    if not found:
        raise SystemExit("check_layers: lib/meson.build has no `libraries = [...]`")
    return re.findall(r"'([^']+)'", found.group(1))


def is_without_dpdk(root, layer):
    """Its meson.build names what it uses, and DPDK is not among it."""
    meson = root / "lib" / layer / "meson.build"
    found = re.search(r"^external\s*=\s*\[([^\]]*)\]", meson.read_text(), re.MULTILINE) if meson.exists() else None
    return found is None or "dpdk_dep" not in found.group(1)


def used_layers(root, layer, order):
    """The layers that `layer` may include: those in `uses`, and what they use in turn."""
    meson = root / "lib" / layer / "meson.build"
    found = re.search(r"^uses\s*=\s*\[([^\]]*)\]", meson.read_text(), re.MULTILINE) if meson.exists() else None
    direct = re.findall(r"'([^']+)'", found.group(1)) if found else []
    for name in direct:
        if name not in order or order.index(name) >= order.index(layer):
            raise SystemExit(f"check_layers: lib/{layer}/meson.build uses '{name}', which is not a lower layer")
    allowed = set(direct)
    for name in direct:
        allowed |= used_layers(root, name, order)
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
    order = layer_order(root)
    problems = []
    for folder in sorted(p for p in (root / "lib").iterdir() if p.is_dir()):
        if folder.name not in order:
            problems.append(f"lib/{folder.name}: not in the list of lib/meson.build")
            continue
        allowed = used_layers(root, folder.name, order)
        without_dpdk = is_without_dpdk(root, folder.name)
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES):
            problems += check_file(path, path.relative_to(root), folder.name, allowed, order, without_dpdk)
    for path in sorted(p for p in (root / "app").rglob("*") if p.suffix in SOURCES):
        problems += check_file(path, path.relative_to(root), None, set(order), order)
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
