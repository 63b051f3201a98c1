# SPDX-License-Identifier: MIT
"""What a message costs: round trips and throughput, next to the bare relay's."""

from harness import Result, Row, median, median_and_spread, number, placements

NAME = "relay"

SIZES = {"small": "200 B", "medium": "4 KiB", "string": "1 MiB, one string",
         "members": "1 MiB, 50,000 members"}
PLACES = {"one": "1 CPU", "two": "2 CPUs"}

# Shape, round trips in a run, and the largest allowed ratio of the median to the bare relay's.
ECHOES = [("small", 10000, 1.15), ("medium", 10000, None), ("string", 100, None),
          ("members", 60, None)]
# Shape, messages in a run, and the smallest allowed ratio of the throughput to the bare relay's.
STREAMS = [("small", 200000, None), ("medium", 60000, None), ("string", 300, 0.8),
           ("members", 150, 0.5)]


def values(taken, key):
    return {route: [run[key] for run in runs] for route, runs in taken.items()}


def compare(row, taken, key, unit, scale=1.0):
    """Fills the row with medians, and with the median of the ratios of neighbouring runs."""
    by_route = values(taken, key)
    for route in ("direct", "bare", "broker"):
        middle = median(by_route.get(route, []))
        setattr(row, route, number(None if middle is None else middle * scale, unit))
    if "broker" not in by_route:
        return None
    ratios = [ours / bare for ours, bare in zip(by_route["broker"], by_route["bare"])]
    row.compared = "× " + median_and_spread(ratios)
    return median(ratios)


def echo_rows(shape, place, limit, taken):
    for key, name in (("p50_us", "p50"), ("p99_us", "p99")):
        row = Row(f"round trip {SIZES[shape]}, {name}, {PLACES[place]}")
        row.in_docs = shape == "small" or (place == "one" and key == "p50_us")
        ratio = compare(row, taken, key, "µs")
        if limit and key == "p50_us":
            row.target = f"≤ {limit} ×"
            row.met = None if ratio is None else ratio <= limit
        yield row


def stream_rows(shape, place, least, taken):
    row = Row(f"throughput {SIZES[shape]}, {PLACES[place]}")
    row.in_docs = place == "one" or least is not None
    key, unit, scale = ("mib_per_s", "MiB/s", 1.0)
    if shape in ("small", "medium"):
        key, unit, scale = ("messages_per_s", "k/s", 1e-3)
    ratio = compare(row, taken, key, unit, scale)
    if least:
        row.target = f"≥ {least} ×"
        row.met = None if ratio is None else ratio >= least
    yield row


def cpu_row(shape, taken):
    """The relay's own processor time; the direct pipe has none."""
    row = Row(f"CPU a message {SIZES[shape]}", in_docs=False)
    compare(row, taken, "cpu_us", "µs")
    row.direct = ""
    return row


def run(bench):
    result = Result()
    cpu_rows = []
    for mode, cases, rows in (("echo", ECHOES, echo_rows), ("stream", STREAMS, stream_rows)):
        for shape, count, target in cases:
            for place in placements():
                measure = [mode, shape, str(bench.count(count))]
                taken = bench.interleaved(measure, place)
                result.samples[f"{mode} {shape} {place}"] = taken
                result.rows.extend(rows(shape, place, target, taken))
                if mode == "stream" and place == "one":
                    cpu_rows.append(cpu_row(shape, taken))
    result.rows.extend(cpu_rows)
    return result
