# SPDX-License-Identifier: MIT
"""How much later the answer to `initialize` comes through a relay than from the agent alone."""

import os

from harness import MARK, Result, Row, median, number

NAME = "start"
LIMIT_MS = 5.0
STARTS = 4  # this many times the repetitions, because a start is short
CONFIGURATION = '[broker]\n\tprofile = here\n[profile "here"]\n\tbackend = local\n'


def start_row(what, times, name):
    """One way to start the broker, and the bare relay: how much later than the agent alone."""
    row = Row(what, direct=number(median(times["direct"]), "ms"))
    row.target = f"≤ {LIMIT_MS:.0f}{MARK}ms"
    more = {route: [ours - direct for ours, direct in zip(times[route], times["direct"])]
            for route in ("bare", name) if route in times}
    row.bare = f"{median(more['bare']):.1f}{MARK}ms"
    if name in more:
        row.broker = (f"{median(more[name]):.1f}{MARK}ms"
                      f" ({min(more[name]):.1f}–{max(more[name]):.1f})")
        row.met = median(more[name]) <= LIMIT_MS
    return row


def run(bench):
    routes = bench.routes()
    if bench.broker:
        path = os.path.join(bench.scratch, "configuration")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION)
        routes["configured"] = [bench.broker, "--config", path, "--"]
    bench.interleaved(["start"], repeat=2, routes=routes)  # fills the page cache
    taken = bench.interleaved(["start"], repeat=bench.repeat * STARTS, routes=routes)
    times = {route: [run["start_ms"] for run in runs] for route, runs in taken.items()}
    return Result(samples={"start": taken}, rows=[
        start_row("start to the answer of `initialize`, beyond the agent's own", times, "broker"),
        start_row("the same with a configuration file", times, "configured")])
