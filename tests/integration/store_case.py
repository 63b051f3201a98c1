# SPDX-License-Identifier: MIT
"""
What tests of `acp-broker checkpoints` and `acp-broker conflicts` start from: directories without an
agent, with stores that are filled as syncs fill them.
"""

import json
import os
import subprocess

from processes import PATIENCE
from case import BROKER, Case, program

MAKER = program('ACP_STORE_MAKER', 'tests/integration/store-maker')
DEADLINE = PATIENCE


class Store(Case):
    """A workspace with a store, and no agent."""

    def setUp(self):
        super().setUp()
        self.work = self.work.resolve()
        self.state = self.dir / 'home' / 'state' / 'acp-broker'

    def make(self, *words, root=None):
        result = subprocess.run([MAKER, str(self.state), str(root or self.work), *words],
                                capture_output=True, timeout=DEADLINE, check=False,
                                env=self.environment())
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        return result.stdout.decode().strip()

    def run_broker(self, *words, cwd=None, env=None, stdout=subprocess.PIPE):
        env = env or self.environment()
        env.setdefault('PWD', str(cwd or self.work))
        env.setdefault('TZ', 'UTC')
        return subprocess.run([BROKER, *words], stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, cwd=cwd or self.work, env=env,
                              timeout=DEADLINE, check=False)

    def answer(self, *words, said='', **more):
        """
        Runs a command and returns its output; checks that stderr is one line with these facts, or
        empty.
        """
        result = self.run_broker(*words, **more)
        self.assertEqual(result.returncode, 0, result.stdout)
        if said:
            self.check_line(result.stderr.decode(), said)
        else:
            self.assertEqual(result.stderr, b'', result.stdout)
        return result.stdout.decode()

    def mistake(self, status, expected, *words, **more):
        result = self.run_broker(*words, **more)
        self.check_line(result.stderr.decode(), expected)
        self.assertEqual((result.returncode, result.stdout), (status, b''))

    def checkpoints(self, **more):
        return json.loads(self.answer('checkpoints', 'list', '--json', **more))['checkpoints']

    def write(self, **files):
        for name, text in files.items():
            (self.work / name).write_text(text)

    def files(self):
        """Every file and link below the workspace, with its content."""
        found = {}
        for folder, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, self.work)
                if os.path.islink(path):
                    found[key] = '-> ' + os.readlink(path)
                else:
                    with open(path, encoding='utf-8') as file:
                        found[key] = file.read()
        return found

    def three_checkpoints(self):
        self.write(a='one\n', b='same\n')
        self.make('checkpoint', 'start', 'session-1')
        self.write(a='two\n', c='new\n')
        self.make('checkpoint', 'turn', 'session-1')
        (self.work / 'b').unlink()
        (self.work / 'sub').mkdir()
        self.write(**{'sub/d': 'deep\n'})
        self.make('checkpoint', 'by hand')
