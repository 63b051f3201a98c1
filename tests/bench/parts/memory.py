# SPDX-License-Identifier: MIT
"""
Private memory (USS: Private_Clean + Private_Dirty of smaps_rollup) of all the
relay's processes together, the agent left out: idle, for each further session,
and while the editor does not read.
"""

import json
import os
import select
import subprocess
import time

from harness import BenchError, Result, Row, median, median_and_spread, number

NAME = "memory"
IDLE_KIB = 3 * 1024
SESSION_KIB = 64
BLOCKED_KIB = 24 * 1024
FURTHER_SESSIONS = 100
REPEAT = 3
DEADLINE_SECONDS = 60
FIRST_NUMBER = 10000000
LINE_SIZE = {"small": 200, "string": 1048576}


def children_of_all():
    """{parent: [child, ...]} of every process on the machine."""
    children = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                parent = int(stat.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append(int(name))
    return children


def tree(root, agent):
    """The processes from root downwards, without those that run the agent."""
    children = children_of_all()
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program == agent:
            continue
        found.append(pid)
        waiting.extend(children.get(pid, []))
    return found


def rollup(pid, *names):
    """The sum of these fields of smaps_rollup, in KiB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return sum(int(fields[name].split()[0]) for name in names)


class Editor:
    """A minimal client over one route, which can also not read for a while."""

    def __init__(self, bench, words):
        self.agent = os.path.realpath(bench.tool("load_agent"))
        self.work = bench.work
        self.settle_seconds = bench.settle_seconds
        self.child = subprocess.Popen(bench.command(words), cwd=bench.work, env=bench.env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, bufsize=0)
        self.held = b""
        self.last_id = 0

    def __enter__(self):
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.stdout.close()
        try:
            self.child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def send(self, method, params):
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def lines(self):
        """The lines as they come; an error where nothing comes for too long."""
        while True:
            line, newline, rest = self.held.partition(b"\n")
            if newline:
                self.held = rest
                yield line + newline
                continue
            pieces = [line]
            while b"\n" not in pieces[-1]:
                if not select.select([self.child.stdout], [], [], DEADLINE_SECONDS)[0]:
                    raise BenchError("memory: nothing came for too long")
                pieces.append(os.read(self.child.stdout.fileno(), 1 << 20))
                if not pieces[-1]:
                    raise BenchError("memory: the output ended")
            self.held = b"".join(pieces)

    def call(self, method, params):
        self.send(method, params)
        for line in self.lines():
            message = json.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                if "result" not in message:
                    raise BenchError(f"memory: {method} was answered {message}")
                return message["result"]
        return None

    def open_session(self):
        return self.call("session/new", {"cwd": self.work, "mcpServers": []})["sessionId"]

    def ask_for_stream(self, session, shape, count):
        self.send("session/prompt", {"sessionId": session, "prompt": [
            {"type": "text", "text": f"stream {shape} {count}"}]})

    def take_stream(self, shape, count):
        """Reads the whole stream; every message must be there, whole and in order."""
        lines = self.lines()
        for i in range(count):
            line = next(lines)
            if len(line) != LINE_SIZE[shape] or b"%d" % (FIRST_NUMBER + i) not in line[-32:]:
                raise BenchError(f"memory: message {i} of {count} came as {line[:80]}…{line[-40:]}")
        answer = json.loads(next(lines))
        if answer.get("id") != self.last_id or "result" not in answer:
            raise BenchError(f"memory: the prompt was answered {answer}")

    def uss_kib(self):
        return sum(rollup(pid, "Private_Clean", "Private_Dirty")
                   for pid in tree(self.child.pid, self.agent))

    def pss_kib(self):
        """What is shared counts, too, in equal parts: libraries, and pages of a fork."""
        return sum(rollup(pid, "Pss") for pid in tree(self.child.pid, self.agent))

    def idle_kib(self):
        time.sleep(self.settle_seconds)
        return self.uss_kib()

    def highest_kib(self):
        """The most that is held until it has not grown for half a second."""
        highest, grown = 0, time.monotonic()
        end = grown + DEADLINE_SECONDS
        while time.monotonic() - grown < 0.5 and time.monotonic() < end:
            now = self.uss_kib()
            if now > highest + 16:
                grown = time.monotonic()
            highest = max(highest, now)
            time.sleep(0.01)
        return highest


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
    """How much more than idle is held while the editor does not read."""
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


# Key, what it is, the target in KiB and its words.
LINES = [("idle", "private memory, idle with one session", IDLE_KIB, "≤ 3 MiB"),
         ("pss", "memory with its part of what is shared (PSS), idle with one session", None, ""),
         ("session", "private memory, each further session", SESSION_KIB, "≤ 64 KiB"),
         ("after", "private memory, idle after 10 messages of 1 MiB", None, ""),
         ("blocked small", "more than idle: editor does not read 100,000 × 200 B", BLOCKED_KIB,
          "< 24 MiB"),
         ("blocked string", "more than idle: editor does not read 200 × 1 MiB",
          BLOCKED_KIB + 1024, "< 24 MiB and one message")]


def run(bench):
    result = Result()
    routes = {name: words for name, words in bench.routes().items() if words}
    taken = {name: [] for name in routes}
    for _ in range(min(REPEAT, bench.repeat)):
        for name, words in routes.items():
            taken[name].append(measure(bench, words))
    result.samples["memory"] = taken
    for key, what, limit, target in LINES:
        row = Row(what, target=target)
        row.bare = number(median([one[key] for one in taken["bare"]]), "KiB")
        if "broker" in taken:
            values = [one[key] for one in taken["broker"]]
            row.broker = number(median(values), "KiB")
            row.compared = f"{min(values):,.1f}–{max(values):,.1f}"
            row.met = median(values) <= limit if limit else None
        result.rows.append(row)
    return result
