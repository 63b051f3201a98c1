# SPDX-License-Identifier: MIT
"""
Some of a soak's kills, one after the other in one workspace. One session goes on, in the broker
that lives or in the next one, which loads it. One process at a time is killed at a random instant,
while both sides have edits pending.
"""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import time
import traceback

import places  # first: it says where the others are
import case
import left
import processes
from acp import RpcError
from case import Case

PATIENCE = 120     # seconds for one answer; after that, the request counts as never answered
COMMAND_SECONDS = 300
TRIES = 8          # prompts and loads until one succeeds, after the last kill
FIRST_TAKES = 1.0  # assumed seconds of a phase, until it was measured
SPARED = 12        # kills that a broker lives through, if it must not itself be killed
UNIQUE = re.compile(r'[0-9a-f]{16}(?=\.)|(?<=acp-ssh-)\w+|\d+')  # in an open file's name
DEADLINES = {**case.DEADLINES, 'start-timeout': '60s', 'drain-timeout': '5s',
             'stop-eof-timeout': '10s', 'stop-term-timeout': '10s', 'stop-kill-timeout': '10s',
             'restart-limit': '1000'}


class Result:
    """The result of a stint."""

    def __init__(self, provider, seed):
        self.provider, self.seed = provider, seed
        self.kills = {}    # 'PHASE VICTIM': number
        self.brokers = 0   # number of brokers started
        self.lives = []    # of each broker that lived on: (kills, bytes more, files more)
        self.wrong = []    # texts
        self.left = {}     # kind: number
        self.seconds = 0

    @property
    def count(self):
        return sum(self.kills.values())

    def line(self):
        return json.dumps(vars(self))

    @classmethod
    def from_line(cls, text):
        result = cls('', '')
        vars(result).update(json.loads(text))
        return result


