# SPDX-License-Identifier: MIT
"""
Sessions whose broker is killed, and what acp-broker sessions reports about them and does with them.
"""

import json
import os
import signal
import subprocess

import case
import processes
from processes import PATIENCE
from sync_case import SyncCase


class SessionsCase(SyncCase):
    def sessions(self, *words, status=0, profile='copy', program=case.BROKER, **more):
        """Runs a command; returns its stdout, or its stderr if it fails."""
        config = self.dir / f'config-{profile}'
        argv = [program, '--config', str(config), 'sessions', *words]
        done = subprocess.run(argv, cwd=self.dir, env={**self.environment(), **more}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def listed(self):
        return json.loads(self.sessions('list', '--json'))['sessions']

    def the_one(self):
        entry, = self.listed()
        return entry

    def kill(self, client):
        """Kills only the broker, with SIGKILL; its guards end the rest."""
        os.kill(client.process.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        self.assert_nothing_runs()

    def edit_both(self, runtime, name='a'):
        (self.work / f'{name}-here').write_text(f'{name} here\n')
        (runtime / f'{name}-there').write_text(f'{name} there\n')

    def assert_both(self, name='a'):
        self.assertEqual((self.work / f'{name}-here').read_text(), f'{name} here\n')
        self.assertEqual((self.work / f'{name}-there').read_text(), f'{name} there\n')

    def left(self, **keys):
        """
        Leaves the sandbox of a killed broker, with pending edits on both sides; returns its root.
        """
        client, session = self.opened(**keys)
        runtime = self.runtime(client, session)
        self.edit_both(runtime)
        self.wait_state('active')
        self.kill(client)
        return runtime

    def wait_state(self, state, count=1):
        def reached():
            return [r['state'] for r in self.records()].count(state) >= count
        self.assertTrue(processes.wait_until(reached, PATIENCE),
                        [(r['state'], r['error']) for r in self.records()])
