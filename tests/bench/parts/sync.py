# SPDX-License-Identifier: MIT
"""
What a sync between a workspace and its isolated copy costs, from the request to the answer through
the whole broker, beside programs that do something similar with the same trees in the same run.
Everything runs at ordinary priority. Every synced tree is compared.
"""

import contextlib
import os
import shutil
import threading
import time

from editor import Editor, rollup, tree
from harness import Result, Row, median, median_and_spread, number, size
from parts import trees
from parts.toolhost import ordinary_priority

NAME = "sync"
MIB = 1024 * 1024
FILES, FILE_BYTES = 50000, 4096
CHANGED = 10
FIRST_FILES, FIRST_FILE_BYTES = 8000, 65536  # 500 MiB
BIG_BYTES, SPLIT_BYTES = 2048 * MIB, 500 * MIB
MEMORY_KIB = 64 * 1024
REPEAT = 5
BIG_REPEAT = 3
CONFIG = '[profile "copy"]\n\tisolation = copy\n\tstart-timeout = 600s\n'

# Key, description, the largest allowed ratio to the other program's time, and the text for that.
TIMES = [
    ("scan", "50,000 files, none changed: looking at them; `git status`", 1.5),
    ("still", "the same, a whole sync; `rsync -a`", None),
    ("here", "10 of them changed in the workspace; `rsync -a`", 1.0),
    ("there", "10 of them changed in the copy; `rsync -a` back", 1.0),
    ("add", "10 of them changed in the workspace; `git add -A`", None),
    ("unison", "10 of them changed in the workspace; `unison -batch`", None),
    ("mutagen", "10 of them changed in the workspace; `mutagen sync flush`", None),
    ("first", "first sync of 500 MiB in 8,000 files;"
              " `cp -r` and `git clone --local --no-hardlinks`", 1.5),
    ("sparse", "a new sparse file of 2 GiB; `rsync -aS`", None),
    ("full", "a new full file of 2 GiB; `rsync -a`", None),
    ("split", "1 MiB changed of a file of 500 MiB; `rsync -a`", None),
]


class Watch:
    """
    The largest amount of private memory that all processes of the broker hold in the meantime.
    """

    def __init__(self, editor, broker):
        self.editor = editor
        self.broker = os.path.realpath(broker)
        self.highest_kib = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def held_kib(self):
        held = 0
        for pid in tree(self.editor.child.pid, self.editor.agent):
            try:
                if os.readlink(f"/proc/{pid}/exe") == self.broker:
                    held += rollup(pid, "Private_Clean", "Private_Dirty")
            except OSError:
                pass
        return held

    def look(self):
        while not self.is_over.wait(0.02):
            self.highest_kib = max(self.highest_kib, self.held_kib())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def timed(action, *arguments):
    begin = time.monotonic()
    action(*arguments)
    return time.monotonic() - begin


def copy_words(bench):
    """The words that go before the agent's command so that it works in a copy here."""
    config = os.path.join(bench.scratch, "copy.config")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    return [bench.broker, "--config", config, "--profile", "copy", "--"]


class Copy:
    """
    A workspace, and a session whose agent works in a copy of it. Without a broker there is only the
    workspace, and no time is measured.
    """

    def __init__(self, bench, name, words=None):
        self.bench = bench
        self.words = words or copy_words(bench)
        self.root = os.path.join(bench.scratch, name)
        self.runtime = None
        self.editor = None
        self.session = None
        self.highest_kib = 0
        os.makedirs(self.root, exist_ok=True)

    def start(self):
        """The seconds from the request for a session until it is there, with its copy."""
        if not self.bench.broker:
            return None
        self.editor = Editor(self.bench, self.words)
        self.editor.__enter__()
        took = self.watched(self.open)
        asked = self.editor.call("_broker/session/status", {"sessionId": self.session})
        self.runtime = asked["runtimeRoot"]
        self.check()
        return took

    def open(self):
        self.session = self.editor.open_session(self.root)

    def ask(self):
        self.editor.call("_broker/sync", {"sessionId": self.session})

    def sync(self):
        """The seconds of one sync; checks what the sync did."""
        if not self.editor:
            return None
        took = self.watched(self.ask)
        self.check()
        return took

    def watched(self, action):
        with Watch(self.editor, self.bench.broker) as watch:
            took = timed(action)
        self.highest_kib = max(self.highest_kib, watch.highest_kib)
        return took

    def check(self):
        trees.check_same(self.bench, self.root, self.runtime)

    def __enter__(self):
        return self

    def close(self):
        """Ends the session; the workspace stays."""
        if self.editor:
            self.editor.__exit__()
        shutil.rmtree(self.runtime or "", ignore_errors=True)

    def __exit__(self, *_):
        self.close()
        shutil.rmtree(self.root, ignore_errors=True)


class Samples:
    """Seconds of the broker and of the other program, by the keys of TIMES."""

    def __init__(self, bench):
        self.bench = bench
        self.taken = {}
        self.highest_kib = {}

    def add(self, key, broker, plain):
        self.taken.setdefault(key, []).append({"broker": broker, "plain": plain})

    def compare(self, key, broker, *commands):
        """
        Measures the commands that the broker is compared with; does nothing if one is not
        installed.
        """
        if all(shutil.which(argv[0]) for argv in commands):
            self.add(key, broker, sum(timed(trees.run, self.bench, *argv) for argv in commands))


def rsync(root, target, options="-a"):
    return ["rsync", options, "--delete", "--exclude=/.git", root + "/", target + "/"]


def unison(root, target):
    return ["unison", "-batch", "-silent", "-ignore", "Path .git", root, target]


