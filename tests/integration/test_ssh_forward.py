#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Ports of this machine that lead to a server of an agent on another host (`forward` in a profile).
The host is on this machine's loopback, so the ports here and there are different.
"""

import signal
import socket
import subprocess
import threading

import processes

from acp import RpcError
from case import AGENT, BROKER, main
from forwarding import HAS_IP6, SERVE, free_port, tell
from processes import PATIENCE
from ssh_case import SshCase
from sync_case import checked

CONNECTIONS_MAX = 128
LARGE = 8 << 20


class Forward(SshCase):
    def setUp(self):
        super().setUp()
        (self.work / 'serve.py').write_text(SERVE)
        self.here, self.there = free_port(), free_port()

    def begin(self, **keys):
        return self.opened(**{'forward': f'{self.here}:{self.there}', **keys})

    def serve(self, client, session, *places):
        """Lets the agent start the server, which runs until the session ends."""
        client.start_prompt(session, f'terminal python3 serve.py {" ".join(map(str, places))}')

    def notices(self, client):
        """The titles of the notices that the broker has shown."""
        updates = [message.params['update'] for message in client.received
                   if message.method == 'session/update']
        return [update['title'] for update in updates
                if update.get('toolCallId', '').startswith('acp-broker-notice')]

    def reach(self, port, wanted, **more):
        self.assertTrue(processes.wait_until(lambda: tell(port, **more) == wanted, PATIENCE))

    def echo(self, client, piece, before=b''):
        """Sends the bytes and checks that the server sends them back."""
        writer = threading.Thread(target=send_all, args=(client, piece), daemon=True)
        writer.start()
        self.assertEqual(receive(client, len(before + piece)), before + piece)
        writer.join(PATIENCE)

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assert_nothing_runs()
        for port in (self.here, self.there):
            self.assertIsNone(tell(port))


class Sessions(Forward):
    def test_a_server_there_is_reached_here_until_the_session_ends(self):
        client, session = self.begin()
        self.assertIsNone(tell(self.here))  # nobody listens there yet
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        with socket.create_connection(('127.0.0.1', self.here), PATIENCE) as held:
            held.settimeout(PATIENCE)
            self.echo(held, b'x' * LARGE, before=b'%d ' % self.there)
        if HAS_IP6:
            self.reach(self.here, b'%d hello' % self.there, address='::1')
        self.ends(client)

    def test_many_connections_at_once_up_to_a_limit(self):
        client, session = self.begin()
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        held = []
        for _ in range(CONNECTIONS_MAX):
            held.append(socket.create_connection(('127.0.0.1', self.here), PATIENCE))
            self.addCleanup(held[-1].close)
            self.assertTrue(held[-1].recv(1))  # the server has accepted it
        self.assertIsNone(tell(self.here))
        self.assertTrue(processes.wait_until(lambda: any(
            str(CONNECTIONS_MAX) in title for title in self.notices(client)), PATIENCE))
        held.pop().close()
        self.reach(self.here, b'%d hello' % self.there)
        self.ends(client)

    def test_slow_readers_do_not_delay_others(self):
        client, session = self.begin()
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        slow = socket.create_connection(('127.0.0.1', self.here), PATIENCE)
        self.addCleanup(slow.close)
        writer = threading.Thread(target=send_all, args=(slow, b'x' * LARGE), daemon=True)
        writer.start()
        self.assertEqual(tell(self.here, b'y'), b'%d y' % self.there)
        client.response(client.start('_broker/health', {}), PATIENCE)
        self.ends(client)
        writer.join(PATIENCE)

    def test_the_next_agent_has_the_port_again(self):
        client, session = self.begin()
        other = client.new_session(self.work)
        self.failure(client.response(client.start_prompt(other, 'exit 3'), PATIENCE),
                     'AGENT_EXITED')
        session = client.new_session(self.work)
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        self.ends(client)

    def test_a_lost_connection_closes_the_port(self):
        client, session = self.begin(outlives='never')
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        held = socket.create_connection(('127.0.0.1', self.here), PATIENCE)
        self.addCleanup(held.close)
        self.assertTrue(held.recv(1))
        self.sshd.kill_connections()
        held.settimeout(PATIENCE)
        with self.assertRaises(ConnectionResetError):
            while held.recv(64):
                pass
        client.finish()

    def test_a_port_that_is_taken_fails_the_start(self):
        with socket.create_server(('127.0.0.1', self.here)):
            with self.assertRaises(RpcError) as caught:
                self.begin()
        self.assertEqual((caught.exception.data['code'], caught.exception.data['retryable']),
                         ('FORWARD_TAKEN', True))


class Cut(Forward):
    """With `outlives` a connection goes on over the next connection to the host."""

    def test_a_forwarded_connection_survives_a_lost_link(self):
        client, session = self.begin(runner='auto', outlives='auto')
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        with socket.create_connection(('127.0.0.1', self.here), PATIENCE) as held:
            held.settimeout(PATIENCE)
            self.echo(held, b'before', before=b'%d ' % self.there)
            self.sshd.kill_connections()
            self.echo(held, b'x' * LARGE + b'end')
            self.assertEqual(client.stderr.count('reconnected after'), 1)
        self.ends(client)

    def test_while_the_host_is_away_a_new_connection_is_reset(self):
        """Each would need messages, and these would wait without a bound."""
        client, session = self.begin(outlives='auto')
        self.serve(client, session, '127.0.0.1', self.there)
        self.reach(self.here, b'%d hello' % self.there)
        processes.kill(self.sshd.process.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        self.assertTrue(processes.wait_until(lambda: 'unreachable' in client.stderr, PATIENCE))
        self.assertIsNone(tell(self.here))
        processes.kill(self.sshd.process.pid, signal.SIGCONT)
        self.reach(self.here, b'%d hello' % self.there)
        self.ends(client)


class Requests(Forward):
    """_broker/forward: a program opens and closes ports by itself."""

    def open_port(self, client, session, **more):
        params = {'sessionId': session, 'port': self.there, **more}
        return checked('forward', 'result', client.call(
            '_broker/forward', checked('forward', 'params', params), PATIENCE))['localPort']

    def close_port(self, client, session, port):
        params = {'sessionId': session, 'localPort': port}
        return checked('forward', 'closeResult', client.call(
            '_broker/forward/close', checked('forward', 'closeParams', params), PATIENCE))

    def refused(self, code, act, *words, **params):
        with self.assertRaises(RpcError) as caught:
            act(*words, **params)
        data = caught.exception.data
        self.assertEqual((data['code'], data['stage']), (code, 'tool'), caught.exception)
        return data

    def test_a_port_is_opened_and_closed(self):
        client, session = self.opened()
        self.serve(client, session, '127.0.0.1', self.there)
        first = self.open_port(client, session)
        second = self.open_port(client, session, localPort=self.here)
        self.assertEqual(second, self.here)
        for port in (first, second):
            self.reach(port, b'%d hello' % self.there)
        with socket.create_connection(('127.0.0.1', first), PATIENCE) as held:
            held.settimeout(PATIENCE)
            self.assertTrue(held.recv(1))
            self.close_port(client, session, first)
            with self.assertRaises(ConnectionResetError):
                while held.recv(64):
                    pass
        self.assertIsNone(tell(first))
        self.assertEqual(tell(second), b'%d hello' % self.there)
        self.refused('INVALID_PARAMS', self.close_port, client, session, first)
        self.ends(client)

    def test_a_port_ends_with_its_session(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        self.serve(client, other, '127.0.0.1', self.there)
        port = self.open_port(client, session)
        kept = self.open_port(client, other)
        self.reach(port, b'%d hello' % self.there)
        self.refused('INVALID_PARAMS', self.close_port, client, other, port)
        client.call('session/close', {'sessionId': session}, PATIENCE)
        self.assertIsNone(tell(port))
        self.assertEqual(tell(kept), b'%d hello' % self.there)
        self.ends(client)
        self.assertIsNone(tell(kept))

    def test_what_is_refused(self):
        client, session = self.opened(forward=self.here)
        data = self.refused('FORWARD_TAKEN', self.open_port, client, session, localPort=self.here)
        self.assertTrue(data['retryable'])
        # A port of the profile is not a program's to close.
        self.refused('INVALID_PARAMS', self.close_port, client, session, self.here)
        for wrong in ({}, {'port': 0}, {'port': 65536}, {'port': '3000'},
                      {'port': 3000, 'localPort': -1}):
            self.refused('INVALID_PARAMS', client.call, '_broker/forward',
                         {'sessionId': session, **wrong})
        self.refused('INVALID_PARAMS', client.call, '_broker/forward',
                     {'sessionId': 'none', 'port': 3000})
        self.ends(client)


class Scripts(Forward):
    runner = 'never'

    def test_a_request_is_refused(self):
        client, session = self.opened()
        with self.assertRaises(RpcError) as caught:
            client.call('_broker/forward', {'sessionId': session, 'port': self.there}, PATIENCE)
        self.assertEqual(caught.exception.data['code'], 'FORWARD_UNSUPPORTED')
        self.ends(client)

    def test_the_scripts_cannot_forward(self):
        done = subprocess.run(
            [BROKER, *self.config(forward=self.here), 'check', '--', AGENT],
            env=self.environment(), capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertNames(done.stderr, 'forward | runner = never')


class Check(Forward):
    def checked(self, *lines):
        return subprocess.run(
            [BROKER, *self.config(forward=list(lines)), 'check', '--', AGENT],
            env=self.environment(), capture_output=True, text=True, check=False, timeout=PATIENCE)

    def test_it_says_where_a_port_leads(self):
        done = self.checked('3000', '8080:3001')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'localhost:3000 | localhost:8080 | 3001 | host')

    def test_wrong_lines_are_refused(self):
        for wanted, lines in (('8080:3000', ['0']), ('another', ['3000', '3000:3001'])):
            with self.subTest(lines=lines):
                done = self.checked(*lines)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertNames(done.stderr, wanted)


def send_all(client, piece):
    try:
        client.sendall(piece)
    except OSError:
        pass  # the session has ended first


def receive(client, size):
    answer = b''
    while len(answer) < size and (piece := client.recv(65536)):
        answer += piece
    return answer


if __name__ == '__main__':
    main()
