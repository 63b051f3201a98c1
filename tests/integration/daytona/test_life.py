#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The life of a Daytona sandbox: it is made, found again, stopped, archived and deleted."""

import json
import pathlib
import subprocess
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from acp import RpcError  # noqa: E402
from case import BROKER, main  # noqa: E402
from forwarding import SERVE, free_port, tell  # noqa: E402
from processes import PATIENCE  # noqa: E402
from room import GIVEN_UP, Room  # noqa: E402
import processes  # noqa: E402

LABELS = ['acp-broker/owner', 'acp-broker/profile', 'acp-broker/session', 'acp-broker/workspace']


class Life(Room):
    def test_a_session_runs_in_a_sandbox_that_is_stopped_after_it_and_found_again(self):
        (self.work / 'mine').write_text('from here\n')
        for transport in ('git', 'rsync'):
            client, session = self.opened(transport=transport)
            box = self.box()
            self.assertEqual(box['state'], 'started')
            self.prompt(client, session, f'terminal cat mine; echo "by {transport}" > theirs')
            self.assertIn('from here', client.wait_text('terminal/output ->'))
            self.assertEqual((self.work / 'theirs').read_text(), f'by {transport}\n')
            self.end(client)
            self.assertEqual(self.box()['state'], 'stopped')
            self.assertEqual(self.box()['id'], box['id'])
        self.assertEqual(self.daytona.counts()['create'], 1)
        call = self.daytona.calls('create')[0]
        body = json.loads(call['requestBody'])
        self.assertEqual(sorted(body['labels']), LABELS)
        self.assertNotIn(self.daytona.key, call['requestBody'])
        self.assertFalse(body.get('env'))
        self.assertRegex(body['name'], r'^acp-broker-[0-9a-f]{16}$')
        self.assertEqual({record['reference'] for record in self.records()}, {body['name']})
        self.assertEqual({record['state'] for record in self.records()}, {'stopped'})

    def test_the_key_is_nowhere_but_in_the_calls(self):
        client, session = self.opened(persistence='transient')
        self.prompt(client, session, 'env')
        self.assertNotIn('DAYTONA_API_KEY', ' '.join(client.texts()))
        tokens = [token['token'] for token in self.daytona.tokens()]
        self.assertEqual(len(tokens), 1)
        for pid in processes.all_pids():
            words = processes.read_file(f'/proc/{pid}/cmdline')
            for secret in (self.daytona.key, *tokens):
                self.assertNotIn(secret.encode(), words)
        self.end(client)
        for secret in (self.daytona.key, *tokens):
            self.assertNotIn(secret, client.stderr)
            for path in self.state.rglob('*'):
                if path.is_file():
                    self.assertNotIn(secret.encode(), path.read_bytes(), path)

    def test_a_transient_one_is_deleted_once_all_is_here(self):
        client, session = self.opened(persistence='transient')
        first = self.box()['name']
        self.prompt(client, session, 'terminal echo late > late')
        (self.runtime(client, session) / 'later').write_text('after the last turn\n')
        self.end(client)
        self.assertEqual(self.tree(), {'late': 'late\n', 'later': 'after the last turn\n'})
        self.assertEqual(self.boxes(), [])
        self.assertEqual(self.notes(), [])
        client, _ = self.opened(persistence='transient')
        self.assertNotEqual(self.box()['name'], first)
        self.end(client)

    def test_what_the_key_may_not_delete_is_stopped_and_said(self):
        client, session = self.opened(persistence='transient')
        self.prompt(client, session, 'terminal echo late > late')
        self.daytona.settings(scopes=['write:sandboxes'])
        self.end(client)
        box = self.box()
        self.assertEqual(self.tree(), {'late': 'late\n'})
        self.assertEqual(box['state'], 'stopped')
        self.assertNames(client.stderr, f'{box["name"]} is stopped | delete:sandboxes')
        self.assertEqual({record['state'] for record in self.records()}, {'stopped'})
        self.assertEqual(self.command('sandboxes', 'delete', box['name']).returncode, 1)
        self.assertEqual(self.notes(), [box['name']])
        self.daytona.settings(scopes=['write:sandboxes', 'delete:sandboxes'])
        told = self.command('sandboxes', 'delete', box['name'])
        self.assertEqual((told.returncode, self.boxes(), self.notes()), (0, [], []), told.stderr)

    def test_an_archived_one_starts_again(self):
        client, session = self.opened(persistence='archive')
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        self.assertIn(self.box()['state'], ('archiving', 'archived'))
        self.daytona.force(self.box()['id'], state='archived')
        client, session = self.opened(persistence='archive')
        self.assertEqual(self.box()['state'], 'started')
        self.assertIn('(archived)', client.stderr)
        self.end(client)
        self.assertEqual(self.daytona.counts()['create'], 1)

    def test_a_port_here_leads_to_a_server_there(self):
        (self.work / 'serve.py').write_text(SERVE)
        here, there = free_port(), free_port()
        client, session = self.opened(forward=f'{here}:{there}')
        client.start_prompt(session, f'terminal python3 serve.py 127.0.0.1 {there}')
        self.assertTrue(processes.wait_until(
            lambda: tell(here) == b'%d hello' % there, PATIENCE), client.stderr)
        self.end(client)
        self.assertIsNone(tell(here))

    def test_scripts_do_the_work_if_the_profile_says_so(self):
        for runner, count in (('never', 0), ('auto', 1)):
            client, session = self.opened(runner=runner)
            self.prompt(client, session, f'terminal echo {runner} > there')
            self.assertEqual(self.tree(), {'there': f'{runner}\n'})
            home = str(self.runtime(client, session)).split('/.local/')[0]
            there = list(pathlib.Path(home).glob('.cache/*/acp-runner.*'))
            self.assertEqual(len(there), count, client.stderr)
            self.end(client)

    def test_who_opens_no_session_leaves_nothing_running(self):
        for persistence, states in (('transient', []), ('reuse', ['stopped'])):
            self.end(self.greeted(persistence=persistence))
            self.assertEqual([box['state'] for box in self.boxes()], states)

    def test_one_that_is_not_synced_goes_with_a_killed_broker_until_a_session_is_in_it(self):
        for has_session in (False, True):
            client = self.greeted(persistence='transient', sync='none')
            if has_session:
                self.prompt(client, self.open_session(client), 'terminal echo a > a')
            name, = self.notes()
            client.process.kill()
            client.wait(PATIENCE)
            second = self.greeted(persistence='transient', sync='none')
            if has_session:
                second.wait_log('recovery:', PATIENCE)
                self.assertIsNotNone(self.daytona.sandbox(name))
                self.assertIn(name, self.notes())
            else:
                second.wait_log('deleting sandbox | whose broker is gone', PATIENCE)
                self.assertNotIn(name, self.notes())
            self.end(second)
            self.assertEqual([box['name'] for box in self.boxes()], [name] * has_session)

    def test_what_is_not_synced_stays_there(self):
        client, session = self.opened(persistence='transient', sync='none')
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        first = self.box()
        self.assertEqual(self.records()[0]['state'], 'stopped')
        note = json.loads((self.state / 'daytona' / f'{first["name"]}.json').read_text())
        self.assertIs(note['transient'], False, 'the next broker deletes it')
        kept = self.command('sandboxes', 'delete', first['name'])
        self.assertIn('sync = none', kept.stderr)
        told = self.command('sandboxes', 'delete', '--discard', first['name'])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn('never brought here (sync = none)', told.stdout)
        self.assertNotIn('since its last sync', told.stdout)
        self.assertEqual(self.boxes(), [])

    def test_what_could_not_be_collected_stays(self):
        client, session = self.opened(persistence='transient', **GIVEN_UP)
        self.prompt(client, session, 'terminal echo a > a')
        root = self.runtime(client, session)
        (root / 'b').write_text('b\n')
        self.daytona.settings(backendDown=True)
        self.daytona.drop_connections()
        client.close_stdin()
        client.wait(PATIENCE)
        self.assertEqual(self.box()['state'], 'started')
        self.assertEqual(self.records()[0]['state'], 'failed')
        self.daytona.settings(backendDown=False)
        collected = self.command('sessions', 'collect')
        self.assertEqual(collected.returncode, 0, collected.stderr)
        self.assertEqual(self.tree(), {'a': 'a\n', 'b': 'b\n'})
        self.assertEqual(self.boxes(), [])

    def command(self, *words):
        return subprocess.run([BROKER, *self.config()[:2], *words], env=self.environment(),
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.work)

    def test_two_brokers_share_one_and_the_last_one_out_stops_it(self):
        first, session = self.opened()
        second, other = self.opened()
        self.assertEqual(len(self.boxes()), 1)
        self.prompt(second, other, 'terminal echo two > two')
        self.end(second)
        self.assertEqual(self.box()['state'], 'started')
        self.prompt(first, session, 'terminal cat two; echo one > one')
        self.end(first)
        self.assertEqual(self.box()['state'], 'stopped')
        self.assertEqual(self.tree(), {'one': 'one\n', 'two': 'two\n'})

    def test_three_brokers_at_once_mint_their_tokens_one_after_the_other(self):
        options = self.config()
        clients = [self.broker(options=options) for _ in range(3)]
        for client in clients:
            client.initialize(seconds=PATIENCE)
        self.assertEqual(len(self.boxes()), 1)
        self.assertEqual(len(self.daytona.connections()), 3)
        self.assertEqual(self.daytona.counts()['ssh-access'], 3)
        for client in clients:
            self.end(client)
        self.assertEqual(self.box()['state'], 'stopped')

    def test_another_workspace_has_another_sandbox(self):
        self.end(self.greeted())
        other = self.dir / 'other'
        other.mkdir()
        client = self.broker(options=self.config(), cwd=other)
        client.initialize(seconds=PATIENCE)
        self.assertEqual(len(self.boxes()), 2)
        self.end(client)


