# SPDX-License-Identifier: MIT
"""
A scripted stand-in for the model's HTTP API, on 127.0.0.1 and a port of the system's choice. It
knows no network and no model: in a turn it calls one tool after the other, as its script says, and
then answers with text. Which step is due is read from the conversation itself (how many tool
results follow the person's last words), so that the same conversation gets the same answers.
"""

import http.server
import json
import threading


class Step:
    """
    One tool call: the end of the tool's name, and its input. An argument that is a function is
    called with the text of the tool result before it.
    """

    def __init__(self, tool, **arguments):
        self.tool, self.arguments = tool, arguments

    def input(self, before):
        return {name: value(before) if callable(value) else value
                for name, value in self.arguments.items()}


def tool_results(messages):
    """The texts of the tool results since the person's last prompt."""
    found = []
    for message in reversed(messages):
        if message['role'] != 'user':
            continue
        content = message['content']
        results = [] if isinstance(content, str) else [
            block for block in content if block.get('type') == 'tool_result']
        if not results:
            break
        found = [json.dumps(block.get('content', '')) for block in results] + found
    return found


def find_tool(tools, ending):
    """The full name of the offered tool that ends so: a client may put a prefix before it."""
    for tool in tools:
        if tool['name'] == ending or tool['name'].endswith('__' + ending):
            return tool['name']
    raise LookupError(f'no tool {ending} among {[tool["name"] for tool in tools]}')


class Model:
    """The server; `steps` is what it does, `last_words` how it ends a turn."""

    def __init__(self, steps, last_words):
        self.steps, self.last_words = steps, last_words
        self.requests = []  # (path, number of messages, what was answered)
        self.problems = []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                size = int(self.headers.get('Content-Length', 0))
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

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server.server_address[1]}'

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    def content(self, request):
        """The content block that answers a request."""
        results = tool_results(request['messages'])
        number = len(results)
        if not request.get('tools') or number >= len(self.steps):
            return {'type': 'text', 'text': self.last_words}
        step = self.steps[number]
        try:
            name = find_tool(request['tools'], step.tool)
        except LookupError as problem:
            self.problems.append(str(problem))
            return {'type': 'text', 'text': str(problem)}
        return {'type': 'tool_use', 'id': f'toolu_{number + 1:02}', 'name': name,
                'input': step.input(results[-1] if results else '')}

    def answer(self, handler, request):
        path = handler.path.split('?')[0]
        if path.endswith('/count_tokens'):
            handler.reply(200, 'application/json', b'{"input_tokens": 10}')
            return
        if not path.endswith('/messages'):
            handler.reply(404, 'application/json', b'{}')
            return
        block = self.content(request)
        self.requests.append((path, len(request['messages']), block))
        message = {'id': 'msg_01', 'type': 'message', 'role': 'assistant',
                   'model': request.get('model', 'scripted'), 'content': [], 'stop_reason': None,
                   'stop_sequence': None, 'usage': {'input_tokens': 10, 'output_tokens': 1}}
        reason = 'tool_use' if block['type'] == 'tool_use' else 'end_turn'
        if request.get('stream'):
            handler.reply(200, 'text/event-stream', stream(message, block, reason))
        else:
            message.update(content=[block], stop_reason=reason)
            handler.reply(200, 'application/json', json.dumps(message).encode())


def stream(message, block, reason):
    """One content block as the API's server-sent events."""
    if block['type'] == 'text':
        start = {'type': 'text', 'text': ''}
        deltas = [{'type': 'text_delta', 'text': word + ' '} for word in block['text'].split()]
    else:
        start = dict(block, input={})
        deltas = [{'type': 'input_json_delta', 'partial_json': json.dumps(block['input'])}]
    events = [{'type': 'message_start', 'message': message},
              {'type': 'content_block_start', 'index': 0, 'content_block': start}]
    events += [{'type': 'content_block_delta', 'index': 0, 'delta': delta} for delta in deltas]
    events += [{'type': 'content_block_stop', 'index': 0},
               {'type': 'message_delta', 'delta': {'stop_reason': reason, 'stop_sequence': None},
                'usage': {'output_tokens': 10}},
               {'type': 'message_stop'}]
    return ''.join(f'event: {event["type"]}\ndata: {json.dumps(event)}\n\n'
                   for event in events).encode()
