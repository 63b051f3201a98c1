# SPDX-License-Identifier: MIT
"""A session whose agent works on another host: a real sshd on loopback, with a home of its own."""

import pathlib
import unittest

import processes

from case import Case
from sshd import Sshd, can_be_started

# Keys of the profile; these deadlines do not pass during a test.
LINK = {'resolve-timeout': '10m', 'connect-timeout': '10m', 'auth-timeout': '10m',
        'login-timeout': '10m', 'channel-timeout': '10m', 'alive-interval': '1m',
        'alive-count': '10', 'link-grace': '10m'}

# For a host that does not notice that its broker is gone: it gives up after this time without a
# heartbeat.
GRACE = {'link-grace': '6s'}
# For a connection that falls silent: both sides give up after six seconds.
SILENT = {'alive-interval': '2s', 'alive-count': '3', **GRACE}


@unittest.skipUnless(can_be_started(), 'there is no sshd')
class SshCase(Case):
    ssh_client = 'libssh2'
    sshd_config = ''
    sshd_shell = None
    runner = None  # None: the default; 'never': scripts do the work on the host

    def setUp(self):
        self.sshd = self.make_sshd()
        # Starts first, so that it runs until everything that uses it has ended.
        self.addCleanup(self.sshd.__exit__)
        self.sshd.__enter__()
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'

    def make_sshd(self):
        return Sshd(self.sshd_config, self.sshd_shell)

    def ssh_keys(self):
        """The keys of the profile that a connection needs."""
        return {'host': 'box', 'ssh-config': str(self.sshd.config),
                'ssh-client': self.ssh_client, **self.runner_keys()}

    def runner_keys(self):
        return {'runner': self.runner} if self.runner else {}

    def config(self, deadlines=True, policy=None, backend='ssh', **keys):
        named = {name.replace('_', '-'): value for name, value in keys.items()}
        return super().config(deadlines, policy, backend,
                              **{**self.ssh_keys(), **LINK, **named})

    # ---- there ----

    def remote(self):
        """The processes on the host that sshd started for a user: their HOME is the host's."""
        return processes.marked(f'HOME={self.sshd.home}')

    def running(self):
        return sorted(set(super().running()) | set(self.remote()))

    def workspaces(self):
        """The folders of workspaces on the host."""
        return sorted(self.sshd.home.glob('.local/share/acp-broker/workspaces/*/*'))

    # ---- here ----

    def opened(self, *flags, **keys):
        client = self.broker(*flags, options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def status(self, client, session):
        return client.call('_broker/session/status', {'sessionId': session})

    def runtime(self, client, session):
        return pathlib.Path(self.status(client, session)['runtimeRoot'])
