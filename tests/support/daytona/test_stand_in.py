# SPDX-License-Identifier: MIT
"""
What a test may ask of the stand-in: faults, states, time, and an end that leaves nothing behind.
"""

import concurrent.futures as futures
import http.client
import pathlib
import ssl
import subprocess
import tempfile
import unittest
import urllib.request

import stand_in  # first: it says where the others are
import processes
from api_client import Api
from case import main

LOST = (ConnectionError, http.client.HTTPException)


@stand_in.NEEDED
class StandInTest(unittest.TestCase):
    def setUp(self):
        self.daytona = stand_in.StandIn()
        self.addCleanup(self.daytona.__exit__)
        self.daytona.__enter__()
        self.api = Api(self.daytona)

    def create(self, **asked):
        return self.api.call('POST', '/sandbox', asked)

    # ---- faults of calls ----

    def test_a_call_fails_as_often_as_asked_and_then_no_more(self):
        self.api.make('one')
        self.daytona.fault('get', status=503, message='busy', times=2, skip=1)
        answers = [self.api.call('GET', '/sandbox/one') for _ in range(4)]
        self.assertEqual([answer.status for answer in answers], [200, 503, 503, 200])
        self.assertEqual(answers[1].body['message'], 'busy')
        self.daytona.fault('*', status=429, headers={'Retry-After-authenticated': '7'})
        self.assertEqual(self.api.call('GET', '/sandbox').headers['Retry-After-authenticated'], '7')

    def test_a_fault_of_one_sandbox_is_none_of_another(self):
        one, other = self.api.make('one'), self.api.make('other')
        self.daytona.fault('get', sandbox='one', status=500, times=2)
        self.assertEqual(self.api.call('GET', f'/sandbox/{other["id"]}').status, 200)
        self.assertEqual(self.api.call('GET', f'/sandbox/{one["id"]}').status, 500)
        self.assertEqual(self.api.call('GET', '/sandbox/one').status, 500)

    def test_an_answer_is_lost_before_or_after_the_call_was_done(self):
        for name, action, effect in (('a', 'close', False), ('b', 'close', True),
                                     ('c', 'cut', True)):
            self.daytona.fault('create', action=action, effect=effect)
            with self.assertRaises(LOST):
                self.create(name=name)
            self.assertEqual(self.daytona.sandbox(name) is not None, effect)

    def test_a_call_is_late_or_never_answered(self):
        self.daytona.fault('list', action='none', delay_ms=50)
        self.assertEqual(self.api.call('GET', '/sandbox').status, 200)
        self.daytona.fault('list', action='hang')
        request = urllib.request.Request(f'{self.daytona.api}/sandbox')
        with self.assertRaises(TimeoutError):
            urllib.request.urlopen(request, timeout=0.5)

    def test_what_is_called_is_written_down(self):
        self.create(name='one', labels={'a': 'b'})
        call = self.daytona.calls('create')[0]
        self.assertEqual((call['method'], call['url'], call['status']),
                         ('POST', '/api/sandbox', 200))
        self.assertEqual(call['requestBody'], '{"name": "one", "labels": {"a": "b"}}')
        self.assertEqual(call['requestHeaders']['authorization'], f'Bearer {self.daytona.key}')
        self.assertEqual(self.daytona.counts(), {'create': 1})

    # ---- creates that fail ----

    def test_a_create_that_fails_leaves_a_sandbox_that_holds_the_name(self):
        self.daytona.fail_create('image is broken')
        answer = self.create(name='one')
        self.assertEqual((answer.status, answer.body['message']),
                         (400, 'Sandbox failed to start: image is broken'))
        self.assertEqual(self.create(name='one').status, 409)
        left = self.api.ok('GET', '/sandbox/one')
        self.assertEqual((left['state'], left['errorReason']), ('error', 'image is broken'))
        self.assertEqual(self.api.call('POST', '/sandbox/one/start').status, 400)
        self.api.ok('DELETE', '/sandbox/one')
        self.assertEqual(self.create(name='one').status, 200)

    def test_a_build_fails_after_its_create_was_answered(self):
        self.daytona.fail_create('no such base', at='build')
        answer = self.create(name='one', buildInfo={'dockerfileContent': 'FROM none\n'})
        self.assertEqual((answer.status, answer.body['state']), (200, 'pending_build'))
        self.assertEqual(self.api.reach('one', 'build_failed')['errorReason'], 'no such base')

    def test_a_start_that_fails_is_told_and_leaves_an_error(self):
        self.api.make('one')
        self.api.ok('POST', '/sandbox/one/stop')
        self.api.reach('one', 'stopped')
        self.daytona.fail_start('no runner')
        answer = self.api.call('POST', '/sandbox/one/start')
        self.assertEqual((answer.status, answer.body['message']),
                         (400, 'Sandbox failed to start: no runner'))
        self.assertEqual(self.api.ok('GET', '/sandbox/one')['state'], 'error')

    def test_who_waits_for_a_start_hears_of_a_state_that_was_forced(self):
        self.daytona.settings(latency={'create': 3600000})
        with futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.create, name='one')
            self.assertTrue(processes.wait_until(lambda: self.daytona.sandbox('one')))
            self.daytona.force('one', state='error', errorReason='the runner died')
            self.assertEqual(answer.result(processes.PATIENCE).body['message'],
                             'Sandbox failed to start: the runner died')

    def test_a_create_that_lasts_is_answered_before_it_has_started(self):
        self.daytona.settings(latency={'create': 3600000}, waitStarted=200)
        self.assertEqual(self.create(name='one').status, 200)
        self.assertEqual(self.api.ok('GET', '/sandbox/one')['state'], 'creating')

    def test_what_the_quota_does_not_allow_is_refused(self):
        self.daytona.settings(quota={'cpu': 1})
        self.api.make('one')
        answer = self.create(name='two')
        self.assertEqual(answer.status, 403)
        self.assertIn('Total CPU limit exceeded. Maximum allowed: 1.', answer.body['message'])
        self.api.ok('POST', '/sandbox/one/stop')
        self.api.reach('one', 'stopped')
        self.assertEqual(self.create(name='two').status, 200)

    # ---- states and time ----

    def test_an_archived_one_starts_through_restoring(self):
        self.api.make('one')
        self.api.ok('POST', '/sandbox/one/stop')
        self.api.reach('one', 'stopped')
        self.api.ok('POST', '/sandbox/one/archive')
        self.api.reach('one', 'archived')
        self.assertEqual(self.api.ok('POST', '/sandbox/one/start')['state'], 'archived')
        self.api.reach('one', 'started')
        self.assertEqual(self.daytona.sandbox('one')['states'][-4:],
                         ['archiving', 'archived', 'restoring', 'started'])

    def test_any_state_can_be_forced_and_a_sandbox_can_vanish(self):
        sandbox = self.api.make('one')
        self.daytona.force('one', state='error', errorReason='the runner died')
        self.assertEqual(self.api.ok('GET', '/sandbox/one')['errorReason'], 'the runner died')
        self.daytona.vanish('one')
        self.assertEqual(self.api.call('GET', f'/sandbox/{sandbox["id"]}').status, 404)
        self.assertFalse(pathlib.Path(self.daytona.sandbox(sandbox['id'])['folder']).exists())

    def test_who_is_not_used_is_stopped_archived_and_deleted_by_the_clock(self):
        self.api.make('kept', autoStopInterval=0)
        self.api.make('archived', autoStopInterval=5, autoArchiveInterval=10)
        self.api.make('deleted', autoStopInterval=5, autoDeleteInterval=20)
        self.daytona.advance(minutes=60)
        self.assertEqual(self.daytona.sandbox('kept')['state'], 'started')
        self.assertEqual(self.daytona.sandbox('archived')['states'][2:],
                         ['stopping', 'stopped', 'archiving', 'archived'])
        self.assertIsNone(self.daytona.sandbox('deleted'))

    def test_a_new_one_is_in_the_list_later_than_by_its_name(self):
        self.daytona.settings(listLag=60000)
        self.api.make('one')
        self.assertEqual(self.api.ok('GET', '/sandbox')['items'], [])
        self.daytona.advance(minutes=1)
        self.assertEqual(len(self.api.ok('GET', '/sandbox')['items']), 1)

    # ---- the network ----

    def network(self, **asked):
        answer = self.api.call('POST', '/sandbox/one/network-settings', asked)
        seen = self.api.ok('GET', '/sandbox/one')
        return answer.status, tuple(seen[name] for name in (
            'networkBlockAll', 'networkAllowList', 'domainAllowList'))

    def test_a_list_is_cleared_by_an_empty_text_alone(self):
        self.api.make('one', domainAllowList='example.com')
        self.assertEqual(self.network(networkBlockAll=False), (200, (False, None, 'example.com')))
        self.assertEqual(self.network(networkBlockAll=True), (200, (True, None, 'example.com')))
        self.assertEqual(self.network(networkBlockAll=False, domainAllowList=''),
                         (200, (False, None, None)))
        self.api.make('two', domainAllowList='', networkAllowList='')
        two = self.api.ok('GET', '/sandbox/two')
        self.assertEqual((two['networkAllowList'], two['domainAllowList']), (None, None))

    def test_what_is_said_of_blocking_replaces_the_networks(self):
        self.api.make('one', networkAllowList='10.0.0.0/8')
        for blocks in (False, True):
            self.assertEqual(self.network(networkAllowList='10.0.0.0/8')[1][1], '10.0.0.0/8')
            self.assertEqual(self.network(networkBlockAll=blocks), (200, (blocks, None, None)))
        self.assertEqual(self.network(networkBlockAll=True, networkAllowList='10.0.0.0/8'),
                         (200, (False, '10.0.0.0/8', None)))

    def test_lists_have_at_most_ten_entries_that_are_ones(self):
        self.api.make('one')
        hosts = [f'host{number}.example.com' for number in range(11)]
        networks = [f'10.{number}.0.0/16' for number in range(11)]
        wrong = [{'domainAllowList': one} for one in (
            ','.join(hosts), 'localhost', 'host.x1', 'a_b.example.com', '-a.example.com',
            '*', '*.*.com', 'example.com:443')]
        wrong += [{'networkAllowList': one} for one in (','.join(networks), '2001:db8::/32')]
        for body in wrong:
            with self.subTest(body=body):
                self.assertEqual(self.network(**body), (400, (False, None, None)))
                self.assertEqual(self.create(name='two', **body).status, 400)
        right = {'domainAllowList': '*.' + ',*.'.join(hosts[:10]),
                 'networkAllowList': ','.join(networks[:10])}
        self.assertEqual(self.network(**right)[0], 200)

    def test_a_lower_tier_overrides_creates_and_takes_no_change(self):
        self.daytona.settings(tierNetwork={'networkBlockAll': False, 'networkAllowList': None,
                                           'domainAllowList': None})
        self.api.make('one', networkBlockAll=True, domainAllowList='example.com')
        self.assertEqual(self.network(networkBlockAll=True), (400, (False, None, None)))

    # ---- what is stored, and what is refused ----

    def test_who_may_reach_it_is_stored_with_201(self):
        self.api.make('one')
        for value, stored in (('true', True), ('x', False)):
            answer = self.api.call('POST', f'/sandbox/one/public/{value}')
            self.assertEqual((answer.status, answer.body['public']), (201, stored))

    def test_the_longest_wait_for_archiving_is_thirty_days(self):
        self.api.make('one')
        for minutes in (99999, 0):
            answer = self.api.call('POST', f'/sandbox/one/autoarchive/{minutes}')
            self.assertEqual((answer.status, answer.body['autoArchiveInterval']), (201, 43200))

    def test_a_stop_is_refused_while_it_stops(self):
        self.daytona.settings(latency={'stop': 3600000})
        self.api.make('one')
        self.api.ok('POST', '/sandbox/one/stop')
        self.assertEqual(self.api.call('POST', '/sandbox/one/stop').status, 409)

    def test_an_archiving_one_is_deleted_and_once(self):
        self.daytona.settings(latency={'archive': 3600000, 'destroy': 3600000})
        one = self.api.make('one')['id']
        self.api.ok('POST', '/sandbox/one/stop')
        self.api.reach('one', 'stopped')
        self.api.ok('POST', '/sandbox/one/archive')
        self.assertEqual(self.api.call('DELETE', f'/sandbox/{one}').status, 200)
        self.assertEqual(self.api.call('DELETE', f'/sandbox/{one}').status, 404)
        self.assertEqual(self.api.call('DELETE', '/sandbox/one').status, 404)

    # ---- keys ----

    def test_a_key_without_the_permission_is_refused(self):
        self.daytona.settings(scopes=['write:sandboxes'])
        self.api.make('one')
        self.assertEqual(self.api.call('DELETE', '/sandbox/one').status, 403)
        self.daytona.settings(scopes=[])
        self.assertEqual(self.api.call('POST', '/sandbox/one/stop').status, 403)
        self.assertEqual(self.create(name='two').status, 403)
        self.assertEqual(self.api.call('GET', '/sandbox/one').status, 200)

    def test_a_jwt_needs_its_organisation(self):
        with_jwt = Api(self.daytona, self.daytona.jwt)
        self.assertEqual(with_jwt.call('GET', '/sandbox').status, 403)
        header = {'X-Daytona-Organization-ID': self.daytona.organization}
        self.assertEqual(with_jwt.call('GET', '/sandbox', headers=header).status, 200)

    # ---- its end ----

    def test_its_end_ends_every_process_and_removes_every_folder(self):
        sandbox = self.api.make('one')
        command = ('sleep 1000 & (setsid sleep 1000 &) ; env -i setsid sleep 1000 & '
                   'echo started; exec >&-; sleep 1000')
        with self.api.ssh('one', command) as ssh:
            self.assertEqual(ssh.stdout.readline(), b'started\n')
            self.assertTrue(processes.wait_until(lambda: len(self.daytona.pids()) >= 4))
            pids = self.daytona.pids()
            ssh.kill()
        self.assertEqual(self.daytona.sandbox(sandbox['id'])['pids'], pids)
        folder = self.daytona.folder
        self.daytona.__exit__()
        self.assertEqual([pid for pid in pids if processes.is_running(pid)], [])
        self.assertFalse(folder.exists())


@stand_in.NEEDED
class TlsTest(unittest.TestCase):
    def test_the_api_is_there_over_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [f'{folder}/cert.pem', f'{folder}/key.pem']
            subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                            'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
                            '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-out',
                            files[0], '-keyout', files[1]], check=True, capture_output=True)
            with stand_in.StandIn(tls=files) as daytona:
                self.assertTrue(daytona.api.startswith('https://'))
                context = ssl.create_default_context(cafile=files[0])
                with urllib.request.urlopen(f'{daytona.api}/config', context=context) as answer:
                    self.assertEqual(answer.status, 200)
                self.assertEqual(daytona.sandboxes(), [])


if __name__ == '__main__':
    main()
