#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Limits of an agent and its terminals on this machine, and reports about the limit that was reached.
"""

import json
import os
import pathlib
import re
import subprocess

from acp import RpcError
from case import Case, main
from processes import PATIENCE


WALL = os.environ.get('ACP_WALL', '4s')  # a slow machine needs more for the start alone
TAKE_300M = 'dd if=/dev/zero of=/dev/null bs=300M count=1'


class Limits(Case):
    wrapper = ()  # of the agent

    def agent_argv(self, *flags):
        return [*self.wrapper, *super().agent_argv(*flags)]

    def open(self, **keys):
        client = self.broker(options=self.config(toolhost='broker', **keys))
        self.greeting = client.initialize()
        return client, client.new_session(self.work)

    def check(self, *flags, wrapper=(), **keys):
        argv = self.broker_argv('check', *flags, *self.config(**keys), agent=['true'])
        env = self.environment()
        if wrapper:  # of ptrace, which the leak checker needs, too
            env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
        return subprocess.run([*wrapper, *argv], check=False, env=env, capture_output=True,
                              text=True, timeout=PATIENCE)

    def open_enforced(self, key, value, **keys):
        """
        Opens a session with a limit. If this machine cannot enforce it, checks that the broker says
        so, and that it refuses with `required`; then skips.
        """
        client, session = self.open(**{key: value}, **keys)
        warnings = self.greeting['_meta']['broker']['warnings']
        checked = self.check('--json', **{key: value}, **keys)
        self.assertEqual(json.loads(checked.stdout)['warnings'], warnings)
        if not warnings:
            return client, session
        self.assert_refused(key, value, warnings, **keys)
        return self.skipTest(warnings[0])

    def assert_refused(self, key, value, warnings, **keys):
        """A limit that is not enforced: the warning names it, and who requires it has an error."""
        self.assertNames(warnings[0], key)
        refusing = self.broker(
            options=self.config(required='true', **{key: value}, **keys))
        with self.assertRaises(RpcError) as raised:
            refusing.initialize()
        self.assertEqual(raised.exception.data['code'], 'LIMIT_NOT_ENFORCED')
        checked = self.check(required='true', **{key: value}, **keys)
        self.assertNotEqual(checked.returncode, 0)
        self.assertNames(checked.stderr, key)
        self.assertNames(raised.exception.message, key)

    def used(self, client):
        return client.call('_broker/usage', {})['agents'][0]['used']

    def terminal(self, client, session, command):
        """Runs a command in a terminal to its end; returns its exit and its output."""
        def ask(method, **params):
            client.prompt(session, f'request terminal/{method} ' + json.dumps(
                {'sessionId': session, **params}))
            beginning = f'terminal/{method} -> '
            return json.loads([text for text in client.texts(session)
                               if text.startswith(beginning)][-1][len(beginning):])
        name = ask('create', command=command)['terminalId']
        end = ask('wait_for_exit', terminalId=name)
        return end, ask('output', terminalId=name)['output']

    def test_a_terminal_that_burns_cpu_time_and_a_file_that_grows(self):
        client, session = self.open(cpu_time='1s', file_size='64k', open_files='64')
        end, output = self.terminal(client, session, 'while :; do :; done')
        self.assertEqual(end['signal'], 'SIGXCPU')
        self.assertEqual(end['_meta']['broker']['limit'], 'cpu-time')
        self.assertGreaterEqual(end['_meta']['broker']['cpuMs'], 300)
        self.assertNames(output, 'cpu-time = 1s')
        end, output = self.terminal(
            client, session, 'exec dd if=/dev/zero of=grown bs=32k count=4')
        self.assertEqual(end['_meta']['broker']['limit'], 'file-size')
        self.assertNames(output, 'file-size = 64k')
        self.assertEqual(os.path.getsize(os.path.join(self.work, 'grown')), 65536)
        end, output = self.terminal(client, session, 'ulimit -n')
        self.assertEqual(output, '64\n')
        self.assertNotIn('limit', end['_meta']['broker'])

    def test_an_agent_that_burns_cpu_time_and_its_next_one(self):
        client, session = self.open(cpu_time='1s')
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'burn')
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, 'cpu-time = 1s')
        client.prompt(session, 'say again')

    def test_setup_has_the_limits(self):
        self.open(isolation='copy', open_files='64', setup='test $(ulimit -n) = 64')

    def test_wall_ends_an_agent_and_what_it_runs(self):
        client, session = self.open(wall=WALL)
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'hang')
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, f'wall = {WALL}')
        client.prompt(session, 'say again')

    def test_memory_ends_the_agent_or_a_terminal_alone(self):
        client, session = self.open_enforced('memory', '96m')
        end, output = self.terminal(client, session, f'exec {TAKE_300M}')
        self.assertEqual(end['signal'], 'SIGKILL')
        self.assertEqual(end['_meta']['broker']['limit'], 'memory')
        self.assertNames(output, 'memory = 96m')
        self.assertGreater(self.used(client)['peakMemoryBytes'], 32 << 20)
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, f'allocate {300 << 20}')
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, 'memory = 96m')
        client.prompt(session, 'say again')

    def test_memory_ends_all_of_a_terminal(self):
        client, session = self.open_enforced('memory', '96m')
        end, output = self.terminal(client, session, TAKE_300M + '; echo The shell goes on.')
        self.assertEqual(end['_meta']['broker']['limit'], 'memory')
        self.assertNames(output, 'memory = 96m')
        self.assertEqual(end['signal'], 'SIGKILL')
        self.assertNotIn('The shell goes on.', output)

    def test_memory_ends_all_of_an_agent(self):
        self.wrapper = ('sh', '-c', f'(until [ -e go ]; do sleep 0.1; done; exec {TAKE_300M}) '
                                    '</dev/null >/dev/null & exec "$@"', 'sh')
        client, session = self.open_enforced('memory', '96m')
        request = client.start_prompt(session, 'hang')
        (self.work / 'go').touch()
        with self.assertRaises(RpcError) as raised:
            client.answer(request)
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, 'memory = 96m')

    def test_processors_are_limited_or_the_limit_is_named(self):
        """What an agent starts is in a cgroup of its own in the group that has the limit."""
        client, session = self.open(cpu='1')
        warnings = self.greeting['_meta']['broker']['warnings']
        checked = self.check('--json', cpu='1')
        self.assertEqual(json.loads(checked.stdout)['warnings'], warnings)
        look = ('own=$(sed -n s/^0:://p /proc/self/cgroup); '
                'for m in /sys/fs/cgroup /sys/fs/cgroup/unified; do cat $m$own/../%s; done '
                '2>/dev/null; true')
        end, output = self.terminal(client, session, look % 'cpu.max')
        self.assertEqual(end['exitCode'], 0)
        if warnings:
            self.assertEqual(len(warnings), 1, warnings)
            self.assert_refused('cpu', '1', warnings)
            if self.used(client) is not None:  # the group is where we look, without the limit
                self.assertEqual(output, '')
                _, output = self.terminal(client, session, look % 'cgroup.type')
                self.assertEqual(output, 'domain\n')
            return
        quota, period = output.split()
        self.assertLessEqual(int(quota), int(period))

    def test_a_refused_fork_is_named(self):
        client, session = self.open_enforced('processes', '12')
        end, output = self.terminal(client, session, 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; '
                                    'do sleep 60 & done; echo not reached')
        if 'processes' not in (self.used(client) or {}):  # by setrlimit: only the shell notices
            self.assertNames(output, 'fork')
            return
        self.assertEqual(end['_meta']['broker']['limit'], 'processes')
        self.assertNames(output, 'processes = 12')
        self.assertGreaterEqual(self.used(client)['processes'], 2)
        client.prompt(session, 'fork 20')  # the agent itself reaches it, and goes on
        note = client.wait_for(lambda m: m.method == 'session/update'
                               and 'processes' in m.params['update'].get('title', ''))
        self.assertNames(note.params['update']['title'], 'processes = 12')

    def test_a_cgroup_with_processes_of_its_own_is_named(self):
        """The controllers are there, but the kernel refuses to enable them."""
        mounts = ('/sys/fs/cgroup', '/sys/fs/cgroup/unified')
        mount = next((path for path in mounts if os.access(f'{path}/cgroup.controllers', os.R_OK)),
                     None)
        own = re.search(r'(?m)^0::(/.*)$', pathlib.Path('/proc/self/cgroup').read_text())
        if mount is None or own is None:
            self.skipTest('there is no cgroup v2 here')
        own = pathlib.Path(mount + own[1])
        wrapper = self.in_a_busy_cgroup(own if own == pathlib.Path(mount) else own.parent)
        if wrapper is None:
            wrapper = self.refused_by_strace(mount, own)
        checked = self.check(wrapper=wrapper, memory='96m')
        self.assertEqual(checked.returncode, 0, checked.stderr)
        if 'strace' in wrapper and 'EBUSY' not in (self.dir / 'trace').read_text():
            self.skipTest(f'nothing enables a controller here: {checked.stdout}')
        self.assertNames(checked.stdout, 'memory is not enforced | EBUSY')

    def in_a_busy_cgroup(self, above):
        """
        A wrapper that enters a cgroup below one that has a process; None if we cannot make them, or
        if they have no controller.
        """
        busy = above / f'acp-test-{os.getpid()}'
        try:
            busy.mkdir()
        except OSError:
            return None
        self.addCleanup(busy.rmdir)
        if 'memory' not in (busy / 'cgroup.controllers').read_text().split():
            return None
        (busy / 'own').mkdir()
        self.addCleanup((busy / 'own').rmdir)
        sleeper = subprocess.Popen(['sh', '-c', 'echo 0 >"$0/cgroup.procs"; echo; exec sleep 600',
                                    busy], stdout=subprocess.PIPE)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.assertEqual(sleeper.stdout.read(1), b'\n')
        sleeper.stdout.close()
        return ['sh', '-c', 'echo 0 >"$0/cgroup.procs"; exec "$@"', busy / 'own']

    def refused_by_strace(self, mount, own):
        files = [f'--trace-path={folder}/cgroup.subtree_control'
                 for folder in (own, *own.parents) if folder.is_relative_to(mount)]
        return ['strace', '-f', '-qq', '-o', self.dir / 'trace',
                '-e', 'inject=write:error=EBUSY', *files]

    def test_usage_counts_what_runs_and_what_has_ended(self):
        client, session = self.open(open_files='1000')
        self.terminal(client, session, 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done')
        used = self.used(client)
        if used is None:
            self.skipTest('there is no cgroup v2 to be had here')
        self.assertGreater(used['cpuMs'], 10)

    def test_without_limits_nothing_is_said_of_them(self):
        client, session = self.open()
        end, _ = self.terminal(client, session, 'true')
        self.assertEqual(end, {'exitCode': 0, 'signal': None})
        self.assertIsNone(self.used(client))


if __name__ == '__main__':
    main()