@contextlib.contextmanager
def mutagen(bench, root, target):
    """The command that syncs once; if mutagen is not installed, a command that cannot be found."""
    name = f"acp-bench-{os.getpid()}"
    if shutil.which("mutagen"):
        trees.run(bench, "mutagen", "sync", "create", "--name", name, "--ignore-vcs",
                  "--watch-mode=no-watch", root, target)
        trees.run(bench, "mutagen", "sync", "flush", name)
    yield ["mutagen", "sync", "flush", name]
    if shutil.which("mutagen"):
        trees.run(bench, "mutagen", "sync", "terminate", name)
        trees.run(bench, "mutagen", "daemon", "stop")


def scan_seconds(copy):
    """The seconds of the third of three snapshots; each has the one before as its base."""
    if not copy.editor:
        return None
    store = os.path.join(copy.bench.scratch, "scan-store")
    snapshots = copy.bench.tool("sync_snapshot")
    lines = trees.run(copy.bench, snapshots, store, copy.root, "3", "based")
    return float(lines.decode().splitlines()[-1].split()[0])


def measure_turn(samples, copy, total, mark):
    """Nothing changed, then 10 files here, then 10 there. rsync gets the same work each time."""
    beside = copy.root + "-rsync"
    status = ["git", "-C", copy.root, "status", "--short"]
    samples.compare("scan", scan_seconds(copy), status)
    samples.compare("still", copy.sync(), rsync(copy.root, beside))
    trees.change_files(copy.root, CHANGED, total, mark)
    here = copy.sync()
    samples.compare("here", here, rsync(copy.root, beside))
    samples.compare("add", here, ["git", "-C", copy.root, "add", "-A"])
    samples.compare("unison", here, unison(copy.root, copy.root + "-unison"))
    samples.compare("mutagen", here, copy.mutagen)
    trees.change_files(copy.runtime or copy.root, CHANGED, total, mark + " there")
    samples.compare("there", copy.sync(), rsync(copy.root, beside))


def measure_many(samples):
    """50,000 files: none changed, then 10 of them."""
    bench, total = samples.bench, samples.bench.count(FILES)
    with Copy(bench, "many") as copy:
        trees.make_files(copy.root, total, FILE_BYTES)
        trees.make_repository(bench, copy.root)
        for argv in (rsync(copy.root, copy.root + "-rsync"),
                     unison(copy.root, copy.root + "-unison")):
            os.mkdir(argv[-1])
            if shutil.which(argv[0]):
                trees.run(bench, *argv)
        copy.start()
        with mutagen(bench, copy.root, copy.root + "-mutagen") as copy.mutagen:
            for i in range(min(REPEAT, bench.repeat)):
                measure_turn(samples, copy, total, f"turn {i}")
    samples.highest_kib["many"] = copy.highest_kib


def measure_first(samples):
    """A workspace of 500 MiB that has no copy yet."""
    bench = samples.bench
    for i in range(min(BIG_REPEAT, bench.repeat)):
        with Copy(bench, f"first-{i}") as copy:
            trees.make_files(copy.root, bench.count(FIRST_FILES), FIRST_FILE_BYTES)
            trees.make_repository(bench, copy.root)
            beside = [copy.root + "-cp", copy.root + "-clone"]
            samples.compare("first", copy.start(), ["cp", "-r", copy.root, beside[0]],
                            ["git", "clone", "-q", "--local", "--no-hardlinks", copy.root,
                             beside[1]])
        for path in beside:
            shutil.rmtree(path)
        samples.highest_kib["first"] = max(samples.highest_kib.get("first", 0), copy.highest_kib)


def measure_big(samples):
    """A new sparse file, a new full file, and a file that has changed in one part."""
    bench = samples.bench
    big, split = bench.count(BIG_BYTES), bench.count(SPLIT_BYTES)
    with Copy(bench, "big") as copy:
        beside = copy.root + "-rsync"
        path = os.path.join(copy.root, "big")
        copy.start()
        for i in range(min(BIG_REPEAT, bench.repeat)):
            for key, size_bytes, options in (("sparse", big, "-aS"), ("full", big, "-a")):
                trees.make_big(path, size_bytes, key == "sparse")
                shutil.rmtree(beside, ignore_errors=True)
                samples.compare(key, copy.sync(), rsync(copy.root, beside, options))
                os.unlink(path)
                copy.sync()
            trees.make_big(path, split, False)
            copy.sync()
            samples.compare("split before", None, rsync(copy.root, beside))
            trees.change_big(path, split, str(i))
            samples.compare("split", copy.sync(), rsync(copy.root, beside))
            os.unlink(path)
    samples.highest_kib["big"] = copy.highest_kib


def time_row(what, most, taken):
    row = Row(what, bare=number(median([one["plain"] for one in taken]), "s"))
    row.target = f"≤ {most:g} ×" if most else ""
    if taken[0]["broker"] is not None:
        row.broker = number(median([one["broker"] for one in taken]), "s")
        ratios = [one["broker"] / one["plain"] for one in taken]
        row.compared = "× " + median_and_spread(ratios)
        row.met = median(ratios) <= most if most else None
    return row


def memory_row(highest):
    return Row("private memory of the broker, the most in all of these", broker=size(highest),
               target="≤ 64 MiB", met=highest <= MEMORY_KIB)


def run(bench):
    samples = Samples(bench)
    with ordinary_priority():
        measure_many(samples)
        measure_first(samples)
        measure_big(samples)
    result = Result(against="the other", samples={"seconds": samples.taken,
                                                  "memory": samples.highest_kib})
    for key, what, most in TIMES:
        if key in samples.taken:
            result.rows.append(time_row(what, most, samples.taken[key]))
    if bench.broker:
        result.rows.append(memory_row(max(samples.highest_kib.values())))
    return result
