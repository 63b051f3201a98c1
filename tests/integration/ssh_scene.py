# SPDX-License-Identifier: MIT
"""
A session over SSH that gates stop at a moment of its life. A program that the host then runs (its
sshd, its login shell, its git, its rsync) waits until the test lets it go on.
"""

import os
import shutil
import unittest

import processes

from slow_proxy import SlowProxy
from ssh_case import SshCase

GATE_SECONDS = 300  # no process waits longer, even if the test has ended
BIG = 4 * 1024 * 1024

# Each gate is a file on the host: while it exists, a process that comes to it waits and says so.
GATE = '''gate() {{
	[ -e '{gates}/'"$1" ] || return 0
	echo $$ > '{gates}/'"$1".reached
	tries=0
	while [ -e '{gates}/'"$1" ] && [ $tries -lt {tries} ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
}}
'''
KEYS = '''. '{home}/gate'
gate keys
cat '{folder}/authorized_keys'
'''
PROFILE = '''. '{home}/gate'
PATH='{home}/bin':$PATH
export PATH
gate login
'''
GIT = '''#!/bin/sh
. '{home}/gate'
case " $* " in
*' fast-import '*) gate sync ;;
*' cat-file --batch --buffer '*) gate collect ;;
esac
exec '{git}' "$@"
'''
RSYNC = '''#!/bin/sh
. '{home}/gate'
case " $* " in
*' --server --sender '*) gate collect ;;
*' --server '*) gate sync ;;
esac
exec '{rsync}' "$@"
'''
RM = '''#!/bin/sh
. '{home}/gate'
case "$*" in
*./work-*) gate destroy ;;
esac
exec '{rm}' "$@"
'''


class Gates:
    """Gates on the host of a case with `sshd`."""

    def make_gates(self):
        self.gates = self.sshd.home / 'gates'
        self.gates.mkdir()
        (self.sshd.home / 'bin').mkdir()
        words = {'home': self.sshd.home, 'folder': self.sshd.folder, 'gates': self.gates,
                 'git': shutil.which('git'), 'rsync': shutil.which('rsync'),
                 'rm': shutil.which('rm'), 'tries': GATE_SECONDS * 20}
        for name, text in (('gate', GATE), ('keys', KEYS), ('.profile', PROFILE),
                           ('bin/git', GIT), ('bin/rsync', RSYNC), ('bin/rm', RM)):
            path = self.sshd.home / name
            path.write_text(text.format(**words))
            path.chmod(0o755)

    def shut(self, name):
        (self.gates / name).write_text('')

    def wait_reached(self, name):
        reached = processes.wait_until((self.gates / f'{name}.reached').exists)
        self.assertTrue(reached, f'nothing came to the gate {name}: {self.clients[-1].stderr}')

    def open_gates(self):
        for gate in self.gates.iterdir():
            gate.unlink(missing_ok=True)


@unittest.skipUnless(os.getuid() == 0, 'the home of the gates is that of the test for root alone')
class Scene(Gates, SshCase):
    """
    One session through a proxy, on a host with gates. What runs there ends with the connection,
    unless the test says otherwise.
    """

    sshd_config = '''AuthorizedKeysFile none
AuthorizedKeysCommand /bin/sh %h/keys
AuthorizedKeysCommandUser root
'''
    def setUp(self):
        super().setUp()
        self.proxy = SlowProxy(self.sshd.port)
        self.proxy.__enter__()
        self.make_gates()
        (self.work / 'a.txt').write_text('eins\n')

    def clean_up(self):
        self.heal()
        super().clean_up()
        self.proxy.__exit__()

    def ssh_keys(self):
        path = self.dir / 'ssh_config'
        path.write_text(self.sshd.alias('box', port=self.proxy.port))
        return {'host': 'box', 'ssh-config': str(path), 'ssh-client': self.ssh_client,
                'outlives': 'never', **self.runner_keys()}

    def heal(self):
        """Repairs the host and the connection."""
        self.proxy.cut_after = None
        self.proxy.delay = 0.0
        self.proxy.refuses = False
        self.proxy.stall(False)
        self.sshd.thaw()
        self.open_gates()
