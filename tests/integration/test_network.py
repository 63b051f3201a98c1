#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Network settings of a profile that its backend cannot enforce: the broker always says so."""

import subprocess
import unittest

import case
import sshd

from case import Case, main
from processes import PATIENCE
from ssh_case import SshCase


class Here(Case):
    def greeted(self, **keys):
        """Returns the warnings of _meta.broker, and the log."""
        client = self.broker(options=self.config(**keys))
        warnings = client.initialize()['_meta']['broker']['warnings']
        client.close_stdin()
        client.wait(PATIENCE)
        return warnings, client.stderr

    def refused(self, **keys):
        client = self.broker(options=self.config(**keys))
        answer = client.response(client.start('initialize', {'protocolVersion': 1}))
        error = self.failure(answer, 'NETWORK_NOT_ENFORCED')
        client.close_stdin()
        client.wait(PATIENCE)
        self.assertEqual(error['data']['stage'], 'prepare')
        self.assertFalse(error['data']['retryable'])
        self.assertEqual(self.agent_pids(), [], 'an agent was started')
        return error['message']

    def check(self, **keys):
        argv = [case.BROKER, 'check', *self.config(**keys), '--', case.AGENT]
        return subprocess.run(argv, env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_a_profile_that_says_nothing_is_told_nothing(self):
        warnings, log = self.greeted(network='open', required='true')
        self.assertEqual(warnings, [])
        self.assertNotIn('enforced', log)

    def test_what_is_not_enforced_is_told_to_the_editor_and_in_the_log(self):
        for isolation in ('none', 'copy'):
            warnings, log = self.greeted(
                isolation=isolation, network='allow', public_ingress='false',
                allow_host=['a.example', '*.b.example'], allow_cidr='10.0.0.0/8')
            self.assertEqual([warning.split(' is ')[0] for warning in warnings],
                             ['allow-host', 'allow-cidr', 'public-ingress = false'])
            for warning in warnings:
                self.assertNames(warning, 'not enforced | backend = local')
                self.assertIn(f'profile "test": {warning}', log)

    def test_what_is_required_is_an_error_before_anything_is_started(self):
        for isolation in ('none', 'copy'):
            message = self.refused(isolation=isolation, network='blocked', required='true')
            self.assertNames(message, 'network = blocked | backend = local | required = true')

    def test_check_says_both(self):
        done = self.check(network='blocked')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'(?m)^warning +network = blocked is not enforced')
        done = self.check(network='blocked', required='true')
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn('network = blocked is not enforced', done.stderr)

    def test_asking_needs_a_cell(self):
        for isolation in ('none', 'copy'):
            message = self.refused(isolation=isolation, network='ask')
            self.assertNames(message, 'network = ask | backend = local | confine = yes')
        done = self.check(network='ask')
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertNames(done.stderr, 'network = ask | confine = yes')
        done = self.check(confine='yes', network='ask', allow_host='a.example')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_confined_profile_is_told_nothing_but_mistakes(self):
        keys = {'confine': 'yes', 'network': 'allow', 'required': 'true', 'public_ingress': 'no'}
        services = [f'localhost:{5000 + number}' for number in range(17)]
        done = self.check(**keys, allow_host=['a.example:443', *services[:16]],
                          allow_cidr='10.0.0.0/8')
        self.assertEqual((done.returncode, 'enforced' in done.stdout), (0, False), done.stderr)
        done = self.check(**keys, allow_host=services)
        self.assertEqual(done.returncode, 2)
        self.check_line(done.stderr, 'allow-host | 16 | 17')
        done = self.check(**keys, allow_host='localhost')
        self.assertEqual(done.returncode, 2)
        self.assertNames(done.stderr, 'allow-host | localhost:5432')


@unittest.skipUnless(sshd.can_be_started(), 'there is no sshd')
class There(SshCase):
    def test_ssh_enforces_nothing_and_says_so(self):
        client = self.broker(options=self.config(network='blocked'))
        warnings = client.initialize()['_meta']['broker']['warnings']
        self.assertEqual(len(warnings), 1)
        self.assertNames(warnings[0], 'network = blocked | backend = ssh')
        client.close_stdin()
        client.wait(PATIENCE)

    def test_what_is_required_is_an_error_before_anything_connects(self):
        for keys in ({'network': 'blocked', 'required': 'true'}, {'network': 'ask'}):
            client = self.broker(options=self.config(**keys))
            answer = client.response(client.start('initialize', {'protocolVersion': 1}))
            self.failure(answer, 'NETWORK_NOT_ENFORCED')
            client.close_stdin()
            client.wait(PATIENCE)
            self.assertEqual(self.remote(), [])


if __name__ == '__main__':
    main()
