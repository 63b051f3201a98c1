# SPDX-License-Identifier: MIT
"""
What an agent on another host costs, beside `ssh HOST AGENT` to the same sshd in the same run:
messages, launches and commands. Nothing is synced. Everything runs at ordinary priority.
"""

import os
import sys

from editor import Editor
from far import Host, is_possible
from harness import Result, Row, median, median_and_spread
from parts.relay import SIZES, compare
from parts.sync import timed
from parts.toolhost import ordinary_priority, time_text

NAME = "ssh"
P50_MOST, THROUGHPUT_LEAST = 1.2, 0.8
CLIENTS = {"broker": "libssh2", "openssh": "openssh"}  # route: its client
STARTS = 3  # times the repetitions
NO_SYNC = {"sync": "none"}

# Mode, shape, and how often near and far.
MESSAGES = [("echo", "small", 8000, 30), ("echo", "string", 40, 4), ("stream", "string", 100, 40)]
COMMANDS = (40, 6)
OPENED = (10, 4)


def routes(bench, place):
    """
    `ssh` and each client of the broker; far away only the usual client, because it takes long.
    """
    found = {"bare": place.cold}
    for route, client in CLIENTS.items() if bench.broker else ():
        if route == "broker" or not place.proxy:
            found[route] = place.broker(client, **NO_SYNC)
    return found


def by_client(taken, route):
    """The measurements of `ssh` and of one client, as if that were the only client."""
    return {"bare": taken["bare"], "broker": taken[route]} if route in taken else taken


def rows_of(what, place, taken, key, unit, scale=1.0):
    """A row for each measured client: (row, ratio)."""
    for route, client in CLIENTS.items():
        if route in taken or (route == "broker" and len(taken) == 1):
            row = Row(f"{what}{place.what}; {client}" if len(taken) > 1 else what + place.what,
                      in_docs=route == "broker" or not place.proxy)
            yield row, compare(row, by_client(taken, route), key, unit, scale)


def aim(row, ratio, limit, is_most):
    row.target = f"{'≤' if is_most else '≥'} {limit} ×"
    if ratio is not None:
        row.met = ratio <= limit if is_most else ratio >= limit
    return row


def message_rows(mode, shape, place, taken):
    if mode == "stream":
        for row, ratio in rows_of(f"throughput {SIZES[shape]}", place, taken, "mib_per_s",
                                  "MiB/s"):
            yield aim(row, ratio, THROUGHPUT_LEAST, False)
        return
    for key, name in (("p50_us", "p50"), ("p99_us", "p99")):
        for row, ratio in rows_of(f"round trip {SIZES[shape]}, {name}", place, taken, key, "µs"):
            yield aim(row, ratio, P50_MOST, True) if name == "p50" else row


def measure_messages(result, bench, place):
    for mode, shape, near, far in MESSAGES:
        count = str(bench.count(far if place.proxy else near))
        taken = bench.interleaved([mode, shape, count], routes=routes(bench, place))
        result.samples[f"{mode} {shape} {place.name}"] = taken
        result.rows.extend(message_rows(mode, shape, place, taken))


def measure_cold(result, bench, place):
    """Measures the time from nothing to a session that takes prompts."""
    repeat = bench.repeat * (1 if place.proxy or bench.quick else STARTS)
    taken = bench.interleaved(["open"], repeat=repeat, routes=routes(bench, place))
    result.samples[f"cold {place.name}"] = taken
    result.rows.extend(row for row, _ in rows_of("launch to the answer of `session/new`, cold",
                                                 place, taken, "start_ms", "ms"))


def pair_row(what, pairs):
    """A row with the seconds of `ssh` and of the broker, or of `ssh` alone."""
    row = Row(what, bare=time_text(median([plain for plain, _ in pairs]) * 1e6))
    ours = [ours for _, ours in pairs if ours is not None]
    if ours:
        row.broker = time_text(median(ours) * 1e6)
        row.compared = "× " + median_and_spread([ours / plain for plain, ours in pairs])
    return row


def open_further(bench, editor, number):
    """The seconds to open a session in a directory that is new to the running broker."""
    path = os.path.join(bench.scratch, f"further-{number}")
    os.makedirs(path, exist_ok=True)
    return timed(editor.open_session, path)


def measure_warm(result, bench, place):
    """Measures a session over an open connection: ssh's own, and the running broker's."""
    measure, pairs = ["open"], []

    def opened(editor):
        for _ in range(OPENED[bool(place.proxy)] * bench.repeat // 2 or 1):
            plain = bench.client(measure, place.warm)["start_ms"] / 1e3
            pairs.append((plain, editor and open_further(bench, editor, len(pairs))))

    with_session(bench, place, opened)
    result.samples[f"warm {place.name}"] = pairs
    result.rows.append(pair_row(f"a further session over an open connection{place.what};"
                                " `ssh` with a control socket starts another agent", pairs))


def with_session(bench, place, action):
    """Calls the action with an editor whose broker is connected, or with None."""
    if not bench.broker:
        action(None)
        return
    with Editor(bench, place.broker(**NO_SYNC)) as editor:
        editor.session = editor.open_session()
        action(editor)


def measure_commands(result, bench, place):
    """`true` by the broker's terminals, and by ssh over its open connection."""
    count = bench.count(COMMANDS[bool(place.proxy)])
    pairs = []

    def commands(editor):
        for _ in range(bench.repeat):
            plain = [timed(place.host.run, *place.warm, "true", "-") for _ in range(count)]
            ours = None
            if editor:
                editor.send_prompt(editor.session, f"tools run 0 {count} both")
                ours = editor.take_answer()["_meta"]["bench"]["asked_us"] / 1e6
            pairs.append((median(plain), ours))

    with_session(bench, place, commands)
    result.samples[f"command {place.name}"] = pairs
    result.rows.append(pair_row("`terminal/create` to the exit of `true`, and `release`"
                                f"{place.what}; `ssh HOST true` with a control socket", pairs))


def run(bench):
    result = Result(against="plain `ssh`")
    if not is_possible():
        print("bench: ssh: there is no sshd: not measured", file=sys.stderr)
        return result
    with ordinary_priority(), Host(bench) as host:
        for place in host.places():
            for measure in (measure_messages, measure_cold, measure_warm, measure_commands):
                measure(result, bench, place)
    return result
