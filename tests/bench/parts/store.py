# SPDX-License-Identifier: MIT
"""
How much a workspace's store grows. In each turn a few lines of small files change here, and a few
places of a big binary in the copy. git commits the same files for comparison. Every synced tree is
compared.
"""

import os
import random
import statistics

from harness import Result, Row
from harness import size as size_text
from parts import trees
from parts.ssh_sync import fresh_state
from parts.sync import CONFIG, Copy
from parts.toolhost import ordinary_priority

NAME = "store"
TURNS = 50
QUICK_TURNS = 3
GIT_TURNS = 5           # git needs the same space in each turn
FILES, FILE_BYTES = 100, 4096
CHANGED = 5             # of the files, a line in each
BINARY_BYTES = 40 * 1000 * 1000
PLACES, PLACE_BYTES = 4, 1024
MOST = 16               # times the changed bytes that a version of the binary may take


def words_of(bench):
    """
    In a test of the benchmark the binary is small, and a lower limit makes it big all the same.
    """
    config = os.path.join(bench.scratch, "store.config")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG + ("\tbig-file = 100k\n" if bench.quick else ""))
    return [bench.broker, "--config", config, "--profile", "copy", "--"]


def bytes_below(path):
    """The disk space of the files below a folder."""
    return sum(os.lstat(os.path.join(folder, name)).st_blocks * 512
               for folder, _, names in os.walk(path) for name in names)


class Growth:
    """How much the store has grown since the last call: by big files, and by everything else."""

    def __init__(self, bench):
        stores = os.path.join(bench.env["XDG_STATE_HOME"], "acp-broker", "stores")
        self.store = os.path.join(stores, os.listdir(stores)[0])
        self.big = self.all = 0
        self.take()

    def take(self):
        big = sum(bytes_below(os.path.join(self.store, name)) for name in ("big", "delta"))
        every = bytes_below(self.store)
        grown = big - self.big, every - big - (self.all - self.big)
        self.big, self.all = big, every
        return grown


class Beside:
    """A git repository with the same files."""

    def __init__(self, bench, root):
        self.bench = bench
        self.folder = root + "-beside.git"
        self.git = ["git", f"--git-dir={self.folder}", f"--work-tree={root}", "-c", "user.name=a",
                    "-c", "user.email=a@b", "-c", "gc.auto=0"]
        trees.run(bench, "git", "init", "-q", "--bare", self.folder)
        self.bytes = 0
        self.grown()

    def grown(self):
        trees.run(self.bench, *self.git, "add", "-A")
        trees.run(self.bench, *self.git, "commit", "-q", "--allow-empty", "-mall")
        before, self.bytes = self.bytes, bytes_below(self.folder)
        return self.bytes - before


def change_binary(path, chance):
    """Changes bytes at some places of the binary."""
    with open(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        for _ in range(PLACES):
            file.seek(chance.randrange(end - PLACE_BYTES))
            file.write(chance.randbytes(PLACE_BYTES))


def measure(bench, copy):
    """
    Returns [(bytes for the binary, for the files, in git)] of each turn; git's only for some turns.
    """
    chance = random.Random(1)
    binary = os.path.join(copy.root, "data.bin")
    trees.make_files(copy.root, FILES, FILE_BYTES)
    with open(binary, "wb") as file:
        file.write(chance.randbytes(bench.count(BINARY_BYTES)))
    copy.start()
    growth = Growth(bench) if copy.editor else None
    beside, taken = Beside(bench, copy.root), []
    for i in range(QUICK_TURNS if bench.quick else TURNS):
        trees.change_files(copy.root, CHANGED, FILES, f"{i:08}")
        change_binary(os.path.join(copy.runtime or copy.root, "data.bin"), chance)
        copy.sync()
        grown = growth.take() if growth else (None, None)
        taken.append((*grown, beside.grown() if i < GIT_TURNS else None))
    return taken


def row_of(what, changed, taken, index):
    """The mean of all turns: once in a while a version is stored in another way."""
    git = [turn[2] for turn in taken if turn[2] is not None]
    row = Row(what, bare=size_text(statistics.mean(git) / 1024) if index is None else "")
    grown = [sum(turn[:2]) if index is None else turn[index] for turn in taken
             if turn[0] is not None]
    if grown:
        mean = statistics.mean(grown)
        row.broker = size_text(mean / 1024)
        row.compared = (f"× {mean / statistics.mean(git):.4f}" if index is None else
                        f"{mean / changed:.1f} × what changed")
        if index == 0:
            row.target, row.met = f"≤ {MOST} × what changed", mean <= MOST * changed
    return row


def run(bench):
    with ordinary_priority(), fresh_state(bench):
        with Copy(bench, "store", words_of(bench) if bench.broker else []) as copy:
            taken = measure(bench, copy)
    binary, lines = PLACES * PLACE_BYTES, CHANGED * len("/* 00000000 */\n")
    result = Result(against="the other", samples={"bytes": taken})
    result.rows = [
        row_of(f"the store grows a turn, {PLACES} KiB of a 40 MB binary and {CHANGED} of 100 small"
               " files changed; git's loose objects", binary + lines, taken, None),
        row_of("of that for the binary", binary, taken, 0),
        row_of("of that for the files, and to name all of it: 4 KiB for each object", lines, taken,
               1),
    ]
    return result
