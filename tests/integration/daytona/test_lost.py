#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A sandbox is lost under a session, or its gateway fails: the error says what has become of it, its
files are collected if that is still possible, and the next session goes on.
"""

import pathlib
import shutil
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from acp import RpcError  # noqa: E402
from case import main  # noqa: E402
from facts import names  # noqa: E402
from processes import PATIENCE  # noqa: E402
from together import Together  # noqa: E402
from trouble import Trouble  # noqa: E402
import processes  # noqa: E402

AT_ONCE = 6
OUTLIVES = {'outlives': 'auto', 'link-grace': '10m', 'orphan-grace': '10m'}
EVER = 1000  # times: until somebody ends it
HERE = {'mine': 'mine\n', 'a': 'a\n'}
PENDING = {**HERE, 'pending': 'pending\n'}

# For a request that is never answered. All others are answered within this time, even on a busy
# machine.
IMPATIENT = {'connect-timeout': '8s', 'auth-timeout': '8s', 'channel-timeout': '8s',
             'login-timeout': '8s', 'api-timeout': '10s'}


def load_tests(loader, tests, pattern):
    return Together(AT_ONCE, [test for group in tests for test in group])


class Lost(Trouble):
    """The sandbox has a file that no turn has brought here."""

    def begin(self, **keys):
        (self.work / 'mine').write_text('mine\n')
        client, session = self.opened(**keys)
        self.prompt(client, session, 'terminal echo a > a')
        (self.runtime(client, session) / 'pending').write_text('pending\n')
        return client, session

    def fails(self, client, session, code, retryable):
        with self.assertRaises(RpcError) as caught:
            self.prompt(client, session, 'terminal echo again > again')
        self.check_error(caught.exception, code, retryable)
        return str(caught.exception)

    def leave(self, client, *states):
        client.close_stdin()
        client.wait(PATIENCE)
        self.check_listed()
        self.assertIn([record['state'] for record in self.records()],
                      [[state] for state in states])

    def collect(self, wanted=0):
        told = self.command('sessions', 'collect')
        self.assertEqual(told.returncode, wanted, told.stderr)
        return told.stderr

    def check_goes_on(self, tree):
        """The next session works with the files that are left, and with one sandbox."""
        self.assertEqual(self.tree(), tree)
        client, session = self.opened()
        self.prompt(client, session, 'terminal cat mine > next')
        self.end(client)
        self.assertEqual(self.tree(), {**tree, 'next': 'mine\n'})
        self.assertEqual(len(self.check_listed()), 1)

    def lose(self, client, why, **change):
        """
        The sandbox changes under the session, or vanishes if no change is given; waits for the log
        line.
        """
        box = self.box()['id']
        if change:
            self.daytona.force(box, **change)
            self.daytona.kill(box)
        else:
            self.daytona.vanish(box)
        client.wait_log(why, PATIENCE)

    def prompt_again(self, client, session):
        """
        Sends a prompt again while its error says that this can help. The first one may see only the
        agent's end; the others fail until the broker has found out what was lost.
        """
        def is_answered():
            try:
                self.prompt(client, session, 'terminal echo again > again')
            except RpcError as error:
                self.assertIs(error.data['retryable'], True, error)
                self.assertIn(error.data['code'],
                              ('AGENT_EXITED', 'LINK_LOST', 'SANDBOX_UNAVAILABLE'), error)
                return False
            return True
        self.assertTrue(processes.wait_until(is_answered, PATIENCE, step=0.1), client.stderr)

    def test_it_is_stopped(self):
        client, session = self.begin()
        self.lose(client, 'state "stopped"', state='stopped', desiredState='stopped')
        self.prompt_again(client, session)
        self.end(client)
        self.check_goes_on({**PENDING, 'again': 'again\n'})

    def test_it_is_deleted(self):
        client, session = self.begin()
        first = self.box()['id']
        self.lose(client, 'sandbox | was deleted')
        self.prompt_again(client, session)
        self.assertNotEqual(self.box()['id'], first)
        self.end(client)
        lost, = [one for one in self.records() if one['state'] == 'failed']
        self.assertEqual(lost['instance'], first)
        self.check_told(client, first, lost['runtimeRoot'])
        starts = self.daytona.counts().get('start')
        self.assertNotEqual(self.collect(wanted=1), '')
        self.assertEqual(self.daytona.counts().get('start'), starts)  # this sandbox is another one
        told = self.command('sessions', 'discard', lost['id'])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.check_goes_on({**HERE, 'again': 'again\n'})
        self.assertEqual({one['state'] for one in self.records()}, {'stopped'})

    def outlives(self, **keys):
        client = self.broker(options=self.config(**keys))
        told = client.initialize(seconds=PATIENCE)['_meta']['broker']['outlives']
        self.end(client)
        return told

    def test_it_is_said_what_outlives_the_connection(self):
        auto = {'outlives': 'auto', 'link-grace': '10m'}
        self.assertNames(self.outlives(), 'no, because | outlives = never')
        self.assertNames(self.outlives(**{**auto, 'runner': 'never'}),
                         'no, because | runner = never')
        self.assertEqual(self.outlives(**auto), 'link-grace = 600s')
        self.assertNames(self.outlives(**{**auto, 'auto-stop': '7m'}),
                         '280s | auto-stop = 420s | link-grace = 600s')
        self.assertNames(self.outlives(**{**auto, 'auto-stop': '13m'}),  # its last word is older
                         '540s | auto-stop = 780s | link-grace = 600s')
        self.assertEqual(self.outlives(**{**auto, 'auto-stop': '14m'}), 'link-grace = 600s')

    def begin_turn(self, keeps):
        self.daytona.settings(keepsVanished=keeps)
        client, session = self.opened(**OUTLIVES)
        root = self.runtime(client, session)
        turn = client.start_prompt(
            session, 'terminal echo a >> a; until test -e go; do sleep 0.1; done; echo b >> a')
        self.assertTrue(processes.wait_until((root / 'a').exists, PATIENCE))
        return client, turn, root

    def check_survives(self, keeps):
        client, turn, root = self.begin_turn(keeps)
        tokens = self.daytona.counts()['ssh-access']
        for count in (1, 2):
            self.daytona.revoke_tokens()
            self.daytona.drop_connections()
            self.assertTrue(processes.wait_until(
                lambda: client.stderr.count('reconnected after') == count, PATIENCE), client.stderr)
            self.assertGreaterEqual(self.daytona.counts()['ssh-access'], tokens + count)
        (root / 'go').write_text('')
        self.assertEqual(client.answer(turn, PATIENCE)['stopReason'], 'end_turn')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\nb\n', 'go': ''})

    def test_a_turn_goes_on_after_its_connections_were_lost(self):
        self.check_survives(keeps=False)

    def test_a_turn_goes_on_though_the_gateway_keeps_the_old_channels(self):
        self.check_survives(keeps=True)

    def check_stopped(self, drops):
        client, turn, _ = self.begin_turn(keeps=False)
        box = self.box()['id']
        self.daytona.force(box, state='stopped', desiredState='stopped')
        self.daytona.kill(box)
        if drops:
            self.daytona.drop_connections()
        with self.assertRaises(RpcError) as caught:
            client.answer(turn, PATIENCE)
        self.assertIs(caught.exception.data['retryable'], True, caught.exception)
        client.wait_log('state "stopped"', PATIENCE)
        self.end(client)

    def test_it_is_stopped_while_the_connection_is_lost(self):
        self.check_stopped(drops=True)

    def test_it_is_stopped_while_the_connection_to_the_gateway_stands(self):
        self.check_stopped(drops=False)

    def notices(self, client):
        updates = [m.params['update'] for m in list(client.messages)
                   if m.method == 'session/update']
        return [one['title'] for one in updates if one['sessionUpdate'] == 'tool_call']

    def check_told(self, client, instance, root):
        """
        The session itself says that its sandbox is another one, and what was lost with the old one.
        """
        told = [text for text in self.notices(client) if 'in a new sandbox' in text]
        self.assertEqual(len(told), 1, told)
        self.assertIn(f'({instance}) was deleted', told[0])
        self.assertIn(f'what was changed in {root} since the last sync', told[0])

    def test_what_a_killed_broker_left_is_ended_though_its_channel_stays_open(self):
        """The gateway does not tell the sandbox that its client has vanished."""
        self.daytona.settings(keepsVanished=True)
        self.check_next_ends_it({'link-grace': '10m'})

    def test_what_a_killed_broker_left_is_ended_though_it_outlives_the_connection(self):
        self.check_next_ends_it(OUTLIVES)

    def test_what_a_killed_broker_left_ends_after_a_while(self):
        _, pids = self.killed({**OUTLIVES, 'orphan-grace': '1s'})
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in pids), PATIENCE))

    def test_nothing_stays_in_a_sandbox_that_stays(self):
        client, _ = self.opened(**{**OUTLIVES, 'sync': 'none'})
        pids = [int(pid) for pid in (self.dir / 'pids').read_text().split()]
        self.assertTrue(any(processes.is_running(pid) for pid in pids))
        self.end(client)
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in pids), PATIENCE))

    def killed(self, keys):
        first, session = self.opened(**keys)
        first.start_prompt(session, 'terminal echo > made; sleep 600')
        self.assertTrue(processes.wait_until(
            (self.runtime(first, session) / 'made').exists, PATIENCE))
        pids = [int(pid) for pid in (self.dir / 'pids').read_text().split()]
        first.process.kill()
        first.wait(PATIENCE)
        return first, pids

    def check_next_ends_it(self, keys):
        _, pids = self.killed(keys)
        self.assertTrue(any(processes.is_running(pid) for pid in pids))
        second, session = self.opened(**keys)
        self.assertFalse([pid for pid in pids if processes.is_running(pid)])
        self.assertNames(second.stderr, 'broker was killed | processes')
        self.end(second)

    def test_what_a_killed_transient_one_had_is_nobody_elses_base(self):
        """Every sandbox there has the same home, so the root has the same name in each."""
        there = self.dir / 'there'
        keys = {'persistence': 'transient', 'runtime-root': there}
        files = {f'in{number}.txt': f'{number}\n' for number in range(4)}
        for name, text in files.items():
            (self.work / name).write_text(text)
        first, session = self.opened(**keys)
        self.prompt(first, session, 'terminal echo there > in0.txt')
        first.process.kill()
        first.wait(PATIENCE)
        self.daytona.vanish(self.box()['id'])
        shutil.rmtree(there)
        (self.work / 'in0.txt').write_text('here\n')
        second, session = self.opened(**keys)
        self.prompt(second, session, 'terminal cat in0.txt > out.txt')
        self.end(second)
        self.assertEqual(self.tree(), {**files, 'in0.txt': 'here\n', 'out.txt': 'here\n'})
        self.assertNotIn('acp-conflict', second.stderr)
        self.assertNotIn('has deleted', second.stderr)  # exact: what was told in vain
        lost, = [one for one in self.records() if one['state'] != 'stopped']
        told = self.command('sessions', 'discard', lost['id'], **keys)
        self.assertEqual(told.returncode, 0, told.stderr)
        bases = list((self.state / 'stores').glob('*/refs/acp-broker/bases/*'))
        self.assertEqual(bases, [])

    def test_it_is_deleted_while_nobody_is_there(self):
        """Another broker then loads the session, in another sandbox of the same name."""
        client, session = self.begin()
        client.process.kill()
        client.wait(PATIENCE)
        self.daytona.vanish(self.box()['id'])
        second = self.greeted()
        told = second.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                            'mcpServers': []}, seconds=PATIENCE)
        self.assertIsNotNone(told)
        texts = self.notices(second)
        self.assertTrue([text for text in texts
                         if names(text, 'another sandbox | last sync | not here')], texts)
        self.end(second)
        self.assertIn('was deleted', self.collect(wanted=1))
        self.assertEqual(sorted(one['state'] for one in self.records()), ['failed', 'stopped'])
        self.check_goes_on(HERE)

    def test_it_breaks(self):
        client, session = self.begin()
        name = self.box()['name']
        self.lose(client, 'the disk is broken', state='error', errorReason='the disk is broken')
        self.assertIn('the disk is broken', self.fails(client, session, 'SANDBOX_FAILED', False))
        self.leave(client, 'failed')
        self.assertIn('the disk is broken', self.collect(wanted=1))
        self.assertEqual(self.box()['name'], name)
        self.daytona.force(name, state='stopped', desiredState='stopped', errorReason=None)
        self.collect()
        self.check_goes_on(PENDING)

    def test_its_connection_breaks_and_its_token_is_void(self):
        client, session = self.begin()
        self.daytona.revoke_tokens()
        self.daytona.drop_connections()
        self.prompt_again(client, session)
        self.assertIn('the connection to 127.0.0.1 was lost', client.stderr)
        self.end(client)
        self.check_goes_on({**PENDING, 'again': 'again\n'})

    def test_its_token_has_expired(self):
        client, session = self.begin(**{'token-lifetime': '1m', 'auto-stop': 'never'})
        self.daytona.advance(minutes=2)
        self.prompt(client, session, 'terminal echo again > again')
        self.assertEqual(self.daytona.counts()['ssh-access'], 1)
        self.daytona.drop_connections()
        self.prompt_again(client, session)
        self.end(client)
        self.check_goes_on({**PENDING, 'again': 'again\n'})

    def test_the_key_is_taken_no_more(self):
        client, session = self.begin()
        self.daytona.fault('*', status=401, message='Invalid credentials', times=EVER)
        self.prompt(client, session, 'terminal cat a')
        (self.runtime(client, session) / 'later').write_text('later\n')
        self.daytona.drop_connections()
        client.wait_log('was lost', PATIENCE)
        self.assertIn('Invalid credentials',
                      self.fails(client, session, 'DAYTONA_UNAUTHORIZED', False))
        self.daytona.no_faults()
        self.leave(client, 'stopped')  # at the end the broker connected to it once more
        self.check_goes_on({**PENDING, 'later': 'later\n'})

    def test_what_is_behind_the_gateway_is_down(self):
        """Scripts need new channels; the runner's own is there."""
        client, session = self.begin(runner='never', **IMPATIENT)
        self.daytona.settings(backendDown=True)
        self.prompt(client, session, 'terminal cat a')
        client.wait_for(lambda m: m.method == 'session/update'
                        and m.params['update'].get('status') == 'failed'
                        and 'syncing' in m.params['update']['title'], PATIENCE)
        self.leave(client, 'failed')
        self.refused('TIMEOUT_EXCEEDED', True, **IMPATIENT)
        self.daytona.settings(backendDown=False)
        self.collect()
        self.check_goes_on(PENDING)

    def test_a_second_signal_does_not_wait_for_the_service(self):
        """The service never answers the stop; the next start stops the sandbox."""
        client, _ = self.begin()
        self.daytona.fault('stop', action='hang', times=EVER)
        client.process.terminate()
        self.assertTrue(processes.wait_until(lambda: self.daytona.calls('stop'), PATIENCE),
                        client.stderr)
        client.process.terminate()
        self.assertEqual(client.wait(PATIENCE), 1)
        self.assertNames(client.stderr, f'{self.box()["name"]} | second signal | next start')
        self.assertEqual([record['state'] for record in self.records()], ['collecting'])
        self.assertEqual(self.tree(), PENDING)
        self.daytona.no_faults()
        self.collect()
        self.assertEqual(self.box()['state'], 'stopped')
        self.check_goes_on(PENDING)

    def is_silent(self, runner, code):
        """The broker may notice it before its end; then it collects over another connection."""
        client, session = self.begin(runner=runner, **IMPATIENT)
        self.daytona.ssh_fault('bytes', action='hang')
        self.fails(client, session, code, True)
        self.leave(client, 'failed', 'stopped')
        self.collect()
        self.check_goes_on(PENDING)

    def test_its_connection_is_silent(self):
        self.is_silent('auto', 'LINK_LOST')

    def test_its_connection_is_silent_and_scripts_want_a_channel(self):
        self.is_silent('never', 'TIMEOUT_EXCEEDED')


