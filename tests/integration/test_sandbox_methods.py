#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""_broker/exec… and _broker/fs/…: a program uses a session's sandbox itself."""

import json
import os
import signal

import case
import processes

from processes import PATIENCE
from sandbox_methods_case import Methods
from ssh_case import SshCase
from sync_case import SyncCase


class Local(Methods, SyncCase):
    """In the workspace itself."""

    def opened(self, audit=None):
        options = self.config()
        if audit:
            path = self.dir / 'config'
            path.write_text(f'[broker]\n\taudit = {audit}\n{path.read_text()}')
        client = self.broker(options=options)
        client.initialize()
        return client, client.new_session(self.work)

    def test_the_audit_log_has_them(self):
        log = self.dir / 'audit'
        self.client, self.session = self.opened(audit=log)
        self.exec('sh', '-c', 'true', env=[{'name': 'A', 'value': 'not written'}])
        self.fs('write', self.work / 'file', content='not written')
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([(line['operation'], line['subject'], line['by'], line['session'])
                          for line in lines],
                         [('_broker/exec', 'sh -c true', 'editor', self.session),
                          ('_broker/fs/write', str(self.work / 'file'), 'editor', self.session)])
        self.assertNotIn('not written', log.read_text())

    def test_no_more_than_so_many_are_kept(self):
        self.begin()
        kept = [self.ask('_broker/exec/start', '', 'exec', command=['true']) for _ in range(64)]
        self.refused('RESOURCE_LIMIT_EXCEEDED', self.exec, 'true')

        def is_over():
            found = self.ask('_broker/exec/status', 'status', 'exec', forget=True, **kept[0])
            return found['state'] == 'exited'
        self.assertTrue(processes.wait_until(is_over, PATIENCE))
        self.assertEqual(self.exec('true')['exitCode'], 0)

    def test_the_death_of_the_agent_ends_them(self):
        self.begin()
        request, pid = self.sleeper()
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.failure(self.client.response(request, PATIENCE), 'AGENT_EXITED')
        self.assertTrue(processes.wait_until(lambda: not self.lives(pid), PATIENCE))


class Copy(Methods, SyncCase):
    """In a copy, which has its own files."""

    def test_the_files_are_the_copys_until_a_sync(self):
        self.begin()
        self.fs('write', self.work / 'new', content='new\n')
        self.assertFalse((self.work / 'new').exists())
        self.client.call('_broker/sync', {'sessionId': self.session})
        self.assertEqual((self.work / 'new').read_text(), 'new\n')


class Ssh(Methods, SshCase):
    """On another host."""


if __name__ == '__main__':
    case.main()
