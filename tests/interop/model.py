# SPDX-License-Identifier: MIT
"""
A scripted stand-in for a model's HTTP API, on 127.0.0.1 and a port that the system chooses;
model_apis.py has the APIs. It uses no network and no model: in a turn it calls one tool after the
other, as its script says, and then answers with text. It finds the next step in the conversation
itself (by the number of tool results after the user's last words), so that the same conversation
gets the same answers.
"""

import http.server
import json
import sys
import threading

from model_apis import APIS


class Step:
    """
    One tool call: the end of the tool's name, and its input. If an argument is a function, it is
    called with the text of the previous tool result.
    """

    def __init__(self, tool, **arguments):
        self.tool, self.arguments = tool, arguments

    def input(self, before):
        return {name: value(before) if callable(value) else value
                for name, value in self.arguments.items()}


def since_last_prompt(entries):
    """The tool results after the user's last words."""
    found = []
    for entry in entries:
        if entry is True:
            found = []
        elif entry is not None:
            found.append(entry)
    return found


def find_tool(tools, ending):
    """The full name of the offered tool with this ending: a client may put a prefix before it."""
    for name in tools:
        if name == ending or name.endswith('__' + ending):
            return name
    raise LookupError(f'no tool {ending} among {tools}')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client was killed
            super().handle_error(request, client_address)


class Model:
    """The server; `steps` is its script, `last_words` ends a turn."""

    def __init__(self, steps, last_words):
        self.steps, self.last_words = steps, last_words
        self.without_tools = None  # the answer if no tool is offered; None: last_words
        self.requests = []  # (path, number of messages, what was answered)
        self.problems = []
        self.tokens = set()  # the values of Authorization in the requests
        self.keys = set()    # the values of X-Api-Key
        self.google_keys = set()  # the values of X-Goog-Api-Key
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                size = int(self.headers.get('Content-Length', 0))
                model.tokens.add(self.headers.get('Authorization'))
                model.keys.add(self.headers.get('X-Api-Key'))
                model.google_keys.add(self.headers.get('X-Goog-Api-Key'))
                model.answer(self, json.loads(self.rfile.read(size) or b'{}'))

            def do_GET(self):
                self.reply(404, 'application/json', b'{}')

            do_HEAD = do_GET

            def reply(self, status, kind, body):
                self.send_response(status)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if self.command != 'HEAD':
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = Server(('127.0.0.1', 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server.server_address[1]}'

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    def content(self, api, request):
        """The content block that answers a request."""
        entries, tools = api.results(request), api.tools(request)
        results = since_last_prompt(entries)
        number = len(results)
        if not tools:
            return {'type': 'text', 'text': self.without_tools or self.last_words}
        if number >= len(self.steps):
            return {'type': 'text', 'text': self.last_words}
        step = self.steps[number]
        try:
            name = find_tool(tools, step.tool)
        except LookupError as problem:
            self.problems.append(str(problem))
            return {'type': 'text', 'text': str(problem)}
        calls = sum(isinstance(entry, str) for entry in entries)  # each id is used once
        return {'type': 'tool_use', 'id': f'toolu_{calls + 1:02}', 'name': name,
                'input': step.input(results[-1] if results else '')}

    def answer(self, handler, request):
        path = handler.path.split('?')[0]
        api = next((api for api in APIS if api.serves(path)), None)
        if path.endswith('/count_tokens'):
            handler.reply(200, 'application/json', b'{"input_tokens": 10}')
            return
        if path.endswith(':countTokens'):
            handler.reply(200, 'application/json', b'{"totalTokens": 10}')
            return
        if not api:
            handler.reply(404, 'application/json', b'{}')
            return
        block = self.content(api, request)
        self.requests.append((path, api.length(request), block))
        answer = api.reply(path, request, block)
        if isinstance(answer, bytes):
            handler.reply(200, 'text/event-stream', answer)
        else:
            handler.reply(200, 'application/json', json.dumps(answer).encode())
