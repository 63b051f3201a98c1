# SPDX-License-Identifier: MIT
"""A small ACP client for tests. Every wait has a deadline; the client keeps every byte."""

import itertools
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time

import facts
import rawjson
from host import Host, RpcError, NEVER
from processes import PATIENCE

CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
COMPLAINT = re.compile(r'(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:')


class Message:
    """One line as it was read or written."""

    def __init__(self, line, sent):
        self.time = time.monotonic()
        self.line = line
        self.sent = sent
        self.value = None
        self.id = None
        try:
            value = json.loads(line)
        except ValueError:
            return
        if isinstance(value, dict):
            self.value = value
            self.id = rawjson.raw(line, 'id') if 'id' in value else None

    @property
    def method(self):
        return self.value.get('method') if self.value else None

    @property
    def is_response(self):
        return self.value is not None and 'method' not in self.value

    @property
    def is_request(self):
        return self.method is not None and 'id' in self.value

    @property
    def params(self):
        return self.value.get('params')

    @property
    def text(self):
        """What an agent_message_chunk says; None of any other message."""
        if self.method != 'session/update':
            return None
        update = self.params['update']
        if update['sessionUpdate'] != 'agent_message_chunk':
            return None
        return update['content']['text']

    def __repr__(self):
        return ('-> ' if self.sent else '<- ') + self.line[:300].decode('utf-8', 'replace')


