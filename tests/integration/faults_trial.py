# SPDX-License-Identifier: MIT
"""One session through the broker while strace makes one of its system calls fail."""

import os
import re
import signal
import subprocess

import processes
from processes import PATIENCE
from case import BROKER, Case

GUARD = 'acp-guard'
ATTEMPTS = 2         # a fault may cost one session; the next one has to succeed
PROMPT = ('say one', 'read {work}/note', 'write {work}/copy 2', 'permission go on', 'say two')
# A deadline must not hide a fault that nobody may notice; these deadlines are for the other faults.
NOTICED = {'stop_eof_timeout': '1s', 'stop_term_timeout': '1s', 'stop_kill_timeout': '5s',
           'drain_timeout': '1s', 'start_timeout': '20s'}
CAPABILITIES = {'fs': {'readTextFile': True, 'writeTextFile': True}, 'terminal': True}

# With an exit status of 1, exactly one line of stderr must look like this.
UNDERSTANDABLE = re.compile(r'acp-broker: \S[^:]+: \S.{7,}')

HIT = re.compile(r'\((?:INJECTED|DELAYED)\)|killed by SIGKILL')

# Runs the whole command the first time, and later only the words after its "--".
FIRST_TIME = ('mkdir "$0" 2>/dev/null && exec "$@"; '
              'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')

NO_PTRACE = '''\
the fault tests trace the broker with strace, and that does not work here:
%s
Install strace and allow ptrace: in a container add the capability SYS_PTRACE (docker run
--cap-add=SYS_PTRACE) or a seccomp profile that permits ptrace; elsewhere set the kernel's
kernel.yama.ptrace_scope to 0 or 1.'''


def why_no_ptrace():
    """None if strace works; otherwise a text that says what to allow."""
    argv = ['strace', '-f', '-o', '/dev/null', '-e', 'inject=getppid:error=EIO', '/bin/true']
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        return NO_PTRACE % error
    return None if result.returncode == 0 else NO_PTRACE % result.stderr


class Fault:
    """
    The fault that strace injects, and the processes that get it. `broker` is its main thread;
    `spawner` is that process alone; `keepers` are the spawner and every process that it forks from
    then on; `all` is every process from the broker's start. With `keepers` and `all`, strace lets
    go of a process at its execve. `agent` is the first agent that is started. strace counts the
    calls of each process separately.
    """

    def __init__(self, where, *inject, quiet=False, is_sure=True):
        self.where, self.inject = where, inject
        self.quiet = quiet      # neither the editor nor the agent may notice it
        self.is_sure = is_sure  # every session makes the call, whichever process is faster

    def __str__(self):
        return f'{self.where}: {" ".join(self.inject)}'

    def strace(self, log):
        argv = ['strace', '-qq', '-I', '2', '-o', str(log)]
        for words in self.inject:
            argv += ['-e', f'inject={words}']
        if self.inject:  # without it this is a survey, which traces every call
            names = {words.split(':')[0] for words in self.inject}
            argv += ['-e', f'trace={",".join(sorted(names))}']
        if self.where in ('all', 'keepers'):
            argv += ['-f', '-b', 'execve']
        return argv


class Outcome:
    """The result of a session."""

    def __init__(self):
        self.troubles = []    # what the trial itself found wrong
        self.errors = []      # the errors that answered our requests
        self.refusals = []    # the errors that answered the agent's requests
        self.was_well = False  # a whole session went as expected
        self.was_cancelled = False
        self.status = None
        self.stderr = self.crash = ''
        self.asked, self.answered, self.garbage = [], [], []
        self.hits = 0  # how often strace injected
        self.log = ''

    def complaints(self):
        return [line for line in self.stderr.splitlines() if line.startswith('acp-broker: ')]


class Room(Case):
    """The directory and the processes of one trial."""

    def runTest(self):
        """Never run: unittest requires it."""

    def environment(self):
        env = super().environment()
        # The leak checker uses ptrace, too, and so fails under strace.
        env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
        return env

    def mine(self):
        """The processes that still run, except strace itself."""
        return [pid for pid in self.running() if processes.name_of(pid) != 'strace']


