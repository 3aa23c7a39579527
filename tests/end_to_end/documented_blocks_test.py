#!/usr/bin/env python3
"""Every block of TOML and of Python that README and docs/ show: a configuration is accepted by `weir run --print-config`, completed where it is
a part of one; Python is run on what the page is about. The commands are for tests/live/documented_test.py."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import numpy_python  # noqa: F401  goes on under an interpreter that has numpy, or skips

from support import ROOT, TIMEOUT_S, Case, config, main, stream, weir

sys.path.insert(0, str(ROOT / "tests" / "live"))
import documented  # noqa: E402
import mfp_packets  # noqa: E402
import numpy  # noqa: E402
import packets  # noqa: E402

# What a part goes with, where not every stream will do, and what comes before it.
STREAM_OF = {"docs/reference/reduce/mfp.md": stream(format="ejfat")}
ENERGIES = '[[reduce]]\nkind = "jungfrau"\npedestal = ["g0.f32", "g1.f32", "g2.f32"]\ngain = "gainMaps.bin"\n'
CLUSTER = "[cluster]\n" + "".join(f'[[node]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\nrole = "{role}"\n'
                                  for name, port, role in (("ru", 7471, "readout"), ("bu", 7472, "builder"))) + stream(format="ejfat") + 'node = "ru"\n'
BEFORE = (
    ("docs/guides/CLUSTER.md", r"\[\[node\]\]", CLUSTER),
    ("docs/reference/reduce/mfp.md", r"\[reduce.layout\]", '[[reduce]]\nkind = "mfp"\n'),
    ("docs/reference/reduce/(sparse|veto).md", "", ENERGIES),
)
# Python of these pages is run by another test.
ELSEWHERE = {"docs/guides/READING.md": "reader_test.py", "docs/guides/EXPORT.md": "reader_test.py", "docs/guides/STREAMING.md": "stream_test.py",
             "docs/reference/EVENT_FILE_READER.md": "tests/store/documentation_test.cpp"}


def completed(page, text):
    """A whole configuration with this block in it. What is added comes after it, because keys outside of tables come first."""
    text = "".join(before for where, begins, before in BEFORE if re.fullmatch(where, page) and re.match(begins, text)) + text + "\n"
    has = lambda table: re.search(rf"(?m)^\[+{table}\]+", text)
    if has("format") and not has("stream"):
        name = re.search(r'(?m)^name = "(\w+)"', text)[1]
        text += stream(format=name, first=6006)
    elif not has("stream"):
        text += STREAM_OF.get(page, stream())
    if not has("port"):
        text += "".join(f'[[port]]\nname = "{name}"\ndevice = "net_null{at}"\n'
                        for at, name in enumerate(dict.fromkeys(re.findall(r'(?m)^port = "(\w+)"', text))))
    if not has("events"):
        one_source = re.search(r"(?m)^udp_dst = \d+$", text) and "source_by" not in text
        text += f"[events]\nsources = {1 if one_source else 2}\n"
    return text if has("sink") else text + '[[sink]]\nkind = "null"\n'


class Toml(Case):
    def setUp(self):
        super().setUp()
        for name in ("examples", "formats", "flows", "pmd-config"):
            shutil.copytree(ROOT / name, self.path(name))

    def refused(self, page, line, text):
        """Why weir does not accept it, or nothing."""
        text = completed(page, text)
        for name in re.findall(r'"([\w./-]+\.(?:f32|bin|npy|toml|flow|mask))"', text):
            file = self.path(name)
            if not file.exists() and not name.startswith("/"):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"")
        file = self.path("page.toml")
        file.write_text(text)
        node = re.search(r'(?m)^\[\[node\]\]\nname = "(\w+)"', text)
        done = weir("run", "--print-config", "--config", file, *(["--node", node[1]] if node else []), status=None, cwd=self.folder)
        return "" if done.returncode == 0 else f"{page}:{line}: {done.stderr.strip()}\n{text}"

    def test_every_block_is_a_configuration_or_a_part_of_one(self):
        blocks = documented.blocks_in_tree(ROOT, "toml")
        self.assertGreater(len(blocks), 25)
        refused = [why for block in blocks if (why := self.refused(*block))]
        self.assertEqual(refused, [], "\n\n".join(refused))


# What pages with Python take for granted, as commands; and what is run in front of the blocks.
RUN = ("send --sources 2 --events 8 --drop 0.001 --to run.pcap --quiet",
       "replay run.pcap --config examples/jungfrau-2-modules.toml --out {run} --quiet")
MADE = {
    "README.md": [line.format(run="run1") for line in RUN],
    "docs/start/FIRST_RUN.md": [line.format(run="run1") for line in RUN],
    "docs/reference/HDF5.md": [*(line.format(run="run7") for line in RUN), "export run7 --to hdf5 --out data/run-000007 --quiet"],
    "docs/reference/reduce/pack.md": [],
}
# A block of docs/reference/reduce/pack.md: 16 numbers from 100 on in three bits, one of them an exception.
PACKED = """
import numpy
n, kind, width, reference = 16, numpy.dtype("<u2"), 3, 100
expected = numpy.array([100 + i % 8 for i in range(n)], kind)
low = expected - reference
rows = numpy.concatenate([numpy.packbits((low >> k & 1).astype("u1"), bitorder="little") for k in range(width)])
places, values = numpy.array([5]), numpy.array([65534], kind)
expected[5] = 65534
"""
FRONT = {"docs/reference/reduce/pack.md": PACKED}
BEHIND = {"docs/reference/reduce/pack.md": 'assert list(block) == list(expected) and block.dtype == kind, block\n',
          "docs/reference/HDF5.md": "assert number.shape[0] == 8\n"}
# Beginnings of the indented blocks of READING.md, and what comes before each. Where there is no scipy its place is taken by what checks the shapes.
SCIPY = """
try:
    import scipy.sparse
