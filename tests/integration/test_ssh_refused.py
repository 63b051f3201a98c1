#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Reasons why a real host cannot be used, and what the error says: a key whose passphrase the broker
can ask nobody for, a host that has only RSA keys, an account for which the host runs another
program.
"""

import subprocess

from case import main
from ssh_case import SshCase
from together import Together, tests_of

AT_ONCE = 4
CLIENTS = ('libssh2', 'openssh', 'auto')


class Refused(SshCase):
    def environment(self):
        return {name: value for name, value in super().environment().items()
                if not name.startswith('SSH_')}

    def refused(self, code, **keys):
        """Checks that the error is not retryable; returns the error and the log."""
        client = self.broker(options=self.config(sync='none', **keys),
                             env=self.environment())
        answer = client.response(client.start('initialize', {'protocolVersion': 1}))
        error = self.failure(answer, code)
        self.assertEqual(error['data']['stage'], 'prepare')
        client.close_stdin()
        client.wait()
        return error, client.stderr


class Locked(Refused):
    def setUp(self):
        super().setUp()
        self.locked = self.sshd.folder / 'my locked key'
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', 'open, sesame', '-f',
                        self.locked], check=True)
        (self.sshd.folder / 'authorized_keys').write_text(
            (self.sshd.folder / 'my locked key.pub').read_text())
        self.use(f'"{self.locked}"')

    def use(self, *files):
        config = self.sshd.config
        lines = [line for line in config.read_text().splitlines() if 'IdentityFile' not in line]
        lines += [f'\tIdentityFile {file}' for file in files]
        config.write_text('\n'.join(lines) + '\n')

    def test_the_key_and_what_helps_are_named(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                error, _ = self.refused('AUTH_FAILED', ssh_client=client)
                self.assertIs(error['data']['retryable'], False)
                self.assertNames(error['message'], f'{self.locked} | passphrase | ssh-add | '
                                                   'passphrase-command | SSH_ASKPASS')
                self.assertNotIn('ssh-client', error['message'])

    def test_so_it_is_beside_keys_that_the_host_does_not_know(self):
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f',
                        self.sshd.folder / 'stranger'], check=True)
        self.use(self.sshd.folder / 'stranger', f'"{self.locked}"', self.sshd.folder / 'none')
        for client in CLIENTS:
            with self.subTest(client=client):
                error, _ = self.refused('AUTH_FAILED', ssh_client=client)
                self.assertNames(error['message'], f'{self.locked} | passphrase | ssh-add')
                before, _ = error['message'].split('ssh-add', 1)
                self.assertNotIn('stranger', before)

    def test_a_passphrase_that_is_wrong_is_another_matter(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                error, _ = self.refused('AUTH_FAILED', ssh_client=client,
                                        passphrase_command='"echo wrong"')
                self.assertNotIn('ssh-add', error['message'])


class RsaAlone(Refused):
    sshd_config = 'HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256\n'

    def fingerprint(self):
        out = subprocess.run(['ssh-keygen', '-lf', self.sshd.folder / 'host_rsa.pub'], check=True,
                             capture_output=True, text=True).stdout
        return out.split()[1]

    def test_a_key_that_is_not_known_can_be_compared_and_added(self):
        known = self.sshd.known_hosts
        line = next(line for line in known.read_text().splitlines() if ' ssh-rsa ' in line)
        known.write_text('')
        for client in ('openssh', 'auto'):
            with self.subTest(client=client):
                error, _ = self.refused('HOST_KEY_UNKNOWN', ssh_client=client)
                self.assertNames(
                    error['message'],
                    f'ssh-rsa | {self.fingerprint()} | /etc/ssh/ssh_host_rsa_key.pub | '
                    f'"ssh box" | {known} | "[127.0.0.1]:{self.sshd.port} " | '
                    f'ssh-keyscan -t rsa -p {self.sshd.port} 127.0.0.1')
                self.assertNotIn('ed25519', error['message'])
        # The line that the message says to add makes the host known.
        known.write_text(f'[127.0.0.1]:{self.sshd.port} ' + line.split(' ', 1)[1] + '\n')
        client = self.broker(options=self.config(sync='none', ssh_client='auto'))
        client.initialize()
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def test_of_one_that_has_changed_the_known_line_is_named(self):
        subprocess.run(['ssh-keygen', '-q', '-t', 'rsa', '-N', '', '-f',
                        self.sshd.folder / 'other'], check=True)
        kind, key, *_ = (self.sshd.folder / 'other.pub').read_text().split()
        known = self.sshd.known_hosts
        known.write_text(f'# mine\n[127.0.0.1]:{self.sshd.port} {kind} {key}\n')
        for client in ('openssh', 'auto'):
            with self.subTest(client=client):
                error, _ = self.refused('HOST_KEY_MISMATCH', ssh_client=client)
                self.assertNames(
                    error['message'],
                    f'ssh-rsa | {self.fingerprint()} | {known}:2 | ssh_host_rsa_key.pub | '
                    f"ssh-keygen -f '{known}' -R '[127.0.0.1]:{self.sshd.port}'")


class Forced(Refused):
    sshd_config = 'ForceCommand echo for backups alone; echo ask kim >&2; exit 3\n'

    def test_what_the_host_runs_instead_is_told(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                error, _ = self.refused('HOST_COMMAND_FORCED', ssh_client=client)
                self.assertIs(error['data']['retryable'], False)
                self.assertNames(error['message'],
                                 'box | backups alone | ForceCommand | command=')
                self.assertIn('for backups alone\n', error['data']['detail'])
                self.assertIn('ask kim\n', error['data']['detail'])


class ForcedByKey(Refused):
    def test_so_it_is_where_the_key_names_the_command(self):
        keys = self.sshd.folder / 'authorized_keys'
        keys.write_text('command="printf \'%070000d\' 1" ' + keys.read_text())
        error, _ = self.refused('HOST_COMMAND_FORCED')
        self.assertNames(error['message'], 'ForceCommand | command=')
        self.assertEqual(error['data']['detail'], '0' * 400)


class ForcedForEver(Refused):
    sshd_config = 'ForceCommand echo hello; exec cat >/dev/null\n'

    def test_a_program_that_does_not_end_is_noticed(self):
        error, _ = self.refused('TIMEOUT_EXCEEDED', channel_timeout='2s')
        self.assertNames(error['message'], 'channel-timeout | hello | ForceCommand | command=')
        self.assertEqual(error['data']['detail'], 'hello\n')


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [Locked, RsaAlone, Forced, ForcedByKey,
                                               ForcedForEver]))


if __name__ == '__main__':
    main()
