#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""_broker/session/status, state, health and usage: what a program learns about a broker."""

import os
import re
import signal
import stat
import subprocess

import case
import processes
from policy_case import ROOT
from ssh_case import SshCase
from processes import PATIENCE
from sync_case import SyncCase, TurnCase, checked, fitting

STATES = {'fs': {'readTextFile': True, 'writeTextFile': True}, 'terminal': True,
          '_meta': {'broker': {'state': True}}}


class StatusCase(SyncCase):
    def told(self, client):
        """The states that were reported: (previous, state), in order."""
        params = [checked('session-state', 'params', m.params) for m in client.received
                  if m.method == '_broker/session/state']
        return [(p['previous'], p['state']) for p in params]

    def wait_told(self, client, state):
        client.wait_for(lambda m: m.method == '_broker/session/state'
                        and m.params['state'] == state, PATIENCE)

    def watching(self, **keys):
        client = self.copied(capabilities=STATES, **keys)
        return client, client.new_session(self.work)

    def health(self, client):
        return fitting('health', client.call('_broker/health', seconds=PATIENCE))

    def usage(self, client, **params):
        return fitting('usage', client.call('_broker/usage', params))


class State(StatusCase):
    def test_a_life_is_told_from_the_first_state_to_the_last(self):
        client, session = self.watching()
        self.assertEqual(client.prompt(session, 'say hi')['stopReason'], 'end_turn')
        self.wait_told(client, 'active')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        client.threads[0].join(PATIENCE)
        self.assertEqual(self.told(client), [
            (None, 'creating'), ('creating', 'syncing'), ('syncing', 'starting'),
            ('starting', 'active'), ('active', 'collecting'), ('collecting', 'stopped')])
        last = [m for m in client.received if m.method == '_broker/session/state'][-1].params
        record, = self.records()
        self.assertEqual((last['record'], last['sessionIds'], last['localRoot']),
                         (record['id'], [session], str(self.work)))
        self.assertEqual((last['runtimeRoot'], record['state']),
                         (record['runtimeRoot'], 'stopped'))

    def test_the_end_of_a_transient_sandbox_is_told_once(self):
        client, _ = self.watching(persistence='transient')
        self.wait_told(client, 'active')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        client.threads[0].join(PATIENCE)
        self.assertEqual(self.told(client)[-2:],
                         [('active', 'collecting'), ('collecting', 'stopped')])

    def test_a_pause_is_told_and_its_sandbox_is_well(self):
        client, session = self.watching()
        self.wait_told(client, 'active')
        client.call('_broker/session/pause', {'sessionId': session}, seconds=PATIENCE)
        self.wait_told(client, 'paused')
        self.assertEqual(self.status(client, session)['state'], 'paused')
        health = self.health(client)
        self.assertEqual(([agent['state'] for agent in health['agents']], health['isHealthy']),
                         (['paused'], True))
        client.call('_broker/session/resume', {'sessionId': session}, seconds=PATIENCE)
        client.prompt(session, 'say on again')
        self.assertEqual(self.told(client)[-2:], [('active', 'paused'), ('paused', 'active')])

    def test_who_did_not_ask_is_told_nothing(self):
        client, session = self.opened()
        client.prompt(session, 'say hi')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual(self.told(client), [])

    def test_a_workspace_that_cannot_be_collected_has_failed_and_says_why(self):
        client, _ = self.watching()
        self.wait_told(client, 'active')
        self.work.rename(self.dir / 'moved')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 1)
        last_words = client.stderr.splitlines()[-1]
        self.assertTrue(last_words.startswith('acp-broker: '), last_words)
        self.assertIn(str(self.work), last_words)
        self.assertIn('acp-broker sessions collect', last_words)
        client.threads[0].join(PATIENCE)
        self.assertEqual(self.told(client)[-1], ('collecting', 'failed'))
        last = [m for m in client.received if m.method == '_broker/session/state'][-1].params
        self.assertIn(str(self.work), last['reason'])
        (self.dir / 'moved').rename(self.work)


