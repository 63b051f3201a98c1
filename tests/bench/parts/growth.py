# SPDX-License-Identifier: MIT
"""
Whether a message costs the same beside many others: with 1, 10 and 100 sessions in one broker that
send in turns, and with one broker of 100. Both are compared with one session of one broker, in
turns. Also whether the memory stays the same after many messages.
"""

import contextlib

from editor import Editor
from harness import Result, Row, median, median_and_spread, number, size

NAME = "growth"
CROWDS = (10, 100)  # numbers of sessions of one broker
BROKERS = 100
MOST = 1.3          # of the median with one session
TRIPS = 10000
MESSAGES = 20000    # in each of two halves; memory is measured after each half
MESSAGES_KIB = 64   # the most that the second half may add
BROKER_MOST = 1.1   # of the private memory of one broker
REPEAT = 5


def crowd(bench, sessions):
    measure = ["crowd", "small", str(bench.count(TRIPS)), str(sessions)]
    return bench.client(measure, bench.routes()["broker"], "one")


def measure_crowds(bench, result):
    """{sessions: [p50 of each repetition]}"""
    taken = {sessions: [] for sessions in (1, *CROWDS)}
    for _ in range(min(REPEAT, bench.repeat)):
        for sessions, runs in taken.items():
            runs.append(crowd(bench, sessions)["p50_us"])
    result.samples["crowds"] = taken
    for sessions in CROWDS:
        result.rows.append(trip_row(f"round trip 200 B, p50: {sessions} sessions of one broker",
                                    taken[1], taken[sessions]))


def measure_brokers(bench, result):
    """Measures the same beside 99 other brokers, and the memory that each of those holds."""
    words = bench.routes()["broker"]
    brokers = max(3, bench.count(BROKERS))
    alone, beside, held = [], [], []
    for _ in range(min(REPEAT, bench.repeat)):
        alone.append(crowd(bench, 1)["p50_us"])
        with contextlib.ExitStack() as stack:
            others = []
            for i in range(brokers - 1):
                others.append(stack.enter_context(Editor(bench, words)))
                others[-1].open_session()
                if i == 1:  # from the second broker on, the program's own pages are shared
                    first = others[1].idle_kib()
            beside.append(crowd(bench, 1)["p50_us"])
            held.append((first, others[-1].idle_kib()))
    result.samples["brokers"] = {"alone": alone, "beside": beside, "kib": held}
    result.rows.append(trip_row(f"round trip 200 B, p50: one of {BROKERS} brokers", alone, beside))
    row = Row(f"private memory, the last of {BROKERS} brokers; the second",
              bare=size(median([one for one, _ in held])),
              broker=size(median([last for _, last in held])), target=f"≤ {BROKER_MOST} ×")
    ratios = [last / one for one, last in held]
    row.compared = "× " + median_and_spread(ratios)
    row.met = median(ratios) <= BROKER_MOST
    result.rows.append(row)


def trip_row(what, one, many):
    ratios = [ours / single for ours, single in zip(many, one)]
    return Row(what, bare=number(median(one), "µs"), broker=number(median(many), "µs"),
               compared="× " + median_and_spread(ratios), target=f"≤ {MOST} ×",
               met=median(ratios) <= MOST)


def measure_messages(bench, result):
    """Private memory after many messages of ten sessions, and after the same number again."""
    count = bench.count(MESSAGES) // 10
    grown = []
    for _ in range(min(REPEAT, bench.repeat)):
        with Editor(bench, bench.routes()["broker"]) as editor:
            sessions = [editor.open_session() for _ in range(10)]
            held = []
            for _ in range(2):
                for session in sessions:
                    editor.ask_for_stream(session, "small", count)
                    editor.take_stream("small", count)
                held.append(editor.idle_kib())
            grown.append(held)
    result.samples["messages"] = grown
    more = median([second - first for first, second in grown])
    result.rows.append(Row(f"private memory after {2 * MESSAGES:,} messages; after half of them",
                           bare=size(median([first for first, _ in grown])),
                           broker=size(median([second for _, second in grown])),
                           target=f"≤ {MESSAGES_KIB} KiB more", met=more <= MESSAGES_KIB))


def run(bench):
    result = Result(against="one")
    if bench.broker:
        measure_crowds(bench, result)
        measure_brokers(bench, result)
        measure_messages(bench, result)
    return result
