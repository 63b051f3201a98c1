#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A relay that does one thing wrong to one of the agent's lines:

    lying_relay.py nothing|lose|repeat|change|swap|add|end COMMAND [ARG...]

The load client must not take any of it for a measurement.
"""

import os
import subprocess
import sys
import threading

VICTIM = b"10000003"  # the number of the line that is changed


def change(line):
    return [line.replace(b"one token", b"two token", 1)]


LIES = {
    "nothing": lambda line: [line],
    "lose": lambda line: [],
    "repeat": lambda line: [line, line],
    "change": change,
    "add": lambda line: [line, b'{"jsonrpc":"2.0","method":"_x","params":{}}\n'],
}


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


def feed(agent):
    """The editor's side: bytes as they come."""
    while True:
        data = os.read(0, 65536)
        if not data:
            break
        write_all(agent.stdin.fileno(), data)
    agent.stdin.close()


def relay(lie, agent):
    """The agent's side: lines, one of which is treated wrongly."""
    held = []  # the line that waits until the next one has overtaken it
    for line in agent.stdout:
        if VICTIM not in line:
            out = [line, *held]
            held = []
        elif lie == "swap":
            out, held = [], [line]
        elif lie == "end":
            return
        else:
            out = LIES[lie](line)
        write_all(1, b"".join(out))


def main():
    agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=feed, args=(agent,), daemon=True).start()
    relay(sys.argv[1], agent)
    agent.stdout.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
