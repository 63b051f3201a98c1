# SPDX-License-Identifier: MIT
"""
What the broker's own files and terminals cost: the agent asks for them over ACP, and does the same
by plain system calls, in turns. Everything runs at ordinary priority: at real-time priority a
pipeline is several times slower.
"""

import contextlib
import os

from editor import Editor
from harness import MARK, Result, Row, median, median_and_spread, number, size

NAME = "toolhost"
KIB = 1024
OUTPUT_BYTES = 1024 * 1024 * 1024
OUTPUT_SLOWDOWN = 1.2
OUTPUT_HELD_KIB = 1024
HELD_REPEAT = 3
SMALL_READ_US = 40  # the longest time that a read of 1 KiB may take

# Operation, bytes, how often in a run, name, and the largest allowed ratio to the plain calls.
CASES = [("read", KIB, 1000, "`fs/read_text_file`, 1 KiB", None),
         ("read", KIB * KIB, 100, "`fs/read_text_file`, 1 MiB", 10),
         ("write", KIB, 300, "`fs/write_text_file`, 1 KiB", None),
         ("write", KIB * KIB, 50, "`fs/write_text_file`, 1 MiB", 2),
         ("run", 0, 300, "`terminal/create` to the exit of `true`, and `release`", None),
         ("output", OUTPUT_BYTES, 1,
          "1 GiB of output, 64 KiB kept; plain: piped to `cat >/dev/null`", OUTPUT_SLOWDOWN)]


@contextlib.contextmanager
def ordinary_priority():
    """Programs that start in this context are scheduled like users' programs."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


def route(bench):
    return [bench.broker, "--toolhost", "broker", "--"] if bench.broker else []


def prompt(bench, operation, size_bytes, count):
    if operation == "output" and bench.quick:
        size_bytes //= 100
    who = "both" if bench.broker else "plain"
    return f"tools {operation} {size_bytes} {count} {who}"


def measure(bench):
    """One run of each case: [{plain_us, asked_us}, ...]."""
    with Editor(bench, route(bench)) as editor:
        session = editor.open_session()
        taken = []
        for operation, size_bytes, count, _, _ in CASES:
            count = bench.count(count) if count > 1 else 1
            editor.send_prompt(session, prompt(bench, operation, size_bytes, count))
            taken.append(editor.take_answer()["_meta"]["bench"])
    return taken


def measure_held(bench):
    """The largest amount beyond idle that is held while a command writes much."""
    with Editor(bench, route(bench)) as editor:
        session = editor.open_session()
        idle = editor.idle_kib()
        editor.send_prompt(session, prompt(bench, "output", OUTPUT_BYTES, 1))
        highest = editor.highest_kib_until_answered()
        editor.take_answer()
    return highest - idle


def time_text(value_us):
    if value_us >= 1e6:
        return number(value_us / 1e6, "s")
    return number(value_us / 1e3, "ms") if value_us >= 1e4 else number(value_us, "µs")


def case_row(what, most, runs):
    row = Row(what, bare=time_text(median([run["plain_us"] for run in runs])))
    if most:
        row.target = f"≤ {most} ×"
    if "asked_us" in runs[0]:
        row.broker = time_text(median([run["asked_us"] for run in runs]))
        ratios = [run["asked_us"] / run["plain_us"] for run in runs]
        row.compared = "× " + median_and_spread(ratios)
        row.met = median(ratios) <= most if most else None
    return row


def aim_small_read(row, runs):
    """
    Sets a limit in microseconds: a ratio to three system calls without a round trip would say
    little.
    """
    row.target = f"≤ {SMALL_READ_US}{MARK}µs"
    if "asked_us" in runs[0]:
        row.met = median([run["asked_us"] for run in runs]) <= SMALL_READ_US


def held_row(result, bench):
    held = [measure_held(bench) for _ in range(min(HELD_REPEAT, bench.repeat))]
    result.samples["held"] = held
    return Row("beyond idle: the most that is held during that output",
               broker=size(median(held)), target="≤ 1 MiB", met=median(held) <= OUTPUT_HELD_KIB)


def run(bench):
    result = Result(against="plain calls")
    with ordinary_priority():
        runs = [measure(bench) for _ in range(bench.repeat)]
        for i, (_, _, _, what, most) in enumerate(CASES):
            result.samples[what] = [run[i] for run in runs]
            result.rows.append(case_row(what, most, result.samples[what]))
        aim_small_read(result.rows[0], result.samples[CASES[0][3]])
        if bench.broker:
            result.rows.append(held_row(result, bench))
    return result
