# SPDX-License-Identifier: MIT
"""
What the tests of pauses share: the cgroups that brokers make, and checks that processes stand
still.
"""

import atexit
import os
import pathlib
import time

import processes
from acp import RpcError
from processes import PATIENCE
from sync_case import fitting

STILL_SECONDS = 0.3
DAEMON = "(setsid sh -c 'while :; do echo >>ticks; sleep 0.02; done' &)"


def own_cgroup():
    """
    Moves this process into a cgroup (v2) of its own for the rest of its life, so that no broker of
    another test makes its cgroups beside ours. Returns the folder, or None if none can be made.
    """
    lines = pathlib.Path('/proc/self/cgroup').read_text().splitlines()
    own = next((line[4:] for line in lines if line.startswith('0::/')), None)
    for mount in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified'):
        folder = pathlib.Path(mount) / (own or '')
        if own is not None and (folder / 'cgroup.procs').exists():
            try:
                made = folder / f'acp-tests-{os.getpid()}'
                made.mkdir()
                atexit.register(leave_cgroup, folder, made)
                (made / 'cgroup.procs').write_text(str(os.getpid()))
                return made
            except OSError:
                return None
    return None


def leave_cgroup(above, made):
    try:
        (above / 'cgroup.procs').write_text(str(os.getpid()))
    finally:
        made.rmdir()


OWN_CGROUP = own_cgroup()


def groups():
    """The cgroups that brokers have made in our own."""
    return set(OWN_CGROUP.glob('acp-broker-*')) if OWN_CGROUP else set()


def left():
    """The cgroups whose guard does not run any more."""
    return {group for group in groups()
            if processes.name_of(int(group.name.rpartition('-')[2])) != 'acp-guard'}


def is_held(pid):
    """Whether the process is stopped by a signal, or is in a frozen cgroup."""
    text = pathlib.Path(f'/proc/{pid}/cgroup').read_text()
    for group in groups():
        if f'/{group.name}\n' in text:
            return 'frozen 1' in (group / 'cgroup.events').read_text()
    return processes.stat_of(pid)[1] == 'T'


class Pausing:
    """For a case whose clients have sessions; the agent works in `root`."""

    by = 'cgroup' if OWN_CGROUP else 'signals'

    def setUp(self):
        self.groups_before = left()
        self.addCleanup(self.assert_no_group_is_left)  # after the brokers have ended
        super().setUp()

    def assert_no_group_is_left(self):
        self.assertTrue(processes.wait_until(lambda: left() <= self.groups_before, PATIENCE),
                        left() - self.groups_before)

    def ask(self, client, session, method):
        return fitting('session-pause', client.call(f'_broker/session/{method}',
                                                    {'sessionId': session}, seconds=PATIENCE))

    def pause(self, client, session):
        self.assertEqual(self.ask(client, session, 'pause'),
                         {'paused': True, 'by': self.by, 'sessions': [session]})

    def resume(self, client, session):
        self.assertEqual(self.ask(client, session, 'resume'),
                         {'paused': False, 'sessions': [session]})

    def refused(self, client, session, code, method='_broker/session/pause', **params):
        with self.assertRaises(RpcError) as caught:
            client.call(method, {'sessionId': session, **params}, seconds=PATIENCE)
        self.assertEqual(caught.exception.data['code'], code)
        self.assertIs(caught.exception.data['retryable'], True)
        return caught.exception.message

    @staticmethod
    def size(path):
        return path.stat().st_size if path.exists() else 0

    def assert_grows(self, path):
        before = self.size(path)
        self.assertTrue(processes.wait_until(lambda: self.size(path) > before, PATIENCE))

    def assert_still(self, path):
        before = self.size(path)
        time.sleep(STILL_SECONDS)
        self.assertEqual(self.size(path), before)

    def with_daemon(self, client, session, root):
        """
        Lets the agent start a process from a terminal that it then releases; the process has a
        session of its own. Returns the file that it writes.
        """
        client.prompt(session, f'terminal {DAEMON}', seconds=PATIENCE)
        self.assert_grows(root / 'ticks')
        return root / 'ticks'

    def assert_pauses(self, client, session, root):
        ticks = self.with_daemon(client, session, root)
        self.pause(client, session)
        self.assert_still(ticks)
        self.assertEqual(self.status(client, session)['state'], 'paused')
        self.pause(client, session)
        message = self.refused(client, session, 'SESSION_PAUSED', 'session/prompt',
                               prompt=[{'type': 'text', 'text': 'say no'}])
        self.assertIn('_broker/session/resume', message)
        self.resume(client, session)
        self.assert_grows(ticks)
        self.assertEqual(self.status(client, session)['state'], 'active')
        self.resume(client, session)
        client.prompt(session, 'say on', seconds=PATIENCE)
