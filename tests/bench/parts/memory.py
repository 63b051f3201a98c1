# SPDX-License-Identifier: MIT
"""
Private memory (USS: Private_Clean + Private_Dirty of smaps_rollup) of all the
relay's processes together, the agent left out: idle, for each further session,
and while the editor does not read.
"""

from editor import Editor, tree
from harness import Result, Row, median, size

NAME = "memory"
IDLE_KIB = 3 * 1024
SESSION_KIB = 64
BLOCKED_KIB = 24 * 1024
FURTHER_SESSIONS = 100
REPEAT = 3


def measure_sessions(bench, words):
    with Editor(bench, words) as editor:
        session = editor.open_session()
        taken = {"idle": editor.idle_kib(), "pss": editor.pss_kib(),
                 "processes": len(tree(editor.child.pid, editor.agent))}
        for _ in range(FURTHER_SESSIONS):
            editor.open_session()
        taken["session"] = (editor.idle_kib() - taken["idle"]) / FURTHER_SESSIONS
        editor.ask_for_stream(session, "string", 10)
        editor.take_stream("string", 10)
        taken["after"] = editor.idle_kib()
    return taken


def measure_blocked(bench, words, shape, count):
    """How much memory, beyond idle, is held while the editor does not read."""
    with Editor(bench, words) as editor:
        session = editor.open_session()
        idle = editor.idle_kib()
        editor.ask_for_stream(session, shape, count)
        taken = editor.highest_kib() - idle
        editor.take_stream(shape, count)
    return taken


def measure(bench, words):
    taken = measure_sessions(bench, words)
    taken["blocked small"] = measure_blocked(bench, words, "small", bench.count(100000))
    taken["blocked string"] = measure_blocked(bench, words, "string", bench.count(200))
    return taken


# Key, description, the target in KiB and as text, and whether README.md has it.
LINES = [("idle", "private memory, idle with one session", IDLE_KIB, "≤ 3 MiB", True),
         ("pss", "memory with its part of what is shared (PSS), idle with one session", None, "",
          False),
         ("session", "private memory, each further session", SESSION_KIB, "≤ 64 KiB", True),
         ("after", "private memory, idle after ten messages of 1 MiB", None, "", True),
         ("blocked small", "beyond idle: the editor does not read 100,000 × 200 B", BLOCKED_KIB,
          "< 24 MiB", True),
         ("blocked string", "beyond idle: the editor does not read 200 × 1 MiB",
          BLOCKED_KIB + 1024, "< 24 MiB and one message", True)]


def run(bench):
    result = Result()
    routes = {name: words for name, words in bench.routes().items() if words}
    taken = {name: [] for name in routes}
    for _ in range(min(REPEAT, bench.repeat)):
        for name, words in routes.items():
            taken[name].append(measure(bench, words))
    result.samples["memory"] = taken
    for key, what, limit, target, in_docs in LINES:
        row = Row(what, target=target, in_docs=in_docs)
        if key != "session":  # the bare relay knows no sessions
            row.bare = size(median([one[key] for one in taken["bare"]]))
        if "broker" in taken:
            middle = median([one[key] for one in taken["broker"]])
            row.broker = size(middle)
            row.met = middle <= limit if limit else None
        result.rows.append(row)
    return result
