# SPDX-License-Identifier: MIT
"""
What every whole-program test starts from: programs, a directory, and a check that nothing is left.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import facts
import processes
from acp import Client
from host import Host

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(variable, default):
    return str(pathlib.Path(os.environ.get(variable, ROOT / 'build' / default)).resolve())


BROKER = program('ACP_BROKER', 'acp-broker')
AGENT = program('ACP_SCRIPTED_AGENT', 'tests/support/agent/scripted-agent')

# Programs built with the sanitizers are larger and keep freed memory, so tests do not measure it.
SANITIZED = os.environ.get('ACP_SANITIZED') == '1'

# If all combinations take too long, a test runs the same few each time, or all if this is set.
WHOLE = os.environ.get('ACP_WHOLE') == '1'


def selected(items, every=3):
    """One in `every` items of a list, evenly spread; all of them with ACP_WHOLE."""
    return list(items)[::1 if WHOLE else every]


# These deadlines do not pass during a test, however busy the machine is. A test that waits for a
# deadline sets its own.
DEADLINES = {
    'stop-eof-timeout': '10m',
    'stop-term-timeout': '10m',
    'stop-kill-timeout': '10m',
    'drain-timeout': '10m',
    'start-timeout': '10m',
    'cancel-timeout': '10m',
    'health-timeout': '10m',
    'pause-drain-timeout': '10m',
    'pause-timeout': '10m',
    'mcp-timeout': '10m',
}

# For an agent that does not end when the broker asks it to.
STUBBORN = {'stop_eof_timeout': '300ms', 'stop_term_timeout': '300ms'}


class Case(unittest.TestCase):
    """A directory, a mark in every process's environment, and clients that are ended."""

    maxDiff = 4000

    def run(self, result=None):
        processes.new_mark(self.id())  # marks the processes that start before Case.setUp
        return super().run(result)

    def setUp(self):
        self.mark = processes.new_mark(self.id())
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='acp-test-'))
        self.work = self.dir / 'work'
        self.work.mkdir()
        self.clients = []
        self.started = 0
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for client in self.clients:
            client.finish()
        left = []
        if not processes.wait_until(lambda: not self.running()):
            left = self.running()
        described = processes.describe(left)
        for pid in left:
            processes.kill(pid)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.assertEqual(left, [], f'processes left behind:\n{described}')
        for client in self.clients:
            self.assertEqual(client.crash(), '')

    # ---- the programs ----

    def environment(self):
        home = self.dir / 'home'
        home.mkdir(exist_ok=True)
        env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': str(home),
               'LANG': 'C.UTF-8', 'XDG_CONFIG_HOME': str(home / 'config'),
               'XDG_STATE_HOME': str(home / 'state'), 'TMPDIR': str(self.dir),
               processes.MARK: self.mark}
        for kept in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS'):
            if kept in os.environ:
                env[kept] = os.environ[kept]
        return env

    def agent_argv(self, *flags):
        """The scripted agent, with its journal and its list of processes in this directory."""
        self.started += 1
        return [AGENT, '--journal', str(self.journal_path()), '--pids', str(self.dir / 'pids'),
                *flags]

    def journal_path(self, number=None):
        return self.dir / f'journal-{number or self.started}'

    def journal(self, direction, number=None):
        """The lines that the agent received ('<') or sent ('>')."""
        path = self.journal_path(number)
        lines = path.read_bytes().split(b'\n')[:-1] if path.exists() else []
        start = direction.encode() + b' '
        return [line[2:] for line in lines if line.startswith(start)]

    def config(self, deadlines=True, policy=None, backend='local', **keys):
        """
        Writes a configuration with one profile, "test", and returns the broker's options for it. If
        the value of a key is a list, the key is repeated.
        """
        values = dict(DEADLINES) if deadlines else {}
        values.update({name.replace('_', '-'): value for name, value in keys.items()})
        lines = ['[profile "test"]', f'\tbackend = {backend}']
        lines += [f'\t{name} = {value}' for name, value_or_list in values.items()
                  for value in (value_or_list if isinstance(value_or_list, list)
                                else [value_or_list])]
        if policy is not None:
            lines += ['[policy "test"]', *(f'\t{line}' for line in policy)]
        path = self.dir / 'config'
        path.write_text('\n'.join(lines) + '\n')
        return ['--config', str(path), '--profile', 'test']

    def broker_argv(self, *options, agent):
        return [BROKER, *options, '--', *agent]

    def start(self, argv, host=None, cwd=None, env=None):
        host = host or Host(cwd=self.work)
        host.env = {processes.MARK: self.mark}
        client = Client(argv, cwd=cwd or self.work, env=env or self.environment(), host=host)
        self.clients.append(client)
        return client

    def direct(self, *flags, host=None, **more):
        return self.start(self.agent_argv(*flags), host, **more)

    def broker(self, *flags, options=None, host=None, agent=None, **more):
        """A client of the broker. The agent is the scripted one unless another is named."""
        options = self.config() if options is None else options
        agent = agent or self.agent_argv(*flags)
        return self.start(self.broker_argv(*options, agent=agent), host, **more)

    # ---- messages ----

    def assertNames(self, text, wanted):  # pylint: disable=invalid-name
        """A message for people has these facts: 'session s | 30 ms'."""
        if not facts.names(text, wanted):
            self.fail(f'"{text}" does not name each of: {wanted}')

    def check_line(self, said, wanted):
        """Checks that the broker printed one line, and that the line has these facts."""
        self.assertRegex(said, r'\Aacp-broker: .*\n\Z')
        self.assertNames(said, wanted)

    # ---- failures ----

    def failure(self, message, code):
        """
        The error in a response of the broker's own; checks that its data is as the documents say.
        """
        self.assertIn('error', message.value, message)
        error = message.value['error']
        self.assertEqual(error['data']['code'], code, error)
        self.assertIs(type(error['data']['retryable']), bool)
        self.assertTrue(error['data']['stage'])
        self.assertTrue(error['message'])
        self.assertLessEqual(set(error['data']), {'code', 'retryable', 'stage', 'detail'})
        return error

    # ---- processes ----

    def agent_pids(self):
        """All processes that the scripted agents have noted, in order."""
        path = self.dir / 'pids'
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def running(self):
        """
        Processes of this test that still run: those with its mark, and those that the agents noted.
        """
        noted = [pid for pid in self.agent_pids()
                 if processes.is_running(pid) and processes.name_of(pid) == 'scripted-agent']
        return sorted(set(processes.marked(f'{processes.MARK}={self.mark}')) | set(noted))

    def assert_nothing_runs(self):
        self.assertTrue(processes.wait_until(lambda: not self.running()),
                        f'still running:\n{processes.describe(self.running())}')


def main():
    """Runs the module's tests; the last line is what tests/support/tools/run_tests.py counts."""
    program_under_test = unittest.main(module='__main__', exit=False, verbosity=2)
    result = program_under_test.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    if not processes.wait_until(lambda: not processes.of_this_run()):
        left = processes.of_this_run()
        print(f'processes left behind:\n{processes.describe(left)}', flush=True)
        for pid in left:
            processes.kill(pid)
        failed += 1
    passed = result.testsRun - failed - len(result.skipped)
    print(f'cases: {passed} passed, {failed} failed, {len(result.skipped)} skipped', flush=True)
    sys.exit(1 if failed else 0)
