#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
In cells: sessions with copies of their own (copy-per = session), and a program that itself uses a
session's sandbox. As root the whole test becomes another user, because no process of root can be
confined.
"""

import os
import pathlib
import shutil
import tempfile

import case
import processes

from confinement import CONFINE, become_user
from processes import PATIENCE
from sandbox_methods_case import Methods
from sync_case import SyncCase

# The programs are where every user may execute them, and where no cell hides them.
PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix='acp-programs-', dir='/opt' if
                                         os.access('/opt', os.W_OK) else None))
PROGRAMS.chmod(0o755)
BROKER = shutil.copy(case.BROKER, PROGRAMS)
AGENT = shutil.copy(case.AGENT, PROGRAMS)


class Cells(SyncCase):
    def broker_argv(self, *options, agent):
        return [BROKER, *options, '--', *agent]

    def opened(self, **keys):
        options = self.config(confine=CONFINE, allow_read=str(PROGRAMS), **keys)
        client = self.broker(options=options, agent=[AGENT, '--own-names'])
        client.initialize()
        return client, client.new_session(self.work)


class OwnCopies(Cells):
    def test_each_session_sees_its_copy_alone(self):
        (self.work / 'file').write_text('UNIQUE\n')
        client, first = self.opened(copy_per='session')
        sessions = [first, client.new_session(self.work)]
        roots = [self.runtime(client, session) for session in sessions]
        self.assertEqual(len(set(roots)), 2)
        for name, session, root, other in zip('xy', sessions, roots, reversed(roots)):
            client.prompt(session, f'terminal echo {name} > {name}; cat {other}/file; '
                          f'echo bad > {other}/bad; cat {root}/file', seconds=PATIENCE)
            self.assertEqual(''.join(client.texts(session)).count('UNIQUE'), 1)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assertEqual(self.tree(), {'file': 'UNIQUE\n', 'x': 'x\n', 'y': 'y\n'})
        self.assertEqual(list((self.state / 'copies').glob('*.*')), [])


class Confined(Methods, Cells):
    def sleeper(self, command='_broker/exec'):
        """Process ids are different in a cell, so the command line has a mark."""
        mark = f'{1000 + os.getpid()}.{len(self.client.messages)}'
        request = self.client.start(command, {'sessionId': self.session,
                                              'command': ['sleep', mark]})
        found = []

        def is_there():
            found[:] = [pid for pid in processes.all_pids() if
                        processes.read_file(f'/proc/{pid}/cmdline') == f'sleep\0{mark}\0'.encode()]
            return found
        self.assertTrue(processes.wait_until(is_there, PATIENCE))
        (self.dir / 'begun').touch()
        return request, found[0]


if __name__ == '__main__':
    become_user(PROGRAMS)
    case.main()
