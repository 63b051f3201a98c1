#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""However a session ends, nothing of it is left, and it ends within the named deadlines."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import processes
from case import STUBBORN, Case, main

GUARD = 'acp-guard'


class Ending(Case):
    def open(self, *flags, prompt=(), options=None):
        client = self.broker(*flags, options=options)
        client.initialize()
        session = client.new_session(self.work)
        if prompt:
            client.prompt(session, *prompt)
        self.assertTrue(self.running())
        return client

    def open_with(self, command, **keys):
        """A session with an agent that has started a command before its own start."""
        client = self.broker(options=self.config(**keys),
                             agent=['sh', '-c', f'{command} </dev/null >/dev/null 2>&1 & exec "$@"',
                                    'sh', *self.agent_argv()])
        client.initialize()
        client.new_session(self.work)
        return client

    def agent(self):
        """The process id of the first agent."""
        return self.agent_pids()[0]

    def guard(self):
        guard = processes.parent_of(self.agent())
        self.assertEqual(processes.name_of(guard), GUARD)
        return guard


# Ways in which an agent may try to stay: its flags, and a prompt.
AGENTS = {
    'polite': ((), ()),
    'ignores EOF': (('--ignore-eof',), ()),
    'ignores EOF and TERM': (('--ignore-eof', '--ignore-term'), ()),
    'takes 7 s': (('--slow-exit', '7'), ()),
    'leaves a daemon': ((), ('double-fork',)),
    'leaves a daemon, ignores all': (('--ignore-eof', '--ignore-term'), ('double-fork',)),
    'leaves a child with its stdout': ((), ('hold-stdout',)),
    'leaves both': (('--ignore-term',), ('hold-stdout', 'double-fork', 'hold-stdout')),
}