class Status(StatusCase):
    def test_a_session_in_the_workspace_itself(self):
        client = self.broker()
        meta = client.initialize()['_meta']['broker']['capabilities']
        for method in ('session/status', 'health', 'usage', 'sync'):
            self.assertIn(f'_broker/{method}', meta['methods'])
        self.assertEqual(meta['notifications'], ['_broker/session/state'])
        session = client.new_session(self.work)
        status = self.status(client, session)
        self.assertEqual((status['record'], status['state'], status['sync'], status['profile']),
                         (None, 'active', 'none', 'test'))
        self.assertEqual((status['localRoot'], status['runtimeRoot']), (str(self.work),) * 2)

    def test_every_method_that_is_announced_has_a_schema(self):
        client = self.broker()
        methods = client.initialize()['_meta']['broker']['capabilities']['methods']
        titles = ' '.join(path.read_text().split('"title": "', 1)[1].split('"', 1)[0]
                          for path in (ROOT / 'docs/schemas').glob('*.json'))
        for method in methods:
            self.assertIn(method, titles.replace(',', '').split())


class Health(StatusCase):
    def test_before_anything_runs(self):
        client = self.broker()
        self.assertEqual(self.health(client), {'agents': [], 'isHealthy': True})

    def test_an_agent_in_a_copy(self):
        client, session = self.opened()
        health = self.health(client)
        agent, = health['agents']
        self.assertTrue(health['isHealthy'], health)
        self.assertEqual((agent['state'], agent['problem'], agent['sessions']),
                         ('running', None, 1))
        self.assertEqual(agent['process'], self.agent_pids()[0])
        self.assertGreater(agent['startUs'], 0)
        disk = os.statvfs(self.state)
        self.assertAlmostEqual(agent['diskSizeBytes'], disk.f_blocks * disk.f_frsize, delta=4096)
        workspace, = agent['workspaces']
        self.assertEqual((workspace['state'], workspace['lastSyncError']), ('active', None))
        self.assertTrue(workspace['lastSync'])
        before = workspace['storeBytes']
        self.assertGreater(before, 0)
        (self.work / 'big').write_bytes(os.urandom(3 << 20))
        client.call('_broker/sync', {'sessionId': session}, seconds=PATIENCE)
        workspace, = self.health(client)['agents'][0]['workspaces']
        self.assertGreaterEqual(workspace['storeBytes'], before + (3 << 20))
        store, = (self.state / 'stores').iterdir()
        on_disk = int(subprocess.run(['du', '-s', '-B1', store], check=True, text=True,
                                     capture_output=True).stdout.split()[0])
        self.assertAlmostEqual(workspace['storeBytes'], on_disk, delta=64 << 10)

    def test_a_sandbox_that_does_not_answer(self):
        """Its shell never prints anything."""
        programs = self.dir / 'programs'
        programs.mkdir()
        shell = programs / 'sh'
        shell.write_text('#!/bin/sh\nexec sleep 1000\n')
        shell.chmod(shell.stat().st_mode | stat.S_IXUSR)
        env = self.environment()
        env['PATH'] = f'{programs}:{env["PATH"]}'
        client = self.broker(options=self.config(health_timeout='300ms'), env=env)
        client.initialize()
        health = self.health(client)
        agent, = health['agents']
        self.assertFalse(health['isHealthy'])
        self.assertIn('health-timeout', agent['problem'])
        self.assertEqual((agent['roundTripUs'], agent['state']), (None, 'running'))
        client.prompt(client.new_session(self.work), 'say still here')

    def test_what_is_asked_before_the_end_is_answered(self):
        client = self.copied()
        client.new_session(self.work)
        store, = (self.state / 'stores').iterdir()
        for i in range(300):  # folders that have to be looked at one by one
            folder = store / 'objects' / f'x{i}'
            folder.mkdir()
            for j in range(100):
                (folder / str(j)).touch()
        asked = [client.start('_broker/health') for _ in range(10)]
        client.close_stdin()
        client.wait(PATIENCE)
        for request in asked:
            fitting('health', client.answer(request))

    def test_an_agent_that_dies_while_it_is_asked(self):
        client = self.broker(options=self.config(health_timeout='60s'))
        client.initialize()
        asked = [client.start('_broker/health') for _ in range(20)]
        processes.kill(self.agent_pids()[0])
        for request in asked:
            fitting('health', client.answer(request, PATIENCE))


