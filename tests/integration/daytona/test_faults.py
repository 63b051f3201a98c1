#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Faults of Daytona, its gateway and the network. Each time the session ends within deadlines of
seconds, the error says what happened, every sandbox that exists is listed, and the workspace is
whole.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from acp import RpcError  # noqa: E402
from case import main  # noqa: E402
from processes import PATIENCE  # noqa: E402
from together import Together  # noqa: E402
from trouble import Trouble  # noqa: E402

AT_ONCE = 6
EVER = 1000  # times: until the test ends the fault

# For a call that never succeeds. All other calls succeed within this time, even on a busy machine.
QUICK = {'api-timeout': '4s'}
# For tests in which all calls but one must succeed: each of them may take this long.
PATIENT = {'api-timeout': '10s'}

WAYS = {
    'down': ({'action': 'close'}, 'DAYTONA_UNAVAILABLE', True),
    'failing': ({'status': 500}, 'DAYTONA_UNAVAILABLE', True),
    'slow': ({'action': 'hang'}, 'TIMEOUT_EXCEEDED', True),
    'refused': ({'status': 401, 'message': 'Invalid credentials'}, 'DAYTONA_UNAUTHORIZED', False),
}


def load_tests(loader, tests, pattern):
    return Together(AT_ONCE, [test for group in tests for test in group])


class Api(Trouble):
    """The API fails at each call that a start makes."""

    def setUp(self):
        super().setUp()
        (self.work / 'mine').write_text('mine\n')

    def start_failing(self, call, code, retryable, fault):
        self.daytona.fault(call, times=EVER, **fault)
        try:
            self.refused(code, retryable, **QUICK)
        finally:
            self.daytona.no_faults()
        self.check_listed()

    def start_at(self, call):
        """However the call fails, the next start can use everything that the failed one left."""
        for way, (fault, code, retryable) in WAYS.items():
            with self.subTest(way):
                self.start_failing(call, code, retryable, fault)
        self.check_start()
        self.assertEqual(len(self.boxes()), 1)

    def check_start(self, **keys):
        client, session = self.opened(**keys)
        self.prompt(client, session, 'terminal cat mine > theirs')
        self.end(client)
        self.assertEqual(self.tree(), {'mine': 'mine\n', 'theirs': 'mine\n'})

    def test_it_is_looked_for(self):
        self.start_at('get')

    def test_it_is_searched_by_its_labels(self):
        self.start_at('list')

    def test_it_is_created(self):
        self.start_at('create')

    def test_it_is_created_and_the_answer_lost(self):
        for way, (fault, _, _) in WAYS.items():
            with self.subTest(way):
                self.daytona.fault('create', effect=True, **fault)
                self.check_start(**PATIENT)
                self.assertEqual(len(self.boxes()), 1)
                self.command('sandboxes', 'delete', *self.check_listed())
                self.assertEqual(self.boxes(), [])

    def test_it_is_waited_for(self):
        self.daytona.settings(latency={'create': 1000})
        for way, (fault, code, retryable) in WAYS.items():
            with self.subTest(way):
                self.start_failing('get', code, retryable, {**fault, 'skip': 1})
                self.assertEqual(self.boxes(), [])
        self.check_start()

    def test_a_token_is_asked_for(self):
        self.start_at('ssh-access')

    def test_it_is_started(self):
        self.end(self.greeted())
        self.start_at('start')

    def test_nobody_is_there(self):
        self.refused('DAYTONA_UNAVAILABLE', True, **QUICK, api_url='http://127.0.0.1:9/api')

    def test_what_cannot_be_taken_back_is_named(self):
        unauthorized = {'status': 401, 'message': 'Invalid credentials'}
        self.daytona.fault('ssh-access', times=EVER, **unauthorized)
        self.daytona.fault('delete', times=EVER, **unauthorized)
        client = self.broker(options=self.config(**QUICK))
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=PATIENCE)
        self.check_error(caught.exception, 'DAYTONA_UNAUTHORIZED', False)
        name = self.box()['name']
        self.assertNames(str(caught.exception), f'sandboxes delete {name}')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 1, client.stderr)
        self.assertNames(client.stderr.splitlines()[-1], f'acp-broker: | {name}')

    # ---- at the end ----

    def end_at(self, call, left, **keys):
        """
        The broker says that it could not end the sandbox, and lists it. All files are here, and
        collect ends the sandbox.
        """
        for way, (fault, _, _) in WAYS.items():
            with self.subTest(way):
                client, session = self.opened(**QUICK, **keys)
                (self.runtime(client, session) / way).write_text('pending\n')
                self.daytona.fault(call, times=EVER, **fault)
                client.close_stdin()
                self.assertEqual(client.wait(PATIENCE), 1, client.stderr)
                self.daytona.no_faults()
                self.assertRegex(client.stderr, self.said)
                self.assertRegex(client.stderr.splitlines()[-1],
                                 '^acp-broker: (stopping|ending) the sandbox: ')
                self.assertEqual((self.work / way).read_text(), 'pending\n')
                self.assertEqual([box['state'] for box in self.boxes()], ['started'])
                self.check_listed(**keys)
                collected = self.command('sessions', 'collect', **keys)
                self.assertEqual(collected.returncode, 0, collected.stderr)
                self.assertEqual([box['state'] for box in self.boxes()], left)

    said = '<3>agent 1: (stopping|ending) the sandbox: '

    def test_it_cannot_be_stopped(self):
        self.end_at('stop', ['stopped'])

    def test_it_cannot_be_deleted(self):
        self.end_at('delete', [], persistence='transient')

    def test_nothing_is_answered_any_more(self):
        self.end_at('*', ['stopped'])

    def test_it_cannot_be_archived(self):
        for way, (fault, _, _) in WAYS.items():
            with self.subTest(way):
                client = self.greeted(**PATIENT, persistence='archive')
                self.daytona.fault('archive', times=EVER, **fault)
                self.end(client)
                self.daytona.no_faults()
                self.assertNames(client.stderr, 'is stopped | not archived')
                self.assertEqual(self.box()['state'], 'stopped')
                self.check_listed()


class Untrusted(Trouble):
    """The API over TLS, with a certificate of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.certificate, key = (f'{folder.name}/{name}.pem' for name in ('certificate', 'key'))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                        'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=x',
                        '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out',
                        self.certificate], check=True, capture_output=True)
        self.stand_in_options = {'tls': (self.certificate, key)}
        self.variables = {}
        super().setUp()

    def environment(self):
        return {**super().environment(), **self.variables}

    def test_an_authority_that_nobody_knows(self):
        self.assertTrue(self.daytona.api.startswith('https://'))
        self.refused('DAYTONA_UNTRUSTED', False, **QUICK)
        self.assertEqual(self.daytona.calls(), [])
        self.variables = {'SSL_CERT_FILE': self.certificate}
        self.end(self.greeted())
        self.check_listed()


if __name__ == '__main__':
    main()
