#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Whole sessions on another host: a killed broker, a slow connection, a secret that nobody else sees,
and an agent that only the login shell finds.
"""

import os
import shutil
import signal
import time
import unittest

import case
import processes

from case import main
from slow_proxy import SlowProxy
from ssh_case import SshCase
from together import Together, tests_of

SECRET = 'sesame-street-4711'
AT_ONCE = 4


class Ends(SshCase):
    def in_a_prompt(self):
        """A session with an agent and a terminal that run on the host."""
        client, session = self.opened()
        root = self.runtime(client, session)
        waiting = client.start_prompt(
            session, 'terminal echo there > made; (setsid sleep 500 &) ; sleep 600')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        self.assertTrue(self.remote())
        return client, waiting

    def check_next(self):
        client, session = self.opened()
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        client.prompt(session, 'say back')
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def test_a_broker_that_is_killed_leaves_nothing_on_either_side(self):
        client, _ = self.in_a_prompt()
        os.kill(client.pid, signal.SIGKILL)
        self.assert_nothing_runs()
        self.check_next()

    def test_a_broker_that_is_told_to_end_answers_collects_and_leaves_nothing(self):
        client, waiting = self.in_a_prompt()
        os.kill(client.pid, signal.SIGTERM)
        self.assertTrue(client.response(waiting).value)
        client.wait()
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assert_nothing_runs()

    def test_an_agent_that_dies_is_told_with_its_last_words(self):
        client, session = self.opened()
        root = self.runtime(client, session)
        waiting = client.start_prompt(session, 'log the last words', f'write {root}/made there\\n',
                                      'crash')
        error = self.failure(client.response(waiting), 'AGENT_EXITED')
        self.assertIn('SIGABRT', error['message'])
        self.assertIn('the last words', error['data']['detail'])
        self.check_next()


class EndsByScripts(Ends):
    ssh_client = 'openssh'
    runner = 'never'


class Slow(SshCase):
    """100 ms each way: everything works, within the default deadlines."""

    def ssh_keys(self):
        path = self.dir / 'ssh_config'
        path.write_text(self.sshd.alias('box', port=self.proxy.port))
        return {**super().ssh_keys(), 'ssh-config': str(path)}

    def test_a_session_on_a_slow_way(self):
        (self.work / 'big').write_bytes(os.urandom(2 * 1024 * 1024))
        with SlowProxy(self.sshd.port, delay=0.1) as self.proxy:
            client = self.broker(options=self.config())
            client.initialize()
            session = client.new_session(self.work)
            root = self.runtime(client, session)
            self.assertEqual((root / 'big').read_bytes(), (self.work / 'big').read_bytes())
            (self.work / 'mine').write_text('mine\n')
            client.prompt(session, 'terminal cat mine; echo there > theirs; rm big',
                          f'read {root}/mine')
            self.assertIn('mine', client.wait_text('terminal/output ->'))
            self.assertEqual((self.work / 'theirs').read_text(), 'there\n')
            self.assertFalse((self.work / 'big').exists())
            client.close_stdin()
            self.assertEqual(client.wait(), 0, client.stderr)
            # What the broker said last is still on its way.
            self.assertTrue(processes.wait_until(lambda: not self.remote()), client.stderr)


class SlowByOpenssh(Slow):
    ssh_client = 'openssh'


class Unread(SshCase):
    COUNT = 50_000

    def test_an_editor_that_does_not_read_costs_no_connection(self):
        """The editor does not read for longer than a host may be silent."""
        client, session = self.opened(alive_interval='2s', alive_count='3')
        client.pause()
        prompt = client.start_prompt(session, f'stream {self.COUNT} 200')
        time.sleep(8)
        client.resume()
        self.assertEqual(client.answer(prompt),
                         {'stopReason': 'end_turn'})
        self.assertEqual([int(text[:8]) for text in client.texts(session)],
                         list(range(self.COUNT)))
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)


class UnreadByOpenssh(Unread):
    ssh_client = 'openssh'


class Secrets(SshCase):
    def environment(self):
        return {**super().environment(), 'THE_KEY': SECRET}

    def with_secret(self):
        """The processes there that have the secret in their environment."""
        return {processes.name_of(pid) for pid in self.remote()
                if SECRET.encode() in processes.read_file(f'/proc/{pid}/environ')}

    def files_with_secret(self):
        folders = [self.dir, self.sshd.folder, *self.sshd.folder.parent.glob('acp-broker.*')]
        return [path for folder in folders for path in folder.rglob('*')
                if path.is_file() and SECRET.encode() in processes.read_file(path)]

    def test_a_secret_reaches_the_agent_and_nobody_else(self):
        with processes.Watcher(SECRET) as watcher:
            options = [*self.config(secret_env='THE_KEY', setup='"printenv THE_KEY | wc -c > ran"'),
                       '--trace', str(self.dir / 'trace')]
            client = self.broker(options=options)
            client.initialize()
            session = client.new_session(self.work)
            waiting = client.start_prompt(session, 'terminal echo x > running; sleep 600')
            running = self.runtime(client, session) / 'running'
            self.assertTrue(processes.wait_until(running.exists))
            self.assertEqual(self.with_secret(), {'scripted-agent'})
            self.assertEqual(self.files_with_secret(), [])
            client.notify('session/cancel', {'sessionId': session})
            client.response(waiting)
            waiting = client.start_prompt(session, 'env THE_KEY')
            self.assertIn(SECRET, client.wait_text('THE_KEY='))
            client.answer(waiting)
            client.close_stdin()
            self.assertEqual(client.wait(), 0)
        self.assertEqual(watcher.found, [])
        self.assertGreater(watcher.looks, 10)
        self.assertEqual((self.sshd.home / 'ran').read_text().strip(), str(len(SECRET) + 1))
        self.assertNotIn(SECRET, client.stderr)
        self.assertEqual([path for path in self.files_with_secret()
                          if not path.name.startswith('journal-')], [])


class SecretsByOpenssh(Secrets):
    ssh_client = 'openssh'


class Login(SshCase):
    """
    The agent is a script, and its interpreter is where a version manager keeps it, below the home.
    """

    shell = '/bin/bash'
    # Like Debian's and nvm's own files: a shell that is not interactive skips all of it.
    files = {'.profile': '[ -z "$BASH_VERSION" ] || . "$HOME/.bashrc"\n',
             '.bashrc': 'case $- in *i*) ;; *) return ;; esac\necho Welcome to the box\n'
                        'export NVM_DIR="$HOME/.nvm"\n. "$NVM_DIR/nvm.sh"\n'}

    def setUp(self):
        self.sshd_shell = self.shell
        super().setUp()
        bin_folder = self.sshd.home / '.nvm/versions/node/v1/bin'
        bin_folder.mkdir(parents=True)
        self.write('.nvm/nvm.sh', f'PATH="{bin_folder}:$PATH"\n')
        for name, text in self.files.items():
            self.write(name, text)
        self.write('.nvm/versions/node/v1/bin/a-node', '#!/bin/sh\nscript=$1\nshift\n'
                   f'NODE_SCRIPT=$script exec {case.AGENT} "$@"\n')
        self.write('.nvm/versions/node/v1/bin/an-agent', '#!/usr/bin/env a-node\n')

    def write(self, name, text):
        path = self.sshd.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start_agent(self, name):
        client = self.broker(options=self.config(), agent=[name, *self.agent_argv()[1:]])
        return client, client.response(client.start('initialize', {'protocolVersion': 1}))

    def test_an_agent_that_only_the_login_shell_finds(self):
        client, answer = self.start_agent('an-agent')
        self.assertIn('result', answer.value, client.stderr)
        session = client.new_session(self.work)
        client.prompt(session, 'env NODE_SCRIPT', 'env HOME', 'terminal command -v a-node')
        said = client.texts(session)
        self.assertTrue(said[0].endswith('v1/bin/an-agent'), said)
        self.assertEqual(said[1], f'HOME={self.sshd.home}')
        self.assertIn('v1/bin/a-node', client.wait_text('terminal/output ->'))
        for message in client.received:
            self.assertIsNotNone(message.value, message)

    def test_one_that_it_does_not_find_is_told_with_the_path(self):
        client, answer = self.start_agent('no-agent')
        error = self.failure(answer, 'AGENT_NOT_FOUND')
        self.assertIn('.nvm/versions/node/v1/bin', error['message'])
        client.close_stdin()
        client.wait()


@unittest.skipUnless(shutil.which('fish'), 'there is no fish')
class LoginByFish(Login):
    shell = shutil.which('fish')
    files = {'.config/fish/config.fish': 'if status is-interactive\n\techo Welcome\n'
                                         '\tset -gx PATH "$HOME/.nvm/versions/node/v1/bin" $PATH\n'
                                         'end\n'}


@unittest.skipUnless(shutil.which('csh'), 'there is no csh')
class LoginByCsh(Login):
    shell = shutil.which('csh')
    files = {'.login': 'echo Welcome\n',
             '.cshrc': 'setenv PATH "$HOME/.nvm/versions/node/v1/bin:$PATH"\necho again\n'}


@unittest.skipUnless(shutil.which('dash'), 'there is no dash')
class LoginByDash(Login):
    shell = shutil.which('dash')
    files = {'.profile': 'echo Welcome\n. "$HOME/.nvm/nvm.sh"\nexport PATH\n'}


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [
        Ends, EndsByScripts, Slow, SlowByOpenssh, Unread, UnreadByOpenssh, Secrets,
        SecretsByOpenssh, Login, LoginByFish, LoginByCsh, LoginByDash]))


if __name__ == '__main__':
    main()