class Statistics(TurnCase, StatusCase):
    """The numbers of a sync, which the test knows in advance, in the status and in the log."""
    LINE = re.compile(r'synced \((?P<reason>\w+)\): (?P<here>\d+) files? from the agent'
                      r'(?: \((?P<gone_here>\d+) deleted\))?, (?P<there>\d+) to it'
                      r'(?: \((?P<gone_there>\d+) deleted\))?, (?P<received>\d+) bytes? received,'
                      r' (?P<sent>\d+) sent(?:, (?P<conflicts>\d+) conflicts?)?, (?P<ms>\d+) ms')

    def logged(self, client, reason):
        """The numbers in the log's last line about a sync for this reason."""
        client.wait_log(f': synced ({reason}): ', PATIENCE)
        line = [m for m in self.LINE.finditer(client.stderr) if m['reason'] == reason][-1]
        return {key: int(value or 0) for key, value in line.groupdict().items()
                if key != 'reason'}

    def assert_logged(self, client, last):
        """Checks that the log has the same numbers as the status."""
        here, there = last['toLocal'], last['toRuntime']
        self.assertEqual(self.logged(client, last['reason']), {
            'here': sum(here.values()), 'gone_here': here['deleted'],
            'there': sum(there.values()), 'gone_there': there['deleted'],
            'received': last['receivedBytes'], 'sent': last['sentBytes'],
            'conflicts': last['conflicts'], 'ms': last['durationMs']})

    def synced(self, client, session):
        last = fitting('session-status', client.call('_broker/sync', {'sessionId': session},
                                                     seconds=PATIENCE))['lastSync']
        self.assertIsNone(last['error'])
        self.assert_logged(client, last)
        return last

    def counts(self, last):
        return [tuple(last[side][kind] for kind in ('added', 'changed', 'deleted'))
                for side in ('toLocal', 'toRuntime')]

    def assert_around(self, value, size):
        """Checks that it is this many bytes of content, and some more for what goes with them."""
        self.assertTrue(size <= value < size + 20000, (value, size))

    def check(self, transport):
        for name in ('gone1', 'gone2', 'agents', 'mine', 'lost', 'both'):
            (self.work / name).write_text(f'{name}\n')
        (self.work / 'large').write_bytes(os.urandom(300000))
        client, session = self.opened(transport=transport)
        first = self.status(client, session)['lastSync']
        self.assertEqual((first['reason'], first['files'], first['conflicts']), ('start', 7, 0))
        self.assertEqual(self.counts(first), [(0, 0, 0), (7, 0, 0)])
        self.assert_around(first['sentBytes'], 300000)
        self.assert_logged(client, first)
        before = self.usage(client)['syncs']
        self.edit(self.runtime(client, session))
        second = self.synced(client, session)
        self.assertEqual((second['reason'], second['files'], second['conflicts']), ('turn', 8, 1))
        self.assertEqual(self.counts(second), [(1, 1, 2), (2, 2, 1)])
        self.assert_around(second['receivedBytes'], 200000)
        self.assert_around(second['sentBytes'], 100000)
        self.check_usage(before, self.usage(client)['syncs'], second)
        third = self.synced(client, session)
        self.assertEqual((self.counts(third), third['conflicts']), ([(0, 0, 0), (0, 0, 0)], 0))
        self.assertEqual((third['sentBytes'], third['checkpoint']), (0, second['checkpoint']))
        self.assert_around(third['receivedBytes'], 0)

    def edit(self, runtime):
        for name in ('gone1', 'gone2'):
            (runtime / name).unlink()
        (runtime / 'agents').write_text('edited\n')
        (runtime / 'both').write_text('theirs\n')
        (runtime / 'new').write_bytes(os.urandom(200000))
        (self.work / 'lost').unlink()
        (self.work / 'mine').write_text('edited\n')
        (self.work / 'both').write_text('mine\n')
        (self.work / 'small').write_text('small\n')
        (self.work / 'added').write_bytes(os.urandom(100000))

    def check_usage(self, before, after, last):
        grown = {key: after[key] - before[key] for key in after}
        self.assertEqual(grown, {
            'count': 1, 'failed': 0, 'durationMs': last['durationMs'],
            'sentBytes': last['sentBytes'], 'receivedBytes': last['receivedBytes'],
            'conflicts': 1, 'pathsToLocal': 4, 'pathsToRuntime': 5})

    def test_by_git(self):
        self.check('git')

    def test_by_rsync(self):
        self.check('rsync')

    def test_how_long_it_took_has_the_wait_for_another_broker(self):
        client, session = self.opened()
        let_go = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission May I?')
        self.wait_held(client)  # the status shows the wait after 500 ms
        let_go()
        client.response(prompt, PATIENCE)
        last = self.status(client, session)['lastSync']
        self.assertEqual(last['reason'], 'turn')
        self.assertGreaterEqual(last['durationMs'], 500)
        self.assert_logged(client, last)

    def test_the_end_of_a_session_is_a_stop(self):
        client, session = self.opened()
        (self.runtime(client, session) / 'late').write_text('late')
        self.ended(client)
        self.assertEqual(self.logged(client, 'stop')['here'], 1)
        self.assertNotIn('(crash)', client.stderr)

    def test_an_agent_that_dies_is_a_crash_and_proves_nothing(self):
        client, session = self.opened()
        (self.runtime(client, session) / 'late').write_text('late')
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.assertEqual(self.logged(client, 'crash')['here'], 1)
        self.assertEqual((self.work / 'late').read_text(), 'late')
        other = client.new_session(self.work)
        last = self.status(client, other)['lastSync']
        self.assertEqual((last['reason'], self.counts(last)[0]), ('crash', (1, 0, 0)))
        self.assert_logged(client, last)
        # The new agent works in the same sandbox, so there is no receipt yet.
        self.assertEqual([record['receipt'] for record in self.records()], [None])
        self.ended(client)
        self.assertEqual([record['receipt']['conflicts'] for record in self.records()], [0])


