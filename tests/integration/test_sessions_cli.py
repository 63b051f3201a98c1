#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""acp-broker sessions: which sessions it lists, and what it does with those of dead brokers."""

import fcntl
import json
import os
import signal
import subprocess

import jsonschema

import case
import processes
from sessions_case import SessionsCase
from processes import PATIENCE
from sync_room import POINTS


class Looking(SessionsCase):
    def test_a_living_one_and_its_process(self):
        client, session = self.opened()
        self.wait_state('active')
        entry = self.the_one()
        self.assertEqual((entry['isHeld'], entry['process'], entry['state'], entry['sessions']),
                         (True, client.process.pid, 'active', [session]))
        self.assertIn(str(client.process.pid), self.sessions('list'))
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        entry = self.the_one()
        self.assertEqual((entry['isHeld'], entry['state']), (False, 'stopped'))
        self.assertTrue(entry['collected'])
        shown = json.loads(self.sessions('show', '--json', entry['id'][:6]))
        self.assertEqual(shown, entry)
        self.assertIn(str(self.work), self.sessions('show', entry['id']))

    def test_nothing_at_all(self):
        self.assertEqual(self.sessions('list'), '')
        self.assertEqual(self.listed(), [])

    def test_names(self):
        self.left()
        for word in ('', 'abc', '../../etc/x', 'ABCDEF', '0' * 17, '*', 'g' * 16):
            self.assertNames(self.sessions('show', '--', word, status=2), 'name of a session')
        unknown = '0' * 16 if self.the_one()['id'][0] != '0' else 'f' * 16
        for command in ('show', 'collect', 'stop', 'discard'):
            self.assertIn('there is no session', self.sessions(command, unknown, status=1))
        self.sessions('show', status=2)
        self.sessions('discard', status=2)
        self.sessions('prune', 'soon', status=2)
        self.sessions('unknown', status=2)

    def test_what_cannot_be_read_is_named_and_stays(self):
        self.left()
        good = self.the_one()
        folder = self.state / 'sessions'
        text = (folder / f'{good["id"]}.json').read_text()
        newer = dict(json.loads(text), version=99)
        wrong = dict(json.loads(text), sessions='none')
        others = {'1' * 16: text[:len(text) // 2], '2' * 16: '', '3' * 16: json.dumps(newer),
                  '4' * 16: json.dumps(wrong), '5' * 16: text, '6' * 16: '\0\xff{'}
        for name, content in others.items():
            (folder / f'{name}.json').write_text(content)
        listed = {entry['id']: entry for entry in self.listed()}
        self.assertEqual(set(listed), {good['id'], *others})
        table = self.sessions('list')
        for name in others:
            self.assertFalse(listed[name]['isReadable'])
            self.assertIn(name, table)
            self.assertIn(name, self.sessions('collect', name, status=1))
            self.assertIn(name, self.sessions('discard', name, status=1))
            self.sessions('stop', name, status=1)
        self.assertIn('use a newer acp-broker', listed['3' * 16]['problem'])
        self.assertIn('6 of 7 sessions', self.sessions('collect', status=1))
        self.assert_both()
        self.sessions('prune', '0s')
        self.assertEqual({path.stem: path.read_text() for path in folder.glob('*.json')}, others)

    def test_prune(self):
        self.left()
        self.sessions('prune', '0s')
        self.assertEqual(self.the_one()['state'], 'active')
        self.sessions('collect')
        self.sessions('prune')
        self.assertEqual(self.the_one()['state'], 'stopped')
        self.sessions('prune', '0s')
        self.assertEqual(self.listed(), [])
        self.assertEqual(list((self.state / 'sessions').iterdir()), [])


class Acting(SessionsCase):
    def test_collect(self):
        runtime = self.left()
        entry = self.the_one()
        self.assertEqual((entry['isHeld'], entry['state']), (False, 'active'))
        self.assertIn('collected', self.sessions('collect', entry['id']))
        self.assert_both()
        self.assertTrue((runtime / 'a-here').exists())
        entry = self.the_one()
        self.assertEqual(entry['state'], 'stopped')
        self.assertTrue(entry['collected'])
        (runtime / 'later').write_text('later\n')
        self.sessions('collect', entry['id'])  # the record is done, so nothing is touched
        self.assertFalse((self.work / 'later').exists())

    def test_collect_ends_what_is_transient(self):
        runtime = self.left(persistence='transient')
        self.assertTrue(runtime.exists())
        self.sessions('collect')
        self.assert_both()
        self.assertFalse(runtime.exists())

    def test_killed_between_the_receipt_and_the_end_of_the_sandbox(self):
        runtime = self.left(persistence='transient')
        self.sessions('collect', program=POINTS, ACP_POINT='keeper.done:1:kill',
                      status=-signal.SIGKILL)
        self.assert_both()
        self.assertTrue(runtime.exists())
        self.assertEqual(self.the_one()['state'], 'collecting')
        self.assertTrue(self.the_one()['collected'])
        (self.work / 'a-there').unlink()  # everything was here, so this file must not come back
        (runtime / 'a-here').unlink()
        self.sessions('collect')
        self.assertFalse(runtime.exists())
        self.assertEqual(self.tree(), {'a-here': 'a here\n'})
        self.assertEqual(self.the_one()['state'], 'stopped')

    def test_discard_where_the_workspace_is_gone(self):
        self.left()
        self.work.rename(self.dir / 'moved')
        self.sessions('discard', self.the_one()['id'])
        self.assertEqual(self.listed(), [])
        (self.dir / 'moved').rename(self.work)

    def test_a_living_one_is_left_alone(self):
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.edit_both(runtime)
        name = self.the_one()['id']
        for command in ('collect', 'discard'):
            self.assertIn(f'process {client.process.pid}',
                          self.sessions(command, name, status=1))
        self.sessions('collect')
        self.assertFalse((self.work / 'a-there').exists())
        self.assertEqual(self.status(client, session)['state'], 'active')

    def test_stop_of_a_living_one(self):
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.edit_both(runtime)
        self.sessions('stop', self.the_one()['id'])
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assert_both()
        self.assertEqual(self.the_one()['state'], 'stopped')

    def test_stop_of_one_that_is_gone(self):
        self.left()
        self.sessions('stop', self.the_one()['id'])
        self.assert_both()
        self.assertEqual(self.the_one()['state'], 'stopped')

    def test_stop_sends_nothing_to_others(self):
        """Somebody holds the lock, and the file names this process, which is not a broker."""
        self.left()
        name = self.the_one()['id']
        with open(self.state / f'sessions/{name}.lock', 'r+', encoding='ascii') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn('cannot be seen', self.sessions('stop', name, status=1))
            lock.truncate(0)
            lock.write(f'{os.getpid()}\n')
            lock.flush()
            self.assertIn('not an acp-broker', self.sessions('stop', name, status=1))
            self.assertIn(str(os.getpid()), self.sessions('collect', name, status=1))

    def test_discard(self):
        runtime = self.left()
        self.assertIn('are lost', self.sessions('discard', self.the_one()['id']))
        self.assertFalse(runtime.exists())
        self.assertEqual(self.listed(), [])
        self.assertEqual(self.tree(), {'a-here': 'a here\n'})
        client, session = self.opened()  # discarded files do not count as deleted
        self.assertEqual(self.tree(), {'a-here': 'a here\n'})
        self.assertTrue((self.runtime(client, session) / 'a-here').exists())

    def test_a_collect_that_fails_keeps_everything(self):
        runtime = self.left(persistence='transient')
        name = self.the_one()['id']
        moved = self.dir / 'moved'
        self.work.rename(moved)
        self.assertIn(name, self.sessions('collect', name, status=1))
        entry = self.the_one()
        self.assertEqual(entry['state'], 'failed')
        self.assertTrue(entry['error'])
        self.assertIn(entry['error'], self.sessions('list'))
        self.assertTrue((runtime / 'a-there').exists())
        moved.rename(self.work)
        self.sessions('collect', name)
        self.assert_both()
        self.assertFalse(runtime.exists())

    def test_a_profile_that_is_gone(self):
        runtime = self.left()
        name = self.the_one()['id']
        (self.dir / 'config-copy').write_text('[profile "other"]\n')
        self.assertIn('copy', self.sessions('collect', name, status=2))
        (self.dir / 'config-copy').write_text('[profile "copy"]\n\tbackend = local\n')
        self.assertIn('leads to', self.sessions('collect', name, status=1))
        self.assertTrue((runtime / 'a-there').exists())
        self.assertFalse((self.work / 'a-there').exists())

    def test_two_at_once(self):
        self.left()
        name = self.the_one()['id']
        config = str(self.dir / 'config-copy')
        with self.held_store():  # the first command has the record, and waits
            first = self.start([case.BROKER, '--config', config, 'sessions', 'collect', name])
            processes.wait_until(lambda: self.the_one()['isHeld'], step=0.05)
            self.assertIn(f'process {first.process.pid}',
                          self.sessions('collect', name, status=1))
            self.assertIn('wait for that', self.sessions('stop', name, status=1))
        self.assertEqual(first.wait(PATIENCE), 0)
        self.assert_both()


class Plain(SessionsCase):
    """A session that works in the workspace itself is listed while its broker lives."""

    def plain(self):
        client = self.broker(options=self.config())
        client.initialize()
        session = client.new_session(self.work)
        self.assertTrue(processes.wait_until(self.listed, PATIENCE))
        return client, session

    def files(self):
        return [path.name for path in (self.state / 'plain').iterdir()]

    def test_it_is_listed_and_its_verbs_say_what_they_can_do(self):
        client, session = self.plain()
        entry = self.the_one()
        self.assertEqual(
            (entry['isPlain'], entry['isHeld'], entry['process'], entry['state'], entry['sync'],
             entry['localRoot'], entry['runtimeRoot'], entry['sessions'], entry['agent']),
            (True, True, client.process.pid, 'active', 'none', str(self.work), None, [session],
             'scripted-agent'))
        name = entry['id']
        self.assertNames(self.sessions('list'),
                         f'{name} | plain | {client.process.pid} | scripted-agent | {self.work}')
        self.assertNames(self.sessions('show', name), f'{name} | {session} | {self.work}')
        for verb in ('collect', 'discard'):
            self.assertNames(self.sessions(verb, name, status=2), f'{name} | sessions stop')
        self.sessions('collect')
        self.sessions('prune', '0s')
        self.assertEqual(self.the_one(), entry)
        self.assertNames(self.sessions('stop', name), f'{name} | {self.work}')
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual((self.listed(), self.files()), ([], []))

    def test_its_row_goes_with_the_session_and_with_the_broker(self):
        client, session = self.plain()
        other = client.new_session(self.dir)
        self.assertTrue(processes.wait_until(lambda: len(self.listed()) == 2, PATIENCE))
        client.call('session/close', {'sessionId': other}, seconds=PATIENCE)
        self.assertTrue(processes.wait_until(lambda: len(self.listed()) == 1, PATIENCE))
        self.assertEqual(self.the_one()['sessions'], [session])
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual((self.listed(), self.files()), ([], []))

    def test_a_killed_broker_leaves_no_row(self):
        first, _ = self.plain()
        self.kill(first)
        self.assertTrue(self.files())
        self.assertEqual((self.listed(), self.files()), ([], []))
        second, _ = self.plain()
        self.kill(second)
        third, session = self.plain()  # cleans up before it writes its own
        self.assertEqual(self.the_one()['sessions'], [session])
        self.assertEqual({name.split('.')[0] for name in self.files()}, {self.the_one()['id']})
        third.close_stdin()
        self.assertEqual(third.wait(PATIENCE), 0)


class Status(SessionsCase):
    """acp-broker status: another process looks at a living broker."""

    def valid(self, kind, text):
        schema = json.loads((case.ROOT / 'docs/schemas/status.json').read_text())
        told = json.loads(text)
        jsonschema.Draft202012Validator({**schema, '$ref': f'#/$defs/{kind}'}).validate(told)
        return told

    def status(self, *words):
        done = subprocess.run([case.BROKER, 'status', *words], env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_nothing_at_all(self):
        self.assertEqual(self.status(), '')
        self.assertEqual(self.valid('result', self.status('--json')), {'brokers': []})

    def test_a_session_in_the_workspace_itself(self):
        client = self.broker(options=self.config())
        client.initialize()
        session = client.new_session(self.work)
        self.assertTrue(processes.wait_until(
            lambda: self.valid('result', self.status('--json'))['brokers'], PATIENCE))
        broker, = self.valid('result', self.status('--json'))['brokers']
        entry, = broker['sessions']
        self.assertEqual((broker['process'], entry['isPlain'], entry['sessions'], entry['turn']),
                         (client.process.pid, True, [session], 'unknown'))
        self.assertNames(self.status(), f'{client.process.pid} | plain | {self.work}')

    def test_a_broker_with_an_open_turn_and_what_changes(self):
        client, session = self.opened()
        watch = subprocess.Popen(['timeout', str(PATIENCE), case.BROKER, 'status', '--json',
                                  '--watch'], text=True,
                                 env=self.environment(), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.stdout.close)

        def until(wanted):
            """Returns the next line in which the session is like this."""
            while True:
                line = self.valid('change', watch.stdout.readline())
                if wanted(line['change'], line['session']):
                    return line
        until(lambda change, entry: entry['state'] == 'active' and entry['turn'] == 'idle')
        prompt = client.start_prompt(session, 'say on', 'hang')
        client.wait_text('on', PATIENCE)
        line = until(lambda change, entry: entry['turn'] == 'open')
        self.assertEqual(line['session']['process'], client.process.pid)
        broker, = self.valid('result', self.status('--json'))['brokers']
        entry, = broker['sessions']
        self.assertEqual(
            (broker['process'], entry['sessions'], entry['turn'], entry['backend'],
             entry['localRoot'], entry['isFinishing']),
            (client.process.pid, [session], 'open', 'local', str(self.work), False))
        self.assertIn(session, entry['inFlight'])
        self.assertTrue(entry['agent'])
        self.assertNames(self.status(), f'{client.process.pid} | open | active | {self.work}')
        client.notify('session/cancel', {'sessionId': session})
        client.answer(prompt, PATIENCE)
        until(lambda change, entry: entry['turn'] == 'idle')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        line = until(lambda change, entry: change == 'ended')
        self.assertEqual((line['session']['process'], line['session']['state']),
                         (None, 'stopped'))
        watch.stdout.close()
        self.assertEqual(watch.wait(PATIENCE), 0)


if __name__ == '__main__':
    case.main()
