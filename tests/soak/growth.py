#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
One broker works for an hour: a million messages, 12,000 terminals, and as many files that are read
and written. After each part of the rounds this measures the private memory and counts the open
files of its processes. Neither may grow once everything has been used.

    growth.py [--rounds N] [--minutes M] [--tools DIR] [--broker PATH]

The rounds are spread over the minutes; on a slow machine they take longer.
"""

import argparse
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))

from editor import Editor, tree  # noqa: E402
from harness import Bench  # noqa: E402

ROUNDS = 1000
MINUTES = 60
PARTS = 20      # at the end of each part we look at memory and files
WARM_PARTS = 5  # these parts come before memory and files count
SESSIONS = 10
MESSAGES = 1000  # in a round, 200 bytes each
LARGE_EVERY = 10  # this many rounds have one message of 1 MiB
COMMANDS = ("tools run 0 10 both", "tools read 1024 10 both", "tools write 1024 10 both")
TERMINALS = 12  # in a round: the ten of the command, and two to warm up
GROWN_KIB = 256


def open_files(editor):
    """The open files of all processes of the broker."""
    count = 0
    for pid in tree(editor.child.pid, editor.agent):
        try:
            count += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            pass
    return count


def play(editor, sessions, number):
    session = sessions[number % SESSIONS]
    editor.ask_for_stream(session, "small", MESSAGES)
    editor.take_stream("small", MESSAGES)
    if number % LARGE_EVERY == 0:
        editor.ask_for_stream(session, "string", 1)
        editor.take_stream("string", 1)
    for command in COMMANDS:
        editor.send_prompt(session, command)
        editor.take_answer()


def soak(bench, rounds, seconds, tell):
    """Returns (KiB, open files) after each part."""
    looks = []
    begun = time.monotonic()
    with Editor(bench, [bench.broker, "--toolhost", "broker", "--"]) as editor:
        sessions = [editor.open_session() for _ in range(SESSIONS)]
        for number in range(rounds):
            play(editor, sessions, number)
            early = begun + seconds * (number + 1) / rounds - time.monotonic()
            if early > 0:
                time.sleep(early)
            if (number + 1) * PARTS // rounds > number * PARTS // rounds:
                looks.append((editor.idle_kib(), open_files(editor)))
                tell(f"{number + 1} of {rounds} rounds: {looks[-1][0]} KiB, "
                     f"{looks[-1][1]} open files")
    return looks


def grown(looks):
    """
    How much memory and how many open files were added, at least, from the beginning of the warm
    parts to the end.
    """
    warm = looks[WARM_PARTS:]
    third = len(warm) // 3
    return tuple(min(look[i] for look in warm[-third:]) - min(look[i] for look in warm[:third])
                 for i in range(2))


def verdict(looks):
    """What has grown, or None."""
    kib, files = grown(looks)
    wrong = [f"{kib} KiB of private memory"] if kib > GROWN_KIB else []
    wrong += [f"{files} open files"] if files > 0 else []
    return " and ".join(wrong) or None


def main():
    parser = argparse.ArgumentParser(description="Look for growth.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--tools", default=os.path.join(ROOT, "build", "tests", "bench"))
    parser.add_argument("--broker", default=os.path.join(ROOT, "build", "acp-broker"))
    arguments = parser.parse_args()
    if arguments.rounds < PARTS:
        parser.error(f"--rounds: at least {PARTS}")
    with tempfile.TemporaryDirectory(prefix="acp-growth-") as scratch:
        bench = Bench(os.path.abspath(arguments.broker), os.path.abspath(arguments.tools), scratch,
                      1, False)
        looks = soak(bench, arguments.rounds, arguments.minutes * 60,
                     lambda text: print(text, flush=True))
    wrong = verdict(looks)
    print(f"growth: {arguments.rounds * MESSAGES:,} messages, {arguments.rounds * TERMINALS:,} "
          f"terminals: {wrong + ' more at the end' if wrong else 'nothing has grown'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
