#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A broker is killed while the service works on one of its calls. Every sandbox that then exists is
listed, the next broker uses it or ends it, and nothing that was written in it is lost.
"""

import functools
import pathlib
import signal
import sys
import threading

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

import processes  # noqa: E402
import sync_room  # noqa: E402
from acp import RpcError  # noqa: E402
from case import main  # noqa: E402
from processes import PATIENCE  # noqa: E402
from together import Together  # noqa: E402
from trouble import Trouble  # noqa: E402

AT_ONCE = 4
STEP_SECONDS = 0.1  # the stand-in looks at every process when it is asked


def load_tests(loader, tests, pattern):
    return Together(AT_ONCE, [test for group in tests for test in group])


class Killed(Trouble):
    """Trials one after the other, with the same service."""

    def broker_argv(self, *options, agent):
        return [sync_room.POINTS, *options, '--', *agent]

    def session(self, persistence, begun=lambda _: None):
        """
        A session with a turn and an edit after it. Passes the broker to `begun` as soon as it runs.
        """
        left = {record['id'] for record in self.records() if record['state'] != 'stopped'}
        client = self.broker(options=self.config(persistence=persistence))
        begun(client)
        number = len(self.clients)
        try:
            client.initialize(seconds=PATIENCE)
            session = self.open_session(client)
            self.prompt(client, session, f'terminal echo {number} > turn{number}')
            (self.runtime(client, session) / f'late{number}').write_text(f'{number}\n')
        except (AssertionError, RpcError):
            pass
        else:
            self.wait_taken_up(client, left)
        client.close_stdin()
        return client.wait(PATIENCE)

    def wait_taken_up(self, client, left):
        """Waits until the broker has finished, beside its session, what others have left."""
        def is_finished():
            states = [one['state'] for one in self.records() if one['id'] in left]
            return set(states) <= {'stopped'} and len(self.boxes()) <= 1
        self.assertTrue(processes.wait_until(is_finished, PATIENCE, STEP_SECONDS), client.stderr)

    def kill_during(self, call, client):
        """
        Kills the broker when the service gets this call; the service does the call and never
        answers.
        """
        before = self.daytona.counts().get(call, 0)
        self.daytona.fault(call, action='hang', effect=True)

        def watch():
            processes.wait_until(lambda: self.daytona.counts().get(call, 0) > before, PATIENCE,
                                 STEP_SECONDS)
            processes.kill(client.pid, signal.SIGKILL)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE)

    def written(self):
        """The files in the workspaces of all sandboxes."""
        return {path.name: path.read_text() for box in self.boxes() for path in pathlib.Path(
            box['home']).glob('.local/share/acp-broker/workspaces/*/work/*') if path.is_file()}

    def check(self, persistence):
        """Checks what is left after the kill, and that the next broker brings all of it here."""
        self.assertTrue(processes.wait_until(lambda: not self.running(), PATIENCE, STEP_SECONDS))
        self.daytona.no_faults()
        self.check_listed(persistence=persistence)
        written = self.written()
        self.assertEqual(self.session(persistence), 0, self.clients[-1].stderr)
        tree = self.tree()
        self.assertEqual({name: tree.get(name) for name in written}, written)
        self.assertIn(f'late{len(self.clients)}', tree)
        self.check_listed(persistence=persistence)
        self.assertEqual([box['state'] for box in self.boxes()],
                         ['stopped'] if persistence == 'reuse' else [])

    def trial(self, persistence, call):
        status = self.session(persistence, functools.partial(self.kill_during, call))
        self.assertEqual(status, -signal.SIGKILL, self.clients[-1].stderr)
        self.check(persistence)

    def test_one_that_is_kept(self):
        for call in ('create', 'ssh-access', 'start', 'stop'):
            with self.subTest(call):
                self.trial('reuse', call)

    def test_one_that_is_deleted(self):
        for call in ('create', 'ssh-access', 'delete'):
            with self.subTest(call):
                self.trial('transient', call)

    def test_the_note_cannot_be_written(self):
        client = self.broker(options=self.config(), env={
            **self.environment(), 'ACP_POINT': 'daytona.noting:1:enospc'})
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=PATIENCE)
        self.assertIn('No space left', str(caught.exception))
        self.assertNotIn('create', self.daytona.counts())


if __name__ == '__main__':
    main()