class Gateway(Trouble):
    """The gateway fails at each stage of a connection."""

    def begins(self, stage, codes):
        self.end(self.greeted())
        for action in ('close', 'reset'):
            with self.subTest(action):
                self.daytona.ssh_fault(stage, action=action, times=EVER)
                self.refused(codes, True)
                self.daytona.no_faults()
        with self.subTest('hang'):
            self.daytona.ssh_fault(stage, action='hang', times=EVER)
            self.refused('TIMEOUT_EXCEEDED', True, **IMPATIENT)
            self.daytona.no_faults()
        client, session = self.opened()
        self.prompt(client, session, 'terminal echo a > a')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'a\n'})
        self.assertEqual(len(self.check_listed()), 1)

    def begins_again(self, stage):
        """After the gateway has taken the token, the broker tolerates one drop."""
        self.daytona.ssh_fault(stage)
        self.end(self.greeted())
        self.begins(stage, 'LINK_LOST')

    def test_when_it_has_just_started(self):
        self.daytona.settings(latency={'sshd': 1500})
        for way in ('made', 'started'):
            with self.subTest(way):
                self.end(self.greeted())
        self.assertEqual(self.daytona.counts()['create'], 1)

    def test_when_it_is_reached(self):
        self.begins('accept', 'HOST_UNREACHABLE')

    def test_when_keys_are_exchanged(self):
        self.begins('handshake', 'HOST_UNREACHABLE')

    def test_when_the_token_is_told(self):
        self.begins_again('auth')

    def test_when_the_token_was_taken(self):
        self.begins_again('ready')

    def test_when_a_channel_is_opened(self):
        self.begins_again('channel')

    def test_when_a_command_is_started(self):
        self.begins_again('exec')


if __name__ == '__main__':
    main()
