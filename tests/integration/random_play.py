# SPDX-License-Identifier: MIT
"""
The random steps of an editor and an agent, for test_random.py. One generator draws everything, so
that a seed gives the same steps again; but their timing depends on the machine.
"""

import json
import threading

from host import NEVER, Host, RpcError

TERMINALS = 5  # requests name one of this many last terminals, or of this many first ones
FILES = ('f0', 'f1', 'f2', 'sub/f3', 'seldom')

COMMANDS = (
    'true', 'echo hello; exit 3', 'sleep 1000', 'sleep 1000 & echo started', 'no-such-command-x',
    'setsid sleep 1000 > /dev/null 2>&1 & sleep 0.01', 'yes | head -c 300000',
    'while :; do echo noise; sleep 0.003; done', "trap '' TERM INT HUP; sleep 1000; sleep 1000",
    'sleep 0.02; echo late', 'kill -9 $$', 'cat')

# After one of these, only the agent's death brings the broker back to rest.
LASTING = ('deaf', 'double-fork', 'hold-stdout', 'close-stdout')


def chance(random, percent):
    return random.randrange(100) < percent


class Script:
    """Draws prompts: one command of the scripted agent a line."""

    def __init__(self, random):
        self.random = random
        self.session, self.root = None, None
        self.created = 0

    def draw_for(self, session, root):
        self.session, self.root = session, root
        return self.draw()

    def params(self, **more):
        return json.dumps(dict(more, sessionId=self.session))

    def ask(self):
        """Draws whether the agent waits for the answer or goes on."""
        return self.random.choice(('request', 'fire', 'fire'))

    def path(self):
        far = ('/etc/passwd', f'{self.root}/../x', f'{self.root}/seldom', 'relative')
        return self.random.choice(far) if chance(self.random, 20) else \
            f'{self.root}/{self.random.choice(FILES)}'

    def terminal_id(self):
        """An id that may exist; each new agent begins with the first id again."""
        last = self.random.choice((TERMINALS, self.created + 1))
        return f'term-{self.random.randint(max(1, last - TERMINALS), last)}'

    def create(self):
        self.created += 1
        more = {'outputByteLimit': 1000} if chance(self.random, 30) else {}
        return f'{self.ask()} terminal/create ' + self.params(
            command=self.random.choice(COMMANDS), **more)

    def terminal(self):
        method = self.random.choice(('output', 'wait_for_exit', 'wait_for_exit', 'kill',
                                     'release', 'release'))
        return f'{self.ask()} terminal/{method} ' + self.params(terminalId=self.terminal_id())

    def read(self):
        return f'{self.ask()} fs/read_text_file ' + self.params(path=self.path())

    def write(self):
        return f'{self.ask()} fs/write_text_file ' + self.params(
            path=self.path(), content='x' * self.random.choice((0, 10, 100000)))

    def show(self):
        kind = self.random.choice(('tool_call', 'tool_call_update'))
        return 'update ' + json.dumps({
            'sessionUpdate': kind, 'toolCallId': f'call-{self.random.randrange(3)}', 'title': 't',
            'content': [{'type': 'terminal', 'terminalId': self.terminal_id()}
                        for _ in range(self.random.randint(1, 2))]})

    def cancel_own(self):
        return 'notify $/cancel_request ' + json.dumps({'requestId': self.random.randrange(40)})

    def plain(self):
        return self.random.choice((
            f'sleep {self.random.randrange(20)}', 'say something', 'stream 30 300',
            'permission May I?', 'cancel-request', 'terminal echo whole', 'elicit Who?',
            'terminal-kill sleep 1000', 'stop-reading' if chance(self.random, 10) else 'plan p'))

    def end(self):
        return self.random.choice((
            '', '', 'hang', 'hang', 'error {"code":-32603,"message":"no"}', 'stop refusal',
            *(() if chance(self.random, 70) else (
                'exit 0', 'exit 3', 'crash', 'deaf\nhang', 'double-fork', 'hold-stdout',
                'hold-stdout\nexit 0', 'close-stdout\nhang'))))

    def draw(self):
        kinds = (self.create, self.create, self.terminal, self.terminal, self.terminal, self.read,
                 self.write, self.show, self.plain, self.plain, self.cancel_own)
        lines = [self.random.choice(kinds)() for _ in range(self.random.randint(1, 6))]
        return '\n'.join([*lines, self.end()]).strip().split('\n')