except ImportError:
    import types
    def csr_array(parts, shape):
        values, indices, indptr = parts
        assert len(values) == len(indices) == indptr[-1] and len(indptr) == shape[0] + 1
    scipy = types.SimpleNamespace(sparse=types.SimpleNamespace(csr_array=csr_array))
"""
BUILDER = f'''import pathlib, sys
sys.path.insert(0, "{ROOT}/tests/end_to_end")
import made_up_run
pathlib.Path("folder").mkdir()
made_up_run.Run(pathlib.Path("folder/bu0"), config={{"cluster": {{"block": 16}}}}).close()
'''
READING = {
    'run = weir.open("folder")': BUILDER,
    "for event in weir.open": "show = print\n",
    "image = event.array()": 'run = weir.open("reduced")\nevent = run[3]\n',
    "matrix = event.csr()": f'event = weir.open("reduced")[3]\n{SCIPY}',
    "block = run[1000]": 'run = weir.open("blocks")\n',
}


class Python(Case):
    def run_page(self, page, blocks):
        """All blocks of the page, one after the other, in one interpreter."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ROOT / "examples", self.path("examples"))
        (self.folder / "data").mkdir()
        for command in MADE[page]:
            weir(*command.split(), trap=False, cwd=self.folder)
        text = FRONT.get(page, "") + "".join(blocks) + BEHIND.get(page, "")
        if page == "docs/reference/HDF5.md":
            # A reader that follows a run reads on for ever; here it looks twice at one that is finished and still has its hidden name.
            shutil.copytree(self.path("data/run-000007"), self.path("data/.run-000007.part"))
            text, loops = re.subn(r"(?m)^while True:", "for _ in range(2):", text)
            self.assertEqual(loops, 1)
            text = text.replace('("/data/', f'("{self.folder}/data/')
        self.python(page, text)

    def test_the_indented_ones_of_the_page_on_reading_run(self):
        """Those are about other runs: one that is calibrated and sparse, one of multi-event packets."""
        page = (ROOT / "docs" / "guides" / "READING.md").read_text()
        blocks = [re.sub(r"(?m)^ {4}", "", block) for block in re.findall(r"(?<=\n\n)((?: {4}.*\n)+)", page)]
        blocks = [block for block in blocks if not documented.is_command(block.split("\n")[0])]
        shutil.copytree(ROOT / "examples", self.path("examples"))
        for line in (*RUN, *(line.replace("run.pcap", "other.pcap") for line in RUN[:1])):
            weir(*line.format(run="run7").split(), trap=False, cwd=self.folder)
        for gain, value in enumerate((2700, 13600, 14100)):
            self.path(f"g{gain}.f32").write_bytes(numpy.full((2, 512, 1024), value, "f4").tobytes())
        chain = ENERGIES.replace('"gainMaps.bin"', "[41.0, -1.439, -0.1145]") + 'photon_kev = 12.4\nunit = "photon"\n[[reduce]]\nkind = "sparse"\nthreshold = 0.5\n'
        self.path("reduced.toml").write_text(config(stream(), more=chain))
        weir("replay", "other.pcap", "--config", "reduced.toml", "--out", "reduced", "--quiet", trap=False, cwd=self.folder)
        message = mfp_packets.block(1000, [(1, b"abc")] * 20)
        frames = [packets.udp(packets.ejfat(1000, message, 0, len(message)), packets.EJFAT_PORT + source) for source in range(2)]
        self.path("mfp.pcap").write_bytes(packets.pcap_bytes(packets.stamped(frames)))
        self.path("mfp.toml").write_text(config(stream(format="ejfat"), more='[[reduce]]\nkind = "mfp"\n'))
        weir("replay", "mfp.pcap", "--config", "mfp.toml", "--out", "blocks", "--quiet", trap=False, cwd=self.folder)
        for block in blocks:
            front = [text for begins, text in READING.items() if block.startswith(begins)]
            self.assertEqual(len(front), 1, f"READING.md: nobody runs\n{block}")
            self.python("docs/guides/READING.md", "import weir\n" + front[0] + block)
        self.assertEqual(len(blocks), len(READING))

    def python(self, page, text):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=self.folder, timeout=TIMEOUT_S,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(done.returncode, 0, f"{page}\n{text}\n{done.stderr}")

    def test_every_page_runs(self):
        pages = {}
        for page, _, text in documented.blocks_in_tree(ROOT, "python"):
            pages.setdefault(page, []).append(text)
        self.assertEqual(sorted(set(pages) - set(MADE) - set(ELSEWHERE)), [], "pages with Python that nobody runs: add them to MADE")
        self.assertEqual(sorted((set(MADE) | set(ELSEWHERE)) - set(pages)), [], "these have no Python any more")
        for page in MADE:
            if page == "docs/reference/HDF5.md" and any(importlib.util.find_spec(name) is None for name in ("h5py", "hdf5plugin")):
                continue  # Debian: python3-h5py, python3-hdf5plugin
            self.run_page(page, pages[page])


if __name__ == "__main__":
    main()