class Trial:
    """
    A whole session, tried again if it is refused. `options` are further options of the broker, with
    DIR for the trial's directory; `wrapper` is a command that starts the broker.
    """

    def __init__(self, fault, options=(), wrapper=(), attempts=ATTEMPTS):
        self.fault = fault
        self.options, self.wrapper, self.attempts = options, wrapper, attempts
        self.outcome = Outcome()
        self.room = Room()
        self.log = None
        self.client = None
        self.tracer = None  # attached to the spawner

    def run(self):
        self.room.setUp()
        self.log = self.room.dir / 'strace'
        try:
            (self.room.work / 'note').write_text('one line\n')
            self.start()
            self.session()
            self.end()
        except AssertionError as error:
            self.outcome.troubles.append(str(error))
        finally:
            self.clean_up()
        return self

    # ---- the start ----

    def start(self):
        room = self.room
        options = [word.replace('DIR', str(room.dir)) for word in self.options]
        agent = room.agent_argv()
        if self.fault.where == 'agent':
            agent = ['/bin/sh', '-c', FIRST_TIME, str(room.dir / 'once'),
                     *self.fault.strace(self.log), '-D', '--', *agent]
        options += room.config(**({} if self.fault.quiet else NOTICED))
        argv = [*self.wrapper, BROKER, *options, '--', *agent]
        if self.fault.where in ('broker', 'all'):
            argv = [*self.fault.strace(self.log), '-D', *argv]
        self.client = room.start(argv)
        if self.fault.where in ('spawner', 'keepers'):
            self.attach()

    def spawner(self):
        for pid in processes.descendants(self.client.pid):
            if processes.name_of(pid) == GUARD:
                return pid
        return None

    def attach(self):
        """While the broker waits for its editor, strace attaches to the spawner."""
        spawner = processes.wait_until(self.spawner, PATIENCE, 0.002)
        assert spawner, 'the broker has no spawner'
        self.tracer = subprocess.Popen([*self.fault.strace(self.log), '-p', str(spawner)],
                                       stderr=subprocess.DEVNULL)
        mark = b'TracerPid:\t%d\n' % self.tracer.pid
        traced = processes.wait_until(
            lambda: mark in processes.read_file(f'/proc/{spawner}/status'),
            PATIENCE, 0.002)
        assert traced, 'strace does not attach'

    def detach(self):
        """
        Detaches strace from all processes: otherwise every new process would meet the fault again.
        """
        tracers = [pid for pid in self.room.running() if processes.name_of(pid) == 'strace']
        if self.tracer:
            tracers.append(self.tracer.pid)
        for pid in tracers:
            processes.kill(pid, signal.SIGTERM)
        gone = processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in tracers))
        assert gone, 'strace does not let go'

    # ---- the session ----

    def answer(self, method, params):
        """Returns the result; None if the broker refused the request or has ended."""
        raw_id = self.client.start(method, params)
        try:
            value = self.client.response(raw_id, PATIENCE).value
        except AssertionError as error:
            if self.client.ended:
                return None
            raise AssertionError(f'{method} was not answered: {error}') from None
        if 'error' in value:
            self.outcome.errors.append(value['error'])
            return None
        return value['result']

    def attempt(self):
        """Plays a whole session; returns False if one of its steps was refused."""
        work = self.room.work
        if self.answer('initialize', {'protocolVersion': 1,
                                      'clientCapabilities': CAPABILITIES}) is None:
            return False
        opened = self.answer('session/new', {'cwd': str(work), 'mcpServers': []})
        if opened is None:
            return False
        (work / 'copy').unlink(missing_ok=True)
        before = len(self.client.texts())
        text = '\n'.join(PROMPT).format(work=work)
        result = self.answer('session/prompt', {'sessionId': opened['sessionId'],
                                                'prompt': [{'type': 'text', 'text': text}]})
        if result is None:
            return False
        self.check(result['stopReason'], self.client.texts()[before:])
        return True

    def check(self, reason, said):
        """
        Checks a prompt that was answered well: it did everything, except what it reports as
        refused.
        """
        outcome = self.outcome
        refusals = [line for line in said if ' -> error ' in line]
        outcome.refusals += refusals
        if reason == 'cancelled':
            outcome.was_cancelled = True
        elif reason != 'end_turn' or len(said) != len(PROMPT):
            outcome.troubles.append(f'answered as if all was well: {reason} {said}')
        elif not refusals:
            outcome.was_well = True
            copy = self.room.work / 'copy'
            if not copy.exists() or copy.read_text() != '2':
                outcome.troubles.append('answered as if all was well, and no file was written')

    def session(self):
        for number in range(self.attempts):
            if self.attempt() or self.client.ended:
                return
            if number == 0 and self.fault.where in ('spawner', 'keepers', 'all'):
                self.detach()
        if self.attempts == ATTEMPTS:
            self.outcome.troubles.append('the fault is over, and a new session is refused, too')

    # ---- the end ----

    def end(self):
        self.client.close_stdin()
        self.outcome.status = self.client.wait(PATIENCE)
        gone = processes.wait_until(lambda: not self.room.mine())
        if not gone:
            self.outcome.troubles.append(
                'left behind:\n' + processes.describe(self.room.mine()))
        processes.wait_until(lambda: self.client.ended, PATIENCE)

    def clean_up(self):
        outcome, client = self.outcome, self.client
        if self.tracer:
            self.tracer.terminate()
            self.tracer.wait()
        if client:
            processes.wait_until(lambda: not self.room.running())
            if os.path.exists(self.log):
                outcome.log = self.log.read_text(errors='replace')
                outcome.hits = len(HIT.findall(outcome.log))
        try:
            self.room.clean_up()
        except AssertionError as error:
            if not client.crash():
                outcome.troubles.append(str(error))
        if client:
            outcome.crash = client.crash()
            outcome.stderr = client.stderr
            outcome.answered = [message.id for message in client.received if message.is_response]
            outcome.asked = [message.id for message in client.sent if message.is_request]
            outcome.garbage = [message.line for message in client.received
                               if message.value is None]