class Usage(StatusCase):
    def test_what_one_session_has_done(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        before = self.usage(client)
        client.prompt(session, f'write {self.work}/f text', 'permission May I')
        usage = self.usage(client)
        mine, = [s for s in usage['sessions'] if s['sessionId'] == session]
        theirs, = [s for s in usage['sessions'] if s['sessionId'] == other]
        self.assertEqual((mine['prompts'], theirs['prompts'], usage['prompts']), (1, 0, 1))
        self.assertEqual((mine['toolCalls']['fs/write_text_file'],
                          mine['toolCalls']['session/request_permission']), (1, 1))
        self.assertEqual(sum(theirs['toolCalls'].values()), 0)
        self.assertEqual(mine['decisions'], usage['decisions'])
        self.assertIn({'decision': 'allow-once', 'by': 'person', 'count': 1}, mine['decisions'])
        self.assertEqual((theirs['bytes']['fromAgent'], theirs['decisions']), (0, []))
        self.assertGreater(mine['bytes']['fromEditor'], 0)
        self.assertGreater(mine['bytes']['fromAgent'], 0)
        self.assertGreater(usage['bytes']['fromAgents'], before['bytes']['fromAgents'])
        self.assertGreater(usage['syncs']['count'], before['syncs']['count'])
        self.assertGreater(usage['memory']['residentBytes'], usage['memory']['privateBytes'])
        one = self.usage(client, sessionId=session)
        self.assertEqual([s['sessionId'] for s in one['sessions']], [session])
        refused = client.response(client.start('_broker/usage', {'sessionId': 'none'}))
        self.failure(refused, 'INVALID_PARAMS')


class OverSsh(SshCase):
    def test_another_host(self):
        client, _ = self.opened()
        health = fitting('health', client.call('_broker/health', seconds=PATIENCE))
        agent, = health['agents']
        self.assertTrue(health['isHealthy'], health)
        self.assertEqual((agent['process'], agent['state']), (None, 'running'))
        self.assertGreater(agent['roundTripUs'], 0)
        self.assertGreater(agent['diskFreeBytes'], 0)


if __name__ == '__main__':
    case.main()
