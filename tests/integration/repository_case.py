# SPDX-License-Identifier: MIT
"""A workspace that is a repository of git's, and its copy, which the agent works in."""

import json
import subprocess

import case

from processes import PATIENCE
from sync_case import TurnCase

WORDS = ['-c', 'user.name=A', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always',
         '-c', 'init.defaultBranch=main', '-c', 'advice.detachedHead=false']


class RepositoryCase(TurnCase):
    def git(self, *words, where=None, **more):
        """What git prints, run by the user; in the workspace, or where it is said."""
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
        """Every file of the user's repository, and what it holds."""
        return {str(path): path.read_bytes() for path in (self.work / '.git').rglob('*')
                if path.is_file()}

    def prompt(self, client, session, *commands):
        """A turn in which the agent runs these in a terminal; they have to succeed."""
        before = len(client.texts())
        client.prompt(session, 'terminal ' + '; '.join(['set -e', *commands, 'echo "all" done']),
                      seconds=PATIENCE)
        told = client.texts()[before:]
        self.assertTrue([text for text in told if 'all done' in text], told)
        return told

    def command(self, *words, cwd=None):
        """What the broker's command prints, and what it says on stderr."""
        done = subprocess.run([case.BROKER, *words], cwd=cwd or self.work, text=True,
                              env=dict(self.environment(), TZ='UTC'), stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def commits(self):
        """What the agent's commits are, as `commits list --json` has them."""
        return json.loads(self.command('commits', 'list', '--json')[0])['branches']