# ---- the verdict ----

def judge_session(outcome):
    return [*outcome.troubles, *judge_errors(outcome), *judge_answers(outcome)]


def judge_errors(outcome):
    for error in outcome.errors:
        data = error.get('data') or {}
        if not data.get('code') or not data.get('stage') or len(error['message']) < 20:
            yield f'an error nobody understands: {error}'
        if data.get('code') == 'TIMEOUT_EXCEEDED':
            yield f'nothing but a deadline ended it: {error}'


def judge_answers(outcome):
    answered = outcome.answered
    if len(set(answered)) != len(answered) or not set(answered) <= set(outcome.asked):
        yield f'answered twice, or never asked: {answered}'
    if outcome.garbage:
        yield f'no JSON: {outcome.garbage}'
    missing = set(outcome.asked) - set(answered)
    if outcome.status == 0 and (missing or outcome.was_cancelled):
        yield f'ended as if all was well, without an answer to {missing or "the prompt"}'


def judge_end(outcome):
    if outcome.crash:
        yield outcome.crash
    complaints = outcome.complaints()
    if outcome.status not in (0, 1, None):
        yield f'exit status {outcome.status}'
    elif outcome.status == 1 and len(complaints) != 1:
        yield f'exit status 1, explained by {len(complaints)} lines: {complaints}'
    elif outcome.status == 1 and not UNDERSTANDABLE.fullmatch(complaints[0]):
        yield f'exit status 1, explained by what nobody understands: {complaints[0]}'


def judge_quiet(outcome):
    if (not outcome.was_well or outcome.status != 0 or outcome.errors or outcome.refusals or
            '<3>' in outcome.stderr):
        yield f'it was to go unnoticed: {outcome.errors} {outcome.refusals}'


def judge(trial):
    """What is wrong with the outcome of a trial, as one text; empty where nothing is."""
    outcome = trial.outcome
    wrong = [*judge_session(outcome), *judge_end(outcome)]
    if trial.fault.quiet:
        wrong += judge_quiet(outcome)
    return verdict(trial, wrong)


def judge_killed(trial):
    """The broker itself was killed: nobody has to answer, but nothing may be left."""
    outcome = trial.outcome
    wrong = [*judge_session(outcome)]
    if outcome.status not in (0, -signal.SIGKILL) or outcome.complaints():
        wrong.append(f'exit status {outcome.status}')
    return verdict(trial, wrong)


# Messages of ld.so when it lacks memory.
NOT_LOADED = ('error while loading shared libraries', 'cannot allocate TLS data structures')


def judge_memory(trial):
    """
    Without memory the broker aborts, by design, and says so; with even less it cannot be loaded.
    """
    outcome = trial.outcome
    if outcome.status == 127 and any(words in outcome.stderr for words in NOT_LOADED):
        return ''
    if outcome.status != -signal.SIGABRT:
        return judge(trial)
    wrong = [*judge_session(outcome)]
    if outcome.stderr != 'acp-broker: out of memory\n':
        wrong.append('it aborted')
    return verdict(trial, wrong)


def verdict(trial, wrong):
    if not wrong:
        return ''
    stderr = f'stderr: {trial.outcome.stderr[-1500:]}'
    return f'{trial.fault} {" ".join(trial.wrapper)}: ' + '\n  '.join([*wrong, stderr])
