# SPDX-License-Identifier: MIT
"""The broker's own API client, through the life of a sandbox and its troubles."""

import json
import os
import subprocess
import unittest

import stand_in  # first: it says where the others are
import processes
import wire_schema
from case import ROOT, main

CALLER = os.environ.get('ACP_API_CALLER', str(ROOT / 'build/tests/support/daytona/api_caller'))


@stand_in.NEEDED
class ApiTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.daytona = stand_in.StandIn()
        cls.daytona.__enter__()
        cls.addClassCleanup(cls.daytona.__exit__)

    def setUp(self):
        self.first_call = len(self.daytona.calls())
        self.addCleanup(self.clean_up)
        self.process = self.start(self.daytona.key)

    def calls(self, *names):
        return self.daytona.calls(*names, start=self.first_call)

    def clean_up(self):
        self.daytona.no_faults()
        for sandbox in self.daytona.sandboxes():
            self.daytona.vanish(sandbox['id'])
        self.assertEqual(wire_schema.not_allowed(self.calls(), set(), answer=False)[0], [])

    def start(self, key, organization='', url=None, times=()):
        process = subprocess.Popen(
            [CALLER, url or self.daytona.api, key, organization, *times],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(processes.PATIENCE), 0)
        process.stdout.close()

    def call(self, *words, process=None):
        process = process or self.process
        process.stdin.write(' '.join(words) + '\n')
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def wait_state(self, name, state):
        told = {}

        def is_reached():
            told.update(self.call('get', name))
            return told.get('state') == state
        self.assertTrue(processes.wait_until(is_reached), told)
        return told

    def created(self, name='one'):
        self.assertEqual(self.call('create', name)['state'], 'creating')
        return self.wait_state(name, 'started')

    # ---- a life ----

    def test_a_sandbox_lives_through_all_its_calls(self):
        told = self.created()
        self.assertEqual(told['labels'], {'acp-broker/session': 's/1', 'test': 'one'})
        self.assertEqual(told['autoStop'], 30)
        self.assertEqual(told['networkAllowList'], '10.0.0.0/8')
        one = told['id']
        self.assertEqual(self.call('autostop', one, '0'), {})
        self.assertEqual(self.call('autoarchive', one, '120'), {})
        self.assertEqual(self.call('autodelete', one, '-1'), {})
        self.assertEqual(self.call('network', one, '192.168.0.0/16'), {})
        self.assertEqual(self.call('labels', one, 'x'), {})
        self.assertEqual(self.call('touch', one), {})
        told = self.call('get', one)
        self.assertEqual((told['autoStop'], told['networkAllowList'], told['labels']),
                         (0, '192.168.0.0/16', {'only': 'x'}))
        self.assertEqual(self.call('stop', one)['state'], 'stopping')
        self.wait_state(one, 'stopped')
        self.assertEqual(self.call('archive', one)['state'], 'archiving')
        self.daytona.advance(minutes=2)
        self.wait_state(one, 'archived')
        self.call('start', one)
        self.daytona.advance(minutes=2)
        self.wait_state(one, 'started')
        self.assertEqual(self.call('delete', one)['state'], 'destroying')
        self.assertEqual(self.call('get', 'one')['reason'], 'SANDBOX_NOT_FOUND')

    def test_an_image_is_built(self):
        self.assertEqual(self.call('create-image', 'two', 'debian:12')['state'], 'pending_build')
        self.wait_state('two', 'started')

    def test_access_is_a_token_of_which_there_is_one(self):
        one = self.created()['id']
        first, second = self.call('access', one), self.call('access', one)
        self.assertEqual((second['host'], second['port']),
                         (self.daytona.ssh_host, self.daytona.ssh_port))
        valid = {token['token']: not token['revoked'] for token in self.daytona.tokens()}
        self.assertFalse(valid.get(first['token'], False))
        self.assertTrue(valid[second['token']])
        self.assertEqual(self.call('revoke', one), {})
        self.assertFalse({token['token']: not token['revoked']
                          for token in self.daytona.tokens()}.get(second['token'], False))

    def wait_listed(self, label, value, names):
        """Lists on the service lag behind."""
        self.assertTrue(processes.wait_until(lambda: sorted(
            one['name'] for one in self.call('list', label, value)['items']) == names))

    def test_a_list_is_by_labels(self):
        for number in range(3):
            self.created(f'p{number}')
        self.wait_listed('acp-broker/session', 's/1', ['p0', 'p1', 'p2'])
        self.wait_listed('test', 'p1', ['p1'])
        self.assertEqual(self.call('list', 'test', 'nobody'), {'items': []})

    # ---- troubles ----

    def test_refusals_have_their_reasons(self):
        self.created()
        for words, reason, text in [
                (('create', 'one'), 'DAYTONA_CONFLICT', 'already exists'),
                (('create', 'x', 'nope'), 'DAYTONA_REJECTED', 'Snapshot nope not found'),
                (('archive', 'one'), 'DAYTONA_REJECTED', 'Sandbox is not stopped'),
                (('recover', 'one'), 'DAYTONA_REJECTED', 'not in a recoverable state'),
                (('start', 'nobody'), 'SANDBOX_NOT_FOUND', 'nobody not found')]:
            with self.subTest(words=words):
                told = self.call(*words)
                self.assertEqual(told['reason'], reason, told)
                self.assertIn(text, told['text'])
        other = self.start('dtn_' + '0' * 32)
        told = self.call('get', 'one', process=other)
        self.assertEqual(told['reason'], 'DAYTONA_UNAUTHORIZED')
        self.assertIn('Invalid credentials', told['text'])

    def test_a_create_that_fails_leaves_its_reason_to_be_asked_for(self):
        self.daytona.fail_create('no runner had room')
        told = self.call('create', 'broken')
        self.assertEqual(told['reason'], 'DAYTONA_REJECTED')
        self.assertIn('Sandbox failed to start: no runner had room', told['text'])
        told = self.call('get', 'broken')
        self.assertEqual((told['state'], told['errorReason']), ('error', 'no runner had room'))
        self.assertEqual(self.call('delete', 'broken')['state'], 'destroying')

    def test_a_change_in_progress_is_waited_for(self):
        one = self.created()['id']
        self.daytona.settings(latency={'stop': 500})
        self.addCleanup(self.daytona.settings, latency={'stop': 30})
        self.assertEqual(self.call('stop', one)['state'], 'stopping')
        self.call('start', one)
        self.wait_state(one, 'started')
        self.assertGreater(len([call for call in self.calls('start')
                                if call['status'] == 409]), 0)

    def test_a_lost_answer_is_asked_for_again_but_of_a_create(self):
        one = self.created()['id']
        self.daytona.fault('get', action='close')
        self.assertEqual(self.call('get', one)['state'], 'started')
        self.daytona.fault('create', action='close', effect=True)
        self.assertEqual(self.call('create', 'two')['reason'], 'DAYTONA_UNAVAILABLE')
        self.assertEqual(len(self.calls('create')), 2)
        self.assertEqual(self.call('create', 'two')['reason'], 'DAYTONA_CONFLICT')
        self.wait_state('two', 'started')

    def test_a_limit_of_the_service_is_waited_for(self):
        self.daytona.fault('get', status=429, headers={'Retry-After-authenticated': 1})
        one = self.created()['id']
        self.assertEqual(self.call('get', one)['state'], 'started')
        short = self.start(self.daytona.key, times=('5000', '5000'))
        self.daytona.fault('get', status=429, headers={'Retry-After-authenticated': 60})
        told = self.call('get', one, process=short)
        self.assertEqual(told['reason'], 'DAYTONA_RATE_LIMITED')
        self.assertIn('60 s', told['text'])

    def test_a_service_that_hangs_or_fails_is_told(self):
        short = self.start(self.daytona.key, times=('300', '700'))
        for fault, reason in [({'action': 'hang', 'times': 100}, 'TIMEOUT_EXCEEDED'),
                              ({'status': 500, 'times': 100}, 'DAYTONA_UNAVAILABLE'),
                              ({'action': 'cut', 'times': 100}, 'DAYTONA_UNAVAILABLE')]:
            with self.subTest(fault=fault):
                self.daytona.fault('list', **fault)
                self.assertEqual(self.call('list', 'a', 'b', process=short)['reason'], reason)
                self.daytona.no_faults()

    def test_a_token_of_an_organization_needs_its_name(self):
        self.created()
        theirs = self.start(self.daytona.jwt, self.daytona.organization)
        self.assertEqual(self.call('get', 'one', process=theirs)['state'], 'started')
        nobodys = self.start(self.daytona.jwt)
        self.assertEqual(self.call('get', 'one', process=nobodys)['reason'],
                         'DAYTONA_UNAUTHORIZED')

    # ---- secrets ----

    def test_the_key_is_in_no_header_but_its_own(self):
        self.created()
        for call in self.calls():
            others = {name: value for name, value in call['requestHeaders'].items()
                      if name != 'authorization'}
            self.assertNotIn(self.daytona.key, json.dumps([others, call['url'],
                                                           call['requestBody']]))


if __name__ == '__main__':
    main()
