#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Variables that the login files on a host export: which processes there get them, and who sees them.
"""

import shutil
import unittest

import processes

from acp import RpcError
from case import main
from ssh_case import SshCase
from together import Together, tests_of

SECRET = 'sesame-street-4711'
AT_ONCE = 4


class LoginCase(SshCase):
    shell = '/bin/bash'
    files = {}

    def setUp(self):
        self.sshd_shell = self.shell
        super().setUp()
        for name, text in self.files.items():
            path = self.sshd.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def opened(self, *flags, **keys):
        options = [*self.config(**keys), '--trace', str(self.dir / 'trace')]
        client = self.broker(*flags, options=options)
        self.told = client.initialize()['_meta']['broker']['warnings']
        return client, client.new_session(self.work)

    def environment_of_agent(self, client, session):
        client.prompt(session, 'env')
        lines = client.texts(session)[-1].split('\n')
        return dict(line.split('=', 1) for line in lines if '=' in line)

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def files_with_secret(self):
        """
        The files with the secret here and there, except the agent's journal and the login files.
        """
        return sorted(path.name for folder in (self.dir, self.sshd.folder)
                      for path in folder.rglob('*')
                      if path.is_file() and SECRET.encode() in processes.read_file(path)
                      and path.name not in self.own)

    own = ('journal-1', '.profile', '.bashrc', 'config.fish', '.cshrc', '.login', '.zprofile')


class Named(LoginCase):
    # Like Debian's own file: a shell that is not interactive skips .bashrc.
    files = {'.profile': 'echo Welcome to the box; . "$HOME/.bashrc"\n',
             '.bashrc': 'case $- in *i*) ;; *) return ;; esac\n'
                        f'export THE_KEY={SECRET} OTHER_VARIABLE=other\nprintf "no newline"\n'}

    def test_what_is_named_reaches_the_agent_and_nobody_sees_it(self):
        with processes.Watcher(SECRET) as watcher:
            client, session = self.opened(login_env='THE_KEY')
            client.prompt(session, 'terminal printenv THE_KEY > t; echo $? > status', 'log '
                          + SECRET)
            got = self.environment_of_agent(client, session)
            self.end(client)
        self.assertEqual(got['THE_KEY'], SECRET)
        self.assertNotIn('OTHER_VARIABLE', got)
        self.assertEqual(self.told, [])
        # The agent has the variable; its terminals do not, as with variables that secret-env names.
        self.assertEqual((self.work / 'status').read_text(), '1\n')
        self.assertEqual(watcher.found, [])
        self.assertNotIn(SECRET, client.stderr)
        self.assertEqual(self.files_with_secret(), [])


@unittest.skipUnless(shutil.which('zsh'), 'there is no zsh')
class NamedByZsh(Named):
    shell = shutil.which('zsh')
    files = {'.zprofile': f'echo Welcome\nexport THE_KEY={SECRET} OTHER_VARIABLE=other\n'}


@unittest.skipUnless(shutil.which('fish'), 'there is no fish')
class NamedByFish(Named):
    shell = shutil.which('fish')
    files = {'.config/fish/config.fish': f'echo Welcome\nset -gx THE_KEY {SECRET}\n'
                                         'set -gx OTHER_VARIABLE other\n'}


@unittest.skipUnless(shutil.which('csh'), 'there is no csh')
class NamedByCsh(Named):
    shell = shutil.which('csh')
    files = {'.cshrc': 'echo again\nsetenv OTHER_VARIABLE other\n',
             '.login': f'echo Welcome\nsetenv THE_KEY {SECRET}\n'}


@unittest.skipUnless(shutil.which('dash'), 'there is no dash')
class NamedByDash(Named):
    shell = shutil.which('dash')
    files = {'.profile': f'echo Welcome\nTHE_KEY={SECRET} OTHER_VARIABLE=other\n'
                         'export THE_KEY OTHER_VARIABLE\n'}


class All(LoginCase):
    @property
    def files(self):
        trace = self.sshd.home / 'git-trace'
        return {'.profile': f'export THE_KEY={SECRET} TWO_LINES="a\nb" LANG=xx HOME_OF=it\n'
                            f'export GIT_TRACE={trace} BASH_ENV=/nowhere/x SHELLOPTS\n'
                            'export LD_LIBRARY_PATH=/nowhere ACP_BROKER_X=1\n'}

    def test_the_agent_gets_all_and_what_the_broker_runs_gets_none(self):
        (self.work / 'a').write_text('a\n')
        client, session = self.opened(login_env='all', env='HOME_OF=profile')
        got = self.environment_of_agent(client, session)
        client.prompt(session, f'write {self.runtime(client, session)}/b two\\n', 'log ' + SECRET)
        self.end(client)
        self.assertEqual(got['THE_KEY'], SECRET)
        self.assertEqual(got['TWO_LINES'], 'a')
        self.assertEqual(got['LANG'], 'xx')
        self.assertEqual(got['HOME_OF'], 'profile')
        self.assertEqual(got['GIT_TRACE'], str(self.sshd.home / 'git-trace'))
        for name in ('BASH_ENV', 'LD_LIBRARY_PATH', 'ACP_BROKER_X'):
            self.assertNotIn(name, got)
        self.assertEqual((self.work / 'b').read_text(), 'two\n')
        # The broker asks only the login shell for its git (its version); no git of a sync has
        # traced anything.
        traced = (self.sshd.home / 'git-trace').read_text().splitlines()
        self.assertEqual([line for line in traced if 'version' not in line], [])
        self.assertEqual(self.told, [])
        self.assertEqual(self.files_with_secret(), [])

    def test_what_changes_what_runs_has_to_be_named(self):
        client, session = self.opened(login_env=['LD_LIBRARY_PATH', 'ACP_BROKER_X', 'NOT_THERE'])
        got = self.environment_of_agent(client, session)
        self.end(client)
        self.assertEqual(got['LD_LIBRARY_PATH'], '/nowhere')
        self.assertNotIn('ACP_BROKER_X', got)
        self.assertNotIn('THE_KEY', got)
        self.assertNames(self.told[0], 'login-env | ACP_BROKER_X | NOT_THERE | box')
        self.assertNames(client.stderr, 'login-env | ACP_BROKER_X | NOT_THERE | box')


class Silent(LoginCase):
    """A login file that never ends."""
    files = {'.profile': 'export THE_KEY=1\nread x </dev/tty; while :; do sleep 600; done\n'}

    def test_a_login_shell_that_does_not_answer(self):
        client, session = self.opened(login_env='THE_KEY', login_timeout='1s')
        self.assertNotIn('THE_KEY', self.environment_of_agent(client, session))
        self.assertNames(self.told[0], 'login-env | login-timeout | box')
        self.end(client)


class NotLoggedIn(LoginCase):
    files = {'.profile': f'export THE_KEY={SECRET}\n'}

    def refused(self, **keys):
        with self.assertRaises(RpcError) as caught:
            self.opened('--need-auth', **keys)
        error = caught.exception
        self.assertEqual(error.code, -32000)
        self.assertIn('Authentication required', error.message)
        return error.message

    def test_the_error_names_the_keys_that_help(self):
        message = self.refused()
        self.assertNames(message, 'login-env = NAME | secret-env = NAME | copy = FILE | all')
        self.assertNotIn('login-env = NAME', self.refused(login_env='THE_KEY'))


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [
        Named, NamedByZsh, NamedByFish, NamedByCsh, NamedByDash, All, Silent, NotLoggedIn]))


if __name__ == '__main__':
    main()
