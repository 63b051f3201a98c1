#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Every system call of a session's start and of its first prompt fails, one at a time, and every
process is killed at every stage. The result must be an answer, or one line that a user understands.
Nothing hangs, crashes or is left behind.
"""

import concurrent.futures
import fcntl
import pathlib
import struct
import subprocess
import unittest

from processes import PATIENCE
from case import AGENT, BROKER, SANITIZED, main
from faults_survey import ERRORS, INTERRUPTED, SHORT_WRITES, SLOWNESS, Survey
from faults_trial import (
    Fault, Room, Trial, judge, judge_killed, judge_memory, why_no_ptrace)

AT_ONCE = 3     # trials at the same time; they mostly wait for each other's processes
EACH_CALL = 15  # how often we make each call fail; if it occurs more often, evenly chosen ones
UNTRACED = Fault('nobody')
WHY_NOT = why_no_ptrace()
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'


class Faults(unittest.TestCase):
    def setUp(self):
        if WHY_NOT:
            self.fail(WHY_NOT)

    def run_all(self, trials, verdict=judge):
        """Runs the trials, some of them at the same time; reports everything that was wrong."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = [text for text in pool.map(lambda trial: verdict(trial.run()), trials) if text]
        self.assertFalse(wrong, f'{len(wrong)} of {len(trials)}:\n' + '\n'.join(wrong[:20]))

    def meddle(self, faults, verdict=judge, attempts=2):
        """
        Runs a trial for each fault. Of the faults in calls that every session makes, most must
        really have happened: a survey that counts wrongly would prove nothing. Which call is the
        last of its kind depends on timing, so a fault that did not happen is tried once more.
        """
        met, missed = set(), faults
        for _ in range(2):
            trials = [Trial(fault, attempts=attempts) for fault in missed]
            self.run_all(trials, verdict)
            met |= {trial.fault for trial in trials if trial.outcome.hits > 0}
            missed = [fault for fault in faults if fault not in met]
        sure = [fault for fault in faults if fault.is_sure]
        found = sum(fault in met for fault in sure)
        print(f'{self.id()}: {len(faults)} faults, {len(met)} met; {found} of the {len(sure)} '
              'that are sure', flush=True)
        self.assertGreater(len(sure), len(faults) * 0.5)
        self.assertGreater(found, len(sure) * 0.75)


class InTheBroker(Faults):
    @classmethod
    def setUpClass(cls):
        cls.survey = None if WHY_NOT else Survey('broker', skip_start=True)

    def test_each_call_fails_once(self):
        self.meddle(self.survey.faults(ERRORS, EACH_CALL))

    def test_each_call_fails_from_some_time_on(self):
        # If write fails, the broker cannot print a line.
        table = {name: ways[:1] for name, ways in ERRORS.items() if name != 'write'}
        self.meddle(self.survey.faults(table, 3, after='+'), attempts=1)

    def test_nobody_notices_an_interruption(self):
        self.meddle(self.survey.faults(INTERRUPTED, EACH_CALL, quiet=True))
        self.meddle([self.survey.storm(INTERRUPTED, 'EINTR')])

    def test_nobody_notices_a_write_that_takes_nothing(self):
        self.meddle(self.survey.faults(SHORT_WRITES, EACH_CALL, quiet=True))
        self.meddle([self.survey.storm(['writev'], way) for way in SHORT_WRITES['writev']])

    def test_nobody_notices_that_it_is_slow(self):
        self.meddle(self.survey.faults(SLOWNESS, 3, quiet=True))

    def test_it_is_killed_at_every_stage(self):
        self.meddle(self.survey.stages(40), judge_killed)


def limited(option, value):
    """A command that gives the program it starts less of something."""
    return ['/bin/sh', '-c', f'ulimit {option} {value}; exec "$@"', 'sh']