class Stint(Case):
    left_seconds = 60

    def __init__(self, provider, seed, kills):
        super().__init__()
        self.place = places.PLACES[provider]()
        self.result = Result(provider, seed)
        self.random = random.Random(f'{seed} {provider}')
        self.kills = kills
        self.number = 0
        self.client = self.session = self.root = None
        self.wanted = {}
        self.takes = {}
        self.doing = ''

    def runTest(self):
        """Never run: unittest requires it."""

    def setUp(self):
        self.place.start()
        self.addCleanup(self.place.stop)
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'
        self.options = self.write_profile()
        for name in ('here', 'there'):
            (self.work / name).write_text('at first\n')

    def write_profile(self):
        path = self.dir / 'config'
        keys = {**DEADLINES, **self.place.keys()}
        path.write_text('[profile "soak"]\n' + ''.join(
            f'\t{name} = {value}\n' for name, value in keys.items()))
        return ['--config', str(path), '--profile', 'soak']

    def environment(self):
        return {**super().environment(), **self.place.environment()}

    def running(self):
        return sorted(set(super().running()) | set(self.place.outside()))

    def agents(self):
        return [pid for pid in self.agent_pids() if processes.is_running(pid)
                and processes.name_of(pid) == 'scripted-agent']

    # ---- the whole ----

    def go(self):
        begin = time.monotonic()
        try:
            self.setUp()
            while self.result.count < self.kills:
                self.one()
            self.finish()
        except Exception:  # pylint: disable=broad-except
            self.tell(traceback.format_exc(limit=-3))
        finally:
            self.doing = 'cleaning up'
            try:
                self.doCleanups()
            except AssertionError as error:
                self.tell(str(error))
        self.result.seconds = time.monotonic() - begin
        return self.result

    def tell(self, text):
        said = self.clients[-1].stderr[-2500:] if self.clients else ''
        self.result.wrong.append(f'{self.result.provider}, seed {self.result.seed}, '
                                 f'kill {self.result.count}, {self.doing}: {text}\n{said}')

    def one(self):
        """Kills once. Then the session works again, or its broker has ended."""
        if self.client is None:
            if self.random.random() < 0.4:
                return self.kill_in_start()
            self.open()
        phase = self.random.choice(('turn', 'turn', 'turn', 'idle', 'end'))
        if phase == 'end' and self.spared:
            phase = 'turn'
        return {'turn': self.kill_in_turn, 'idle': self.kill_at_rest, 'end': self.kill_in_end}[
            phase]()

    # ---- kills ----

    def moment(self, phase):
        """Waits until a random instant of a phase, judging by how long it took the last time."""
        time.sleep(self.random.random() * 1.1 * self.takes.get(phase, FIRST_TAKES))

    def strike(self, phase):
        """Kills one random process of those that run now; returns which."""
        victims = [name for name in self.place.victims
                   if name != 'broker' or not self.spared]
        self.random.shuffle(victims)
        for victim in victims:
            if self.place.kill(victim, self.client.pid, self.agents()):
                self.doing = f'the {victim} killed in the {phase}'
                kind = f'{phase} {victim}'
                self.result.kills[kind] = self.result.kills.get(kind, 0) + 1
                self.survived += 1
                return victim
        return None

    def kill_in_start(self):
        self.edit()
        self.launch(spared=False)
        asked = self.client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        self.moment('start')
        if self.strike('start') == 'broker':
            return self.lose_broker()
        self.settle(asked)
        return self.close()

    def kill_in_turn(self):
        self.edit()
        begin = time.monotonic()
        name = f'turn{self.number}'
        asked = self.client.start_prompt(
            self.session, f'terminal sleep 0.05; echo {self.number} > {name}')
        self.moment('turn')
        if self.strike('turn') == 'broker':
            self.lose_broker()
            return self.keep(name)
        if self.settle(asked):
            self.takes['turn'] = time.monotonic() - begin
        self.keep(name)
        return self.recover()

    def kill_at_rest(self):
        self.edit()
        if self.strike('rest') == 'broker':
            return self.lose_broker()
        return self.recover()

    def kill_in_end(self):
        self.edit()
        begin = time.monotonic()
        self.client.close_stdin()
        self.moment('end')
        victim = self.strike('end')
        self.client.wait(PATIENCE)
        if victim is None:
            self.takes['end'] = time.monotonic() - begin
        return self.retire()

    # ---- brokers ----

    def launch(self, spared):
        argv = [case.BROKER, *self.options, '--', case.AGENT, '--pids', str(self.dir / 'pids'),
                '--sessions', str(self.dir / 'memory')]
        self.client = self.start(argv)
        self.result.brokers += 1
        self.survived, self.rests, self.is_spared = 0, [], spared

    @property
    def spared(self):
        return self.is_spared and self.survived < SPARED

    def open(self):
        """Starts a broker with the session; loads the session if there is one."""
        self.doing = 'opening'
        begin = time.monotonic()
        self.launch(spared=self.random.random() < 0.25)
        self.client.initialize(seconds=PATIENCE)
        params = {'cwd': str(self.work), 'mcpServers': []}
        if self.session:
            self.insist(lambda: self.client.call(
                'session/load', {'sessionId': self.session, **params}, PATIENCE))
        else:
            self.session = self.client.call('session/new', params, PATIENCE)['sessionId']
        self.recover()
        self.takes['start'] = time.monotonic() - begin

    def lose_broker(self):
        self.client.wait(PATIENCE)
        self.retire()

    def close(self):
        self.client.close_stdin()
        self.client.wait(PATIENCE)
        self.retire()

    def retire(self):
        """Checks that a broker that has ended leaves no process for long."""
        if len(self.rests) > 1:
            first, last = self.rests[0], self.rests[-1]
            self.result.lives.append((self.survived, last[0] - first[0], [
                *(last[1] - first[1]).elements()]))
        gone = processes.wait_until(lambda: not self.running(), self.left_seconds, 0.1)
        self.assertTrue(gone, f'left:\n{processes.describe(self.running())}')
        self.client.finish()
        self.client = None

    # ---- the session ----

    def edit(self):
        """Writes a new file and an existing file on each side."""
        self.number += 1
        for folder, side in ((self.work, 'here'), (self.root, 'there')):
            if folder is None or not folder.is_dir():
                continue
            text = f'{self.number} {side}\n'
            # An existing file is edited only if the sandbox stays the same: in two sandboxes this
            # would be a conflict.
            old = (side,) if folder == self.work or self.place.is_kept else ()
            for name in (*old, f'{self.number}-{side}'):
                (folder / name).write_text(text)
                self.wanted[name] = text

    def keep(self, name):
        """If the agent has written this file by now, it counts as one more edit."""
        text = f'{self.number}\n'
        if any(processes.read_file(folder / name) == text.encode()
               for folder in (self.work, self.root)):
            self.wanted[name] = text

    def settle(self, asked):
        """Waits for the answer, whatever it is; returns True if it is a result."""
        try:
            self.client.answer(asked, PATIENCE)
        except RpcError as error:
            self.check_error(error)
            return False
        return True

    def check_error(self, error):
        self.assertTrue(error.data and error.data.get('code'), f'an unexplained error: {error}')

    def insist(self, ask):
        """Asks again, up to a limit, while the error says that this can help."""
        for number in range(TRIES):
            try:
                return ask()
            except RpcError as error:
                self.check_error(error)
                if not error.data['retryable'] or number == TRIES - 1:
                    raise
                time.sleep(0.5)
        return None

    def recover(self):
        """Checks that the next turn succeeds, and that every edit is on both sides afterwards."""
        self.turn()
        try:
            status = self.status()
        except RpcError:  # the agent whose guard was killed may have had time for a turn
            self.turn()
            status = self.status()
        self.root = pathlib.Path(status['runtimeRoot'] or self.work)
        for folder in (self.work, self.root) if self.place.is_kept else ():
            processes.wait_until(lambda: not self.missing(folder), PATIENCE, 0.1)
            self.assertEqual(self.missing(folder), {}, f'edits that are not in {folder}')
        self.note_rest()

    def turn(self):
        self.insist(lambda: self.client.prompt(
            self.session, 'terminal (setsid sleep 600 >/dev/null 2>&1 &) ; sleep 0',
            seconds=PATIENCE))

    def status(self):
        return self.client.call('_broker/session/status', {'sessionId': self.session}, PATIENCE)

    def missing(self, folder):
        """Edits that are lost in the folder: what it has, and what it should have."""
        found = {name: (folder / name).read_text() if (folder / name).exists() else None
                 for name in self.wanted}
        return {name: (text, self.wanted[name]) for name, text in found.items()
                if text != self.wanted[name]}

    def note_rest(self):
        """Notes what the broker holds between turns, once that is no more than at first."""
        if self.survived > 1:
            self.end_background()
            if self.rests:
                first = self.rests[0][1]
                processes.wait_until(lambda: not self.files() - first, 10, 0.1)
            self.rests.append((processes.private_bytes(self.client.pid), self.files()))

    def end_background(self):
        """
        Ends all but one of the processes that turns left running, because the broker has files open
        for each.
        """
        left_running = [pid for pid in self.running() if processes.read_file(
            f'/proc/{pid}/cmdline') == b'sleep\x00600\x00']
        for pid in left_running[:-1]:
            processes.kill(pid)

    def files(self):
        """The number of files of each kind that the broker has open."""
        folder = pathlib.Path(f'/proc/{self.client.pid}/fd')
        found = collections.Counter()
        for fd in os.listdir(folder):
            try:
                found[UNIQUE.sub('', os.readlink(folder / fd))] += 1
            except OSError:
                pass  # closed in the meantime
        return found

    # ---- the end ----

    def command(self, *words):
        try:
            done = subprocess.run([case.BROKER, *self.options[:2], *words],
                                  env=self.environment(), cwd=self.dir, text=True, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f'{error}: {error.stdout} {error.stderr}') from None
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        return done.stdout

    def finish(self):
        """Plays one more session that nothing disturbs, and then counts what is left."""
        if self.client is not None:
            self.close()
        self.open()
        self.doing = 'the end that nothing disturbs'
        client = self.client
        self.close()
        self.assertEqual(client.process.returncode, 0, 'its exit status')
        self.doing = 'counting'
        self.command('sessions', 'collect')
        found = left.count(self)
        self.result.left = {what: len(items) for what, items in found.items()}
        for what, items in found.items():
            if items:
                self.tell(f'{what}: {str(items)[:1500]}')
