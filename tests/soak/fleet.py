#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
What many brokers cost on the machine that they run on: one session each, in a box of `backend =
exec`, all at the same time. Prints a table for one broker: private memory, processor time while
nothing happens, processes and open files.

    fleet.py [BROKERS [SECONDS]]

SECONDS is how long it measures the processor time, 60 by default.
"""

import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / 'build'
os.environ.setdefault('ACP_BROKER', str(BUILD / 'broker/acp-broker'))
os.environ.setdefault('ACP_SCRIPTED_AGENT', str(BUILD / 'tests/support/agent/scripted-agent'))
sys.path.insert(0, str(ROOT / 'tests/integration'))

# pylint: disable=wrong-import-position
import processes
from case import AGENT, BROKER
from platform_case import PlatformCase

BROKERS, SECONDS = 100, 60
KIB = 1024


def ticks(pid):
    """The processor time of a process, in seconds."""
    fields = processes.read_file(f'/proc/{pid}/stat').rpartition(b')')[2].split()
    return sum(int(field) for field in fields[11:13]) / os.sysconf('SC_CLK_TCK') if fields else 0


def program(pid):
    try:
        return os.path.basename(os.readlink(f'/proc/{pid}/exe'))
    except OSError:
        return ''


class Fleet(PlatformCase):
    def runTest(self):
        """A method of this name is run without an argument."""

    def rows(self, pids):
        yield 'private memory, KiB', sum(map(processes.private_bytes, pids)) / KIB
        yield 'processes', len(pids)
        yield 'open files', sum(map(processes.open_files, pids))

    def parts(self, clients):
        """The processes of all sessions, by what they are."""
        brokers = [pid for client in clients for pid in [client.pid,
                                                         *processes.descendants(client.pid)]]
        inside = [pid for pid in self.in_boxes() if program(pid) != os.path.basename(AGENT)]
        here = [pid for pid in brokers if pid not in inside]
        ours = os.path.basename(BROKER)
        return {'the broker and its helpers': [pid for pid in here if program(pid) == ours],
                "the platform's command": [pid for pid in here if program(pid) != ours],
                'the runner in the box': [pid for pid in inside if 'sleep' != program(pid)]}

    def measure(self, count, seconds):
        clients = []
        for number in range(count):
            client, session = self.opened(persistence='transient')
            client.prompt(session, 'say hello')
            clients.append(client)
            print(f'{number + 1} of {count}', file=sys.stderr)
        parts = self.parts(clients)
        before = {name: sum(map(ticks, pids)) for name, pids in parts.items()}
        time.sleep(seconds)
        for name, pids in parts.items():
            used_ms = 1000 * (sum(map(ticks, pids)) - before[name])
            figures = [*self.rows(pids), ('ms of processor time in a minute',
                                          used_ms * 60 / seconds)]
            print(f'{name}: ' + ', '.join(f'{value / count:.1f} {what}'
                                          for what, value in figures))
        for client in clients:
            self.end(client)


def main(count=BROKERS, seconds=SECONDS):
    fleet = Fleet()
    fleet.setUp()
    try:
        fleet.measure(int(count), int(seconds))
    finally:
        fleet.doCleanups()


if __name__ == '__main__':
    main(*sys.argv[1:])
