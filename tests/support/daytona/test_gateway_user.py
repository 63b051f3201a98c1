# SPDX-License-Identifier: MIT
"""The broker's SSH code with the gateway: tokens, stderr, exit statuses, and faults on the way."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import stand_in  # first: it says where the others are
import processes
from api_client import Api
from case import ROOT, main

USER = os.environ.get('ACP_GATEWAY_USER', str(ROOT / 'build/tests/support/daytona/gateway_user'))
MIB = 1024 * 1024
PATIENCE_MS = round(processes.PATIENCE * 1000)


class User:
    """The test program, and every line that it has printed."""

    def __init__(self, daytona, known_hosts, pin='-', deadline_ms=PATIENCE_MS):
        self.said = []
        self.process = subprocess.Popen(
            [USER, daytona.ssh_host, str(daytona.ssh_port), str(known_hosts), pin,
             str(deadline_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self, *words):
        """Returns the next line that begins with one of these words, as a list."""
        for line in self.process.stdout:
            self.said.append(line)
            if line.split(maxsplit=1)[0] in words:
                return line.split()
        raise AssertionError(f'none of {words} after {self.said}')

    def say(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def answer(self, token):
        self.hear('ask')
        self.say(token)

    def run(self, script, how='run'):
        self.say(f'{how} {script}')
        return [int(word) for word in self.hear('exited')[1:]]

    def stop(self):
        if self.process.stdin.closed:
            return self.process.returncode
        self.process.stdin.close()
        self.said += self.process.stdout.readlines()
        status = self.process.wait(processes.PATIENCE)
        self.process.stdout.close()
        return status


def is_in_memory(pid, text):
    with open(f'/proc/{pid}/mem', 'rb', 0) as memory:
        for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
            begin, end = (int(at, 16) for at in line.split()[0].split('-'))
            # The mappings of a sanitizer are huge.
            if ' r' in line and '[v' not in line and end - begin < 64 * MIB:
                memory.seek(begin)
                if text in memory.read(end - begin):
                    return True
    return False


@stand_in.NEEDED
class GatewayUserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daytona = stand_in.StandIn()
        cls.daytona.__enter__()
        cls.addClassCleanup(cls.daytona.__exit__)
        cls.api = Api(cls.daytona)
        cls.api.make('box')

    def setUp(self):
        self.daytona.settings(exitLostEvery=3, backendDown=False)
        self.daytona.no_faults()
        self.folder = tempfile.TemporaryDirectory(prefix='gateway-')
        self.addCleanup(self.folder.cleanup)
        self.known_hosts = pathlib.Path(self.folder.name) / 'known_hosts'
        self.tokens = []
        self.addCleanup(self.expect_nothing_left)

    def token(self):
        self.tokens.append(self.api.token('box'))
        return self.tokens[-1]

    def user(self, **options):
        user = User(self.daytona, self.known_hosts, **options)
        self.addCleanup(self.finish, user)
        return user

    def finish(self, user):
        self.assertEqual(user.stop(), 0, user.said)
        asked = sum(line.startswith('ask') for line in user.said)
        ended = sum(line.startswith(('settled', 'cancelled')) for line in user.said)
        self.assertEqual(asked, ended, user.said)
        for token in self.tokens:
            self.assertNotIn(token, ''.join(user.said))

    def expect_nothing_left(self):
        self.assertTrue(processes.wait_until(lambda: not self.daytona.pids()))

    def ready(self, **options):
        user = self.user(**options)
        user.answer(self.token())
        user.hear('ready')
        return user

    def failed(self, user):
        words = user.hear('failed')
        return words[1], ' '.join(words[2:])

    # ---- what works ----

    def test_more_stderr_than_the_gateway_stands(self):
        user = self.ready()
        script = f'head -c {3 * MIB} /dev/zero >&2; head -c {8 * MIB} /dev/zero; exit 5'
        self.assertEqual(user.run(script), [5, 0, 8 * MIB, 3 * MIB])
        self.assertEqual(user.run('echo works'), [0, 0, 6, 0])
        self.assertEqual(len(self.daytona.connections()), 1)

    def test_lost_statuses_do_not_matter(self):
        self.daytona.settings(exitLostEvery=1)
        user = self.ready()
        for code in (0, 1, 7, 255):
            self.assertEqual(user.run(f'exit {code}'), [code, 0, 0, 0])
        self.assertEqual(user.run('kill -9 $$'), [0, 9, 0, 0])

    def test_what_is_killed_dies(self):
        user = self.ready()
        script = '(setsid sleep 600 &) ; echo up; sleep 600; echo never'
        self.assertEqual(user.run(script, how='kill'), [0, 9, 3, 0])

    def test_idle_links_are_kept_and_leave_no_channels(self):
        user = self.ready()
        self.assertEqual(user.run('sleep 2; echo late'), [0, 0, 5, 0])
        (connection,) = self.daytona.connections()
        self.assertLess(len(connection['channels']), 10)

    # ---- keys of the host ----

    def test_a_new_key_is_written_down_and_another_one_refused(self):
        self.ready()
        known = self.known_hosts.read_text()
        self.assertIn(self.daytona.host_key_line, known)
        self.ready()
        self.assertEqual(self.known_hosts.read_text(), known)
        with stand_in.StandIn() as other:
            self.known_hosts.write_text(known.replace(
                self.daytona.host_key_line, other.host_key_line))
        user = self.user()
        user.answer(self.token())
        self.assertEqual(self.failed(user)[0], 'HOST_KEY_MISMATCH')

    def test_a_pinned_key(self):
        self.ready(pin=self.daytona.host_key)
        user = self.user(pin='SHA256:' + 'A' * 43)
        user.answer(self.token())
        self.assertEqual(self.failed(user)[0], 'HOST_KEY_MISMATCH')

    # ---- tokens ----

    def test_a_token_made_invalid_meanwhile_is_asked_for_again(self):
        user = self.user()
        old = self.token()
        self.token()  # this revokes the first one
        user.answer(old)
        user.answer(self.token())
        user.hear('ready')
        self.assertEqual(user.run('echo works'), [0, 0, 6, 0])

    def test_a_token_is_in_no_memory_once_the_connection_stands(self):
        user = self.ready()
        user.run('echo works')
        self.assertFalse(is_in_memory(user.process.pid, self.tokens[0].encode()))
        self.assertTrue(is_in_memory(user.process.pid, b'ACP_BROKER_RUN'))  # the search works

    def test_a_token_that_is_never_valid_is_explained(self):
        user = self.user()
        for token in ('x' * 32, 'y' * 32):
            self.tokens.append(token)
            user.answer(token)
        reason, text = self.failed(user)
        self.assertEqual(reason, 'LINK_LOST')
        self.assertRegex(text, r'\btoken\b.*\bsandbox\b.*\bnot started\b')  # both causes

    def test_a_refused_token_is_the_error(self):
        user = self.user()
        user.answer('refuse')
        self.assertEqual(self.failed(user), ('NO_TOKEN', 'there is none'))
        user.said.append('settled')  # a refusal ends it, too

    # ---- what breaks ----

    def test_a_backend_that_is_down_is_waited_for_so_long(self):
        self.daytona.settings(backendDown=True)
        user = self.user(deadline_ms=2000)
        user.answer(self.token())
        reason, text = self.failed(user)
        self.assertEqual(reason, 'TIMEOUT_EXCEEDED')
        self.assertIn('channel-timeout', text)

    def test_a_process_whose_command_is_not_answered(self):
        user = self.ready(deadline_ms=4000)
        self.daytona.settings(backendDown=True)
        outcomes = []
        for _ in range(6):  # the warm channels first
            user.say('run echo works')
            outcomes.append(user.hear('exited', 'lost'))
            if outcomes[-1][0] == 'lost':
                break
        self.assertEqual(outcomes[-1][:2], ['lost', 'TIMEOUT_EXCEEDED'])
        self.daytona.settings(backendDown=False)

    def test_a_drop_at_each_stage_is_told_or_mended(self):
        for stage in ('accept', 'handshake', 'auth', 'ready', 'channel', 'exec'):
            for action in ('close', 'reset'):
                with self.subTest(stage=stage, action=action):
                    self.daytona.ssh_fault(stage, action=action)
                    user = self.user()
                    user.answer(self.token())
                    words = user.hear('ask', 'ready', 'failed')
                    if words[0] == 'ask':  # after the login it asks once more
                        user.say(self.token())
                        words = user.hear('ready', 'failed')
                        self.assertEqual(words[0], 'ready')
                    else:
                        self.assertEqual(words[:2], ['failed', 'HOST_UNREACHABLE'])
                        self.assertIn(stage, ('accept', 'handshake'))
                    user.stop()  # so that the next fault does not hit this program

    def test_a_gateway_that_stops_answering_is_noticed(self):
        for stage in ('accept', 'auth', 'ready', 'exec'):
            with self.subTest(stage=stage):
                self.daytona.ssh_fault(stage, action='hang')
                user = self.user(deadline_ms=1000)
                user.answer(self.token())
                self.assertEqual(self.failed(user)[0], 'TIMEOUT_EXCEEDED')
                self.daytona.no_faults()
                self.daytona.drop_connections()


if __name__ == '__main__':
    main()
