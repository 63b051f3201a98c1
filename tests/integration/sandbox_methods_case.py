# SPDX-License-Identifier: MIT
"""_broker/exec… and _broker/fs/…, on one backend: a program uses a session's sandbox itself."""

import base64
import json
import signal

import processes

from acp import RpcError
from processes import PATIENCE
from sync_case import checked

BYTES = bytes(range(256))


class Methods:
    """The cases, on one backend."""

    def begin(self):
        self.client, self.session = self.opened()

    def ask(self, method, part, schema, **params):
        params = checked(schema, f'{part}Params' if part in ('status', 'kill') else 'params',
                         {'sessionId': self.session, **params})
        return self.client.call(method, params, seconds=PATIENCE)

    def exec(self, *command, **params):
        return checked('exec', 'result',
                       self.ask('_broker/exec', '', 'exec', command=list(command), **params))

    def fs(self, what, path, **params):
        return checked('fs', f'{what}Result',
                       self.ask(f'_broker/fs/{what}', what, 'fs', path=str(path), **params))

    def refused(self, code, act, *words, **params):
        with self.assertRaises(RpcError) as caught:
            act(*words, **params)
        error = caught.exception
        self.assertEqual((error.data['code'], error.data['stage']), (code, 'tool'), error)

    # ---- commands ----

    def test_both_outputs_and_the_exit_code(self):
        self.begin()
        result = self.exec('sh', '-c', 'echo "$1"; echo bad >&2; exit 7', 'sh', 'a  $HOME')
        self.assertEqual((result['state'], result['stdout'], result['stderr'], result['exitCode'],
                          result['signal'], result['stdoutCut'], result['timedOut']),
                         ('exited', 'a  $HOME\n', 'bad\n', 7, None, False, False))
        result = self.exec('sh', '-c', 'kill -TERM $$')
        self.assertEqual((result['exitCode'], result['signal']), (None, signal.SIGTERM))

    def test_input_variables_and_the_directory(self):
        self.begin()
        (self.work / 'inner').mkdir()
        self.client.call('_broker/fs/write', {'sessionId': self.session, 'content': 'x',
                                              'path': str(self.work / 'inner/file')})
        result = self.exec('sh', '-c', 'cat; echo "$NEW"; ls', stdin='typed\n',
                           env=[{'name': 'NEW', 'value': 'new\nline'}],
                           cwd=str(self.work / 'inner'))
        self.assertEqual(result['stdout'], 'typed\nnew\nline\nfile\n')
        big = 'y' * 300000
        self.assertEqual(self.exec('wc', '-c', stdin=big)['stdout'].strip(), str(len(big)))
        self.assertEqual(self.exec('true', stdin=big)['exitCode'], 0)

    def test_bytes_are_exact(self):
        self.begin()
        given = base64.b64encode(BYTES).decode()
        result = self.exec('cat', stdin=given, encoding='base64')
        self.assertEqual(base64.b64decode(result['stdout']), BYTES)
        result = self.exec('printf', 'a\\377b')
        self.assertEqual(result['stdout'], 'a\ufffdb')

    def test_what_it_leaves_running_does_not_keep_the_answer(self):
        self.begin()
        script = 'while :; do echo more; sleep 0.05; done & exit 3'
        result = self.exec('sh', '-c', script)
        self.assertEqual((result['state'], result['exitCode']), ('exited', 3))

    def test_limits(self):
        self.begin()
        result = self.exec('sh', '-c', 'printf 0123456789; printf abcdef >&2', outputLimit=6)
        self.assertEqual((result['stdout'], result['stdoutCut'], result['stderr'],
                          result['stderrCut']), ('012345', True, 'abcdef', False))
        result = self.exec('sh', '-c', 'echo begun; sleep 1000', timeoutMs=300)
        self.assertEqual((result['timedOut'], result['exitCode']), (True, None))
        self.assertIn(result['stdout'], ('', 'begun\n'))

    def test_what_is_refused(self):
        self.begin()
        self.refused('COMMAND_NOT_FOUND', self.exec, '/no/such/program')
        call = self.client.call
        for wrong in ({'command': []}, {'command': 'true'}, {'command': ['']},
                      {'command': ['true'], 'cwd': 'relative'},
                      {'command': ['true'], 'env': [{'name': 'A=B', 'value': ''}]},
                      {'command': ['true'], 'outputLimit': 1 << 30},
                      {'command': ['true'], 'stdin': '?', 'encoding': 'base64'}):
            self.refused('INVALID_PARAMS', call, '_broker/exec',
                         {'sessionId': self.session, **wrong})
        self.refused('INVALID_PARAMS', call, '_broker/exec',
                     {'sessionId': 'none', 'command': ['true']})

    def test_a_command_that_is_kept(self):
        self.begin()
        started = checked('exec', 'startResult', self.ask(
            '_broker/exec/start', '', 'exec', command=['sh', '-c', 'echo begun; exec sleep 1000']))

        def status(**more):
            return checked('exec', 'result', self.ask('_broker/exec/status', 'status', 'exec',
                                                      **started, **more))
        self.assertTrue(processes.wait_until(lambda: status()['stdout'] == 'begun\n', PATIENCE))
        self.assertEqual((status(forget=True)['state'], status()['exitCode']), ('running', None))
        self.ask('_broker/exec/kill', 'kill', 'exec', signal=signal.SIGTERM, **started)
        self.assertTrue(processes.wait_until(lambda: status()['state'] == 'exited', PATIENCE))
        self.assertEqual(status(forget=True)['signal'], signal.SIGTERM)
        self.refused('INVALID_PARAMS', status)

    def sleeper(self, command='_broker/exec'):
        """Starts a command that keeps running; returns the request's id and the process id."""
        place = self.dir / 'begun'
        request = self.client.start(command, {
            'sessionId': self.session,
            'command': ['sh', '-c', f'echo $$ > {place}; exec sleep 1000']})
        self.assertTrue(processes.wait_until(
            lambda: place.exists() and place.read_text().endswith('\n'), PATIENCE))
        return request, int(place.read_text())

    def test_cancel_kills_it(self):
        self.begin()
        request, pid = self.sleeper()
        self.client.notify('$/cancel_request', {'requestId': json.loads(request)})
        error = self.client.response(request, PATIENCE).value['error']
        self.assertEqual(error['code'], -32800)
        self.assertTrue(processes.wait_until(lambda: not self.lives(pid), PATIENCE))

    def test_the_end_of_the_session_kills_it(self):
        self.begin()
        for command in ('_broker/exec', '_broker/exec/start'):
            request, pid = self.sleeper(command)
            self.client.call('session/close', {'sessionId': self.session})
            if command == '_broker/exec':
                self.assertIn('error', self.client.response(request, PATIENCE).value)
            self.assertTrue(processes.wait_until(lambda pid=pid: not self.lives(pid), PATIENCE))
            (self.dir / 'begun').unlink()
            self.session = self.client.new_session(self.work)

    def lives(self, pid):
        return processes.is_running(pid)

    # ---- files ----

    def test_files(self):
        self.begin()
        path = self.work / 'made/inside/file'
        self.fs('write', path, content='text ä\n')
        self.assertEqual(self.fs('read', path), {'content': 'text ä\n'})
        found = self.fs('stat', path)
        self.assertEqual((found['type'], found['sizeBytes']), ('file', 8))
        self.fs('write', self.work / 'made/bytes', encoding='base64',
                content=base64.b64encode(BYTES).decode())
        self.assertEqual(base64.b64decode(self.fs('read', self.work / 'made/bytes',
                                                  encoding='base64')['content']), BYTES)
        self.refused('FILE_NOT_TEXT', self.fs, 'read', self.work / 'made/bytes')
        self.exec('sh', '-c', 'ln -s /etc out; ln -s inside in; touch .hidden "two\nlines"',
                  cwd=str(self.work / 'made'))
        self.assertEqual({(entry['name'], entry['type'])
                          for entry in self.fs('list', self.work / 'made')['entries']},
                         {('inside', 'folder'), ('bytes', 'file'), ('out', 'link'),
                          ('in', 'link'), ('.hidden', 'file'), ('two\nlines', 'file')})
        self.assertEqual([entry['name'] for entry
                          in self.fs('list', self.work / 'made/in')['entries']], ['file'])
        self.assertEqual(self.fs('stat', self.work / 'made')['type'], 'folder')

    def test_files_that_are_not_served(self):
        self.begin()
        self.exec('ln', '-s', '/etc', 'out', cwd=str(self.work))
        for what in ('read', 'stat', 'list'):
            self.refused('SECURITY_VIOLATION', self.fs, what, '/etc/passwd')
            self.refused('SECURITY_VIOLATION', self.fs, what, self.work / 'out/passwd')
        self.refused('SECURITY_VIOLATION', self.fs, 'list', self.work / 'out')
        self.refused('SECURITY_VIOLATION', self.fs, 'write', self.work / 'out/passwd', content='')
        self.refused('RESOURCE_NOT_FOUND', self.fs, 'read', self.work / 'missing')
        self.refused('INVALID_PARAMS', self.fs, 'read', 'relative')
        self.fs('write', self.work / 'large', content='0123456789')
        self.refused('RESOURCE_LIMIT_EXCEEDED', self.fs, 'read', self.work / 'large', limit=9)