def needed_kib(program):
    """
    The address space for the program's file, its loader and its stack; with less, exec(2) kills it.
    """
    header = pathlib.Path(program).read_bytes()[:4096]
    start, size, count = struct.unpack_from('<Q14xHH', header, 32)
    ends = [0]
    for i in range(count):
        kind, address, length = struct.unpack_from('<I12xQ16xQ', header, start + i * size)
        ends.append(address + length if kind == 1 else 0)
    return (max(ends) // 1024 + 400 + 499) // 500 * 500


class Limits(Faults):
    """Something runs out for good, without strace."""

    def shrink(self, option, values, verdict=judge):
        trials = [Trial(UNTRACED, wrapper=limited(option, value), attempts=1) for value in values]
        self.run_all(trials, verdict)
        return trials

    def test_descriptors(self):
        trials = self.shrink('-n', range(5, 41))
        self.assertTrue(trials[-1].outcome.was_well)
        codes = {error['data']['code'] for trial in trials for error in trial.outcome.errors}
        self.assertEqual(codes, {'AGENT_START_FAILED'})
        self.assertIn(1, [trial.outcome.status for trial in trials])

    def test_memory(self):
        # The sanitizers reserve terabytes of addresses.
        values = () if SANITIZED else range(needed_kib(BROKER), 20000, 500)
        self.shrink('-v', values, judge_memory)

    def test_the_size_of_files(self):
        for trial in self.shrink('-f', (0,)):
            self.assertEqual(trial.outcome.status, 1)


class InItsKeepers(Faults):
    """
    Faults in the process that starts others, in the guards, and in the future agent before its
    execve.
    """

    @classmethod
    def setUpClass(cls):
        cls.survey = None if WHY_NOT else Survey('keepers')

    def test_each_call_fails_once(self):
        self.meddle(self.survey.faults(ERRORS, EACH_CALL))

    def test_each_call_that_makes_them_keepers_fails_once(self):
        names = ('setsid', 'dup2', 'dup3', 'close_range', 'chdir', 'signalfd4', 'prctl')
        self.meddle([Fault('all', f'{name}:error={way}:when={number}')
                     for name in names for way in ERRORS[name]
                     for number in (range(1, 4) if name in ('dup2', 'prctl') else (1,))])

    def test_nobody_notices_an_interruption(self):
        self.meddle(self.survey.faults(INTERRUPTED, EACH_CALL, quiet=True))
        self.meddle([self.survey.storm(INTERRUPTED, 'EINTR')])

    def test_nobody_notices_that_they_are_slow(self):
        self.meddle(self.survey.faults(SLOWNESS, 3, quiet=True))

    def test_nobody_notices_a_guard_that_ends_with_an_order_unread(self):
        # The guard's last report waits for the order to end; the broker looks for the guard when it
        # has gone.
        self.meddle([Fault('all', 'sendto:delay_enter=50000:when=3',
                           'recvfrom:delay_enter=200000:when=3', quiet=True)])

    def test_they_are_killed_at_every_stage(self):
        self.meddle(self.survey.stages(14))

    def test_they_are_killed_while_they_become_keepers(self):
        self.meddle([Fault('all', f'{name}:signal=KILL:when=1')
                     for name in ('setsid', 'dup3', 'close_range', 'chdir', 'signalfd4')])

    def test_the_one_that_starts_others_is_killed_at_every_stage(self):
        self.meddle(Survey('spawner').stages(20))


class OfTheAgent(Faults):
    def test_it_is_killed_at_every_stage(self):
        self.meddle(Survey('agent').stages(20))


class OfTheTrace(Faults):
    """A trace that cannot be written ends with one line, and the session goes on."""

    def trace(self, fault, file):
        return Trial(fault, options=('--trace', file))

    def judge_trace(self, trial):
        outcome = trial.outcome
        text = judge(trial)
        if not outcome.was_well or outcome.status != 0 or outcome.stderr.count('<3>trace ') != 1:
            text += f'{trial.fault}: {outcome.status} {outcome.errors} {outcome.stderr}'
        return text

    def test_its_disk_is_full_from_the_start(self):
        self.run_all([self.trace(UNTRACED, '/dev/full')], self.judge_trace)

    def test_its_disk_fills_up_on_the_way(self):
        # The broker's second write starts the agent; each of these is the trace's.
        trials = [self.trace(Fault('broker', f'write:error={way}:when={number}'), 'DIR/trace')
                  for way in ('ENOSPC', 'EIO') for number in (1, 3, 7, 14)]
        self.run_all(trials, self.judge_trace)

    def test_nobody_notices_an_interruption(self):
        faults = [Fault('broker', f'write:{what}:when=1+2', quiet=True)
                  for what in ('error=EINTR', 'retval=0')]
        self.run_all([self.trace(fault, 'DIR/trace') for fault in faults])


class OfStandardStreams(Faults):
    """Standard streams that an editor may give the broker by mistake."""

    STREAMS = (
        ('<&-', 0, ''),
        ('>&-', 1, 'where nobody reads it'),
        ('2>&-', 0, ''),
        ('<&- >&- 2>&-', 1, ''),
        ('<&- 2>&-', 0, ''),
        ('2>/dev/full', 0, ''),
        ('</', 1, 'reading: Is a directory'),
        ('>/dev/full', 1, 'writing: No space left on device'),
    )

    def test_streams_that_are_closed_or_useless(self):
        for redirection, status, reason in self.STREAMS:
            with self.subTest(redirection):
                result = subprocess.run(
                    ['/bin/sh', '-c', f'exec "$@" {redirection}', 'sh', BROKER, '--', AGENT],
                    input=INITIALIZE, capture_output=True, timeout=PATIENCE, check=False)
                said = [line for line in result.stderr.decode().splitlines()
                        if line.startswith('acp-broker: ')]
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertEqual(len(said), 1 if reason else 0, result.stderr)
                self.assertTrue(not reason or said[0].endswith(reason), said)


class LittleByLittle(Room):
    """Large messages through narrow pipes, where every second write would block."""

    SIZE = 300_000
    ARGV = ['strace', '-D', '-qq', '-o', '/dev/null', '-e', 'trace=writev', '-e',
            'inject=writev:error=EAGAIN:when=2+2']

    def setUp(self):
        if WHY_NOT:
            self.fail(WHY_NOT)
        super().setUp()

    def talk(self, client):
        for stream in (client.process.stdin, client.process.stdout):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, 4096)
        client.initialize()
        session = client.new_session(self.work)
        text = ''.join(f'{number:08d} ' for number in range(self.SIZE // 9))
        client.prompt(session, f'say {text}', f'diff {self.SIZE}', f'say {text[::-1]}')
        return text, [message.params['update'] for message in client.received
                      if message.method == 'session/update']

    def test_large_messages_arrive_whole(self):
        text, direct = self.talk(self.direct())
        client = self.start([*self.ARGV, *self.broker_argv(*self.config(),
                                                           agent=self.agent_argv())])
        _, through = self.talk(client)
        self.assertEqual(len(direct), 3)
        self.assertTrue(through == direct, 'what came through the broker differs')
        self.assertTrue(text in str(direct[0]))


if __name__ == '__main__':
    main()
