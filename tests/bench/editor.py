# SPDX-License-Identifier: MIT
"""
An editor that talks to the load agent over one route, and the memory that this route's processes
hold.
"""

import json
import os
import select
import subprocess
import time

from harness import BenchError

DEADLINE_SECONDS = 300
END_SECONDS = 60
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
    """The processes from `root` downwards, except those that run the agent."""
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
    """The sum of these fields of smaps_rollup, in KiB; 0 for a process that has just ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(fields[name].split()[0]) for name in names if name in fields)


class Editor:
    """A minimal client over one route; it can stop reading for a while."""

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
            self.child.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def send(self, method, params):
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def lines(self):
        """The lines as they arrive; an error if nothing arrives for too long."""
        while True:
            line, newline, rest = self.held.partition(b"\n")
            if newline:
                self.held = rest
                yield line + newline
                continue
            pieces = [line]
            while b"\n" not in pieces[-1]:
                if not select.select([self.child.stdout], [], [], DEADLINE_SECONDS)[0]:
                    raise BenchError("editor: nothing came for too long")
                pieces.append(os.read(self.child.stdout.fileno(), 1 << 20))
                if not pieces[-1]:
                    raise BenchError("editor: the output ended")
            self.held = b"".join(pieces)

    def call(self, method, params):
        self.send(method, params)
        return self.take_answer()

    def take_answer(self):
        """Returns the result of the last request; skips everything that comes before it."""
        for line in self.lines():
            message = json.loads(line)
            if message.get("id") == self.last_id and "method" not in message:
                if "result" not in message:
                    raise BenchError(f"editor: the answer was {message}")
                return message["result"]
        return None

    def open_session(self, work=None):
        params = {"cwd": work or self.work, "mcpServers": []}
        return self.call("session/new", params)["sessionId"]

    def send_prompt(self, session, text):
        self.send("session/prompt", {"sessionId": session, "prompt": [
            {"type": "text", "text": text}]})

    def ask_for_stream(self, session, shape, count):
        self.send_prompt(session, f"stream {shape} {count}")

    def take_stream(self, shape, count):
        """Reads the whole stream; every message must be there, whole and in order."""
        lines = self.lines()
        for i in range(count):
            line = next(lines)
            if len(line) != LINE_SIZE[shape] or b"%d" % (FIRST_NUMBER + i) not in line[-32:]:
                raise BenchError(f"editor: message {i} of {count} came as {line[:80]}…{line[-40:]}")
        answer = json.loads(next(lines))
        if answer.get("id") != self.last_id or "result" not in answer:
            raise BenchError(f"editor: the prompt was answered {answer}")

    def uss_kib(self):
        return sum(rollup(pid, "Private_Clean", "Private_Dirty")
                   for pid in tree(self.child.pid, self.agent))

    def pss_kib(self):
        """Shared memory counts, too, in equal parts: libraries, and pages of a fork."""
        return sum(rollup(pid, "Pss") for pid in tree(self.child.pid, self.agent))

    def idle_kib(self):
        time.sleep(self.settle_seconds)
        return self.uss_kib()

    def highest_kib_until_answered(self):
        """The largest amount that is held until the answer of the last request arrives."""
        highest = 0
        while not select.select([self.child.stdout], [], [], 0.01)[0]:
            highest = max(highest, self.uss_kib())
        return highest

    def highest_kib(self):
        """The largest amount that is held until it has not grown for half a second."""
        highest, grown = 0, time.monotonic()
        end = grown + DEADLINE_SECONDS
        while time.monotonic() - grown < 0.5 and time.monotonic() < end:
            now = self.uss_kib()
            if now > highest + 16:
                grown = time.monotonic()
            highest = max(highest, now)
            time.sleep(0.01)
        return highest
