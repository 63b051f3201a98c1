#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
acp-broker doctor: without a fault every step is green and nothing is left; it names each planted
fault.
"""

import errno
import http.server
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import threading
import unittest

import jsonschema

import case
import processes
from case import AGENT, Case, main
from processes import PATIENCE
from sshd import Sshd, can_be_started
from together import Together, tests_of

AT_ONCE = 3
DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs'
SCHEMA = json.loads((DOCS / 'schemas' / 'doctor.json').read_text())
STEPS = SCHEMA['$defs']['finding']['properties']['step']['enum']
CODES = (DOCS / 'errors.md').read_text() + (DOCS / 'doctor.md').read_text()
IS_ROOT = os.getuid() == 0
SSHD = None  # all tests share it; the suite starts it

# The call has this number on all processors. The program executes another one, in which the call
# fails.
FSOPEN = 430
REFUSING = """
import ctypes, os, struct, sys
steps = b''.join(struct.pack('HBBI', *step) for step in (
    (0x20, 0, 0, 0), (0x15, 0, 1, %d), (0x06, 0, 0, 0x00050000 | %d), (0x06, 0, 0, 0x7fff0000)))
program = ctypes.create_string_buffer(steps)
head = struct.pack('HxxxxxxP', 4, ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
""" % (FSOPEN, errno.EPERM)

# An agent that answers initialize, and any other request with an error that has a secret and
# control characters of a terminal.
REFUSES_SESSIONS = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    info = {'name': 'a \\u202e' + 'b' * 999, 'version': os.environ['MY_API_KEY']}
    answer = {'result': {'protocolVersion': 1, 'agentInfo': info}}
    if asked['method'] != 'initialize':
        text = 'no ' + os.environ['MY_API_KEY'] + ' \\x1b[2J'
        answer = {'error': {'code': -32603, 'message': text}}
    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)
"""
# Mounts a file system that never answers on a folder, and then executes a program. Only this
# program and its descendants hold the file system's descriptor.
SILENT = """
import ctypes, os, sys
fd = os.open('/dev/fuse', os.O_RDWR)
os.set_inheritable(fd, True)
data = f'fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}'
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b'silent', sys.argv[1].encode(), b'fuse', 0, data.encode()) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
HOST_KEYS = {'ssh-client': 'openssh', 'connect-timeout': '1m', 'login-timeout': '1m'}


class Doctor(Case):
    before = ()  # words of a command that runs the broker
    without_leaks = False  # the sanitizer does not look for leaks

    def environment(self):
        env = {**super().environment(), 'SSH_AUTH_SOCK': '', **getattr(self, 'extra', {})}
        if self.without_leaks:
            env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
        return env

    def run_doctor(self, *options, agent=None, **more):
        argv = [*self.before, case.BROKER, 'doctor', *options]
        argv += ['--', *agent] if agent else []
        return subprocess.run(argv, cwd=more.pop('cwd', self.work), env=self.environment(),
                              text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=3 * PATIENCE, **more)

    def told(self, *options, agent=None, status=1, **more):
        """Runs doctor and returns its report; checks the report, and that nothing is left."""
        done = self.run_doctor(*options, '--json', agent=agent or self.agent_argv(), **more)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        report = json.loads(done.stdout)
        schema = dict(SCHEMA, **{'$ref': '#/$defs/result'})
        jsonschema.Draft202012Validator(schema).validate(report)
        self.assertIs(report['isWell'], status == 0)
        told = [finding['step'] for finding in report['findings']]
        self.assertEqual(set(told), set(STEPS))
        skipped = [i for i, finding in enumerate(report['findings'])
                   if finding['outcome'] == 'skipped']
        for i in skipped:  # in the order of the steps
            self.assertEqual(sorted(told[:i + 1], key=STEPS.index)[-1], told[i], told)
        for finding in report['findings']:
            if finding['code']:
                self.assertIn(f"`{finding['code']}`", CODES)
        self.assertEqual(list(self.dir.glob('acp-broker-*')), [])
        self.report = report
        return report['findings']

    def wrong(self, *options, outcome='failed', **more):
        """(step, code) of each finding with this outcome."""
        return [(finding['step'], finding['code']) for finding in self.told(*options, **more)
                if finding['outcome'] == outcome]

    def fault(self, step, code, *options, **more):
        """Checks that exactly this step fails with this code; returns the finding."""
        self.assertEqual(self.wrong(*options, **more), [(step, code)], self.report)
        finding, = [f for f in self.report['findings'] if f['outcome'] == 'failed']
        self.assertTrue(finding['advice'])
        return finding

    def warned(self, step, code, *options, **more):
        found = self.wrong(*options, outcome='warning', status=0, **more)
        self.assertEqual(found, [(step, code)], self.report)
        finding, = [f for f in self.report['findings'] if f['outcome'] == 'warning']
        return finding

    def state(self):
        return self.dir / 'home/state/acp-broker'

    def path_without(self, *names):
        folder = self.dir / 'bin'
        folder.mkdir()
        for path in (pathlib.Path(at) / name for at in ('/bin', '/usr/bin')
                     for name in os.listdir(at)):
            if path.name not in names and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
        return str(folder)

    def assert_nothing_stays(self):
        self.assertEqual([path for path in self.state().rglob('*') if path.is_file()
                          and path.name != 'machine-id'], [])
        self.assertEqual(list(self.work.iterdir()), [])


class Well(Doctor):
    def test_here(self):
        self.told(*self.config(), status=0)
        self.assertEqual(self.report['agentTitle'], 'scripted-agent')
        self.assertEqual(self.report['agentVersion'], '1.0.0')
        self.assert_nothing_stays()

    def test_in_a_copy_that_would_be_kept(self):
        found = self.told(*self.config(isolation='copy', persistence='reuse'), status=0)
        self.assertEqual([f['step'] for f in found if f['outcome'] == 'skipped'], ['network'])
        self.assert_nothing_stays()

    def test_for_people(self):
        done = self.run_doctor(*self.config(), agent=[AGENT])
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[1] for line in lines[:-1]], STEPS)

    def test_a_signal_ends_it_in_order(self):
        options = self.config(start_timeout='10m')
        argv = [case.BROKER, 'doctor', *options, '--', *self.agent_argv('--never-answer')]
        running = subprocess.Popen(argv, cwd=self.work, env=self.environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(running.kill)
        self.assertTrue(processes.wait_until(self.agent_pids, PATIENCE))
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, 1)
        self.check_line(said, 'doctor | signal')
        self.assertEqual(list(self.dir.glob('acp-broker-*')), [])
        self.assert_nothing_stays()


class Configuration(Doctor):
    def test_a_file_that_is_not_there(self):
        found = self.fault('configuration', 'CONFIG_INVALID', '--config', str(self.dir / 'none'))
        self.assertNames(found['text'], str(self.dir / 'none'))
        self.assertIsNone(self.report['profile'])
        self.assertEqual([found['step'] for found in self.report['findings'][:6]],
                         ['configuration', 'state', 'workspace', 'disk', 'leftovers', 'sandbox'])

    def test_an_unknown_key_and_an_unknown_profile(self):
        found = self.fault('configuration', 'CONFIG_INVALID', *self.config(isolaton='copy'))
        self.assertNames(found['text'], 'isolaton | isolation')
        options = [*self.config()[:2], '--profile', 'tset']
        found = self.fault('configuration', 'CONFIG_INVALID', *options)
        self.assertNames(found['text'], 'tset')

    def test_a_mistake_on_the_command_line_is_one_of_usage(self):
        done = self.run_doctor('--jsno')
        self.assertEqual((done.returncode, done.stdout), (2, ''))


class Agents(Doctor):
    def test_one_that_is_not_there(self):
        self.fault('agent', 'AGENT_NOT_FOUND', *self.config(), agent=['/no/such/agent'])
        self.extra = {'PATH': '/usr/bin:/bin'}
        found = self.fault('agent', 'AGENT_NOT_FOUND', *self.config(), agent=['codex-acp'])
        self.assertNames(found['advice'], 'npm install')

    def test_one_that_cannot_be_run(self):
        file = self.dir / 'agent'
        file.write_text('#!/bin/sh\n')
        self.fault('agent', 'AGENT_NOT_EXECUTABLE', *self.config(), agent=[str(file)])

    def test_one_that_ends_at_once_says_why(self):
        script = 'printf "no\\033[31m key\\n" >&2; exit 3'
        found = self.fault('initialize', 'AGENT_EXITED', *self.config(),
                           agent=['/bin/sh', '-c', script])
        self.assertNames(found['text'], 'status 3 | no^[[31m key')

    def test_one_that_speaks_something_else(self):
        found = self.fault('initialize', 'AGENT_EXITED', *self.config(),
                           agent=['/bin/echo', 'Welcome'])
        self.assertNames(found['text'], 'Welcome')

    def test_one_that_never_answers(self):
        options = self.config(start_timeout='200ms', stop_eof_timeout='200ms')
        found = self.fault('initialize', 'TIMEOUT_EXCEEDED', *options,
                           agent=self.agent_argv('--never-answer'))
        self.assertNames(found['text'], '200 ms | start-timeout')

    def test_another_version_of_the_protocol(self):
        self.fault('initialize', 'PROTOCOL_UNSUPPORTED', *self.config(),
                   agent=self.agent_argv('--protocol-version', '7'))

    def test_one_that_wants_a_login(self):
        found = self.fault('login', 'LOGIN_NEEDED', *self.config(),
                           agent=self.agent_argv('--need-auth'))
        self.assertNames(found['advice'], 'Token')

    def test_a_login_of_an_agent_that_is_known(self):
        agent = self.dir / 'codex-acp'
        agent.symlink_to(AGENT)
        found = self.fault('login', 'LOGIN_NEEDED', *self.config(),
                           agent=[str(agent), '--need-auth'])
        self.assertNotIn('Token', found['advice'])
        self.assertNames(found['advice'], 'OPENAI_API_KEY')

    def test_one_that_refuses_the_session_shows_no_secret(self):
        self.extra = {'MY_API_KEY': 'sesame-and-lily'}
        found = self.fault('session', 'AGENT_ERROR', *self.config(),
                           agent=[sys.executable, '-c', REFUSES_SESSIONS])
        self.assertEqual(found['text'], 'no *** ^[[2J')
        self.assertEqual(self.report['agentVersion'], '***')
        self.assertRegex(self.report['agentTitle'], '^a <U\\+202E>b{99,300}.*$')
        self.assertNotIn('b' * 400, self.report['agentTitle'])


class Here(Doctor):
    def test_a_workspace_that_is_none(self):
        self.fault('workspace', 'WORKSPACE_UNUSABLE', *self.config(isolation='copy'),
                   cwd=self.environment()['HOME'])

    @unittest.skipIf(IS_ROOT, 'root may write everywhere')
    def test_a_workspace_that_cannot_be_written(self):
        self.work.chmod(0o555)
        self.fault('workspace', 'WORKSPACE_UNUSABLE', *self.config())

    def test_a_state_folder_that_cannot_be(self):
        file = self.dir / 'file'
        file.write_text('')
        self.extra = {'XDG_STATE_HOME': str(file)}
        self.assertIn(('state', 'STATE_UNUSABLE'), self.wrong(*self.config()))

    @unittest.skipUnless(IS_ROOT, 'only root can give a folder away')
    def test_a_state_folder_of_another_user(self):
        self.state().mkdir(parents=True)
        os.chown(self.state(), 12345, 12345)
        found = self.warned('state', 'STATE_OF_ANOTHER', *self.config())
        self.assertNames(found['text'], '12345')

    def small_disk(self, size):
        state = self.state().parent
        state.mkdir(parents=True)
        if not IS_ROOT or subprocess.run(
                ['mount', '-t', 'tmpfs', '-o', f'size={size}', 'small', state],
                capture_output=True, check=False).returncode != 0:
            self.skipTest('no file system can be mounted here')
        self.addCleanup(subprocess.run, ['umount', '-l', state], check=False)

    def test_a_full_disk(self):
        self.small_disk('8m')
        self.fault('disk', 'DISK_FULL', *self.config())

    def test_a_disk_that_is_too_small_for_a_copy(self):
        self.small_disk('40m')
        with open(self.work / 'large', 'wb') as file:
            file.truncate(60 << 20)
        (self.work / '.gitignore').write_text('ignored\n')
        self.assertIn(('disk', 'DISK_FULL'), self.wrong(*self.config(isolation='copy')))
        (self.work / 'large').rename(self.work / 'ignored')
        self.warned('disk', 'DISK_LOW', *self.config(isolation='copy'))

    def test_a_workspace_that_is_too_large(self):
        for name in ('a', 'b'):
            (self.work / name).write_text('x')
        found = self.fault('workspace', 'RESOURCE_LIMIT_EXCEEDED',
                           *self.config(isolation='copy', max_files='1'))
        self.assertNames(found['text'], 'max-files')

    def silent(self, folder):
        """Puts a file system that never answers on the folder; only doctor sees it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.before = ['unshare', '-Urm', sys.executable, '-c', SILENT, str(folder)]
        # At the end of a program, the leak checker stops each thread and waits until it has
        # stopped. A thread that waits for this file system never stops.
        self.without_leaks = True
        if subprocess.run([*self.before, '/bin/true'], capture_output=True, check=False,
                          timeout=PATIENCE).returncode != 0:
            self.skipTest('no file system can be mounted here')

    def test_a_state_folder_that_never_answers(self):
        self.silent(self.state().parent)
        self.assertEqual(self.wrong(*self.config(file_timeout='1s')),
                         [('state', 'TIMEOUT_EXCEEDED'), ('disk', 'TIMEOUT_EXCEEDED')])
        self.assertNames(self.report['findings'][1]['text'], f'{self.state()} | 1 s')

    def test_a_temporary_folder_that_never_answers(self):
        self.silent(self.dir / 'slow')
        self.extra = {'TMPDIR': str(self.dir / 'slow')}
        self.fault('disk', 'TIMEOUT_EXCEEDED', *self.config(file_timeout='1s'))
        options = self.config(isolation='copy', sync_timeout='1s', file_timeout='1s')
        self.assertEqual(self.wrong(*options), [('workspace', 'TIMEOUT_EXCEEDED'),
                                                ('disk', 'TIMEOUT_EXCEEDED')])

    def test_no_git_and_no_rsync(self):
        self.extra = {'PATH': self.path_without('git', 'rsync')}
        for transport in ('git', 'rsync'):
            found = self.fault('sync', 'SYNC_TOOL_MISSING',
                               *self.config(isolation='copy', transport=transport))
            self.assertNames(found['text'], transport)

    def test_what_cannot_be_confined(self):
        options = self.config(confine='required', isolation='copy')
        self.before = [sys.executable, '-c', REFUSING]
        (step, code), = self.wrong(*options)
        self.assertEqual(step, 'sandbox')
        self.assertIn(code, ('CELL_UNAVAILABLE', 'PERMISSION_DENIED')[:1 + IS_ROOT])

    def test_what_is_not_enforced(self):
        found = self.wrong(*self.config(network='blocked'), outcome='warning', status=0)
        self.assertEqual(found, [('sandbox', 'NOT_ENFORCED'), ('network', 'NOT_ENFORCED')])

    def test_a_process_that_a_killed_broker_left(self):
        client = self.broker(options=self.config())
        client.initialize()
        above, = [pid for pid in self.running()
                  if processes.parent_of(pid) == client.process.pid]
        processes.kill(client.process.pid, signal.SIGSTOP)  # else it continues the other
        processes.kill(above, signal.SIGSTOP)
        self.addCleanup(processes.kill, above, signal.SIGCONT)
        client.process.kill()
        client.wait(PATIENCE)
        found = self.warned('leftovers', 'ORPHANS', *self.config())
        self.assertNames(found['text'], str(above))

    def kept(self):
        return sorted(path for path in self.state().rglob('*') if path.suffix != '.new')

    def test_what_a_killed_broker_left(self):
        options = self.config(isolation='copy', persistence='reuse', recovery_timeout='10m')
        client = self.broker(options=options)
        client.initialize()
        client.new_session(self.work)
        client.process.kill()
        client.wait(PATIENCE)
        self.assertTrue(processes.wait_until(lambda: not self.running()))
        before = self.kept()
        found = self.warned('leftovers', 'LEFTOVERS', *options)
        self.assertNames(found['advice'], 'sessions collect')
        self.assertEqual(self.kept(), before)

    def test_a_record_that_cannot_be_read(self):
        record = self.state() / 'sessions/0123456789abcdef.json'
        record.parent.mkdir(parents=True)
        record.write_text('{')
        found = self.warned('leftovers', 'RECORD_UNREADABLE', *self.config())
        self.assertNames(found['text'], f'0123456789abcdef | {record}')
        self.assertNames(found['advice'], 'acp-broker sessions list')
        self.assertEqual(record.read_text(), '{')


class Cloud(Doctor):
    def test_no_key_and_one_that_is_refused(self):
        with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Refusing) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            options = self.config(backend='daytona', **{
                'api-url': f'http://127.0.0.1:{server.server_port}/api'})
            found = self.fault('sandbox', 'CONFIG_INVALID', *options)
            self.assertNames(found['text'], 'DAYTONA_API_KEY')
            self.extra = {'DAYTONA_API_KEY': 'dtn_sesame_and_lily'}
            self.fault('sandbox', 'DAYTONA_UNAUTHORIZED', *options)
            server.shutdown()
            thread.join()


