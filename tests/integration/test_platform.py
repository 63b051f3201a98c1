#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = exec`: whole sessions in boxes of a platform that the profile's commands reach; and how a
box and its processes end if a command, the broker or the platform fails.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import processes

from case import AGENT, BROKER, main
from forwarding import SERVE, free_port, tell
from platform_case import SCRIPT, VERBS, PlatformCase
from processes import PATIENCE

SECRET = 'sesame-street-4711'


class Sessions(PlatformCase):
    transport = 'git'

    def test_files_terminals_and_both_directions_of_a_sync(self):
        (self.work / 'mine').write_text('mine\n')
        client, session = self.opened(transport=self.transport)
        root = self.runtime(client, session)
        self.assertEqual((root / 'mine').read_text(), 'mine\n')
        told = client.call('_broker/session/status', {'sessionId': session})['runtimeRoot']
        client.prompt(session, f'read {told}/mine', f'write {told}/theirs there\\n',
                      'terminal ls -d /proc/[0-9]*; id -u; echo made > made')
        self.assertEqual((self.work / 'theirs').read_text(), 'there\n')
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        text = client.wait_text('terminal/output ->')
        self.assertIn('/proc/1\\n', text)  # the box has process ids of its own
        self.assertNotIn(f'/proc/{os.getpid()}\\n', text)
        self.end(client)
        self.assert_nothing_runs()
        box, = self.boxes()
        self.assertEqual(self.log(), [f'start {box}', f'stop {box}'])

    def test_the_next_session_finds_the_box_and_starts_it_again(self):
        client, session = self.opened(transport=self.transport)
        root = self.runtime(client, session)
        (root.parents[3] / 'kept').write_text('')
        self.end(client)
        client, session = self.opened(transport=self.transport)
        self.assertTrue((root.parents[3] / 'kept').exists())
        self.assertEqual(self.runtime(client, session), root)
        other, _ = self.opened(transport=self.transport)  # a second session in the same box
        self.end(other)
        client.prompt(session, 'terminal echo it goes on')
        self.assertIn('it goes on', client.wait_text('terminal/output ->'))
        self.end(client)
        box, = self.boxes()
        self.assertEqual(self.log(), [f'start {box}', f'stop {box}'] * 2)

    def test_a_transient_box_is_of_one_session_and_gone_after_it(self):
        client, session = self.opened(transport=self.transport, persistence='transient')
        client.prompt(session, 'terminal echo made > made')
        one, = self.boxes()
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual((self.boxes(), self.notes()), ([], []))
        client, _ = self.opened(transport=self.transport, persistence='transient')
        self.assertNotEqual(self.boxes(), [one])
        self.end(client)


class Forward(PlatformCase):
    def test_a_server_in_a_box_is_reached_here(self):
        (self.work / 'serve.py').write_text(SERVE)
        here, there = free_port(), free_port()
        client, session = self.opened(forward=f'{here}:{there}')
        client.start_prompt(session, f'terminal python3 serve.py 127.0.0.1 {there}')
        self.assertTrue(processes.wait_until(lambda: tell(here) == b'%d hello' % there, PATIENCE))
        self.end(client)
        self.assertIsNone(tell(here))
        self.assert_nothing_runs()

    def test_check_says_where_a_port_leads(self):
        self.assertNames(self.command('check', '--', AGENT, forward='8080:3001').stdout,
                         'localhost:8080 | 3001')