class EveryAgent(Ending):
    """Each way of ending a session, with each kind of agent."""

    def each(self, end, deadlines):
        for name, (flags, prompt) in AGENTS.items():
            with self.subTest(name):
                (self.dir / 'pids').unlink(missing_ok=True)
                client = self.open(*flags, prompt=prompt, options=self.config(**deadlines))
                end(client)
                self.assert_nothing_runs()
                client.finish()

    def test_the_editor_closes_stdin(self):
        self.each(lambda client: client.close_stdin(), STUBBORN)

    def test_the_broker_gets_term(self):
        self.each(lambda client: os.kill(client.pid, signal.SIGTERM), STUBBORN)

    def test_the_broker_gets_int(self):
        self.each(lambda client: os.kill(client.pid, signal.SIGINT), STUBBORN)

    def test_the_broker_gets_hup(self):
        self.each(lambda client: os.kill(client.pid, signal.SIGHUP), STUBBORN)

    def test_the_broker_gets_quit(self):
        self.each(lambda client: os.kill(client.pid, signal.SIGQUIT), STUBBORN)

    def test_signals_that_mean_nothing_end_nothing(self):
        client = self.open()
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(client.pid, number)
        session = client.new_session(self.work)
        client.prompt(session, 'say still here')
        self.assertIn('still here', client.texts())
        client.close_stdin()
        self.assertEqual(client.wait(), 0)

    def test_the_broker_is_killed(self):
        """No deadline passes: the deadlines are longer than any test waits."""
        self.each(lambda client: os.kill(client.pid, signal.SIGKILL), {})

    def test_the_editor_is_killed(self):
        here = os.path.dirname(os.path.abspath(__file__))
        for name, (flags, prompt) in AGENTS.items():
            with self.subTest(name):
                (self.dir / 'pids').unlink(missing_ok=True)
                argv = self.broker_argv(*self.config(**STUBBORN), agent=self.agent_argv(*flags))
                editor = subprocess.Popen(
                    [sys.executable, '-B', os.path.join(here, 'editor.py'), str(self.work),
                     ';'.join(prompt or ('say hi',)), *argv],
                    env=self.environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
                try:
                    self.assertTrue(editor.stdout.readline().startswith(b'ready'))
                finally:
                    editor.kill()
                    editor.wait()
                    editor.stdout.close()
                self.assert_nothing_runs()


class Wrapped(Ending):
    """Another program starts the agent, as npx and uvx do."""

    def open_wrapped(self):
        agent = self.agent_argv('--ignore-eof', '--ignore-term')
        client = self.broker(agent=['/bin/sh', '-c', '"$@"; exit $?', 'wrapper', *agent],
                             options=self.config(**STUBBORN, drain_timeout='500ms'))
        client.initialize()
        client.new_session(self.work)
        self.assertEqual(processes.name_of(processes.parent_of(self.agent())), 'sh')
        return client

    def test_both_end(self):
        for end in (lambda client: client.close_stdin(),
                    lambda client: os.kill(client.pid, signal.SIGTERM),
                    lambda client: os.kill(client.pid, signal.SIGKILL)):
            (self.dir / 'pids').unlink(missing_ok=True)
            client = self.open_wrapped()
            wrapper = processes.parent_of(self.agent())
            end(client)
            self.assert_nothing_runs()
            self.assertTrue(processes.wait_until(
                lambda pid=wrapper: not processes.is_running(pid)))
            client.finish()

    def test_the_agent_goes_with_a_wrapper_that_is_killed(self):
        client = self.open_wrapped()
        agent = self.agent()
        os.kill(processes.parent_of(agent), signal.SIGKILL)
        self.assertTrue(processes.wait_until(lambda: not processes.is_running(agent)))
        client.close_stdin()
        client.wait()


class Deadlines(Ending):
    def test_a_polite_agent_is_not_waited_for(self):
        """The deadlines are longer than any test waits."""
        client = self.open()
        client.close_stdin()
        self.assertEqual(client.wait(), 0)

    def test_a_slow_agent_may_take_the_time_it_is_given(self):
        client = self.open('--slow-exit', '2')
        started = time.monotonic()
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertGreater(time.monotonic() - started, 1.9)

    def test_a_signal_and_the_end_of_the_input_are_one_end(self):
        for steps in (('signal', 'close'), ('close', 'signal')):
            client = self.open('--slow-exit', '2')
            started = time.monotonic()
            for step in steps:
                if step == 'close':
                    client.close_stdin()
                else:
                    os.kill(client.pid, signal.SIGTERM)
                time.sleep(0.2)  # so that the broker mostly sees one before the other
            client.wait()
            self.assertGreater(time.monotonic() - started, 1.9, steps)

    def test_a_second_term_hurries(self):
        client = self.open('--ignore-eof', '--ignore-term', options=self.config(
            stop_kill_timeout='2s'))

        def hurried():
            """Two signals that come at once count as one."""
            os.kill(client.pid, signal.SIGTERM)
            return client.process.poll() is not None
        self.assertTrue(processes.wait_until(hurried, step=0.3))
        self.assert_nothing_runs()

    def test_what_the_agent_says_last_reaches_the_editor(self):
        client = self.open()
        session = client.new_session(self.work)
        prompt = client.start_prompt(session, 'stream 20000 100', 'say the last word', 'exit 0')
        client.wait_text('the last word')
        self.failure(client.response(prompt), 'AGENT_EXITED')

    def test_an_open_prompt_is_answered_when_the_broker_ends(self):
        client = self.open('--ignore-eof', options=self.config(
            **STUBBORN, cancel_timeout='300ms'))
        session = client.new_session(self.work)
        prompt = client.start_prompt(session, 'say begun', 'deaf', 'hang')
        client.wait_text('begun')
        os.kill(client.pid, signal.SIGTERM)
        self.assertIn('error', client.response(prompt).value)
        client.wait()

    def test_the_turn_is_cancelled_before_the_agent_is_stopped(self):
        client = self.open()
        session = client.new_session(self.work)
        prompt = client.start_prompt(session, 'say begun', 'hang')
        client.wait_text('begun')
        os.kill(client.pid, signal.SIGTERM)
        answer = client.response(prompt).value
        self.assertEqual(answer.get('result'), {'stopReason': 'cancelled'})
        client.wait()
        self.assertTrue(any(b'session/cancel' in line for line in self.journal('<')))


class KillNine(Ending):
    """kill -9 of the processes that watch the agent."""

    FLAGS = ('--ignore-eof', '--ignore-term')

    def open_stubborn(self, **deadlines):
        return self.open(*self.FLAGS, prompt=('double-fork', 'hold-stdout', 'ignore-term'),
                         options=self.config(**deadlines))

    def assert_agent_goes(self, client):
        """The agent and all that it has left end, and a fresh agent can be started."""
        mine = self.agent_pids()
        gone = processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in mine))
        self.assertTrue(gone, processes.describe(mine))
        client.wait_log(') was killed by SIGKILL')
        client.prompt(client.new_session(self.work), 'say hello again')
        self.assertEqual(client.texts()[-1], 'hello again')

    def test_of_the_guard(self):
        client = self.open_stubborn(**STUBBORN)
        os.kill(self.guard(), signal.SIGKILL)
        self.assert_agent_goes(client)

    def test_of_the_guard_s_parent(self):
        client = self.open_stubborn(**STUBBORN)
        spawner = processes.parent_of(self.guard())
        self.assertNotEqual(spawner, client.pid)
        os.kill(spawner, signal.SIGKILL)
        self.assert_agent_goes(client)

    def test_of_the_broker_and_the_guard(self):
        client = self.open_stubborn()
        guard = self.guard()
        os.kill(guard, signal.SIGSTOP)  # otherwise it might have done its work by then
        os.kill(client.pid, signal.SIGKILL)
        processes.kill(guard)  # unless its parent was quicker
        self.assert_nothing_runs()

    def test_of_the_guard_and_then_the_broker(self):
        client = self.open_stubborn()
        for pid in (self.guard(), client.pid):
            os.kill(pid, signal.SIGKILL)
        self.assert_nothing_runs()

    def test_of_everything_but_the_agent(self):
        """The agent itself still dies; a process that it has forked away is then out of reach."""
        client = self.open(*self.FLAGS)
        guard = self.guard()
        pids = [client.pid, processes.parent_of(guard), guard]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.assert_nothing_runs()

    def test_of_the_broker_while_the_agent_starts(self):
        for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
            client = self.broker('--never-answer')
            client.start('initialize', {'protocolVersion': 1})
            time.sleep(delay)
            os.kill(client.pid, signal.SIGKILL)
            self.assert_nothing_runs()
            client.finish()