class Person(Host):
    """Answers questions at once, late, wrongly, twice or never, as drawn before."""

    ANSWERS = ('allow_once', 'allow_always', 'reject_once', 'reject_always', 'cancelled',
               'unknown', 'error', 'malformed', 'held', 'held', 'never')

    def __init__(self, cwd):
        super().__init__(cwd)
        self.lock = threading.Lock()
        self.plan, self.open = [], threading.Event()

    def draw(self, random, may_be_silent):
        """Draws the answers for one round; the held answers are sent at its end."""
        answers = [answer for answer in self.ANSWERS if may_be_silent or answer != 'never']
        with self.lock:
            self.plan = [random.choice(answers) for _ in range(100)]
            self.open.clear()

    def settle(self):
        self.open.set()

    def take(self):
        with self.lock:
            return self.plan.pop() if self.plan and not self.open.is_set() else 'allow_once'

    def answer(self, params):
        kind = self.take()
        if kind == 'never':
            return NEVER
        if kind == 'error':
            raise RpcError(-32603, 'nobody is there')
        if kind == 'malformed':
            return {'outcome': 7}
        if kind == 'held':
            self.open.wait(60)
        options = {option['kind']: option['optionId'] for option in params.get('options', [])}
        if kind == 'cancelled':
            return {'outcome': {'outcome': 'cancelled'}}
        return {'outcome': {'outcome': 'selected', 'optionId': options.get(kind, 'no-such')}}

    def serve_session_request_permission(self, params):
        return self.answer(params)

    def serve_elicitation_create(self, params):
        self.answer({})
        return {'action': 'cancel'}


class Editor:
    """Draws the editor's steps and takes them; `log` records them."""

    def __init__(self, random, client, directories):
        self.random, self.client, self.directories = random, client, directories
        self.sessions = []  # (id, the agent's name of its directory)
        self.asked = []     # raw ids
        self.script = Script(random)
        self.log = []
        self.lasts = False

    def ask(self, method, params):
        self.asked.append(self.client.start(method, params))
        return self.asked[-1]

    def session(self):
        return self.random.choice(self.sessions)

    def step_prompt(self):
        session, root = self.session()
        lines = self.script.draw_for(session.split('~')[0], root)
        self.lasts = self.lasts or any(line in LASTING for line in lines)
        self.asked.append(self.client.start_prompt(session, *lines))
        return lines

    def step_cancel(self):
        self.client.notify('session/cancel', {'sessionId': self.session()[0]})

    def step_cancel_request(self):
        if self.asked:
            self.client.notify('$/cancel_request', {
                'requestId': json.loads(self.random.choice(self.asked[-6:]))})

    def step_new(self):
        self.ask('session/new', {'cwd': self.random.choice(self.directories)[0], 'mcpServers': []})

    def step_load(self):
        session, _ = self.session()
        self.ask(self.random.choice(('session/load', 'session/resume')), {
            'sessionId': session, 'cwd': self.random.choice(self.directories)[0],
            'mcpServers': []})

    def step_close(self):
        self.ask('session/close', {'sessionId': self.session()[0]})

    def step_other(self):
        self.ask(self.random.choice(('session/list', '_broker/policy/explain', '_echo',
                                     'session/set_mode')),
                 {'sessionId': self.session()[0], 'modeId': 'code'})

    def step_stray_answer(self):
        number = self.random.randrange(50)
        self.client.send({'jsonrpc': '2.0', 'id': number, 'result': {}})

    def step_pause(self):
        self.client.pause()

    def step_resume(self):
        self.client.resume()

    STEPS = (('prompt', 10), ('cancel', 3), ('cancel_request', 3), ('new', 1), ('load', 1),
             ('close', 1), ('other', 1), ('stray_answer', 1), ('pause', 1), ('resume', 2),
             ('nap', 6), ('kill', 1))

    def draw(self):
        """The name of the next step."""
        names = [name for name, weight in self.STEPS for _ in range(weight)]
        return self.random.choice(names)
