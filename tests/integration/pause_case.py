# SPDX-License-Identifier: MIT
"""What the tests of pauses share: the cgroups that brokers make, and what stands still."""

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
    The folder of a cgroup (v2) of our own, in which we are from now on, where one can be made: so
    that no broker of another test makes any beside ours. Else None.
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
    """The cgroups that brokers have made there."""
    return set(OWN_CGROUP.glob('acp-broker-*')) if OWN_CGROUP else set()


def left():
    """Those whose guard is no more."""
    return {group for group in groups()
            if processes.name_of(int(group.name.rpartition('-')[2])) != 'acp-guard'}


def is_held(pid):
    """Stopped by a signal, or in a cgroup that is frozen."""
    text = pathlib.Path(f'/proc/{pid}/cgroup').read_text()
    for group in groups():
        if f'/{group.name}\n' in text:
            return 'frozen 1' in (group / 'cgroup.events').read_text()
    return processes.stat_of(pid)[1] == 'T'


class Pausing:
    """For a case whose clients have sessions; `root` is where the agent works."""

    by = 'cgroup' if OWN_CGROUP else 'signals'

    def setUp(self):
        self.groups_before = left()
        self.addCleanup(self.assert_no_group_is_left)  # after all others, which end the brokers
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
        """A process of a terminal that was released, in a session of its own; what it writes."""
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