class Trouble(Room):
    def test_what_does_not_go_together_is_said_before_any_call(self):
        for keys in ({'snapshot': 'a', 'image': 'b'}, {'cpu': 2}, {'ssh-user': 'me'}):
            error = self.start_error(**keys)
            self.assertEqual(error.data['code'], 'CONFIG_INVALID', error)
        error = self.start_error(**{'api-key-env': 'NO_SUCH_KEY'})
        self.assertEqual(error.data['code'], 'CONFIG_INVALID')
        self.assertIn('NO_SUCH_KEY', str(error))
        self.assertEqual(self.daytona.counts(), {})

    def test_a_create_that_fails_is_told_with_its_reason_and_leaves_nothing(self):
        self.daytona.fail_create('no disk left')
        error = self.start_error()
        self.assertEqual(error.data['code'], 'SANDBOX_FAILED')
        self.assertIn('no disk left', str(error))
        self.assertEqual(self.boxes(), [])
        self.end(self.greeted())

    def test_a_setup_that_fails_leaves_nothing_running(self):
        self.assertEqual(self.start_error(setup='exit 7').data['code'], 'SETUP_FAILED')
        self.assertEqual((self.boxes(), self.notes()), ([], []))
        self.end(self.greeted())  # the sandbox of an earlier broker: it is stopped, and stays
        self.assertEqual(self.start_error(setup='exit 7').data['code'], 'SETUP_FAILED')
        self.assertEqual(self.box()['state'], 'stopped')

    def test_a_create_that_is_given_up_and_done_later_leaves_nothing(self):
        self.daytona.fault('create', action='none', delay_ms=3000)
        error = self.start_error(prepare_timeout='1500ms')
        self.assertEqual(error.data['code'], 'TIMEOUT_EXCEEDED')
        self.assertEqual((self.boxes(), self.notes()), ([], []))
        self.assertEqual(self.daytona.counts()['delete'], 1)

    def test_a_create_whose_answer_is_lost_makes_one(self):
        self.daytona.fault('create', action='close', effect=True)
        self.end(self.greeted())
        self.assertEqual(len(self.boxes()), 1)
        self.assertEqual(self.daytona.counts()['create'], 1)

    def test_a_quota_is_told_in_the_services_words(self):
        self.daytona.settings(quota={'cpu': 0})
        error = self.start_error()
        self.assertEqual(error.data['code'], 'DAYTONA_QUOTA_EXCEEDED')
        self.assertIs(error.data['retryable'], True)
        self.assertIn('Total CPU limit exceeded. Maximum allowed: 0.', str(error))
        self.daytona.settings(quota={'cpu': 1})
        self.end(self.greeted())

    def test_a_service_that_is_down_or_slow_is_told(self):
        self.daytona.fault('*', status=500, times=100)
        error = self.start_error(**{'api-timeout': '3s'})
        self.assertEqual(error.data['code'], 'DAYTONA_UNAVAILABLE')
        self.daytona.no_faults()
        self.daytona.fault('*', action='hang', times=100)
        self.assertEqual(self.start_error(**{'api-timeout': '1s'}).data['code'], 'TIMEOUT_EXCEEDED')
        self.daytona.no_faults()
        self.daytona.fault('get', status=503, times=1)
        self.daytona.fault('ssh-access', status=429, times=1,
                           headers={'Retry-After-authenticated': 1})
        client = self.greeted()
        self.end(client)
        self.assertIn('status 503', client.stderr)  # so the user knows why it takes so long
        self.assertIn('trying again, for', client.stderr)

    def test_one_in_error_from_before_is_left_with_what_is_in_it(self):
        self.end(self.greeted())
        box = self.box()
        self.daytona.force(box['id'], state='error', errorReason='the disk is broken')
        error = self.start_error()
        self.assertEqual(error.data['code'], 'SANDBOX_FAILED')
        self.assertIn('the disk is broken', str(error))
        self.assertEqual(self.box()['id'], box['id'])

    def test_one_that_was_deleted_is_made_anew(self):
        self.end(self.greeted())
        gone = self.box()
        self.daytona.vanish(gone['id'])
        self.end(self.greeted())
        self.assertNotEqual(self.box()['id'], gone['id'])
        self.assertEqual(self.box()['name'], gone['name'])

    def test_deleted_or_stopped_under_a_session_that_is_told_or_mended(self):
        for what in ('deleted', 'stopped'):
            client, session = self.opened(**GIVEN_UP)
            if what == 'deleted':
                self.daytona.vanish(self.box()['id'])
            else:
                self.daytona.force(self.box()['id'], state='stopped')
                self.daytona.drop_connections()
            self.assertTrue(processes.wait_until(
                lambda: self.is_said(what, client, session), PATIENCE), client.stderr)
            client.close_stdin()
            client.wait(PATIENCE)

    def is_said(self, what, client, session):
        """
        Whether an error of the prompt, or the log, says what became of the sandbox.

        Until the broker has asked the service, the prompt's error only says to try again. The
        sandbox's processes die first. If the broker sees their end before that of the link, only
        the agent has ended, and the session goes on in a sandbox that runs.
        """
        told = ''
        try:
            self.prompt(client, session, 'terminal echo')
        except RpcError as error:
            told = str(error)
        return what in told + client.stderr or 'was restarted' in client.stderr

    def test_a_process_whose_shell_is_killed_takes_nothing_with_it(self):
        client, session = self.opened(runner='never')
        for name in ('a', 'b'):  # the second prompt is told, too
            self.prompt(client, session, 'terminal kill -9 0')
            self.assertNames(client.texts()[-1], 'ended | not known')
            self.prompt(client, session, f'terminal echo {name} > {name}')
        self.assertNotIn('restart', client.stderr)
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\n', 'b': 'b\n'})

    def test_a_process_whose_shell_is_killed_is_told_before_what_it_has_started_ends(self):
        client, session = self.opened(runner='never')
        self.prompt(client, session, 'terminal kill -9 $PPID; exec sleep 1000')
        self.assertNames(client.texts()[-1], 'ended | not known')
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\n'})

    def test_a_token_that_is_revoked_in_mid_session_ends_nothing(self):
        client, session = self.opened()
        self.daytona.revoke_tokens()
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\n'})

    def test_a_silent_agent_is_not_stopped_by_auto_stop(self):
        client, session = self.opened(**{'auto-stop': '15m'})
        for _ in range(4):
            self.daytona.advance(minutes=5)
        self.assertEqual(self.box()['state'], 'started')
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\n'})

    def test_another_host_key_is_refused(self):
        self.end(self.greeted())
        known = self.state / 'daytona/known_hosts'
        self.assertTrue(known.read_text())
        error = self.start_error(**{'host-key': 'SHA256:' + 'A' * 43})
        self.assertEqual(error.data['code'], 'HOST_KEY_MISMATCH')

    def test_the_network_of_one_that_is_there_becomes_what_the_profile_says(self):
        self.end(self.greeted())
        self.assertFalse(self.box()['networkBlockAll'])
        self.end(self.greeted(network='blocked'))
        self.assertTrue(self.box()['networkBlockAll'])
        self.daytona.vanish(self.box()['id'])
        self.end(self.greeted(network='allow', allow_cidr=['10.0.0.0/8', '192.0.2.0/24'],
                              allow_host='*.example.com'))
        self.assertEqual(self.box()['networkAllowList'], '10.0.0.0/8,192.0.2.0/24')
        self.assertEqual(self.box()['domainAllowList'], '*.example.com')


