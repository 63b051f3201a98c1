# SPDX-License-Identifier: MIT
"""
What a sync with another host costs, near and far: both transports, beside `rsync -a` and `git push`
over `ssh` of the same tree in the same run. Every synced tree is compared.

The clock counts round trips: an unchanged sync is measured with the delay and without it, one right
after the other in the same session. The difference, divided by the delay, is the number.
"""

import contextlib
import os
import shutil
import sys
import time

from far import Host, is_possible
from harness import Result, Row, median, median_and_spread
from parts import trees
from parts.sync import CHANGED, FILES, FILE_BYTES, Copy, Samples, rsync, time_row, timed
from parts.toolhost import ordinary_priority

NAME = "ssh-sync"
TRANSPORTS = [name for name in ("git", "rsync") if shutil.which(name)]
SESSIONS = 2     # with each transport, near and far: with 50,000 files each takes half a minute
TURNS = 5        # in each session
ROUNDS = 3       # in each session: unchanged syncs without the delay and with it
ROUNDS_MOST = 2  # for an unchanged sync
SETTLED = 4      # s after the last change; from then on a sync need not doubt what it has seen
# s to wait after many files were removed. ext4 skips recently freed inodes one by one, so a program
# that then makes 50,000 files would pay for the removed ones.
FORGOTTEN = 61

# Key, description, and the largest allowed ratio to the time of `rsync -a`.
TIMES = [("first", "first sync of 50,000 files", None),
         ("still", "50,000 files, none changed", None),
         ("here", "10 of them changed in the workspace", 1.0),
         ("there", "10 of them changed there", 1.0)]


