# SPDX-License-Identifier: MIT
"""A workspace that is a git repository, and the copy of it that the agent works in."""

import json
import subprocess

import case

from processes import PATIENCE
from sync_case import TurnCase

WORDS = ['-c', 'user.name=A', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always',
         '-c', 'init.defaultBranch=main', '-c', 'advice.detachedHead=false']


class RepositoryCase(TurnCase):
    def git(self, *words, where=None, **more):
        """Runs git as the user, in the workspace or in `where`; returns its output."""
        done = subprocess.run(['git', '-C', str(where or self.work), *WORDS, *words], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env=self.environment(), **more)
        self.assertEqual(done.returncode, 0, f'git {words}: {done.stdout}{done.stderr}')
        return done.stdout

    def repository(self, where=None, **files):
        """A repository with one commit."""
        where = where or self.work
        where.mkdir(exist_ok=True)
        self.git('init', '-q', where=where)
        self.write(where, **(files or {'a': '1\n'}))
        self.git('add', '-A', where=where)
        self.git('commit', '-qm', 'first', where=where)

    def write(self, where, **files):
        for name, text in files.items():
            path = where / name.replace('__', '/')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def folder_of_git(self):
        """Every file in the user's `.git`, with its content."""
        return {str(path): path.read_bytes() for path in (self.work / '.git').rglob('*')
                if path.is_file()}

    def prompt(self, client, session, *commands):
        """A turn in which the agent runs these commands in a terminal; they have to succeed."""
        before = len(client.texts())
        client.prompt(session, 'terminal ' + '; '.join(['set -e', *commands, 'echo "all" done']),
                      seconds=PATIENCE)
        told = client.texts()[before:]
        self.assertTrue([text for text in told if 'all done' in text], told)
        return told

    def command(self, *words, cwd=None):
        """Runs a command of the broker's; returns its stdout and stderr."""
        done = subprocess.run([case.BROKER, *words], cwd=cwd or self.work, text=True,
                              env=dict(self.environment(), TZ='UTC'), stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def commits(self):
        """The agent's commits, in the form of `commits list --json`."""
        return json.loads(self.command('commits', 'list', '--json')[0])['branches']
