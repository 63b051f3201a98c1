#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Measures the broker against a direct pipe and a bare relay, all in one run and
in turns, and prints a Markdown table and the machine it was measured on.

    run.py [--broker PATH] [--repeat N] [--json FILE] [--docs] [PART...]

Every byte that comes back is compared. A target that is missed is said in the
table; the exit status is 1 only where something did not work at all.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left beside the sources

from harness import MARK, Bench, BenchError, Result  # noqa: E402
from parts import confine, growth, memory, relay, ssh, ssh_sync  # noqa: E402
from parts import start, store, sync, toolhost  # noqa: E402

PARTS = {part.NAME: part
         for part in (relay, start, memory, growth, toolhost, sync, store, ssh, ssh_sync,
                      confine)}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure the broker.")
    parser.add_argument("part", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--broker", default=os.path.join(ROOT, "build", "acp-broker"))
    parser.add_argument("--no-broker", action="store_true",
                        help="measure only what it is compared with")
    parser.add_argument("--tools", help="where load_client is; default: tests/bench of the "
                                        "build that the broker is in")
    parser.add_argument("--repeat", type=int, default=11, help="repetitions (default 11)")
    parser.add_argument("--quick", action="store_true",
                        help="a hundredth of the messages: tries the benchmark, measures nothing")
    parser.add_argument("--realtime", action="store_true",
                        help="ahead of everything else on a busy machine; needs privileges")
    parser.add_argument("--docs", action="store_true",
                        help="print the rows of docs/performance.md, as they stand there")
    parser.add_argument("--json", metavar="FILE", help="write every sample there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.part if name not in PARTS]
    if unknown:
        parser.error(f"no part \"{unknown[0]}\": expected {', '.join(PARTS)}")
    return arguments


def find_build(broker):
    """The meson build directory that holds the broker, or None."""
    place = os.path.dirname(os.path.realpath(broker))
    for candidate in (place, os.path.dirname(place)):
        if os.path.isdir(os.path.join(candidate, "meson-info")):
            return candidate
    return None


def build_options(build):
    """{name: value} of the build's options that speed depends on."""
    try:
        with open(os.path.join(build, "meson-info", "intro-buildoptions.json"),
                  encoding="utf-8") as file:
            options = {option["name"]: option["value"] for option in json.load(file)}
    except (OSError, TypeError, ValueError):
        return {}
    return {name: options.get(name) for name in ("buildtype", "b_sanitize", "b_lto")}


def first_value(path, key, default):
    """The first `key: value` of a file in /proc."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return default


def describe_machine(broker, build):
    memory_kib = int(first_value("/proc/meminfo", "MemTotal", "0 kB").split()[0])
    flags = first_value("/proc/cpuinfo", "flags", "").split()
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    machine = {
        "processor": first_value("/proc/cpuinfo", "model name", platform.machine()),
        "processors": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in flags,
        "memory_gib": round(memory_kib / 1048576, 1),
        "system": system,
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "build": build_options(build) if build else {},
    }
    if broker:
        asked = subprocess.run([broker, "--version"], capture_output=True, text=True, timeout=10,
                               check=False)
        machine["broker"] = asked.stdout.strip()
    return machine


def become_realtime():
    """This process and all it starts run before every ordinary one."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as error:
        sys.exit(f"bench: real-time priority is not allowed here: {error.strerror}")


def print_machine(machine, repeat):
    print(f"{machine['processors']} × {machine['processor']}"
          f"{' (virtual machine)' if machine['virtual'] else ''},"
          f" {machine['memory_gib']} GiB, {machine['system']}, Linux {machine['kernel']};"
          f" build {machine['build'].get('buildtype', 'unknown')};"
          f" load before {machine['load']}"
          f"{', measured at real-time priority' if machine['realtime'] else ''}.")
    if machine["build"].get("b_sanitize", "none") != "none":
        print("**Built with sanitizers: these are no measurements.**")
    print(f"Medians of {repeat} repetitions in turns (direct, bare relay, broker, direct, …);"
          " comparisons are medians of the ratios of neighbouring runs, with the lowest and"
          " the highest. 1 CPU: everything on one; 2 CPUs: the relay alone on one, client and"
          " agent on the other.\n")


def headings_of(result, for_docs):
    """{name in a row: heading} of a table."""
    if result.columns:
        return result.columns
    headings = {"direct": "direct pipe", "bare": result.against, "broker": "broker",
                "compared": f"broker to {result.against}"}
    if for_docs or not any(row.direct for row in result.rows):
        del headings["direct"]
    return headings


def print_table(result, for_docs):
    """Prints a table of parts with the same counterparts, if there is a row."""
    rows = [row for row in result.rows if row.in_docs or not for_docs]
    headings = headings_of(result, for_docs)
    lines = [["", *headings.values(), "target"], *(row.cells(headings) for row in rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in lines]
    lines.insert(1, "|---" + "|--:" * len(headings) + "|---|")
    for line in lines if rows else []:
        line = line.replace("|  |", "| |").replace("|  |", "| |")
        print(line.replace(MARK, " ") if for_docs else line)
    print()


def print_tables(results, for_docs):
    """Prints the parts; those with the same counterparts share a table."""
    tables = {}
    for result in results:
        what = (result.against, tuple((result.columns or {}).items()))
        table = tables.setdefault(what, Result(against=result.against, columns=result.columns))
        table.rows.extend(result.rows)
    for table in tables.values():
        print_table(table, for_docs)


def main():
    arguments = parse_arguments()
    broker = None if arguments.no_broker else os.path.abspath(arguments.broker)
    if broker and not os.access(broker, os.X_OK):
        sys.exit(f"bench: {broker} is not there: build first, or name one with --broker")
    build = find_build(arguments.broker)
    tools = arguments.tools or os.path.join(build or "", "tests", "bench")
    if not os.access(os.path.join(tools, "load_client"), os.X_OK):
        sys.exit(f"bench: load_client is not in {tools}: build first, or say where with --tools")
    machine = describe_machine(broker, build)
    machine["realtime"] = arguments.realtime
    if arguments.realtime:
        become_realtime()
    print_machine(machine, arguments.repeat)
    results = {}
    with tempfile.TemporaryDirectory(prefix="acp-bench-") as scratch:
        bench = Bench(broker, os.path.abspath(tools), scratch, arguments.repeat, arguments.quick)
        try:
            for name in arguments.part or PARTS:
                print(f"bench: {name}", file=sys.stderr)
                results[name] = PARTS[name].run(bench)
        except BenchError as error:
            sys.exit(f"bench: {error}")
    print_tables(results.values(), arguments.docs)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine,
                       "samples": {name: result.samples for name, result in results.items()}},
                      file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