class Refusing(http.server.BaseHTTPRequestHandler):
    def refuse(self):
        body = b'{"statusCode":401,"message":"Unauthorized"}'
        self.send_response(401)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = refuse

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@unittest.skipUnless(can_be_started(), 'there is no sshd')
class There(Doctor):
    """The same steps on one host; a test that breaks something uses an ssh_config of its own."""

    def box(self, *replaced, **keys):
        """The options for a profile with sshd's host, whose ssh_config has these replacements."""
        text = SSHD.config.read_text()
        for old, new in replaced:
            self.assertIn(old, text)
            text = text.replace(old, new)
        own = self.dir / 'ssh_config'
        own.write_text(text)
        named = {name.replace('_', '-'): value for name, value in keys.items()}
        return self.config(backend='ssh', **{'host': 'box', 'ssh-config': str(own), **HOST_KEYS,
                                             **named})

    def known(self, text):
        path = self.dir / 'known_hosts'
        path.write_text(text)
        return str(SSHD.known_hosts), str(path)

    def test_well(self):
        self.told(*self.box(), status=0)
        there = SSHD.home / '.local/share/acp-broker/workspaces'
        self.assertEqual([path for path in there.glob('*/*/workspace')], [])

    def test_a_host_that_is_not_known(self):
        self.fault('sandbox', 'HOST_KEY_UNKNOWN', *self.box(self.known('')))

    def test_a_host_whose_key_has_changed(self):
        other = self.dir / 'other'
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', other], check=True)
        kind, key, *_ = (self.dir / 'other.pub').read_text().split()
        text = f'[127.0.0.1]:{SSHD.port} {kind} {key}\n'
        self.fault('sandbox', 'HOST_KEY_MISMATCH', *self.box(self.known(text)))

    def test_a_host_that_refuses_the_key(self):
        other = self.dir / 'other'
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', other], check=True)
        self.fault('sandbox', 'AUTH_FAILED', *self.box((f'{SSHD.key}\n', f'{other}\n')))

    def test_a_host_that_is_not_reached(self):
        with http.server.HTTPServer(('127.0.0.1', 0), Refusing) as closed:
            port = closed.server_port
        self.fault('sandbox', 'HOST_UNREACHABLE', *self.box((f'Port {SSHD.port}', f'Port {port}')))

    def test_no_ssh_program_here(self):
        self.extra = {'PATH': str(self.dir), 'LOGNAME': pwd.getpwuid(os.getuid()).pw_name}
        self.fault('sandbox', 'SSH_UNSUPPORTED', *self.box())


    def test_a_host_without_git_and_rsync(self):
        there = Sshd()
        self.addCleanup(there.__exit__)
        there.__enter__()
        (there.home / '.profile').write_text(
            f"PATH={self.path_without('git', 'rsync')}; export PATH\n")
        for transport in ('git', 'rsync'):
            options = self.config(backend='ssh', transport=transport, **{
                'host': 'box', 'ssh-config': str(there.config), **HOST_KEYS})
            found = self.fault('sync', 'SYNC_TOOL_MISSING', *options)
            self.assertNames(found['text'], transport)


class Suite(Together):
    def run(self, result, debug=False):
        global SSHD  # pylint: disable=global-statement
        if not can_be_started():
            return super().run(result, debug)
        with Sshd() as SSHD:
            return super().run(result, debug)


def load_tests(loader, _tests, _pattern):
    return Suite(AT_ONCE, tests_of(loader, [Well, Configuration, Agents, Here, Cloud, There]))


if __name__ == '__main__':
    main()
