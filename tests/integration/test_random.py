#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Prompts, cancels, permissions, terminals, files and deaths at random, while the broker serves the
agent. The test requires only this: every request is answered once, and at rest nothing is left: no
process, no descriptor, no temporary file, no timer.

The test prints its seed; ACP_RANDOM_SEED sets it, ACP_RANDOM_ROUNDS sets the number of rounds.
ACP_RANDOM_KEEP names a folder for the journals and traces of a round that fails.
"""

import json
import os
import platform
import random
import re
import shutil
import signal
import sys
import time

import processes
from processes import PATIENCE
from case import SANITIZED, STUBBORN, Case, main, program
from host import RpcError
from random_play import FILES, Editor, Person, chance

SEED = os.environ.get('ACP_RANDOM_SEED') or str(random.SystemRandom().randrange(10 ** 9))
KEEP = os.environ.get('ACP_RANDOM_KEEP')
ROUNDS = int(os.environ.get('ACP_RANDOM_ROUNDS') or (20 if SANITIZED else 40))  # of each test
FAR_BROKER = program('ACP_BROKER_FAKE', 'tests/support/fake/acp-broker-fake')

NO_TIMER_MS = 59000  # libev waits for 59.743 s if no timer is due before that
POLL = b'7'          # the system call's number
QUIET = 0.5          # seconds without a wake-up, if we cannot see the call under way


def waiting_in_poll(pid):
    """
    (descriptors, milliseconds) that a process waits for in poll(2); (0, 0) if it is not in poll;
    None if nobody can know.
    """
    words = processes.read_file(f'/proc/{pid}/syscall').split()
    if platform.machine() != 'x86_64' or not words:
        return None
    if words[0] != POLL:
        return 0, 0
    return int(words[2], 16), int(words[3], 16)


def wake_ups(pid):
    found = re.search(rb'\nvoluntary_ctxt_switches:\s+(\d+)',
                      processes.read_file(f'/proc/{pid}/status'))
    return int(found.group(1))


def is_quiet(pid):
    before = wake_ups(pid)
    time.sleep(QUIET)
    return wake_ups(pid) == before


class Broker:
    """One broker: what it holds at rest, and the rounds that the test plays with it."""

    def __init__(self, case, draw, flavour):
        self.case, self.random, self.flavour = case, draw, flavour
        self.can_time_out = chance(draw, 50)
        self.meta = chance(draw, 50)
        self.policy = draw.choice((None, ['mode = ask-all'],
                                   ['mode = pass', 'deny = write **/f1', 'ask = terminal echo **']))
        keys = {'permission_timeout': '150ms' if self.can_time_out else '50s',
                'terminal_timeout': draw.choice(('50s', '50s', '100ms')),
                'max_terminals': draw.choice(('100', '100', '4')),
                'max_queue': draw.choice(('8m', '20k')), 'idle_timeout': 'never',
                'file_timeout': '50s', 'prepare_timeout': '50s', 'start_timeout': '50s',
                # A child that the test does not know yet when it kills the agent holds its stdout.
                'drain_timeout': '1s', **STUBBORN}
        self.person = Person(case.work)
        self.client = case.launch(self, keys)
        self.client.initialize({'_meta': {'terminal_output': self.meta}})
        self.editor = Editor(draw, self.client, case.directories(flavour))
        self.rest_was = None
        self.rest()
        self.rest_was = self.at_rest()

    def pids(self):
        return [pid for pid in self.case.agent_pids() if processes.is_running(pid)
                and processes.name_of(pid) == 'scripted-agent']

    def kill_agents(self):
        for pid in self.pids():
            processes.kill(pid)

    def wake_agents(self):
        """Lets agents that stopped reading read again."""
        for pid in self.pids():
            processes.kill(pid, signal.SIGUSR1)

    # ---- a round ----

    def do(self, step):
        if step == 'nap':
            time.sleep(self.random.randrange(15) / 1000)
        elif step == 'kill':
            if chance(self.random, 40):
                pids = self.pids()
                processes.kill(self.random.choice(pids)) if pids else None
        else:
            return getattr(self.editor, 'step_' + step)()
        return ''

    def play(self):
        self.open_sessions()
        self.person.draw(self.random, self.can_time_out)
        self.editor.log.clear()
        for _ in range(self.random.randint(3, 14)):
            step = self.editor.draw()
            self.editor.log.append((step, self.do(step)))
        self.client.resume()

    def open_sessions(self):
        """
        Opens one in each directory, so that the same agents run with the same roots as before.
        """
        self.editor.sessions = [(self.open_session(directory), root)
                                for directory, root in self.editor.directories]

    def open_session(self, directory):
        """Tries again if the broker does not know yet that an agent was killed or reads again."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                session = self.client.answer(self.client.start('session/new', {
                    'cwd': directory, 'mcpServers': []}), PATIENCE)['sessionId']
                self.client.prompt(session, 'say here', seconds=PATIENCE)
                return session
            except RpcError as error:
                if not error.data.get('retryable') or time.monotonic() > end:
                    raise
                self.wake_agents()

    def settle(self):
        """Ends everything under way, as an editor would, and kills the processes that stay."""
        self.person.settle()
        if self.editor.lasts:
            self.kill_agents()
        self.editor.lasts = False
        sessions = {message.value['result']['sessionId'] for message in self.client.received
                    if message.is_response and 'sessionId' in message.value.get('result', {})}
        for session in sessions:
            self.client.notify('session/cancel', {'sessionId': session})
        self.await_answers()
        self.close(sessions)
        # Agents may have been started in another order than at the beginning.
        if self.flavour == 'far, one root' or chance(self.random, 10):
            self.kill_agents()

    def close(self, sessions):
        """Closes these sessions; tries again if an agent was not reading."""
        end = time.monotonic() + PATIENCE
        while sessions and time.monotonic() < end:
            asked = {self.editor.ask('session/close', {'sessionId': session}): session
                     for session in sessions}
            self.await_answers()
            sessions = [asked[message.id] for message in self.client.received
                        if message.is_response and message.id in asked
                        and 'RESOURCE_LIMIT_EXCEEDED' in message.line.decode()]

    def await_answers(self):
        def answered():
            self.wake_agents()
            ids = {message.id for message in self.client.received if message.is_response}
            return all(raw_id in ids for raw_id in self.editor.asked)
        if not processes.wait_until(answered, PATIENCE, step=0.005):
            ids = {message.id for message in self.client.received if message.is_response}
            raise AssertionError(f'not answered: {[i for i in self.editor.asked if i not in ids]}')

    # ---- rest ----

    def rest(self):
        self.settle()
        self.open_sessions()
        self.close([session for session, _ in self.editor.sessions])

    def at_rest(self):
        """Returns what the broker holds once it waits only for its editor and its agents."""
        def look():
            waits = waiting_in_poll(self.client.pid)
            below = sorted(map(processes.name_of, processes.descendants(self.client.pid)))
            return self.open_files(), below, waits

        def same():
            seen = look()
            if seen[2] is not None and seen[2][1] < NO_TIMER_MS:
                return None
            if seen[1].count('acp-guard') != 1 + seen[1].count('scripted-agent'):
                return None  # a guard of an agent that has just died, or of a terminal
            if self.rest_was is not None and (
                    seen[0] > self.rest_was[0] or seen[1:] != self.rest_was[1:]):
                return None  # a file that was open then, for a record, may be closed by now
            return seen if seen[2] is not None or is_quiet(self.client.pid) else None

        seen = processes.wait_until(same, PATIENCE, step=0.002)
        if not seen:
            raise AssertionError(f'not at rest: {look()}, at first {self.rest_was}\n'
                                 + self.files())
        return seen

    def open_files(self):
        """
        The number of open files, without the locks of plain records. A session that an agent opened
        after the editor took its request back stays open, and its workspace has such a lock.
        """
        return sum('/acp-broker/plain/' not in line for line in self.files().splitlines())

    def files(self):
        return '\n'.join(processes.files_of(self.client.pid))

    # ---- what was answered ----

    def check_editor(self, may_be_lost=()):
        """
        Checks that every request of the editor was answered once, and that the broker used no id
        twice.
        """
        sent = [message.id for message in self.client.sent if message.is_request]
        answers = [message.id for message in self.client.received if message.is_response]
        missing = set(sent) - set(answers) - set(may_be_lost)
        self.case.assertEqual(missing, set(), 'not answered')
        self.case.assertEqual(sorted(answers), sorted(set(answers)), 'answered twice')
        self.case.assertEqual(set(answers) - set(sent), set(), 'never asked')
        asked = [message.id for message in self.client.received if message.is_request]
        self.case.assertEqual(len(asked), len(set(asked)), 'an id was minted twice')

    def calls_of_agents(self):
        """(journal, the ids of the requests, the ids of the answers) of each agent that has run."""
        for path in self.case.dir.glob('journal-[1-9]*'):
            lines = path.read_bytes().split(b'\n')[:-1]
            messages = [(line[:1], json.loads(line[2:])) for line in lines]
            yield (path, [m['id'] for way, m in messages
                          if way == b'>' and 'method' in m and 'id' in m],
                   [m['id'] for way, m in messages if way == b'<' and 'method' not in m])

    def open_calls(self):
        """The requests of living agents without an answer: (journal, ids)."""
        alive = {f'journal-{pid}' for pid in self.pids()}
        return [(path.name, sorted(set(asked) - set(answers)))
                for path, asked, answers in self.calls_of_agents()
                if path.name in alive and set(asked) - set(answers)]

    def check_agents(self):
        """
        Checks that no request of an agent was answered twice, and that every answer has a request.
        """
        for path, asked, answers in self.calls_of_agents():
            self.case.assertEqual(sorted(answers), sorted(set(answers)), f'twice in {path}')
            self.case.assertEqual(set(answers) - set(asked), set(), f'never asked in {path}')

    def check(self):
        """
        A file operation under way on another thread looks like rest, so this first waits for all
        answers.
        """
        processes.wait_until(lambda: not self.open_calls(), PATIENCE, step=0.002)
        self.case.assertEqual(self.open_calls(), [], 'not answered')
        self.at_rest()
        self.check_editor()
        self.check_agents()
        self.case.check_folders(self.flavour)

    # ---- the end ----

    def end(self):
        """
        Ends the broker in the middle of a round, in one of the ways in which an editor leaves.
        """
        self.play()
        way = self.random.choice(('EOF', 'TERM', 'TERM twice', 'INT'))
        self.editor.log.append(('end', way))
        if way != 'EOF':  # it cannot answer requests that it has not read before it ends
            self.client.response(self.client.start('_broker/nothing'), PATIENCE)
        self.person.settle()
        if way == 'EOF':
            self.client.close_stdin()
        for _ in range({'EOF': 0, 'TERM twice': 2}.get(way, 1)):
            os.kill(self.client.pid, signal.SIGINT if way == 'INT' else signal.SIGTERM)
        self.client.wait(PATIENCE)
        self.case.assert_nothing_runs()
        processes.wait_until(lambda: self.client.ended, PATIENCE)
        self.check_editor()
        self.check_agents()
        self.case.check_folders(self.flavour)
        self.case.assertEqual(self.client.crash(), '')


