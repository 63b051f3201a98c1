#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Logins that libssh2 can do only in part: a server that asks questions, a key on a FIDO token.
With libssh2 the error names what is missing and the setting that helps. The ssh program can log in,
or fails with its own words. `auto` changes to the ssh program and says so.
"""

import base64
import hashlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import threading

from acp import RpcError
from case import Case, main
from sshd import Sshd

SERVER = pathlib.Path(__file__).resolve().parents[1] / 'support' / 'daytona' / 'questions.mjs'

SECONDS = 120
PASSWORD = {'prompt': 'Password: ', 'echo': False, 'answer': 'sesame'}
CODE = {'prompt': 'Verification code: ', 'echo': True, 'answer': '271828'}
ONE_TIME = {'prompt': "One-time password (OATH) for `me':", 'echo': False, 'answer': '314159'}
NEW = {'prompt': 'New password: ', 'echo': False, 'answer': 'open'}
DEADLINES = {'start-timeout': '60s', 'connect-timeout': '30s', 'auth-timeout': '60s',
             'sync': 'none'}
OTHER_CLIENT = 'ssh-client = openssh'
SWITCHED = 'using the ssh program'


class Logins(Case):
    def tried(self, **keys):
        """A client, and why it could not log in, or None if it could."""
        values = {**DEADLINES, **self.way, **keys}
        client = self.broker(options=self.config(backend='ssh', **values), env=self.environment())
        try:
            client.initialize(seconds=SECONDS)
        except RpcError as error:
            return client, error
        return client, None

    def assert_in(self, **keys):
        client, error = self.tried(**keys)
        self.assertIsNone(error)
        client.close_stdin()
        self.assertEqual(client.wait(SECONDS), 0, client.stderr)
        return client.stderr

    def assert_refused(self, code, *words, **keys):
        client, error = self.tried(**keys)
        self.assertIsNotNone(error)
        self.assertEqual(error.data['code'], code, error)
        for word in words:
            self.assertNames(str(error), word)
        client.close_stdin()
        client.wait(SECONDS)
        return client.stderr, str(error)


class Questions(Logins):
    askpass = None  # the user's own

    def serve(self, *rounds):
        self.server = subprocess.Popen(
            ['node', str(SERVER), json.dumps(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={'PATH': os.environ['PATH'], 'HOME': str(self.dir)})
        self.addCleanup(self.end_server)
        told = json.loads(self.server.stdout.readline())
        known = self.dir / 'known_hosts'
        known.write_text(f'[127.0.0.1]:{told["port"]} {told["hostKey"]}\n')
        self.way = {'host': '127.0.0.1', 'port': told['port'], 'user': 'anybody',
                    'known-hosts': known, 'ssh-config': '/dev/null'}

    def end_server(self):
        if self.server.stdin:
            self.server.stdin.close()
            self.server.stdin = None
            self.answers = [json.loads(line)['answers'] for line in self.server.stdout]
            self.server.stdout.close()
            self.server.wait(SECONDS)

    def environment(self):
        env = super().environment()
        return {**env, 'SSH_ASKPASS': str(self.askpass)} if self.askpass else env

    def assert_answered(self, *answers):
        self.end_server()
        self.assertEqual(self.answers, list(answers))

    def test_the_one_question_for_the_password_is_answered_by_its_command(self):
        for client in ('libssh2', 'openssh', 'auto'):
            with self.subTest(client=client):
                self.serve([PASSWORD])
                said = self.assert_in(**{'ssh-client': client, 'password-command': 'echo sesame'})
                self.assertNotIn(SWITCHED, said)
                self.assertNotIn('sesame', said)
                self.end_server()
                self.assertIn(['sesame'], self.answers)

    def test_a_wrong_password_is_told_and_tried_once(self):
        self.serve([PASSWORD])
        said, error = self.assert_refused(
            'AUTH_FAILED', 'password | asked for | refused',
            **{'ssh-client': 'auto', 'password-command': 'echo wrong'})
        self.assertNotIn(SWITCHED, said)
        self.assertNotIn('wrong', error)
        self.assert_answered(['wrong'])

    def test_without_a_command_the_setting_is_named(self):
        self.serve([PASSWORD])
        self.assert_refused('SSH_UNSUPPORTED', 'keyboard-interactive', OTHER_CLIENT,
                            **{'ssh-client': 'libssh2'})
        self.assert_answered()

    def test_a_second_question_is_beyond_libssh2(self):
        for rounds in ([[PASSWORD, CODE]], [[PASSWORD], [CODE]], [[CODE]], [[ONE_TIME]], [[NEW]],
                       [[PASSWORD], [ONE_TIME]]):
            with self.subTest(rounds=rounds):
                self.serve(*rounds)
                self.assert_refused('SSH_UNSUPPORTED', 'more than | password', OTHER_CLIENT,
                                    **{'ssh-client': 'libssh2',
                                       'password-command': 'echo sesame'})
                self.end_server()
                # The password goes only to the question that asks for it.
                sent = [answer for round_ in self.answers for answer in round_ if answer]
                self.assertEqual(sent, ['sesame'] if len(rounds) == 2 else [])

    def test_the_ssh_program_asks_whoever_answers_for_the_user(self):
        self.askpass = self.dir / 'askpass'
        self.askpass.write_text('#!/bin/sh\ncase $1 in *code*) echo 271828 ;; '
                                '*One-time*) echo 314159 ;; *) exit 1 ;; esac\n')
        self.askpass.chmod(0o755)
        for client, more in (('openssh', CODE), ('auto', CODE), ('openssh', ONE_TIME),
                             ('auto', ONE_TIME)):
            with self.subTest(client=client, more=more):
                self.serve([PASSWORD], [more])
                said = self.assert_in(**{'ssh-client': client, 'password-command': 'echo sesame'})
                self.assertEqual(SWITCHED in said, client == 'auto', said)
                if client == 'auto':
                    self.assertNames(said, 'more than | password')
                self.end_server()
                self.assertEqual(self.answers[-2:], [['sesame'], [more['answer']]])


def text(data):
    """A string of the wire (RFC 4251, 5)."""
    return struct.pack('>I', len(data)) + data


SK_TYPE = b'sk-ssh-ed25519@openssh.com'
SK_APPLICATION = b'ssh:'


class Token:
    """
    The keys of a FIDO token (OpenSSH's PROTOCOL.u2f), which signs with a key of openssl's. Somebody
    touches it each time.
    """

    def __init__(self, folder):
        self.folder = folder
        self.counter = 0
        self.run_openssl('genpkey', '-algorithm', 'ed25519', '-outform', 'DER', '-out', 'token.key')
        public = self.run_openssl('pkey', '-inform', 'DER', '-in', 'token.key', '-pubout',
                                  '-outform', 'DER')[-32:]
        self.blob = text(SK_TYPE) + text(public) + text(SK_APPLICATION)
        self.line = f'{SK_TYPE.decode()} {base64.b64encode(self.blob).decode()} me\n'

    def run_openssl(self, *words):
        return subprocess.run(['openssl', *words], cwd=self.folder, check=True,
                              capture_output=True).stdout

    def private_key(self):
        """The key file (OpenSSH's PROTOCOL.key); the other half of the key is in the token."""
        inner = struct.pack('>II', 7, 7) + self.blob + b'\1'  # flags: to be touched
        inner += text(b'handle') + text(b'') + text(b'me')
        inner += bytes(range(1, 1 + -len(inner) % 8))
        whole = (b'openssh-key-v1\0' + text(b'none') + text(b'none') + text(b'')
                 + struct.pack('>I', 1) + text(self.blob) + text(inner))
        lines = base64.encodebytes(whole).decode()
        return f'-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}-----END OPENSSH PRIVATE KEY-----\n'

    def sign(self, data):
        self.counter += 1
        end = struct.pack('>BI', 1, self.counter)  # touched
        (self.folder / 'to_sign').write_bytes(hashlib.sha256(SK_APPLICATION).digest() + end
                                              + hashlib.sha256(data).digest())
        signature = self.run_openssl('pkeyutl', '-sign', '-rawin', '-keyform', 'DER', '-inkey',
                                     'token.key', '-in', 'to_sign')
        return text(SK_TYPE) + text(signature) + end


class OnlyFidoAgent:
    """An ssh-agent with one key, on a token that is plugged in or not."""

    IDENTITIES, SIGN = b'\x0b', b'\x0d'  # the requests

    def __init__(self, path, token, is_plugged_in):
        self.token, self.is_plugged_in = token, is_plugged_in
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile('rb') as asked:
                while len(head := asked.read(4)) == 4:
                    connection.sendall(text(self.answer(asked.read(*struct.unpack('>I', head)))))

    def answer(self, body):
        if body[:1] == self.IDENTITIES:
            return b'\x0c' + struct.pack('>I', 1) + text(self.token.blob) + text(b'token')
        if body[:1] == self.SIGN and self.is_plugged_in:
            at = 1 + 4 + len(self.token.blob)
            size, = struct.unpack('>I', body[at:at + 4])
            return b'\x0e' + text(self.token.sign(body[at + 4:at + 4 + size]))
        return b'\x05'  # SSH_AGENT_FAILURE

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Fido(Logins):
    def setUp(self):
        super().setUp()
        self.sshd = Sshd()
        self.sshd.__enter__()
        self.addCleanup(self.sshd.stop)
        self.config_file = self.dir / 'ssh_config'
        self.token = Token(self.dir)
        with open(self.sshd.folder / 'authorized_keys', 'a', encoding='utf-8') as keys:
            keys.write(self.token.line)
        self.way = {'host': 'box', 'ssh-config': self.config_file}

    def write_config(self, *lines):
        kept = [line for line in self.sshd.config.read_text().splitlines()
                if not line.split()[0].startswith('Identit')]
        self.config_file.write_text('\n'.join([*kept, *(f'\t{line}' for line in lines)]) + '\n')

    def start_agent(self, is_plugged_in):
        path = self.dir / 'agent'
        agent = OnlyFidoAgent(path, self.token, is_plugged_in)
        self.addCleanup(agent.close)
        return path

    def with_key_file(self, agent='none'):
        key = self.dir / 'id_sk'
        key.write_text(self.token.private_key())
        key.chmod(0o600)
        key.with_suffix('.pub').write_text(self.token.line)
        self.write_config(f'IdentityFile {key}', 'IdentitiesOnly yes', f'IdentityAgent {agent}')
        return f'{key} is a FIDO key'

    def with_agent(self, agent):
        self.write_config(f'IdentityFile {self.dir}/none', f'IdentityAgent {agent}')
        return f"the agent's {SK_TYPE.decode()} key token is a FIDO key"

    def test_the_key_is_one_to_ssh_keygen(self):
        self.with_key_file()
        listed = subprocess.run(['ssh-keygen', '-l', '-f', self.dir / 'id_sk'], check=True,
                                capture_output=True, text=True).stdout
        self.assertIn('(ED25519-SK)', listed)

    def assert_beyond_libssh2(self, what):
        self.assert_refused('SSH_UNSUPPORTED', what, OTHER_CLIENT, **{'ssh-client': 'libssh2'})

    def assert_switches_in_vain(self, what):
        self.assert_beyond_libssh2(what)
        said, error = self.assert_refused('AUTH_FAILED', **{'ssh-client': 'auto'})
        self.assertIn(what, said)
        self.assertIn(SWITCHED, said)
        self.assertNotIn(OTHER_CLIENT, error)

    def assert_switches(self, what):
        self.assert_beyond_libssh2(what)
        self.assertEqual(self.token.counter, 0)
        said = self.assert_in(**{'ssh-client': 'auto'})
        self.assertIn(what, said)
        self.assertIn(SWITCHED, said)
        self.assertEqual(self.token.counter, 1)  # one touch for each connection

    def test_a_key_file_whose_token_is_not_there(self):
        self.assert_switches_in_vain(self.with_key_file())

    def test_a_key_file_whose_token_is_with_the_agent(self):
        self.assert_switches(self.with_key_file(self.start_agent(True)))

    def test_an_agent_whose_token_is_not_there(self):
        self.assert_switches_in_vain(self.with_agent(self.start_agent(False)))

    def test_an_agent_whose_token_is(self):
        self.assert_switches(self.with_agent(self.start_agent(True)))


if __name__ == '__main__':
    assert shutil.which('node'), 'there is no node'
    main()
