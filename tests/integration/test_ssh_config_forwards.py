#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""LocalForward, RemoteForward and ForwardAgent of the user's ssh_config, with a real sshd."""

import contextlib
import os
import socket
import subprocess
import threading

import processes

from case import AGENT, BROKER, main
from forwarding import SERVE, free_port, tell
from processes import PATIENCE
from ssh_case import SshCase


class ConfigForwards(SshCase):
    ssh_client = 'auto'

    def setUp(self):
        super().setUp()
        (self.work / 'serve.py').write_text(SERVE)
        self.here, self.there, self.back = free_port(), free_port(), free_port()

    def configure(self, *lines):
        text = self.sshd.config.read_text()
        self.sshd.config.write_text(text + ''.join(f'\t{line}\n' for line in lines))

    def serve(self, client, session):
        client.start_prompt(session, f'terminal python3 serve.py 127.0.0.1 {self.there}')

    def reach(self, port, wanted):
        self.assertTrue(processes.wait_until(lambda: tell(port) == wanted, PATIENCE))

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assert_nothing_runs()

    def add_key(self, path):
        """False while the agent does not listen yet."""
        return subprocess.run(['ssh-add', '-q', str(self.sshd.key)], timeout=PATIENCE,
                              env={**os.environ, 'SSH_AUTH_SOCK': str(path)},
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    @contextlib.contextmanager
    def agent_with_a_key(self):
        """The socket of an ssh-agent that has the key of the host "box"."""
        path = self.dir / 'agent.sock'
        path.unlink(missing_ok=True)
        agent = subprocess.Popen(['ssh-agent', '-D', '-a', str(path)], stdout=subprocess.DEVNULL)
        try:
            self.assertTrue(processes.wait_until(lambda: self.add_key(path), PATIENCE))
            yield path
        finally:
            agent.kill()
            agent.wait()


class Works(ConfigForwards):
    def test_ports_of_both_sides(self):
        self.configure(f'LocalForward {self.here} 127.0.0.1:{self.there}',
                       f'RemoteForward {self.back} 127.0.0.1:{self.listen()}')
        client, session = self.opened()
        self.assertIn('using the ssh program', client.stderr)
        self.serve(client, session)
        self.reach(self.here, b'%d hello' % self.there)
        self.reach(self.back, b'from here')
        self.ends(client)
        self.assertIsNone(tell(self.here))
        self.assertTrue(processes.wait_until(lambda: tell(self.back) is None, PATIENCE))

    def listen(self):
        """A port of this machine; whoever connects is told "from here"."""
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as client:
                        client.sendall(b'from here')
                        while client.recv(4096):
                            pass
        threading.Thread(target=answer, daemon=True).start()
        return listener.getsockname()[1]

    def test_the_users_agent_for_keys(self):
        for runner in ('auto', 'never'):
            with self.subTest(runner=runner), self.agent_with_a_key() as path:
                kept = self.sshd.config.read_text()
                self.configure(f'ForwardAgent {path}')
                client, session = self.opened(runner=runner)
                client.prompt(session, 'terminal ssh-add -l')
                self.assertIn('ED25519', client.wait_text('terminal/output ->'))
                self.ends(client)
                self.sshd.config.write_text(kept)

    def test_without_the_line_there_is_no_agent(self):
        with self.agent_with_a_key() as path:
            self.configure('ForwardAgent no')
            client, session = self.opened(ssh_client='openssh')
            client.prompt(session, 'terminal env')
            self.assertNotIn('SSH_AUTH_SOCK', client.wait_text('terminal/output ->'))
            self.assertNotIn(str(path), client.stderr)
            self.ends(client)


class SeveralConnections(ConfigForwards):
    sshd_config = 'MaxSessions 3\n'
    runner = 'never'

    def test_only_one_of_them_has_the_ports(self):
        self.configure(f'LocalForward {self.here} 127.0.0.1:{self.there}',
                       'ExitOnForwardFailure yes')
        client, session = self.opened()
        self.serve(client, session)
        self.reach(self.here, b'%d hello' % self.there)
        others = [client.new_session(self.work) for _ in range(3)]
        for other in others:
            client.start_prompt(other, 'terminal sleep 600')
        self.assertTrue(processes.wait_until(
            lambda: len(self.sshd.connections()) > 1, PATIENCE))
        client.prompt(client.new_session(self.work), 'terminal true')
        self.assertEqual(tell(self.here), b'%d hello' % self.there)
        self.assertNotIn('cannot listen', client.stderr)
        self.ends(client)


class Fails(ConfigForwards):
    def test_a_port_that_is_taken_is_told_and_nothing_ends(self):
        self.configure(f'LocalForward {self.here} 127.0.0.1:{self.there}',
                       'ExitOnForwardFailure yes')
        with socket.create_server(('127.0.0.1', self.here)):
            client, session = self.opened()
            client.prompt(session, 'say it works')
            self.assertIn(str(self.here), client.stderr)
            self.ends(client)

    def test_a_client_that_cannot_do_it_says_so(self):
        self.configure(f'LocalForward {self.here} 127.0.0.1:{self.there}')
        client = self.broker(options=self.config(ssh_client='libssh2'))
        told = client.initialize()['_meta']['broker']['warnings']
        self.assertNames(' '.join(told), f'LocalForward {self.here} | libssh2')
        client.new_session(self.work)
        self.assertIsNone(tell(self.here))
        self.ends(client)

    def test_check_lists_them(self):
        self.configure('RemoteForward 9000 127.0.0.1:22', 'ForwardAgent yes')
        done = subprocess.run([BROKER, *self.config(), 'check', '--', AGENT], text=True,
                              env=self.environment(), capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'RemoteForward 9000 | ForwardAgent yes')


if __name__ == '__main__':
    main()