class Random(Case):
    def directories(self, flavour):
        """The directories in which sessions are opened: (the editor's name, the agent's name)."""
        far = self.dir / 'inside'
        if flavour == 'near':
            return [(str(self.work), str(self.work)), (str(self.other), str(self.other))]
        roots = ('0', '0') if flavour == 'far, one root' else ('0', '1')
        return [(str(self.work), str(far / roots[0])), (str(self.other), str(far / roots[1]))]

    def launch(self, broker, keys):
        if broker.flavour == 'near':
            options = self.config(policy=broker.policy, toolhost='broker', **keys)
            argv = self.broker_argv(*options, agent=self.agent_argv())
        else:
            far = {'runtime_root': str(self.dir / 'inside'), 'sync': 'none'}
            if broker.flavour == 'far, one root':
                far['roots_max'] = '1'
            if chance(broker.random, 50):
                far['delay'] = '3ms'
            options = self.config(policy=broker.policy, backend='fake', **far, **keys)
            argv = [FAR_BROKER, *options, '--', *self.agent_argv()]
        if KEEP:
            argv[1:1] = ['--trace', str(self.dir / 'journal-trace-0')]
        return self.start(argv, host=broker.person)

    def journal_path(self, number=None):
        return self.dir / 'journal-%p'

    def check_folders(self, flavour):
        """Checks that the folders have only expected files, once everything is written."""
        gone = processes.wait_until(lambda: not self.left_in_folders(), PATIENCE)
        self.assertTrue(gone, self.left_in_folders())

    def left_in_folders(self):
        known = {'config', 'pids', 'home', 'work', 'other', 'inside', 'inside/0', 'inside/1'}
        known |= {f'{root}/{name}' for root in ('work', 'other', 'inside/0', 'inside/1')
                  for name in (*FILES, 'sub')}
        found = {str(path.relative_to(self.dir)) for path in self.dir.rglob('*')}
        records = {name for name in found if name.startswith('home/state')
                   and not name.endswith('.new')}
        return {name for name in found - known - records if not name.startswith('journal-')}

    def forget(self):
        """Removes the files of earlier brokers, so that each begins alone."""
        for path in [*self.dir.glob('journal-*'), self.dir / 'pids']:
            path.unlink(missing_ok=True)

    def play(self, flavour):
        self.other = self.dir / 'other'
        self.other.mkdir()
        print(f'ACP_RANDOM_SEED={SEED} ({flavour}, {ROUNDS} rounds)', flush=True)
        played = 0
        while played < ROUNDS:
            self.forget()
            draw = random.Random(f'{SEED} {flavour} {played}')
            broker = None
            try:
                broker = Broker(self, draw, flavour)
                for _ in range(min(draw.randint(1, 8), ROUNDS - played)):
                    played += 1
                    broker.play()
                    broker.rest()
                    broker.check()
                broker.end()
            except BaseException:
                self.tell(flavour, played, broker)
                raise
            broker.client.finish()
            self.clients.remove(broker.client)

    def tell(self, flavour, played, broker):
        print(f'ACP_RANDOM_SEED={SEED}: {flavour}, round {played}', file=sys.stderr)
        if broker is not None:
            print('\n'.join(map(repr, broker.editor.log)), file=sys.stderr)
            print(broker.client.stderr[-3000:], file=sys.stderr)
            print(processes.describe(processes.descendants(broker.client.pid)), file=sys.stderr)
        if KEEP:
            shutil.copytree(self.dir, os.path.join(KEEP, f'{SEED} {flavour} {played}'),
                            ignore_dangling_symlinks=True)

    def test_near(self):
        self.play('near')

    def test_far(self):
        self.play('far')

    def test_far_with_an_agent_for_each_directory(self):
        self.play('far, one root')


if __name__ == '__main__':
    main()
