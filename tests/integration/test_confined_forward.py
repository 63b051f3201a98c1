#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ports of this machine that lead to a server of a confined agent (`forward` in a profile)."""

import socket
import subprocess

import case
import processes

from acp import RpcError
from confinement import CONFINE, become_user
from forwarding import HAS_IP6, SERVE, forwarders, free_port, tell
from sync_case import SyncCase
from test_confined import AGENT, BROKER, PROGRAMS

CONNECTIONS_MAX = 128


class ConfinedForward(SyncCase):
    def setUp(self):
        super().setUp()
        (self.work / 'serve.py').write_text(SERVE)
        self.port = free_port()

    def broker_argv(self, *options, agent):
        return [BROKER, *options, '--', *agent]

    def configured(self, **keys):
        keys = {'confine': CONFINE, 'allow_read': str(PROGRAMS), 'network': 'blocked', **keys}
        return self.config(**{name: value for name, value in keys.items() if value})

    def begin(self, **keys):
        client = self.broker(options=self.configured(**keys), agent=[AGENT])
        client.initialize()
        return client, client.new_session(self.work)

    def serve(self, client, session, *places):
        """Lets the agent start the server, which runs until the session ends."""
        client.start_prompt(session, f'terminal python3 serve.py {" ".join(map(str, places))}')

    def reach(self, port, wanted, **more):
        self.assertTrue(processes.wait_until(lambda: tell(port, **more) == wanted))

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()

    def test_a_login_page_that_comes_back_to_another_port_is_told_with_the_line(self):
        client, session = self.begin()
        page = f'https://id.example/?redirect_uri=http://localhost:{self.port}/'
        client.prompt(session, f'elicit-url {page}', f"terminal echo '{page}'")
        titles = [message.params['update'].get('title', '') for message in client.received
                  if message.method == 'session/update']
        self.assertEqual(len([title for title in titles if f'forward = {self.port}' in title]), 1)
        self.assertNotIn('session/request_permission', [method for method, _ in client.host.seen])
        self.assertIsNone(tell(self.port))
        self.ends(client)

    def test_a_server_in_the_cell_is_reached_here_and_nothing_else_of_it(self):
        other = free_port()
        client, session = self.begin(forward=[self.port, f'{other}:3000'])
        self.assertIsNone(tell(self.port))
        # Some programs listen on ::1 alone.
        six = '::1' if HAS_IP6 else '127.0.0.1'
        self.serve(client, session, '127.0.0.1', self.port, six, 3000, '127.0.0.1', 3001)
        self.reach(self.port, b'%d hello' % self.port)
        self.reach(other, b'3000 hello')
        for port in (3000, 3001):
            with self.subTest(port=port):
                answer = tell(port)  # another program of this machine may listen there
                self.assertFalse(answer and answer.startswith(b'%d ' % port))
        much = b'x' * (4 << 20)
        self.assertEqual(tell(self.port, much), b'%d ' % self.port + much)
        if HAS_IP6:
            self.reach(self.port, b'%d hello' % self.port, address='::1')
        self.ends(client)
        self.assertIsNone(tell(self.port))

    def test_it_works_beside_hosts_and_keeps_to_its_limit(self):
        client, session = self.begin(forward=self.port, network='allow', allow_host='a.example')
        self.serve(client, session, '127.0.0.1', self.port)
        self.reach(self.port, b'%d hello' % self.port)
        held = []
        for _ in range(CONNECTIONS_MAX):
            held.append(socket.create_connection(('127.0.0.1', self.port), 60))
            self.addCleanup(held[-1].close)
            self.assertTrue(held[-1].recv(1))  # the server has accepted it
        self.assertIsNone(tell(self.port))
        self.assertTrue(processes.wait_until(lambda: any(
            str(CONNECTIONS_MAX) in text for text in self.notices(client))))
        held.pop().close()
        self.reach(self.port, b'%d hello' % self.port)
        self.ends(client)

    def test_the_next_agent_has_the_port_again(self):
        client, session = self.begin(forward=self.port)
        for how in ('exit 3', 'crash'):
            self.serve(client, session, '127.0.0.1', self.port)
            self.reach(self.port, b'%d hello' % self.port)
            other = client.new_session(self.work)
            self.failure(client.response(client.start_prompt(other, how)), 'AGENT_EXITED')
            session = client.new_session(self.work)
            self.reach(self.port, None)  # the server has ended with its agent
        self.serve(client, session, '127.0.0.1', self.port)
        self.reach(self.port, b'%d hello' % self.port)
        self.assertEqual(len(forwarders(client.pid)), 1)
        self.ends(client)
        self.assertIsNone(tell(self.port))

    def test_a_port_that_is_taken_fails_the_start(self):
        with socket.create_server(('127.0.0.1', self.port)):
            with self.assertRaises(RpcError) as caught:
                self.begin(forward=self.port)
        self.assertEqual(caught.exception.data['code'], 'FORWARD_TAKEN')
        self.assertTrue(caught.exception.data['retryable'])

    def test_the_end_of_the_process_is_told(self):
        client, session = self.begin(forward=self.port)
        for pid in forwarders(client.pid):
            processes.kill(pid)
        self.assertTrue(processes.wait_until(lambda: any(
            'has ended' in text for text in self.notices(client))))
        self.assertIsNone(tell(self.port))
        client.prompt(session, 'say still there')
        self.ends(client)

    def checked(self, **keys):
        return subprocess.run([BROKER, *self.configured(**keys), 'check', '--', AGENT],
                              env=self.environment(), capture_output=True, text=True, check=False)

    def test_check_says_where_a_port_leads(self):
        done = self.checked(forward=['3000', '8080:3001'])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'localhost:3000 | localhost:8080 | 3001')

    def test_wrong_lines_are_refused(self):
        for wanted, keys in (
                ('confine', {'forward': 3000, 'confine': None, 'network': None}),
                ('network = open', {'forward': 3000, 'network': 'open'}),
                ('network = open', {'forward': 3000, 'network': None}),
                ('8080:3000', {'forward': '0'}),
                ('8080:3000', {'forward': '65536'}),
                ('8080:3000', {'forward': '3000:'}),
                ('8080:3000', {'forward': '127.0.0.1:3000'}),
                ('8080:3000', {'forward': '1:2:3'}),
                ('another', {'forward': ['3000', '3000:3001']}),
                ('localhost:3000', {'forward': '8080:3000', 'network': 'allow',
                                    'allow_host': 'localhost:3000'})):
            with self.subTest(keys=keys):
                done = self.checked(**keys)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertNames(done.stderr, wanted)


if __name__ == '__main__':
    become_user(PROGRAMS)
    case.main()
