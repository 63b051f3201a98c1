# SPDX-License-Identifier: MIT
"""What every whole-program test starts from: programs, a directory, proof that nothing is left."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import uuid

import processes
from acp import Client
from host import Host

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(variable, default):
    return str(pathlib.Path(os.environ.get(variable, ROOT / 'build' / default)).resolve())


BROKER = program('ACP_BROKER', 'acp-broker')
AGENT = program('ACP_SCRIPTED_AGENT', 'tests/support/agent/scripted-agent')

# Programs built with the sanitizers are slower and larger; no test measures them.
SANITIZED = os.environ.get('ACP_SANITIZED') == '1'
PATIENCE = 4.0 if SANITIZED else 1.0

# What takes longest is made in parts, one a day (run_tests.py); unset: all of it.
PARTS = 3
PART = int(os.environ['ACP_PART']) if os.environ.get('ACP_PART') else None


def part_of(items):
    """Today's part of a list that is the same each time."""
    return list(items)[PART % PARTS::PARTS] if PART is not None else list(items)


# A session's end is decided by deadlines; these are short, so that a test can wait for them.
SHORT_DEADLINES = {
    'stop-eof-timeout': '300ms',
    'stop-term-timeout': '300ms',
    'stop-kill-timeout': '2s',
    'drain-timeout': '500ms',
    'start-timeout': '5s',
}


class Case(unittest.TestCase):
    """A directory, a mark in every process's environment, and clients that are ended."""

    maxDiff = 4000
    left_seconds = 3  # for what a test has started to be gone after it

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='acp-test-'))
        self.mark = f'ACP_TEST_MARK={uuid.uuid4()}'
        self.work = self.dir / 'work'
        self.work.mkdir()
        self.clients = []
        self.started = 0
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for client in self.clients:
            client.finish()
        left = []
        if not processes.wait_until(lambda: not self.running(), self.left_seconds * PATIENCE):
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
        name, value = self.mark.split('=')
        env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': str(home),
               'LANG': 'C.UTF-8', 'XDG_CONFIG_HOME': str(home / 'config'),
               'XDG_STATE_HOME': str(home / 'state'), 'TMPDIR': str(self.dir), name: value}
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
        """The lines the agent received ('<') or sent ('>')."""
        path = self.journal_path(number)
        lines = path.read_bytes().split(b'\n')[:-1] if path.exists() else []
        start = direction.encode() + b' '
        return [line[2:] for line in lines if line.startswith(start)]

    def config(self, deadlines=True, policy=None, backend='local', **keys):
        """
        Writes a configuration with one profile, "test"; returns the broker's options for it. A key
        whose value is a list is repeated.
        """
        values = dict(SHORT_DEADLINES) if deadlines else {}
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
        client = Client(argv, cwd=cwd or self.work, env=env or self.environment(),
                        host=host or Host(cwd=self.work))
        self.clients.append(client)
        return client

    def direct(self, *flags, host=None, **more):
        return self.start(self.agent_argv(*flags), host, **more)

    def broker(self, *flags, options=None, host=None, agent=None, **more):
        """A client of the broker, whose agent is the scripted one unless another is named."""
        options = self.config() if options is None else options
        agent = agent or self.agent_argv(*flags)
        return self.start(self.broker_argv(*options, agent=agent), host, **more)

    # ---- failures ----

    def failure(self, message, code):
        """The error of a response of the broker's own; its data is what the documents say."""
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
        """Every process the scripted agents have noted, in order."""
        path = self.dir / 'pids'
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def running(self):
        """Processes of this test that still run: by mark, and those the agents have noted."""
        noted = [pid for pid in self.agent_pids()
                 if processes.is_running(pid) and processes.name_of(pid) == 'scripted-agent']
        return sorted(set(processes.marked(self.mark)) | set(noted))

    def assert_nothing_runs(self, seconds):
        gone = processes.wait_until(lambda: not self.running(), seconds * PATIENCE)
        self.assertTrue(gone, f'after {seconds} s:\n{processes.describe(self.running())}')


def main():
    """Runs the module's tests; the last line is what tests/support/tools/run_tests.py counts."""
    program_under_test = unittest.main(module='__main__', exit=False, verbosity=2)
    result = program_under_test.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - failed - len(result.skipped)
    print(f'cases: {passed} passed, {failed} failed, {len(result.skipped)} skipped', flush=True)
    sys.exit(1 if failed else 0)