# Stops its guards, which are its ancestors with that name. $1 is the length of each pause; with
# "once" it stops them one time only.
STOPPER = '''
import os, signal, sys, time
def parent(pid):
    return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
guards, pid = [], os.getpid()
while pid > 1:
    if open(f'/proc/{pid}/comm').read() == 'acp-guard\\n':
        guards.append(pid)
    pid = parent(pid)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(len(guards), file=open(sys.argv[1] + '.new', 'w'))
first = True
while True:
    for guard in reversed(guards):
        try:
            os.kill(guard, signal.SIGSTOP)
        except OSError:
            pass
    if first:
        os.rename(sys.argv[1] + '.new', sys.argv[1])
        first = False
    if sys.argv[2] == 'once':
        time.sleep(600)
    time.sleep(float(sys.argv[2]))
'''


class Stopped(Ending):
    """A process of the agent's stops its guard, and the guard's parent."""

    def begin(self, pause):
        script = self.dir / 'stopper.py'
        script.write_text(STOPPER)
        stopped = self.dir / 'stopped'
        client = self.open_with(f'{sys.executable} {script} {stopped} {pause}')
        self.assertTrue(processes.wait_until(stopped.exists))
        self.assertEqual(stopped.read_text(), '2\n')
        return client

    def check_end(self, client):
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()

    def test_once_and_nothing_is_left(self):
        client = self.begin('once')
        client.close_stdin()
        self.check_end(client)

    def test_once_and_a_terminated_broker_leaves_nothing(self):
        client = self.begin('once')
        os.kill(client.pid, signal.SIGTERM)
        client.wait()
        self.assert_nothing_runs()

    def test_again_and_again_and_nothing_is_left(self):
        for pause in ('0.01', '0.0001'):
            client = self.begin(pause)
            client.close_stdin()
            client.wait()
            self.assert_nothing_runs()
            (self.dir / 'stopped').unlink()

    def test_the_guards_go_on(self):
        def is_stopped(pid):
            return b'T (stopped)' in processes.read_file(f'/proc/{pid}/status')
        self.begin('once')
        guards = [self.guard(), processes.parent_of(self.guard())]
        self.assertTrue(processes.wait_until(
            lambda: not any(map(is_stopped, guards))))


FREEZER = pathlib.Path('/sys/fs/cgroup/freezer')  # v1: a process frozen in it does not die