@contextlib.contextmanager
def fresh_state(bench):
    """A broker that starts in this context has never seen the workspace."""
    before = bench.env["XDG_STATE_HOME"]
    bench.env["XDG_STATE_HOME"] = os.path.join(bench.scratch, "state-fresh")
    os.mkdir(bench.env["XDG_STATE_HOME"], mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(bench.env["XDG_STATE_HOME"], ignore_errors=True)
        bench.env["XDG_STATE_HOME"] = before


class Others:
    """
    The programs that the broker is compared with. Each has its own copy there, and connects each
    time, as for a user.
    """

    def __init__(self, place, root):
        self.place = place
        self.root = root
        self.ssh = " ".join(place.ssh)
        self.mirror = os.path.join(place.host.home, "rsync")
        self.pulled = root + "-pulled"
        self.pushed = os.path.join(place.host.home, "pushed")
        self.git = ["git", f"--git-dir={root}-push.git", f"--work-tree={root}", "-c",
                    "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0",
                    "-c", f"core.sshCommand={self.ssh}"]

    def rsync(self, what):
        there = f"{self.place.name}:{self.mirror}"
        words = rsync(there, self.pulled) if what == "there" else rsync(self.root, there)
        return [[*words[:2], "-e", self.ssh, *words[2:]]]

    @contextlib.contextmanager
    def changed_there(self, total, mark):
        """In this context, files there have changed and have not been pulled yet."""
        run = self.place.host.run
        run(*rsync(self.mirror, self.pulled))
        trees.change_files(self.mirror, CHANGED, total, mark)
        yield
        trees.check_same(self.place.host.bench, self.mirror, self.pulled)
        run(*rsync(self.root, self.mirror))

    def commit(self):
        """Commands that look for changes and commit them."""
        return [[*self.git, "add", "-A"], [*self.git, "commit", "-q", "--allow-empty", "-mall"]]

    def push(self, what):
        """Commands that bring the tree there by git; the first push sends an earlier commit."""
        steps = {"first": [], "still": self.commit()[:1]}.get(what, self.commit())
        return [*steps, [*self.git, "push", "-q", f"{self.place.name}:{self.pushed}", "HEAD:main"]]

    def forget(self):
        """Removes everything that is there."""
        for words in self.commit():
            self.place.host.run(*words)
        for path in (self.mirror, self.pushed, self.pulled):
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(self.mirror)
        os.mkdir(self.pulled)
        self.place.host.run("git", "init", "-q", "-b", "main", self.pushed)
        self.place.host.run("git", "-C", self.pushed, "config", "receive.denyCurrentBranch",
                            "updateInstead")

    def check(self, transport):
        for words in self.push("last") if transport == "git" else []:
            self.place.host.run(*words)
        for path in (self.mirror, self.pushed) if transport == "git" else (self.mirror,):
            trees.check_same(self.place.host.bench, self.root, path)


class Far(Copy):
    """A workspace, and a session whose agent works on the host."""

    def __init__(self, bench, place, transport):
        self.transport = transport
        words = place.broker(transport=transport) if bench.broker else []
        super().__init__(bench, "there", words)

    def watched(self, action):
        return timed(action)


def key_of(place, transport, other, what):
    return f"{place.name} {transport} {other} {what}"


def compare(samples, copy, others, what, took):
    """Measures the same with the other programs, right after the broker."""
    place, transport = others.place, copy.transport
    samples.compare(key_of(place, transport, "rsync", what), took, *others.rsync(what))
    if transport == "git" and what != "there":  # a push only goes there
        samples.compare(key_of(place, transport, "push", what), took, *others.push(what))


def measure_turn(samples, copy, others, total, mark):
    compare(samples, copy, others, "still", copy.sync())
    trees.change_files(copy.root, CHANGED, total, mark)
    compare(samples, copy, others, "here", copy.sync())
    trees.change_files(copy.runtime or copy.root, CHANGED, total, mark + " there")
    took = copy.sync()
    with others.changed_there(total, mark + " there"):
        compare(samples, copy, others, "there", took)


def measure_rounds(copy, place):
    """How much longer an unchanged sync takes with the delay, in round trips; a list of values."""
    if not copy.editor or not place.proxy:
        return []
    taken, delay = [], place.proxy.delay
    time.sleep(SETTLED)
    copy.ask()
    for _ in range(ROUNDS):
        place.proxy.delay = 0
        near = timed(copy.ask)
        place.proxy.delay = delay
        taken.append((timed(copy.ask) - near) / place.host.round_trip)
    return taken


def measure_session(samples, rounds, place, transport, total):
    bench = samples.bench
    print(f"bench: ssh-sync: {place.name}, by {transport}", file=sys.stderr)
    with fresh_state(bench), contextlib.closing(Far(bench, place, transport)) as copy:
        others = Others(place, copy.root)
        others.forget()
        os.sync()
        time.sleep(0 if bench.quick else FORGOTTEN)
        compare(samples, copy, others, "first", copy.start())
        for i in range(1 if bench.quick else TURNS):
            measure_turn(samples, copy, others, total, f"{os.urandom(4).hex()} {i}")
        others.check(transport)
        rounds.setdefault(f"{place.name} {transport}", []).extend(measure_rounds(copy, place))


def rounds_row(what, taken):
    row = Row(what, broker=f"{median(taken):.1f}", target=f"≤ {ROUNDS_MOST}, rounded")
    row.compared = median_and_spread(taken)
    row.met = round(median(taken)) <= ROUNDS_MOST  # the nearest whole one
    return row


def add_rows(result, host, taken, rounds):
    for place in host.places():
        for transport in TRANSPORTS:
            for key, what, most in TIMES:
                for other, name in (("rsync", "`rsync -a`"), ("push", "`git push`")):
                    runs = taken.get(key_of(place, transport, other, key))
                    if runs:
                        row = time_row(f"{what}{place.what}, by {transport}; {name}",
                                       most if other == "rsync" else None, runs)
                        row.in_docs = other == "rsync" or not place.proxy
                        result.rows.append(row)
            if rounds.get(f"{place.name} {transport}"):
                result.rows.append(rounds_row("round trips that an unchanged sync waits for, by "
                                              f"{transport}",
                                              rounds[f"{place.name} {transport}"]))


def measure(result, bench, host):
    samples, rounds = Samples(bench), {}
    total = bench.count(FILES)
    root = os.path.join(bench.scratch, "there")
    trees.make_files(root, total, FILE_BYTES)
    trees.make_repository(bench, root)
    shutil.copytree(os.path.join(root, ".git"), root + "-push.git")
    for _ in range(min(SESSIONS, bench.repeat)):
        for place in host.places():
            for transport in TRANSPORTS:
                measure_session(samples, rounds, place, transport, total)
    result.samples["seconds"], result.samples["rounds"] = samples.taken, rounds
    add_rows(result, host, samples.taken, rounds)


def run(bench):
    result = Result(against="the other", samples={"seconds": {}, "rounds": {}})
    if not is_possible():
        print("bench: ssh-sync: there is no sshd: not measured", file=sys.stderr)
        return result
    with ordinary_priority(), Host(bench) as host:
        measure(result, bench, host)
    return result