class ApartNetwork(PlatformCase):
    """A box with a loopback of its own."""

    def words(self, verb):
        apart = 'unshare --net sh -c \'ip link set lo up; exec \\"$0\\" \\"$@\\"\' '
        return (apart if verb == 'exec' else '') + super().words(verb)

    def test_a_login_in_the_browser_comes_back_to_a_box(self):
        if subprocess.run(['unshare', '--net', 'true'], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest('there are no network namespaces here')
        (self.work / 'serve.py').write_text(SERVE)
        port = free_port()
        client, session = self.opened()
        other = client.new_session(self.work)
        client.start_prompt(other, f'terminal python3 serve.py 127.0.0.1 {port}')
        client.prompt(session, f'elicit-url https://id.example/?redirect_uri=http://[::1]:{port}')
        self.assertTrue(processes.wait_until(lambda: tell(port) == b'%d hello' % port, PATIENCE))
        self.assertTrue(processes.wait_until(lambda: tell(port) is None, PATIENCE))
        self.end(client)
        self.assert_nothing_runs()


class SessionsByRsync(Sessions):
    transport = 'rsync'


class Killed(PlatformCase):
    def in_a_prompt(self, **keys):
        client, session = self.opened(**keys)
        root = self.runtime(client, session)
        waiting = client.start_prompt(
            session, 'terminal echo there > made; (setsid sleep 500 &) ; sleep 600')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        self.assertTrue(self.in_boxes())
        return client, session, waiting

    def test_the_platforms_command(self):
        """Everything that ran there ends, and the session goes on with the next request."""
        client, session, waiting = self.in_a_prompt()
        command, = [pid for pid in processes.descendants(client.pid)
                    if processes.name_of(pid) == 'nsenter' and
                    processes.name_of(processes.parent_of(pid)) != 'nsenter']
        before = self.in_boxes()
        os.kill(command, signal.SIGKILL)
        self.failure(client.response(waiting), 'LINK_LOST')
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in before)))
        client.prompt(session, 'terminal cat made')
        self.assertIn('there', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assert_nothing_runs()

    def test_the_broker(self):
        client, _, _ = self.in_a_prompt()
        os.kill(client.pid, signal.SIGKILL)
        self.assert_nothing_runs()
        client, session = self.opened()
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        client.prompt(session, 'say back')
        self.end(client)

    def test_the_broker_of_a_transient_box(self):
        """The next start collects the files that are there, and destroys the box."""
        client, _, _ = self.in_a_prompt(persistence='transient')
        left, = self.boxes()
        os.kill(client.pid, signal.SIGKILL)
        self.assert_nothing_runs()
        client = self.broker(options=self.config(persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: left not in self.boxes()))
        self.end(client)
        self.assertEqual((self.boxes(), self.notes()), ([], []))

    def test_the_broker_before_a_session_was_opened(self):
        """Nobody has worked in the box, so the next start destroys it without looking into it."""
        client = self.broker(options=self.config(persistence='transient'))
        client.initialize()
        left, = self.boxes()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client, _ = self.opened(persistence='transient')
        self.assertTrue(processes.wait_until(
            lambda: left not in [note['name'] for note in self.notes()]))  # it goes after the box
        self.assertNotIn(left, self.boxes())
        self.end(client)
        self.assertEqual(self.notes(), [])

    def test_the_broker_while_start_runs(self):
        """The processes of `start` end with it; a later start destroys what it has made so far."""
        fifo = self.dir / 'fifo'
        os.mkfifo(fifo)
        slow = f"sh -c 'mkdir -p {self.platform}/boxes/$0; echo here > {fifo}; sleep 600' %i"
        client = self.broker(options=self.config(persistence='transient', start=f'"{slow}"'))
        client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        self.assertEqual(fifo.read_text(), 'here\n')
        left, = self.boxes()
        os.kill(client.pid, signal.SIGKILL)
        self.assert_nothing_runs()
        client, _ = self.opened(persistence='transient')
        self.assertTrue(processes.wait_until(lambda: left not in self.boxes()))
        self.end(client)

    def test_the_box_is_stopped_by_somebody_else(self):
        client, session, waiting = self.in_a_prompt()
        box, = self.boxes()
        self.box('stop', box)
        self.assertIn('error', client.response(waiting).value)
        client.prompt(session, 'terminal cat made')
        self.assertIn('there', client.wait_text('terminal/output ->'))
        self.end(client)

    def test_the_box_is_destroyed_by_somebody_else(self):
        client, session = self.opened()
        client.prompt(session, 'terminal echo made > made')
        self.end(client)
        box, = self.boxes()
        self.box('destroy', box)
        client, session = self.opened()  # another box with the same name
        self.assertEqual((self.runtime(client, session) / 'made').read_text(), 'made\n')
        self.end(client)


# Passes what it gets between its stdin and stdout and the gateway at the socket $1.
CLIENT = '''import json, os, socket, sys, threading
gateway = socket.socket(socket.AF_UNIX)
gateway.connect(sys.argv[1])
gateway.sendall(json.dumps(sys.argv[2:]).encode() + b'\\n')
def send():
    while data := os.read(0, 65536):
        gateway.sendall(data)
    gateway.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := gateway.recv(65536):
    os.write(1, data)
os._exit(0)
'''


class Gateway(PlatformCase):
    """
    The platform's command `exec` speaks with a gateway. When such a client vanishes, the gateway
    keeps what it has started for it, with its stdin.
    """

    def setUp(self):
        super().setUp()
        self.client_file = self.dir / 'client.py'
        self.client_file.write_text(CLIENT)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.dir / 'gateway'))
        self.listener.listen()
        self.children, self.callers = [], []
        threading.Thread(target=self.serve, daemon=True).start()

    def clean_up(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for child in self.children:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
        for one in (self.listener, *self.callers):
            one.close()
        super().clean_up()

    def words(self, verb):
        if verb != 'exec':
            return super().words(verb)
        return f"{sys.executable} '{self.client_file}' '{self.dir}/gateway' %i"

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                self.callers.append(self.listener.accept()[0])
                threading.Thread(target=self.serve_one, args=self.callers[-1:],
                                 daemon=True).start()

    def serve_one(self, client):
        line = b''
        while not line.endswith(b'\n'):
            line += client.recv(1)
        child = subprocess.Popen(['sh', str(SCRIPT), str(self.platform), self.KIND, 'exec',
                                  *json.loads(line)], env=self.environment(), bufsize=0,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.children.append(child)
        threading.Thread(target=self.pass_on, args=(child.stdout, client), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                while data:
                    data = data[child.stdin.write(data):]
        # Its stdin stays open, as if more could come.

    @staticmethod
    def pass_on(stdout, client):
        with contextlib.suppress(OSError, ValueError):
            while data := stdout.read(65536):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def agents(self):
        return {pid for pid in self.in_boxes() if processes.name_of(pid) == 'scripted-agent'}

    def run_notes(self):
        return list(self.state.glob('runs/*.json'))

    def test_the_next_broker_ends_what_a_killed_one_has_left(self):
        client, session = self.opened()
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        made = self.runtime(client, session) / 'made'
        self.assertTrue(processes.wait_until(made.exists))
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        before = self.agents()
        self.assertEqual(len(before), 1)
        self.assertEqual(len(self.run_notes()), 1)
        client, session = self.opened()
        client.wait_log('still ran there', PATIENCE)
        client.prompt(session, 'say hello')
        self.assertFalse(before & self.agents())
        self.assertEqual(len(self.agents()), 1)
        self.end(client)
        self.assertEqual(self.run_notes(), [])
        self.assertEqual(self.agents(), set())

    def led_to(self, box):
        """The keys of a profile that leads to a box which somebody else has made."""
        none = dict.fromkeys(VERBS, '')
        return {**none, 'exec': f'"{self.words("exec").replace("%i", box)}"', 'sync': 'none'}

    def test_another_box_is_no_proof_that_a_run_has_ended(self):
        """The user edits `exec`, and later changes it back."""
        for box in ('one', 'two'):
            self.assertEqual(self.box('start', box).returncode, 0)
        client, _ = self.opened(**self.led_to('one'))
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        before = self.agents()
        self.assertEqual(len(before), 1)
        client, session = self.opened(**self.led_to('two'))
        client.prompt(session, 'say hello')
        self.end(client)
        self.assertEqual(self.agents(), before)
        self.assertEqual(len(self.run_notes()), 1)
        client, _ = self.opened(**self.led_to('one'))
        client.wait_log('still ran there', PATIENCE)
        self.assertFalse(before & self.agents())
        self.end(client)
        self.assertEqual(self.run_notes(), [])


class Hostile(PlatformCase):
    """The output of a platform decides only about a name, and hides nothing."""

    def printing(self, text):
        return '"printf \'%s\'"' % text.replace('%', '%%')

    def test_start_prints_no_name(self):
        for printed in ('', '\\\\n', '-rf\\\\n', '--help', 'a b\\\\n', '$(touch x)\\\\n',
                        'a;b\\\\n', '\\\\033[2Jclear\\\\n', 'a' * 201,
                        'n\\\\303\\\\266\\\\n', 'cr\\\\r\\\\n'):
            with self.subTest(printed):
                error = self.refused('EXEC_NAME_INVALID', start=self.printing(printed))
                self.assertTrue(error['message'].isprintable(), error)
                self.assertEqual(self.notes(), [])

    def test_names_that_are_fine(self):
        for printed in ('a', 'pod/team.a_1-x/' + 'b' * 185, 'name\\\\nsecond line -rf\\\\n'):
            with self.subTest(printed):
                # There is no such box; the platform itself says so.
                self.refused('EXEC_COMMAND_FAILED', start=self.printing(printed), state='')

    def test_start_hangs(self):
        error = self.refused('TIMEOUT_EXCEEDED', start='sleep 600', create_timeout='300ms')
        self.assertNames(error['message'], 'start | sleep | 300 ms | create-timeout')
        self.assert_nothing_runs()

    def test_state_hangs(self):
        client, _ = self.opened()
        self.end(client)
        error = self.refused('TIMEOUT_EXCEEDED', state='sleep 600', command_timeout='300ms')
        self.assertNames(error['message'], 'state | sleep | 300 ms | command-timeout')

    def test_start_prints_without_end(self):
        self.refused('EXEC_COMMAND_FAILED', start='yes')
        self.assert_nothing_runs()

    def test_commands_that_fail(self):
        error = self.refused('EXEC_COMMAND_FAILED', start='"sh -c \'echo no >&2; exit 7\'"')
        self.assertNames(error['message'], 'start | status 7 | no')
        error = self.refused('EXEC_COMMAND_FAILED', start='no-such-platform run %i')
        self.assertNames(error['message'], 'start | no-such-platform')
        script = self.dir / 'fails'
        script.write_text('printf "oops \\033[2J \\302\\233 and more" >&2\nexit 125\n')
        error = self.refused('EXEC_COMMAND_FAILED', exec=f'sh {script}')
        self.assertNames(error['message'], 'exec | status 125 | oops')
        self.assertTrue(error['message'].isprintable(), error)

    def test_an_exec_that_prints_without_end(self):
        for printer in ('yes', 'cat /dev/zero'):
            with self.subTest(printer):
                self.refused('EXEC_NO_RUNNER', exec=f'"sh -c \'{printer}\'"',
                             answer_timeout='1s')
        self.assert_nothing_runs()

    def test_a_failed_start_is_cleaned_up(self):
        made = f'"sh -c \'mkdir -p {self.platform}/boxes/$0; exit 1\' %i"'
        self.refused('EXEC_COMMAND_FAILED', start=made)
        self.assertEqual((self.boxes(), self.notes()), ([], []))


class NoRunner(PlatformCase):
    def test_another_architecture(self):
        folder = self.dir / 'bin'
        folder.mkdir()
        (folder / 'uname').write_text('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo aarch64\n')
        (folder / 'uname').chmod(0o755)
        error = self.refused('EXEC_NO_RUNNER', start='', stop='', destroy='', list='', state='',
                             exec=f'env PATH={folder}:/usr/bin:/bin')
        self.assertNames(error['message'], 'Linux aarch64 | Linux x86_64')

    def test_nothing_may_be_executed_there(self):
        """Every folder that could take the runner is mounted noexec."""
        script = ('for d in /tmp /dev/shm; do mount -t tmpfs -o noexec none $d; done; '
                  'export HOME=/tmp TMPDIR=/tmp; exec \\"$0\\" \\"$@\\"')
        error = self.refused('EXEC_NO_RUNNER', start='', stop='', destroy='', list='', state='',
                             exec=f'"unshare --user --map-root-user --mount sh -c \'{script}\'"')
        self.assertNames(error['message'], '/dev/shm | /tmp | executed')


class Configuration(PlatformCase):
    def test_words_never_pass_through_a_shell(self):
        out = self.dir / 'out'
        words = f'$(touch${{IFS}}{out}) `touch {out}` ;touch {out} | tee {out} > {out} && ~'
        start = self.words('start').replace("sh '", "sh -u '")
        client, _ = self.opened(start=f'"{start} {words}"')
        self.assertFalse(out.exists())
        self.end(client)

    def test_a_file_of_the_project_names_no_command(self):
        hit = self.dir / 'hit'
        text = f'[profile "test"]\n\tbackend = exec\n\tstart = touch {hit}\n\texec = touch {hit}\n'
        for name in ('acp-broker.conf', '.acp-broker', '.acp-broker.conf', 'config',
                     '.acp-broker/config', '.config/acp-broker/config', 'acp-broker/config'):
            path = self.work / name
            if path.parent.is_file() or path.is_dir():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        client, session = self.opened()
        client.prompt(session, 'say hello')
        self.end(client)
        subprocess.run([BROKER, '--profile', 'test', 'check'], cwd=self.work, check=False,
                       env=self.environment(), capture_output=True, timeout=PATIENCE)
        self.assertFalse(hit.exists())

    def test_what_does_not_fit_together(self):
        for keys, wanted in (
                ({'exec': ''}, 'exec'),
                ({'start': ''}, 'start'),
                ({'exec': 'run %x'}, 'exec | p, i'),
                ({'start': '', 'stop': '', 'destroy': '', 'list': '', 'state': '',
                  'exec': 'run %i'}, 'exec | start'),
                ({'list': 'ls %i'}, 'list'),
                ({'exec': '"run \'open"'}, 'exec | quote'),
                ({'persistence': 'transient', 'destroy': ''}, 'transient | destroy')):
            with self.subTest(keys):
                told = self.command('check', '--', AGENT, status=2, **keys)
                self.assertNames(told.stderr, wanted)

    def test_a_secret_is_in_no_word_and_no_environment_of_the_platforms_commands(self):
        seen = self.dir / 'seen'
        spy = f'sh -c \'env >> {seen}; echo \\"$@\\" >> {seen}; exec \\"$@\\"\' spy '
        env = {**self.environment(), 'THE_SECRET': SECRET}
        keys = {verb: f'"{spy}{self.words(verb)}"' for verb in ('start', 'exec', 'state', 'stop')}
        client = self.broker(options=self.config(secret_env='THE_SECRET', **keys), env=env)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'env THE_SECRET')
        self.assertIn(SECRET, client.wait_text('THE_SECRET='))
        self.end(client)
        self.assertTrue(seen.read_text())
        self.assertNotIn(SECRET, seen.read_text())

    def stopping_badly(self, command):
        """
        A session whose platform says that it could not stop the box; returns the end of the log.
        """
        stop = self.dir / 'stop'
        stop.write_text(f'#!/bin/sh\n{command}\necho "no record of it" >&2\nexit 125\n')
        stop.chmod(0o755)
        client, session = self.opened(stop=f'{stop} %i')
        client.prompt(session, 'terminal echo made > made')
        client.close_stdin()
        status = client.wait()
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        return status, client.stderr.splitlines()[-1], [one['state'] for one in self.listed()]

    def test_a_platform_that_stops_a_box_and_fails(self):
        stop = f"sh '{SCRIPT}' '{self.platform}' '{self.KIND}' stop \"$1\""
        status, words, states = self.stopping_badly(stop)
        self.assertEqual((status, states), (0, ['stopped']), words)

    def test_a_box_that_cannot_be_stopped(self):
        status, words, states = self.stopping_badly(':')
        self.assertEqual((status, states), (1, ['running']))
        self.assertNames(words, 'stop | status 125 | no record of it')

    def test_a_box_that_somebody_else_has_made(self):
        """
        Without `start` there is only one place; its folders stay, or are removed with the session.
        """
        self.box('start', 'mine')
        keys = {verb: '' for verb in ('start', 'stop', 'destroy', 'list', 'state')}
        keys['exec'] = f'"{self.words("exec").replace("%i", "mine")}"'
        for persistence, stays in (('reuse', True), ('transient', False)):
            client, session = self.opened(persistence=persistence, **keys)
            root = self.runtime(client, session)
            client.prompt(session, 'terminal echo made > made')
            self.assertTrue((root / 'made').exists())
            self.end(client)
            self.assertEqual(root.exists(), stays)
            self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_runs()
        self.assertEqual(self.log(), ['start mine'])

    def test_the_runner_is_copied_in(self):
        copied = self.dir / 'copied'
        into = f'{self.platform}/boxes/\\"$0\\"/root\\"$2\\"'
        copy = f'sh -c \'cp \\"$1\\" {into} && echo $2 > {copied}\' %i %f %t'
        client, session = self.opened(copy_in=f'"{copy}"')
        client.prompt(session, 'terminal echo made > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual(list(self.inside().glob('home/.cache/acp-broker-*')), [])
        self.assertTrue((self.inside() / copied.read_text().strip().lstrip('/')).exists())
        error = self.refused('EXEC_COMMAND_FAILED', copy_in='false %f')
        self.assertNames(error['message'], 'copy-in | status 1')


class Commands(PlatformCase):
    def test_sandboxes_are_listed_stopped_and_deleted(self):
        client, session = self.opened()
        client.prompt(session, 'terminal echo made > made')
        box, = self.boxes()
        one, = self.listed()
        self.assertEqual((one['name'], one['id'], one['state'], one['profile'], one['workspace']),
                         (box, box, 'running', 'test', str(self.work)))
        self.command('sandboxes', 'stop', box, status=1)  # the session uses it
        self.end(client)
        self.assertEqual([one['state'] for one in self.listed()], ['stopped'])
        self.box('start', box)
        self.command('sandboxes', 'stop', box)
        self.assertEqual([one['state'] for one in self.listed()], ['stopped'])
        self.command('sandboxes', 'delete', box)
        self.assertEqual((self.listed(), self.boxes(), self.notes()), ([], [], []))

    def test_a_box_that_cannot_be_destroyed_is_forgotten_only_by_discard(self):
        client, _ = self.opened()
        self.end(client)
        box, = self.boxes()
        self.command('sandboxes', 'delete', box, destroy='false %i', status=1)
        self.assertEqual(len(self.notes()), 1)
        self.command('sandboxes', 'delete', '--discard', box, destroy='false %i')
        self.assertEqual((self.notes(), self.boxes()), ([], [box]))

    def test_check_says_each_word(self):
        told = self.command('check', '--', AGENT, exec='"run \'a b\' %i"')
        self.assertIn('[run] [a b] [%i]', told.stdout)

    def test_doctor_and_test_provider(self):
        told = self.command('test-provider', persistence='transient')
        self.assertNotIn('failed:', told.stdout)
        self.assertEqual(self.boxes(), [])
        done = subprocess.run([BROKER, *self.config(persistence='transient'), 'doctor', '--',
                               *self.agent_argv()], cwd=self.work, env=self.environment(),
                              stdin=subprocess.DEVNULL, text=True, capture_output=True,
                              check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        self.assertEqual(self.boxes(), [])


if __name__ == '__main__':
    main()
