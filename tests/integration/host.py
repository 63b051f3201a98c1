# SPDX-License-Identifier: MIT
"""What an editor serves to its agent: files, terminals, and a user's answers."""

import itertools
import os
import signal
import subprocess
import threading

from processes import PATIENCE

NEVER = object()  # instead of a reply: the editor does not answer


class RpcError(Exception):
    """A JSON-RPC error, sent or received."""

    def __init__(self, code, message, data=None):
        super().__init__(f'{code} {message} {data if data is not None else ""}')
        self.code, self.message, self.data = code, message, data

    @classmethod
    def from_value(cls, value):
        return cls(value['code'], value['message'], value.get('data'))

    def value(self):
        value = {'code': self.code, 'message': self.message}
        if self.data is not None:
            value['data'] = self.data
        return value


class Terminal:
    """A command; only the last bytes of its output are kept."""

    def __init__(self, params, cwd, env):
        words = params.get('args') or []
        argv = [params['command'], *words] if words else ['/bin/sh', '-c', params['command']]
        env = {**os.environ, **env}
        env.update({item['name']: item['value'] for item in params.get('env') or []})
        self.limit = params.get('outputByteLimit') or 65536
        self.output = b''
        self.truncated = False
        self.process = subprocess.Popen(
            argv, cwd=params.get('cwd') or cwd, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.done = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as stream:
            while data := stream.read1(65536):
                whole = self.output + data
                self.truncated = self.truncated or len(whole) > self.limit
                self.output = whole[-self.limit:]
        self.process.wait()
        self.done.set()

    def kill(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def status(self):
        code = self.process.poll()
        if code is None:
            return None
        if code < 0:
            return {'exitCode': None, 'signal': signal.Signals(-code).name}
        return {'exitCode': code, 'signal': None}


class Host:
    """
    Answers an agent's requests. An entry in `replies` takes precedence: a value, a function of the
    params, or NEVER.
    """

    def __init__(self, cwd=None):
        self.cwd = cwd
        self.env = {}  # variables of terminals, added to our environment
        self.replies = {}
        self.seen = []  # (method, params)
        self.terminals = {}
        self.numbers = itertools.count(1)
        self.permission = 'allow_once'  # the kind of option that is chosen

    def handle(self, method, params):
        self.seen.append((method, params))
        if method in self.replies:
            reply = self.replies[method]
            return reply(params) if callable(reply) else reply
        serve = getattr(self, 'serve_' + method.replace('/', '_'), None)
        if serve is None:
            raise RpcError(-32601, 'Method not found')
        return serve(params)

    def serve_fs_read_text_file(self, params):
        try:
            with open(params['path'], encoding='utf-8', newline='') as file:
                return {'content': file.read()}
        except FileNotFoundError:
            raise RpcError(-32002, 'Resource not found', {'uri': params['path']}) from None

    def serve_fs_write_text_file(self, params):
        with open(params['path'], 'w', encoding='utf-8', newline='') as file:
            file.write(params['content'])
        return {}

    def serve_session_request_permission(self, params):
        for option in params['options']:
            if option['kind'] == self.permission:
                return {'outcome': {'outcome': 'selected', 'optionId': option['optionId']}}
        return {'outcome': {'outcome': 'cancelled'}}

    def serve_elicitation_create(self, params):
        if params.get('mode') == 'url':
            return {'action': 'accept'}
        return {'action': 'accept', 'content': {'name': 'Ada'}}

    def serve_terminal_create(self, params):
        terminal_id = f'term-{next(self.numbers)}'
        self.terminals[terminal_id] = Terminal(params, self.cwd, self.env)
        return {'terminalId': terminal_id}

    def _terminal(self, params):
        terminal = self.terminals.get(params['terminalId'])
        if terminal is None:
            raise RpcError(-32002, 'Resource not found', {'terminalId': params['terminalId']})
        return terminal

    def serve_terminal_output(self, params):
        terminal = self._terminal(params)
        result = {'output': terminal.output.decode('utf-8', 'replace'),
                  'truncated': terminal.truncated}
        if terminal.status() is not None:
            result['exitStatus'] = terminal.status()
        return result

    def serve_terminal_wait_for_exit(self, params):
        terminal = self._terminal(params)
        terminal.done.wait(PATIENCE)
        return terminal.status()

    def serve_terminal_kill(self, params):
        self._terminal(params).kill()
        return {}

    def serve_terminal_release(self, params):
        self._terminal(params).kill()
        del self.terminals[params['terminalId']]
        return {}

    def finish(self):
        for terminal in list(self.terminals.values()):
            terminal.kill()
            terminal.done.wait(PATIENCE)
        self.terminals.clear()