class Commands(Room):
    def run_command(self, *words, config=None):
        return subprocess.run([BROKER, *(config or self.config()), *words],
                              env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE, cwd=self.work)

    def test_check_says_what_there_will_be_and_whether_the_key_is_taken(self):
        told = self.run_command('check', '--', 'true')
        self.assertEqual(told.returncode, 0, told.stderr)
        for text in (self.daytona.api, 'DAYTONA_API_KEY', '15 min', '0 of yours'):
            self.assertIn(text, told.stdout)
        self.assertNotIn(self.daytona.key, told.stdout)
        self.daytona.fault('list', status=401, message='Invalid credentials')
        told = self.run_command('check', '--', 'true')
        self.assertNotEqual(told.returncode, 0)
        self.assertIn('Invalid credentials', told.stderr)
        self.assertEqual(self.boxes(), [])

    def listed(self):
        told = self.run_command('sandboxes', 'list', '--json')
        self.assertEqual(told.returncode, 0, told.stderr)
        return json.loads(told.stdout)['sandboxes']

    def test_what_there_is_is_listed_stopped_and_deleted(self):
        client, session = self.opened()
        self.prompt(client, session, 'terminal echo a > a')
        name = self.box()['name']
        one, = self.listed()
        self.assertEqual((one['name'], one['state'], one['isInUse']), (name, 'started', True))
        self.assertEqual(one['workspace'], str(self.work.resolve()))
        for order in ('stop', 'delete'):
            told = self.run_command('sandboxes', order, name)
            self.assertNotEqual(told.returncode, 0)
            self.assertEqual(self.box()['state'], 'started')
        self.end(client)
        told = self.run_command('sandboxes', 'delete', 'acp-broker-nobodys')
        self.assertNotEqual(told.returncode, 0)
        self.end(self.greeted())
        self.daytona.force(name, state='started', desiredState='started')
        told = self.run_command('sandboxes', 'stop', name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(self.box()['state'], 'stopped')
        told = self.run_command('sandboxes', 'delete', name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(self.boxes(), [])
        self.assertEqual(self.notes(), [])
        self.assertEqual(self.listed(), [])

    def test_no_login_of_its_agent_runs_here(self):
        methods = '{"id":"c","_meta":{"terminal-auth":{"command":"sh","args":[]}}}'
        client = self.broker('--terminal-auth', '--auth-methods', methods, options=self.config())
        result = client.initialize(seconds=PATIENCE)
        self.assertEqual(result['authMethods'], [{'id': 'token', 'name': 'Token'},
                                                 {'id': 'c', '_meta': {}}])
        self.end(client)
        self.assertFalse((self.state / 'logins').exists())

    def test_one_of_a_profile_that_was_renamed_is_listed_and_deleted(self):
        self.end(self.opened()[0])
        name = self.box()['name']
        _, path, *_ = self.config()
        renamed = pathlib.Path(path).read_text().replace('"test"', '"renamed"')
        pathlib.Path(path).write_text(renamed)

        def run(*words):
            return subprocess.run([BROKER, '--config', path, '--profile', 'renamed', *words],
                                  env=self.environment(), cwd=self.work, capture_output=True,
                                  text=True, timeout=PATIENCE, check=False)
        told = run('sandboxes', 'list', '--json')
        one, = json.loads(told.stdout)['sandboxes']
        self.assertEqual((one['name'], one['profile']), (name, 'test'))
        told = run('sandboxes', 'delete', name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(self.boxes(), [])


if __name__ == '__main__':
    main()
