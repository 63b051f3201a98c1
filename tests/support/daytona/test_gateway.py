# SPDX-License-Identifier: MIT
"""OpenSSH's client and ssh2 use the gateway; it behaves as the real one was seen to behave."""

import json
import os
import socket
import subprocess
import threading
import time
import unittest

import stand_in  # first: it says where the others are
import processes
from api_client import Api
from case import main
from processes import PATIENCE

MOMENT = 0.5  # seconds in which a forbidden event would have happened
WINDOW = 2 * 1024 * 1024


class Connection:
    """One connection of the library ssh2; all commands share it."""

    def __init__(self, daytona, user):
        argv = [stand_in.node(), str(stand_in.HERE / 'gateway_client.mjs'),
                str(daytona.ssh_port), user]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.first = self._read()

    def _read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def run(self, command, text=None, wait=PATIENCE):
        asked = {'command': command, 'input': text, 'waitMs': int(wait * 1000)}
        if text is None:
            del asked['input']
        self.process.stdin.write(json.dumps(asked).encode() + b'\n')
        self.process.stdin.flush()
        return self._read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@stand_in.NEEDED
class GatewayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daytona = stand_in.StandIn(env={'FROM_DAEMON': 'yes'})
        cls.daytona.__enter__()
        cls.addClassCleanup(cls.daytona.__exit__)
        cls.api = Api(cls.daytona)

    def setUp(self):
        self.name = self.id().rsplit('.', 1)[-1]
        self.daytona.no_faults()
        self.daytona.settings(exitLostEvery=0, backendDown=False)
        self.sandbox = self.api.make(self.name, env={'GIVEN': 'at create'})
        self.home = self.daytona.sandbox(self.name)['home']

    def ssh(self, command, data=b'', token=None, options=(), timeout=PATIENCE):
        argv = self.api.ssh_argv(token or self.api.token(self.name), command)
        return subprocess.run([*argv[:1], *options, *argv[1:]], input=data, timeout=timeout,
                              capture_output=True)

    def connect(self, token=None):
        connection = Connection(self.daytona, token or self.api.token(self.name))
        self.addCleanup(connection.end)
        return connection

    def pids(self):
        return self.daytona.sandbox(self.sandbox['id'])['pids']

    def assert_is_dropped(self, token):
        done = self.ssh('echo in', token=token, options=['-v'])
        self.assertEqual((done.returncode, done.stdout), (255, b''))
        self.assertIn(b'using "none"', done.stderr)
        self.assertIn(b'closed by remote host', done.stderr)

    # ---- what runs ----

    def test_a_command_runs_in_the_home_with_the_variables_of_the_create(self):
        done = self.ssh('echo "$PWD|$HOME|$GIVEN|$FROM_DAEMON|$0"; shopt 2>/dev/null')
        self.assertEqual(done.stdout.decode().split('|'),
                         [self.home, self.home, 'at create', 'yes', '/bin/sh\n'])

    def test_a_variable_of_the_client_is_granted_and_ignored(self):
        done = self.ssh('echo "[$MINE]"', options=['-o', 'SetEnv=MINE=set'])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'[]\n', b''))

    def test_a_terminal_is_granted_and_there_is_none(self):
        done = self.ssh('test -t 0 || echo none', options=['-tt'])
        self.assertEqual(done.stdout, b'none\n')

    def test_a_shell_reads_its_commands_from_stdin(self):
        argv = self.api.ssh_argv(self.api.token(self.name))
        done = subprocess.run(argv, input=b'echo shell; exit 4\n', capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (4, b'shell\n'))

    def test_32_mib_pass_both_ways_unchanged(self):
        data = os.urandom(32 * 1024 * 1024)
        done = self.ssh('cat', data)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout == data)

    def test_the_end_of_stdin_passes_and_what_is_written_after_it_arrives(self):
        done = self.ssh('wc -c; sleep 0.3; echo after', b'x' * 100000)
        self.assertEqual(done.stdout.split(), [b'100000', b'after'])

    def test_a_child_that_holds_stdout_keeps_the_channel_open(self):
        seen = self.connect().run('echo $$; sleep 1000 &', wait=MOMENT)
        self.assertFalse(seen['closed'])
        self.assertEqual(seen['stdout'], len(seen['text']))
        self.assertTrue(processes.wait_until(lambda: len(self.pids()) == 1))

    @unittest.skipUnless(os.access('/usr/lib/openssh/sftp-server', os.X_OK), 'no sftp-server')
    def test_files_pass_by_sftp(self):
        argv = self.api.ssh_argv(self.api.token(self.name))[1:]
        argv = ['sftp', '-b', '-', *argv[:argv.index('-p')], '-P', *argv[argv.index('-p') + 1:]]
        done = subprocess.run(argv, input=f'put {__file__} copy\npwd\n'.encode(),
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(__file__, 'rb') as one, open(f'{self.home}/copy', 'rb') as other:
            self.assertEqual(one.read(), other.read())

    # ---- statuses ----

    def test_a_status_is_told_but_for_those_that_are_lost(self):
        self.daytona.settings(exitLostEvery=2)
        statuses = sorted(self.ssh('exit 5').returncode for _ in range(4))
        self.assertEqual(statuses, [5, 5, 255, 255])
        connection = self.connect()
        self.assertEqual({connection.run('exit 5')['code'] for _ in range(2)}, {5, None})

    def test_a_child_killed_by_a_signal_is_told_as_1(self):
        self.assertEqual(self.ssh('kill -9 $$').returncode, 1)

    # ---- stderr ----

    def test_stderr_is_dropped(self):
        done = self.ssh('echo out; echo err >&2')
        self.assertEqual((done.stdout, done.stderr), (b'out\n', b''))

    def test_2_mib_of_stderr_freeze_the_channel_and_no_other(self):
        connection = self.connect()
        freeze = f'echo first; head -c {WINDOW} /dev/zero >&2; echo never'
        seen = connection.run(freeze, wait=6 * MOMENT)
        self.assertEqual((seen['text'], seen['stderr'], seen['closed']), ('first\n', 0, False))
        more = connection.run(f'head -c {WINDOW + 1} /dev/zero >&2', wait=MOMENT)
        self.assertFalse(more['closed'])
        self.assertEqual(connection.run('echo other')['text'], 'other\n')

    def test_a_byte_less_of_stderr_does_not(self):
        done = self.ssh(f'head -c {WINDOW - 1} /dev/zero >&2; echo out; exit 3')
        self.assertEqual((done.returncode, done.stdout), (3, b'out\n'))

    # ---- who may ----

    def test_a_token_nobody_gave_out_is_dropped_after_authentication(self):
        self.assert_is_dropped('x' * 32)

    def test_of_two_tokens_the_earlier_is_dropped(self):
        first, second = self.api.token(self.name), self.api.token(self.name)
        self.assert_is_dropped(first)
        self.assertEqual(self.ssh('echo in', token=second).stdout, b'in\n')

    def test_a_token_is_looked_at_only_when_one_connects(self):
        token = self.api.token(self.name, minutes=1)
        connection = self.connect(token)
        self.daytona.advance(minutes=2)
        self.assert_is_dropped(token)
        self.assertEqual(connection.run('echo still')['text'], 'still\n')
        self.api.ok('DELETE', f'/sandbox/{self.name}/ssh-access')
        self.assertEqual(connection.run('echo still')['text'], 'still\n')

    def test_a_sandbox_that_is_stopped_is_dropped(self):
        self.api.ok('POST', f'/sandbox/{self.name}/stop')
        self.api.reach(self.name, 'stopped')
        self.assert_is_dropped(self.api.token(self.name))

    def test_a_label_that_is_no_string_drops_every_connection(self):
        self.api.ok('PUT', f'/sandbox/{self.name}/labels', {'labels': {'n': 5}})
        self.assert_is_dropped(self.api.token(self.name))
        self.api.ok('PUT', f'/sandbox/{self.name}/labels', {'labels': {'n': '5'}})
        self.assertEqual(self.ssh('echo in').stdout, b'in\n')

    # ---- ends ----

    def test_a_disconnect_kills_nothing(self):
        client = self.api.ssh(self.name, 'cat; sleep 1000; true')
        self.assertTrue(processes.wait_until(lambda: len(self.pids()) == 2, PATIENCE))
        with client:
            client.kill()
        self.assertTrue(processes.wait_until(lambda: not self.daytona.connections(), PATIENCE))
        self.assertTrue(processes.wait_until(  # cat has seen the end of its stdin
            lambda: sorted(map(processes.name_of, self.pids())) == ['sh', 'sleep'], PATIENCE))
        time.sleep(MOMENT)
        self.assertEqual(len(self.pids()), 2)

    def test_a_stop_kills_what_runs_and_closes_its_channels(self):
        connection = self.connect()
        ended = {}
        thread = threading.Thread(target=lambda: ended.update(connection.run('sleep 1000')))
        thread.start()
        self.assertTrue(processes.wait_until(self.pids, PATIENCE))
        self.api.ok('POST', f'/sandbox/{self.name}/stop')
        thread.join(PATIENCE)
        self.assertEqual((ended['closed'], ended['code'], ended['isClosed']), (True, None, False))
        self.assertEqual(self.pids(), [])
        self.assertFalse(connection.run('echo', wait=MOMENT)['opened'])

    def test_a_backend_that_is_down_opens_channels_and_never_answers(self):
        connection = self.connect()
        self.daytona.settings(backendDown=True)
        seen = connection.run('echo', wait=MOMENT)
        self.assertEqual((seen['opened'], seen['isClosed']), (False, False))
        channels = [one['channels'] for one in self.daytona.connections()]
        self.assertEqual(channels, [[{'kind': 'session'}]])

    def test_what_has_just_started_does_not_listen_yet(self):
        self.daytona.settings(latency={'sshd': 3600000})
        self.addCleanup(self.daytona.settings, latency={'sshd': 20})
        self.api.ok('POST', f'/sandbox/{self.name}/stop')
        self.api.reach(self.name, 'stopped')
        self.assertEqual(self.api.ok('POST', f'/sandbox/{self.name}/start')['state'], 'started')
        connection = self.connect()
        seen = connection.run('echo', wait=MOMENT)
        self.assertEqual((seen['opened'], seen['isClosed']), (False, False))
        self.daytona.advance(minutes=60)
        self.assertTrue(connection.run('echo')['opened'])

    def test_a_keepalive_is_answered_by_a_refusal(self):
        done = self.ssh('sleep 1.3', options=['-vvv', '-o', 'ServerAliveInterval=1'])
        self.assertEqual(done.returncode, 0)
        self.assertIn(b'receive packet: type 82', done.stderr)  # SSH_MSG_REQUEST_FAILURE

    # ---- tunnels ----

    def test_a_port_in_the_sandbox_is_reached_and_none_is_listened_on_for_it(self):
        with socket.create_server(('127.0.0.1', 0)) as server:
            server.settimeout(PATIENCE)
            port = server.getsockname()[1]
            client = subprocess.Popen(
                self.api.ssh_argv(self.api.token(self.name), '-W', f'127.0.0.1:{port}'),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            with client:
                peer, _ = server.accept()
                with peer:
                    peer.sendall(b'through\n')
                    self.assertEqual(client.stdout.readline(), b'through\n')
                client.kill()
        refused = self.ssh('true', options=['-o', 'ExitOnForwardFailure=yes', '-R',
                                            f'{port}:127.0.0.1:{port}'])
        self.assertEqual(refused.returncode, 255)
        self.assertIn(b'remote port forwarding failed', refused.stderr)

    def test_a_socket_in_the_sandbox_is_reached(self):
        words = self.api.ssh_argv(self.api.token(self.name), 'cat')
        here = f'{self.daytona.folder}/here'
        words[1:1] = ['-o', 'ExitOnForwardFailure=yes', '-L', f'{here}:{self.home}/there']
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client, \
                subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ssh:
            server.settimeout(PATIENCE)
            client.settimeout(PATIENCE)
            server.bind(f'{self.home}/there')
            server.listen()
            ssh.stdin.write(b'ready\n')
            ssh.stdin.flush()
            self.assertEqual(ssh.stdout.readline(), b'ready\n')
            client.connect(here)
            peer, _ = server.accept()
            with peer:
                client.sendall(b'through')
                self.assertEqual(peer.recv(7), b'through')
            ssh.kill()

    # ---- activity ----

    def test_an_open_channel_is_activity(self):
        self.api.ok('POST', f'/sandbox/{self.name}/autostop/1')
        client = self.api.ssh(self.name, 'cat')
        with client:
            self.assertTrue(processes.wait_until(self.pids, PATIENCE))
            self.daytona.advance(minutes=15)
            self.assertEqual(self.daytona.sandbox(self.name)['state'], 'started')
            client.stdin.close()
            client.wait(PATIENCE)
        self.assertTrue(processes.wait_until(lambda: not self.daytona.connections(), PATIENCE))
        self.daytona.advance(minutes=2)
        self.assertEqual(self.daytona.sandbox(self.name)['state'], 'stopped')

    def test_a_post_is_activity_by_id_and_nothing_by_name(self):
        self.api.ok('POST', f'/sandbox/{self.name}/autostop/2')
        for whose, state in ((self.sandbox['id'], 'started'), (self.name, 'stopped')):
            for _ in range(3):
                self.daytona.advance(minutes=1)
                self.api.call('POST', f'/sandbox/{whose}/last-activity', {})
            self.assertEqual(self.daytona.sandbox(self.name)['state'], state)

    # ---- faults ----

    def test_a_connection_breaks_at_each_stage(self):
        token = self.api.token(self.name)
        for stage in ('accept', 'handshake', 'auth', 'ready', 'channel', 'exec'):
            for action in ('close', 'reset'):
                with self.subTest(stage=stage, action=action):
                    self.daytona.ssh_fault(stage, action=action)
                    self.assertEqual(self.ssh('echo in', token=token).returncode, 255)
                    self.assertEqual(self.ssh('echo in', token=token).stdout, b'in\n')
        self.daytona.ssh_fault('bytes', bytes=1000000)
        done = self.ssh('head -c 5000000 /dev/zero', token=token)
        self.assertEqual(done.returncode, 255)
        self.assertLess(len(done.stdout), 5000000)


if __name__ == '__main__':
    main()