class Survives(Ending):
    def setUp(self):
        super().setUp()
        self.group = FREEZER / f'acp-test-{uuid.uuid4()}'
        try:
            self.group.mkdir()
            self.addCleanup(self.group.rmdir)
        except OSError:
            self.skipTest('there is no freezer of cgroup v1 to be had')

    def test_what_cannot_be_killed_is_named_and_the_status_says_so(self):
        client = self.open_with('sleep 611', stop_kill_timeout='1s')
        def sleeping():
            return [pid for pid in processes.marked(self.mark)
                    if processes.read_file(f'/proc/{pid}/cmdline') == b'sleep\x00611\x00']
        self.assertTrue(processes.wait_until(lambda: len(sleeping()) == 1, processes.PATIENCE))
        child, = sleeping()
        (self.group / 'cgroup.procs').write_text(str(child))
        (self.group / 'freezer.state').write_text('FROZEN')
        try:
            client.close_stdin()
            self.assertEqual(client.wait(), 1, client.stderr)
        finally:
            (self.group / 'freezer.state').write_text('THAWED')
        self.assertIn(f'{child} (sleep)', client.stderr)
        self.assert_nothing_runs()


class Surroundings(Ending):
    """The agent inherits the same as from the editor, except for signals."""

    def state(self, client):
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'env', 'cwd')
        pid = self.agent_pids()[-1]
        status = processes.read_file(f'/proc/{pid}/status').decode()
        kept = {line.split(':')[0]: line.split()[1:] for line in status.splitlines()
                if line.startswith(('SigBlk', 'SigIgn', 'SigCgt', 'Umask', 'NoNewPrivs', 'CapEff'))}
        limits = processes.read_file(f'/proc/{pid}/limits')
        return kept, limits, processes.open_files(pid), client.texts()

    def test_environment_directory_signals_limits_and_descriptors(self):
        # processes.py handles it; so everything that we start inherits the default
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_DFL))
        direct = self.state(self.direct())
        self.assertEqual(self.state(self.broker()), direct)

    def test_no_signal_is_ignored_or_blocked_whatever_the_broker_inherited(self):
        """If a shell started the agent in the background, the agent would ignore some signals."""
        numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2)
        was = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, blocked)
        self.addCleanup(lambda: [signal.signal(*pair) for pair in was.items()])
        kept = self.state(self.broker())[0]
        own = 1 << signal.SIGPIPE - 1  # the scripted agent itself ignores it
        self.assertEqual((int(kept['SigIgn'][0], 16), int(kept['SigBlk'][0], 16)), (own, 0))

    def test_ctrl_c_in_a_terminal_reaches_the_broker_alone(self):
        client = self.open()
        agent = self.agent()
        self.assertNotEqual(os.getpgid(agent), os.getpgid(client.pid))
        self.assertNotEqual(os.getsid(agent), os.getsid(client.pid))

    def test_the_guard_is_the_agent_s_parent_and_adopts_its_orphans(self):
        self.open(prompt=('double-fork',))
        guard = self.guard()
        daemon = self.agent_pids()[1]
        self.assertEqual(processes.parent_of(daemon), guard)

    def test_no_process_of_the_broker_s_shows_its_keys(self):
        secret = 'of-nobody-else'
        names = ['DAYTONA_API_KEY', 'A_TOKEN', 'a_password']
        client = self.broker(env=self.environment() | dict.fromkeys(names, secret))
        client.initialize()
        guard = self.guard()
        for pid in (client.pid, guard, processes.parent_of(guard)):
            own = processes.read_file(f'/proc/{pid}/environ')
            self.assertIn(b'DAYTONA_API_KEY=', own)
            self.assertIn(self.mark.encode(), own)
            self.assertNotIn(secret.encode(), own)
        self.assertIn(secret.encode(), processes.read_file(f'/proc/{self.agent()}/environ'))

    def test_nor_what_the_profile_says_is_one(self):
        client = self.broker(options=self.config(secret_env='PLAIN_NAME'),
                             env=self.environment() | {'PLAIN_NAME': 'of-nobody-else'})
        client.initialize()
        own = processes.read_file(f'/proc/{client.pid}/environ')
        self.assertIn(b'PLAIN_NAME=', own)
        self.assertNotIn(b'of-nobody-else', own)
        client.prompt(client.new_session(self.work), 'env PLAIN_NAME')
        self.assertEqual(client.texts(), ['PLAIN_NAME=of-nobody-else'])


if __name__ == '__main__':
    main()
