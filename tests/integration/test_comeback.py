#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An editor returns to a session of an earlier broker: one broker takes it over, and only one."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import time

import case
import processes
from acp import RpcError
from case import main
from sessions_case import SessionsCase
from processes import PATIENCE


class Comeback(SessionsCase):
    def another(self, *flags, cwd=None, **keys):
        """A broker with the profile; its agent remembers its sessions in a file."""
        lines = ['[profile "copy"]', '\tisolation = copy']
        values = dict(case.DEADLINES, **{k.replace('_', '-'): v for k, v in keys.items()})
        lines += [f'\t{name} = {value}' for name, value in values.items()]
        config = self.dir / 'config-copy'
        config.write_text('\n'.join(lines) + '\n')
        client = self.broker('--sessions', str(self.dir / 'memory'), *flags,
                             options=['--config', str(config), '--profile', 'copy'], cwd=cwd)
        client.initialize()
        return client

    def begin(self, **keys):
        client = self.another(**keys)
        session = client.new_session(self.work)
        self.wait_state('active')
        return client, session

    def params(self, session):
        return {'sessionId': session, 'cwd': str(self.work), 'mcpServers': []}

    def load(self, client, session, method='session/load'):
        client.call(method, self.params(session), PATIENCE)

    def refused(self, client, session, code):
        message = client.response(client.start('session/load', self.params(session)), PATIENCE)
        return self.failure(message, code)

    def says(self, client, session, text):
        client.prompt(session, f'say {text}')
        self.assertEqual(client.texts(session)[-1], text)

    def ended(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def holders(self, session):
        """Waits until only one record has the session, and returns it."""
        def found():
            return [r for r in self.records() if session in r['sessions']]
        self.assertTrue(processes.wait_until(lambda: len(found()) == 1, PATIENCE), self.records())
        return found()

    # ---- the session comes back ----

    def test_after_an_ordinary_end(self):
        for method in ('session/load', 'session/resume'):
            first, session = self.begin()
            runtime = self.runtime(first, session)
            self.ended(first)
            (self.work / 'since').write_text('since\n')
            client = self.another()
            self.load(client, session, method)
            self.assertEqual(self.runtime(client, session), runtime)
            self.assertEqual((runtime / 'since').read_text(), 'since\n')
            self.says(client, session, 'back again')
            self.assertEqual(self.notices(client), [])
            record, = self.holders(session)
            self.assertEqual(record['id'], self.status(client, session)['record'])
            self.ended(client)

    def test_the_list_of_another_broker_by_a_name_that_is_a_link(self):
        link = self.dir / 'link'
        link.symlink_to(self.work)
        first, session = self.begin()
        runtime = self.runtime(first, session)
        self.ended(first)
        client = self.another(cwd=link)
        for name in link, self.work, link:
            listed, = client.call('session/list', {'cwd': str(name)})['sessions']
            self.assertEqual((listed['sessionId'], listed['cwd']), (session, str(name)))
        heard = [json.loads(line) for line in self.journal('<') if b'session/list' in line]
        self.assertEqual({line['params']['cwd'] for line in heard}, {str(runtime)})
        client.call('session/load', dict(self.params(session), cwd=str(link)), PATIENCE)
        self.note_elsewhere('elsewhere')
        mine, added = client.call('session/list', {'cwd': str(link)})['sessions']
        self.assertEqual((mine['cwd'], added['cwd']), (str(link), str(link)))
        self.assertEqual(added['sessionId'], 'elsewhere')
        self.ended(client)

    def test_the_list_of_another_broker_before_it_has_a_session(self):
        """The agent knows its sessions by the paths of the copies."""
        first, session = self.begin()
        self.ended(first)
        elsewhere = self.dir / 'elsewhere'
        elsewhere.mkdir()
        client = self.another(cwd=elsewhere)
        for filters in ({}, {'cwd': str(self.work)}):
            listed, = client.call('session/list', filters)['sessions']
            self.assertEqual((listed['sessionId'], listed['cwd']), (session, str(self.work)))
        heard = [json.loads(line) for line in self.journal('<') if b'session/list' in line]
        self.assertNotEqual(heard[-1]['params']['cwd'], str(self.work))
        client.call('session/load', dict(self.params(session), cwd=listed['cwd']), PATIENCE)
        self.says(client, session, 'back again')
        listed, = client.call('session/list', {'cwd': str(self.work)})['sessions']
        self.assertEqual(listed['cwd'], str(self.work))
        self.ended(client)

    def test_the_agent_starts_in_the_copy_of_its_brokers_workspace(self):
        unused = self.dir / 'unused'
        unused.mkdir()
        for isolated in (self.work, unused):
            client = self.another(cwd=isolated)
            agent = self.agent_pids()[-1]
            place = pathlib.Path(os.readlink(f'/proc/{agent}/cwd'))
            environment = pathlib.Path(f'/proc/{agent}/environ').read_bytes().split(b'\0')
            self.assertEqual([e for e in environment if e.startswith(b'PWD=')],
                             [f'PWD={place}'.encode()])
            self.assertEqual((place.name, place.parents[3]), (isolated.name, self.state))
            if isolated == self.work:
                session = client.new_session(self.work)
                self.assertEqual(self.runtime(client, session), place)
            self.ended(client)
            self.assertEqual(place.exists(), isolated == self.work)  # nobody has used the other

    def test_a_prompt_may_use_the_users_name_of_the_workspace(self):
        (self.work / 'a.txt').write_text('one\n')
        client, session = self.begin()
        client.prompt(session, f'read {self.work}/a.txt', f'write {self.work}/b.txt two')
        self.assertIn('one', client.texts(session)[0])
        self.assertEqual((self.work / 'b.txt').read_text(), 'two')
        self.assertEqual((self.runtime(client, session) / 'b.txt').read_text(), 'two')
        client.prompt(session, f'say again {self.work}')
        prompts = [json.loads(line)['params']['prompt'] for line in self.journal('<')
                   if b'"session/prompt"' in line]
        self.assertEqual([len(prompt) for prompt in prompts], [2, 1])  # the agent is told only once
        self.assertIn(str(self.work), prompts[0][0]['text'])
        self.assertIn(str(self.runtime(client, session)), prompts[0][1]['text'])
        self.ended(client)

    def test_what_was_chosen_is_chosen_again_by_the_next_broker(self):
        first, session = self.begin()
        first.call('session/set_mode', {'sessionId': session, 'modeId': 'code'})
        self.assertTrue(processes.wait_until(
            lambda: self.records()[0]['choices'], PATIENCE), self.records())
        record, = self.records()
        self.assertEqual(record['choices'], [
            {'session': session, 'set': [{'kind': 'mode', 'value': 'code'}]}])
        self.kill(first)
        client = self.another()
        self.load(client, session)
        self.says(client, session, 'back again')
        sent = [json.loads(line) for line in self.journal('<')]
        last = [message['method'] for message in sent][-3:]
        self.assertEqual(last, ['session/load', 'session/set_mode', 'session/prompt'])
        self.assertEqual(sent[-2]['params'], {'sessionId': session, 'modeId': 'code'})
        modes = [m.params['update'].get('currentModeId') for m in client.messages
                 if m.method == 'session/update']
        self.assertEqual([mode for mode in modes if mode][-1], 'code')
        record, = self.holders(session)
        self.assertEqual(record['choices'][0]['session'], session)
        self.ended(client)

    def test_after_a_kill(self):
        first, session = self.begin()
        runtime = self.runtime(first, session)
        self.edit_both(runtime)
        self.kill(first)
        client = self.another()
        self.load(client, session)
        self.assert_both()
        self.says(client, session, 'back again')
        record, = self.holders(session)
        others = [(r['state'], r['sessions']) for r in self.records() if r['id'] != record['id']]
        self.assertEqual(others, [('stopped', [])])  # the first one's record: nobody uses it again
        self.ended(client)

    def test_what_it_left_of_another_directory_is_collected_by_the_same_broker(self):
        other = self.dir / 'other'
        other.mkdir()
        first = self.another()
        session = first.new_session(self.work, additionalDirectories=[str(other)])
        self.wait_state('active', 2)
        there, = [r['runtimeRoot'] for r in self.records() if r['localRoot'] == str(other)]
        pathlib.Path(there, 'late').write_text('late\n')
        self.kill(first)
        client = self.another()
        with contextlib.ExitStack() as held:
            for store in (self.state / 'stores').iterdir():
                lock = held.enter_context(open(store / 'acp-broker.lock', 'r+b'))
                fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = client.start('session/load', self.params(session))
            time.sleep(2.5)  # meanwhile the broker has begun to finish this record
        client.answer(waiting, PATIENCE)
        self.assertTrue(processes.wait_until((other / 'late').exists, PATIENCE), client.stderr)
        self.assertTrue(processes.wait_until(
            lambda: sorted(r['state'] for r in self.records()) == ['active', 'stopped', 'stopped'],
            PATIENCE), self.records())
        self.says(client, session, 'back again')
        self.ended(client)

    def written_for(self, directory):
        """
        Writes a file into the sandbox of a directory; returns the path at which it has to arrive.
        """
        there, = [r['runtimeRoot'] for r in self.records() if r['localRoot'] == str(directory)]
        pathlib.Path(there, 'late').write_text('late\n')
        return directory / 'late'

    def test_what_it_left_is_collected_where_the_session_cannot_be_had_back(self):
        other, older = self.dir / 'other', self.dir / 'older'
        other.mkdir()
        older.mkdir()
        before = self.another()  # the broker looks at the record of this one last
        before.new_session(older)
        self.wait_state('active')
        stores = set((self.state / 'stores').iterdir())
        first = self.another()
        session = first.new_session(self.work, additionalDirectories=[str(other)])
        self.wait_state('active', 3)
        missed, looked_at = self.written_for(other), self.written_for(older)
        os.kill(before.pid, signal.SIGKILL)
        self.kill(first)
        (self.dir / 'memory').unlink()
        client = self.another()
        with contextlib.ExitStack() as held:
            for store in set((self.state / 'stores').iterdir()) - stores:
                lock = held.enter_context(open(store / 'acp-broker.lock', 'r+b'))
                fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = client.start('session/load', self.params(session))
            self.assertTrue(processes.wait_until(looked_at.exists, PATIENCE), client.stderr)
            self.assertFalse(missed.exists())
        self.failure(client.response(waiting, PATIENCE), 'SESSION_LOST')
        self.assertTrue(processes.wait_until(missed.exists, PATIENCE), client.stderr)
        self.ended(client)

    def test_after_a_kill_into_the_only_place(self):
        first, session = self.begin(max_sessions=1)
        self.kill(first)
        client = self.another(max_sessions=1)
        self.load(client, session)
        self.says(client, session, 'back again')
        self.ended(client)

    def test_into_a_new_sandbox_which_is_said(self):
        first, session = self.begin(persistence='transient')
        runtime = self.runtime(first, session)
        (runtime / 'there').write_text('there\n')
        self.ended(first)
        self.assertFalse(runtime.exists())
        client = self.another(persistence='transient')
        self.load(client, session)
        self.assertEqual((self.runtime(client, session) / 'there').read_text(), 'there\n')
        self.assertTrue(any('another sandbox' in text for text in self.notices(client)))
        self.ended(client)

    # ---- another broker has it ----

    def test_it_is_refused_while_another_has_it(self):
        first, session = self.begin()
        client = self.another()
        error = self.refused(client, session, 'SESSION_IN_USE')
        self.assertIn(f'process {first.process.pid}', error['message'])
        self.assertIn(self.status(first, session)['record'], error['message'])
        self.says(first, session, 'mine')
        other = client.new_session(self.work)
        self.says(client, other, 'another')
        first.call('session/close', {'sessionId': session})
        self.assertTrue(processes.wait_until(
            lambda: not any(session in r['sessions'] for r in self.records()), PATIENCE))
        self.load(client, session)
        self.says(client, session, 'mine now')
        self.holders(session)

    def given_up(self, method):
        """The editor gives up the session while its agent is dead; afterwards no record has it."""
        first, session = self.begin()
        self.failure(first.response(first.start_prompt(session, 'exit 3'), PATIENCE),
                     'AGENT_EXITED')
        first.call(method, {'sessionId': session}, PATIENCE)
        self.assertTrue(processes.wait_until(
            lambda: not any(r['sessions'] for r in self.records()), PATIENCE), self.records())
        return session

    def test_one_that_is_closed_while_its_agent_is_dead_is_free(self):
        session = self.given_up('session/close')
        client = self.another()
        self.load(client, session)
        self.says(client, session, 'back again')

    def test_one_that_is_deleted_while_its_agent_is_dead_is_in_no_record(self):
        self.given_up('session/delete')

    def test_of_two_one_gets_it(self):
        first, session = self.begin()
        self.kill(first)
        clients = [self.another(), self.another()]
        waiting = [client.start('session/load', self.params(session)) for client in clients]
        answers = [client.response(raw_id, PATIENCE).value
                   for client, raw_id in zip(clients, waiting)]
        won = ['result' in value for value in answers]
        self.assertEqual(sorted(won), [False, True], answers)
        winner, loser = (clients if won[0] else clients[::-1])
        error = answers[won.index(False)]['error']
        self.assertEqual(error['data']['code'], 'SESSION_IN_USE')
        self.assertIn(f'process {winner.process.pid}', error['message'])
        self.says(winner, session, 'won')
        self.ended(winner)
        self.load(loser, session)
        self.says(loser, session, 'my turn')

    def test_one_that_is_ending_is_waited_for(self):
        first, session = self.begin()
        runtime = self.runtime(first, session)
        (runtime / 'last').write_text('last\n')
        client = self.another()
        with self.held_store():
            first.close_stdin()
            waiting = client.start('session/load', self.params(session))
            client.wait_log('waiting for process', PATIENCE)
        client.answer(waiting, PATIENCE)
        self.assertEqual(first.wait(PATIENCE), 0)
        self.assertEqual((self.work / 'last').read_text(), 'last\n')
        self.says(client, session, 'mine now')

    @contextlib.contextmanager
    def finishing(self, record):
        """Pretends that this process is another broker that finishes the work of a record."""
        with open(self.state / 'sessions' / f'{record["id"]}.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f'{os.getpid()} finishing\n')
            lock.flush()
            yield

    def test_one_that_does_not_end_is_not_waited_for_for_ever(self):
        first, session = self.begin()
        record, = self.records()
        self.kill(first)
        client = self.another(prepare_timeout='5s')
        with self.finishing(record):
            error = self.refused(client, session, 'SESSION_BUSY')
        self.assertIn(f'by process {os.getpid()}', error['message'])
        self.assertTrue(error['data']['retryable'])
        self.load(client, session)

    def test_those_that_wait_are_few_and_can_be_cancelled(self):
        first, session = self.begin()
        record, = self.records()
        self.kill(first)
        client = self.another(max_requests=1)
        with self.finishing(record):
            waiting = client.start('session/load', self.params(session))
            client.wait_log('waiting for process', PATIENCE)
            self.refused(client, session, 'RESOURCE_LIMIT_EXCEEDED')
            client.notify('$/cancel_request', {'requestId': json.loads(waiting)})
            answer = client.response(waiting, PATIENCE).value
            self.assertEqual(answer['error']['code'], -32800)
        self.load(client, session)

    def test_one_that_was_cancelled_during_its_first_sync_can_be_loaded_again(self):
        first, session = self.begin()
        self.ended(first)
        client = self.another(prepare_timeout='5s')
        with self.held_store():
            waiting = client.start('session/load', self.params(session))
            client.wait_log('taken over', PATIENCE)
            client.notify('$/cancel_request', {'requestId': json.loads(waiting)})
            answer = client.response(waiting, PATIENCE).value
            self.assertEqual(answer['error']['code'], -32800)
        self.load(client, session)

    # ---- the session does not come back ----

    def test_what_the_agent_has_forgotten_is_said(self):
        first, session = self.begin()
        self.ended(first)
        (self.dir / 'memory').unlink()
        client = self.another('--error-data')
        error = self.refused(client, session, 'SESSION_LOST')
        self.assertEqual(error['data']['detail'], '{"of":"memory"}')
        self.assertIn('Resource not found: session', error['message'])
        self.assertIn(str(self.work), error['message'])
        self.says(client, client.new_session(self.work), 'anew')

    def test_what_no_record_has_is_the_agents(self):
        client = self.another()
        with self.assertRaises(RpcError) as caught:
            client.call('session/load', self.params('nobody'))
        self.assertEqual((caught.exception.code, caught.exception.data), (-32002, None))

    # ---- what session/list has ----

    def note_elsewhere(self, session, reference='box-1', **more):
        """A record of a session in a sandbox elsewhere that has a home of its own."""
        record = self.records()[0]
        record.update({'id': f'{len(self.records()):016x}', 'sessions': [session],
                       'reference': reference, 'state': 'stopped', **more})
        (self.state / 'sessions' / f'{record["id"]}.json').write_text(json.dumps(record))
        return record

    def test_a_list_has_what_only_the_broker_knows(self):
        client, session = self.begin()
        record = self.note_elsewhere('elsewhere')
        self.note_elsewhere('ended', persistence='transient')
        self.note_elsewhere('shared', None)            # its agent has this machine's home
        self.note_elsewhere('theirs', profile='them')
        self.note_elsewhere('gone', localRoot=str(self.dir / 'gone'))
        self.note_elsewhere(session)                   # the agent here lists this one itself
        mine, added = client.call('session/list', {})['sessions']
        self.assertEqual(mine, {'sessionId': session, 'cwd': str(self.work),
                                'title': f'Session {session}'})
        self.assertEqual(added, {
            'sessionId': 'elsewhere', 'cwd': str(self.work), 'updatedAt': record['updated'],
            '_meta': {'broker': {'record': record['id'], 'state': 'stopped'}}})
        listed = client.call('session/list', {'cwd': str(self.dir)})['sessions']
        self.assertNotIn('elsewhere', [one['sessionId'] for one in listed])

    def start_lists(self, client, *params):
        """Sends requests that the broker gets before it has read the records for any of them."""
        ids = [b'"list %d"' % (len(client.messages) + place) for place in range(len(params))]
        client.send_bytes(b''.join(
            b'{"jsonrpc":"2.0","id":%s,"method":"session/list","params":%s}\n'
            % (raw_id, json.dumps(one).encode()) for raw_id, one in zip(ids, params)))
        return ids

    def listed(self, answer):
        return [one['sessionId'] for one in answer['sessions']]

    def test_of_lists_at_once_each_has_its_own(self):
        other = self.dir / 'other'
        other.mkdir()
        client, session = self.begin()
        self.note_elsewhere('elsewhere')
        self.note_elsewhere('in another', localRoot=str(other))
        everything = [session, 'elsewhere', 'in another']
        for _ in range(5):
            here, there, first, second = [self.listed(client.answer(raw_id)) for raw_id in
                                          self.start_lists(client, {'cwd': str(self.work)},
                                                           {'cwd': str(other)}, {}, {})]
            self.assertEqual(here, [session, 'elsewhere'])
            self.assertEqual(there, [session, 'in another'])
            self.assertEqual([sorted(first), sorted(second)], [sorted(everything)] * 2)

    def test_of_lists_at_once_with_many_pages_each_has_its_own(self):
        other = self.dir / 'other'
        other.mkdir()
        client = self.another('--list-page', '1')
        sessions = [client.new_session(self.work) for _ in range(3)]
        self.wait_state('active')
        self.note_elsewhere('elsewhere')
        self.note_elsewhere('in another', localRoot=str(other))
        wanted = [{'cwd': str(self.work)}, {'cwd': str(other)}, {}]
        found = [[], [], []]
        asked = wanted
        for page in range(3):
            answers = [client.answer(raw_id) for raw_id in self.start_lists(client, *asked)]
            for names, answer in zip(found, answers):
                names += self.listed(answer)
                self.assertEqual('nextCursor' in answer, page < 2)
            if page < 2:
                asked = [dict(one, cursor=answer['nextCursor'])
                         for one, answer in zip(wanted, answers)]
        self.assertEqual(found[0], [*sessions, 'elsewhere'])
        self.assertEqual(found[1], [*sessions, 'in another'])
        self.assertEqual(sorted(found[2]), sorted([*sessions, 'elsewhere', 'in another']))

    def test_lists_that_wait_at_once_are_bounded_and_each_is_answered(self):
        client, _ = self.begin()
        ids = [b'%d' % number for number in range(1000, 1064)]
        client.send_bytes(b''.join(b'{"jsonrpc":"2.0","id":%s,"method":"session/list",'
                                   b'"params":{}}\n' % raw_id for raw_id in ids))
        answers = [client.response(raw_id, PATIENCE).value for raw_id in ids]
        refused = [a['error'] for a in answers if 'error' in a]
        self.assertGreaterEqual(len(answers) - len(refused), 16)
        self.assertEqual({e['data']['code'] for e in refused}, {'RESOURCE_LIMIT_EXCEEDED'})
        self.assertEqual({e['data']['retryable'] for e in refused}, {True})
        self.assertIn('session/list', refused[0]['message'])
        client.call('session/list', {}, PATIENCE)

    def test_a_session_that_is_taken_over_counts_like_any_other(self):
        other = self.dir / 'other'
        other.mkdir()
        first, session = self.begin()
        self.kill(first)
        busy = self.another(max_sessions=1)
        busy.new_session(other)
        self.wait_state('active', 2)
        client = self.another(max_sessions=1)
        error = self.refused(client, session, 'RESOURCE_LIMIT_EXCEEDED')
        self.assertIn(str(other), error['message'])
        self.ended(busy)
        self.load(client, session)
        self.says(client, session, 'back again')

    def test_a_list_of_an_agent_that_restores_nothing_is_its_own(self):
        client = self.another('--no-load', '--no-resume')
        session = client.new_session(self.work)
        self.wait_state('active')
        self.note_elsewhere('elsewhere')
        listed = client.call('session/list', {})['sessions']
        self.assertEqual([one['sessionId'] for one in listed], [session])


if __name__ == '__main__':
    main()