class Client:
    """Starts a program and speaks ACP with it over its stdin and stdout."""

    def __init__(self, argv, cwd=None, env=None, host=None):
        self.host = host or Host()
        self.messages = []  # both directions, in order
        self.changed = threading.Condition()
        self.reading = threading.Event()
        self.reading.set()
        self.ended = False
        self.errors = bytearray()  # its stderr
        self.ids = itertools.count()
        self.places = {}  # raw id -> index in messages of the last request with this id
        self.outgoing = queue.Queue()
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0)
        self.threads = [threading.Thread(target=target, daemon=True)
                        for target in (self._read, self._write, self._drain)]
        self.draining = self.threads[-1]
        for thread in self.threads:
            thread.start()

    @property
    def pid(self):
        return self.process.pid

    @property
    def received(self):
        return [message for message in self.messages if not message.sent]

    @property
    def sent(self):
        return [message for message in self.messages if message.sent]

    @property
    def stderr(self):
        return self.errors.decode('utf-8', 'replace')

    # ---- sending ----

    def send_line(self, line):
        """Queues a line; the newline is added."""
        self.send_bytes(line + b'\n')

    def send_bytes(self, data):
        with self.changed:
            for line in data.split(b'\n')[:-1]:
                self.messages.append(Message(line, True))
        self.outgoing.put(data)

    def send(self, value):
        self.send_line(json.dumps(value, ensure_ascii=False, separators=(',', ':')).encode())

    def notify(self, method, params=None):
        self.send({'jsonrpc': '2.0', 'method': method, 'params': params or {}})

    def start(self, method, params=None, request_id=None):
        """Sends a request and returns its raw id, which `answer` takes."""
        raw_id = request_id if request_id is not None else str(next(self.ids)).encode()
        body = json.dumps(params if params is not None else {}, ensure_ascii=False,
                          separators=(',', ':')).encode()
        self.places[raw_id] = len(self.messages)
        self.send_line(b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}'
                       % (raw_id, json.dumps(method).encode(), body))
        return raw_id

    def close_stdin(self):
        self.outgoing.put(None)

    # ---- receiving ----

    def wait_for(self, wanted, seconds=PATIENCE, after=0):
        """
        Returns the first received message that is wanted, from the given place in `messages` on.
        """
        end = time.monotonic() + seconds
        place = after
        with self.changed:
            while True:
                while place < len(self.messages):
                    message = self.messages[place]
                    place += 1
                    if not message.sent and message.value is not None and wanted(message):
                        return message
                left = end - time.monotonic()
                if left <= 0 or self.ended:
                    raise AssertionError(f'nothing came within {seconds} s{self._tail()}')
                self.changed.wait(left)

    def response(self, raw_id, seconds=PATIENCE):
        """Returns the message that answers the last request with this id, unchanged."""
        return self.wait_for(lambda m: m.is_response and m.id == raw_id, seconds,
                             self.places.get(raw_id, 0))

    def answer(self, raw_id, seconds=PATIENCE):
        """Returns the result of a request; raises RpcError if it was refused."""
        value = self.response(raw_id, seconds).value
        if 'error' in value:
            raise RpcError.from_value(value['error'])
        return value['result']

    def call(self, method, params=None, seconds=PATIENCE):
        return self.answer(self.start(method, params), seconds)

    def pause(self):
        """Stops reading the program's stdout, except for what was read already."""
        self.reading.clear()

    def resume(self):
        self.reading.set()

    # ---- ACP ----

    def initialize(self, capabilities=None, version=1, seconds=PATIENCE):
        return self.call('initialize', {
            'protocolVersion': version,
            'clientCapabilities': capabilities if capabilities is not None else {
                'fs': {'readTextFile': True, 'writeTextFile': True}, 'terminal': True},
            'clientInfo': {'name': 'test-client', 'version': '1'}}, seconds)

    def new_session(self, cwd, **more):
        params = {'cwd': str(cwd), 'mcpServers': []}
        params.update(more)
        return self.call('session/new', params)['sessionId']

    def start_prompt(self, session, *lines, request_id=None):
        return self.start('session/prompt', {
            'sessionId': session,
            'prompt': [{'type': 'text', 'text': '\n'.join(lines)}]}, request_id)

    def prompt(self, session, *lines, seconds=PATIENCE):
        return self.answer(self.start_prompt(session, *lines), seconds)

    def texts(self, session=None):
        """What the agent has said, one text for each message."""
        return [message.text for message in self.received if message.text is not None
                and session in (None, message.params['sessionId'])]

    def wait_text(self, beginning, seconds=PATIENCE):
        """Waits for the first text of the agent that begins like this."""
        return self.wait_for(lambda m: (m.text or '').startswith(beginning), seconds).text

    def wait_log(self, wanted, seconds=PATIENCE):
        """Waits until a line of the program's stderr has these facts."""
        end = time.monotonic() + seconds
        is_over = False
        while not any(facts.names(line, wanted) for line in self.stderr.splitlines()):
            if time.monotonic() > end or is_over:
                raise AssertionError(f'no line of stderr names {wanted}{self._tail()}')
            is_over = not self.draining.is_alive()
            time.sleep(0.01)

    # ---- the end ----

    def wait(self, seconds=PATIENCE):
        """
        Reads the program's last output and returns its exit status; AssertionError if it still
        runs.
        """
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'still running after {seconds} s{self._tail()}') from None
        self.draining.join(seconds)  # a process that the program left may keep its stderr open
        return status

    def finish(self, seconds=PATIENCE):
        """
        Ends the program as an editor would, kills it if it does not end, and frees everything.
        """
        self.resume()
        self.host.finish()
        self.close_stdin()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(seconds)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def crash(self):
        """What the program died of, if it crashed or a sanitizer complained; otherwise empty."""
        if -(self.process.returncode or 0) in CRASHES or COMPLAINT.search(self.stderr):
            return f'ended with {self.process.returncode}:\n{self.stderr[-4000:]}'
        return ''

    # ---- threads ----

    def _tail(self):
        lines = '\n'.join(repr(message) for message in self.messages[-8:])
        return f'\nlast messages:\n{lines}\nstderr:\n{self.stderr[-2000:]}'

    def _read(self):
        fd = self.process.stdout.fileno()
        rest = b''
        while True:
            self.reading.wait()
            try:
                data = os.read(fd, 1 << 18)
            except OSError:
                data = b''
            if not data:
                break
            parts = (rest + data if rest else data).split(b'\n')
            rest = parts.pop()
            if len(rest) > 1 << 18:  # a huge line: reads to its end and then splits once
                rest, more = self._read_long(fd, rest)
                parts.extend(more)
            self._take(parts)
        if rest:
            self._take([rest])
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _read_long(self, fd, start):
        pieces = [start]
        while True:
            self.reading.wait()
            data = os.read(fd, 1 << 20)
            pieces.append(data)
            if not data or b'\n' in data:
                break
        lines = b''.join(pieces).split(b'\n')
        return lines.pop(), lines

    def _take(self, lines):
        messages = [Message(line, False) for line in lines]
        with self.changed:
            self.messages.extend(messages)
            self.changed.notify_all()
        for message in messages:
            if message.is_request:
                threading.Thread(target=self._serve, args=(message,), daemon=True).start()

    def _serve(self, message):
        try:
            result = self.host.handle(message.method, message.params)
        except RpcError as error:
            body = b'"error":' + json.dumps(error.value(), separators=(',', ':')).encode()
        else:
            if result is NEVER:
                return
            body = b'"result":' + (result if isinstance(result, bytes) else json.dumps(
                result, ensure_ascii=False, separators=(',', ':')).encode())
        self.send_line(b'{"jsonrpc":"2.0","id":' + message.id + b',' + body + b'}')

    def _write(self):
        fd = self.process.stdin.fileno()
        while True:
            data = self.outgoing.get()
            if data is None:
                break
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(fd, view):]
            except OSError:
                break
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def _drain(self):
        fd = self.process.stderr.fileno()
        while True:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                data = b''
            if not data:
                return
            self.errors.extend(data)
