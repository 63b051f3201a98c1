# SPDX-License-Identifier: MIT
"""What the parts of the benchmark share: routes, placements, one run of the client, rows."""

import json
import os
import statistics
import subprocess
from dataclasses import dataclass, field

MARK = "\N{NO-BREAK SPACE}"  # keeps a number and its unit in one line of the table


class BenchError(Exception):
    """The measured program did not work, so its speed means nothing."""


@dataclass
class Row:
    """One line of the table: a text for each route, the comparison, and the target."""

    what: str
    direct: str = ""
    bare: str = ""
    other: str = ""
    broker: str = ""
    compared: str = ""
    target: str = ""
    met: bool | None = None
    in_docs: bool = True

    def cells(self, columns):
        verdict = {None: "", True: " – met", False: " – **missed**"}[self.met]
        return [self.what, *(getattr(self, column) for column in columns), self.target + verdict]


@dataclass
class Result:
    rows: list = field(default_factory=list)
    samples: dict = field(default_factory=dict)  # all measured values, for --json
    against: str = "bare relay"  # the counterpart of the broker: the heading of that column
    columns: dict | None = None  # {name in a row: heading}, if the table has other columns


def number(value, unit):
    """Three significant digits and the unit."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{MARK}{unit}"


def size(kib):
    """KiB, or MiB if that is shorter."""
    if kib >= 1024:
        return f"{kib / 1024:.1f}{MARK}MiB"
    return f"{kib:.{0 if kib >= 10 else 1}f}{MARK}KiB"


def median_and_spread(values, unit=""):
    """The median, and the lowest and highest beside it."""
    unit = MARK + unit if unit else ""
    return (f"{statistics.median(values):.2f}{unit}"
            f" ({min(values):.2f}–{max(values):.2f})")


def median(values):
    return statistics.median(values) if values else None


class Bench:
    """The programs, a scratch directory, and how often everything is repeated."""

    def __init__(self, broker, tools, scratch, repeat, quick):
        self.broker = broker  # None: measures only its counterparts
        self.tools = tools
        self.repeat = repeat
        self.quick = quick
        # Memory that a program returns within this time after its use counts as returned.
        self.settle_seconds = 0.05 if quick else 1.5
        self.work = os.path.join(scratch, "work")
        os.makedirs(self.work, exist_ok=True)
        self.scratch = scratch
        self.env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8",
                    "HOME": scratch}
        for name in ("CONFIG", "STATE", "CACHE", "DATA", "RUNTIME"):
            home = os.path.join(scratch, name.lower())
            os.makedirs(home, mode=0o700, exist_ok=True)
            self.env[f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}"] = home

    def tool(self, name):
        return os.path.join(self.tools, name)

    def count(self, count):
        """A smaller number if only the benchmark itself is tested."""
        return max(2, count // 100) if self.quick else count

    def routes(self):
        """Each way to the agent, as the words that go before the agent's command."""
        routes = {"direct": [], "bare": [self.tool("bare_relay")]}
        if self.broker:
            routes["broker"] = [self.broker, "--"]
        return routes

    def command(self, words, placement="free"):
        """The words of a route, then the agent's; each of the two runs on its own processor."""
        relay, agent = [], []
        if placement == "two":
            relay = ["taskset", "-c", "1"] if words else []
            agent = ["taskset", "-c", "0" if words else "1"]
        return relay + words + agent + [self.tool("load_agent")]

    def client(self, measure, words, placement="free"):
        """Runs the load client once over one route; returns what it measured."""
        front = [] if placement == "free" else ["taskset", "-c", "0"]
        argv = front + [self.tool("load_client"), *measure, "--", *self.command(words, placement)]
        done = subprocess.run(argv, cwd=self.work, env=self.env, capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode != 0:
            raise BenchError(f"{' '.join(argv)}\nended with {done.returncode}:\n"
                             f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return json.loads(done.stdout)

    def interleaved(self, measure, placement="free", repeat=None, routes=None):
        """The same measurement over every route in turn, again and again: {route: [...]}."""
        routes = routes or self.routes()
        taken = {name: [] for name in routes}
        for _ in range(repeat or self.repeat):
            for name, words in routes.items():
                taken[name].append(self.client(measure, words, placement))
        return taken


def placements():
    """Where the processes run; `two` needs two processors that this process may use."""
    usable = os.sched_getaffinity(0)
    return ["one", "two"] if {0, 1} <= usable else ["one"]
