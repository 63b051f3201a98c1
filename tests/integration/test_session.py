#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Limits, deadlines, the trace and terminal authentication, in whole sessions."""

import json
import os
import pty
import select
import subprocess
import time

import processes
from processes import PATIENCE
from case import SANITIZED, Case, main
from host import NEVER


class Limits(Case):
    def open(self, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def test_sessions_over_the_limit_are_refused_before_they_are_made(self):
        client, first = self.open(max_sessions='2')
        client.new_session(self.work)
        raw_id = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
        error = self.failure(client.response(raw_id), 'RESOURCE_LIMIT_EXCEEDED')
        self.assertIn('max-sessions', error['message'])
        self.assertEqual(sum(b'session/new' in line for line in self.journal('<')), 2)
        client.call('session/close', {'sessionId': first})
        client.new_session(self.work)

    def test_requests_over_the_limit_are_refused(self):
        client, session = self.open(max_requests='3')
        waiting = [client.start_prompt(session, 'hang') for _ in range(3)]
        refused = client.response(client.start_prompt(session, 'hang'))
        self.failure(refused, 'RESOURCE_LIMIT_EXCEEDED')
        client.notify('session/cancel', {'sessionId': session})
        for raw_id in waiting:
            self.assertEqual(client.answer(raw_id)['stopReason'], 'cancelled')
        client.prompt(session, 'say after')

    def test_a_silent_prompt_is_given_up(self):
        client, session = self.open(idle_timeout='2s')
        client.prompt(session, *['say on', 'sleep 50'] * 50)  # together longer than idle-timeout
        started = time.monotonic()
        prompt = client.start_prompt(session, 'say d', 'hang')
        error = self.failure(client.response(prompt), 'TIMEOUT_EXCEEDED')
        self.assertIn('idle-timeout', error['message'])
        self.assertGreater(time.monotonic() - started, 1.9)
        client.prompt(session, 'say after')

    def test_the_watch_pauses_while_a_user_is_asked(self):
        client, session = self.open(idle_timeout='2s')

        def slow(params):
            time.sleep(3.9)  # the watch checks again after 4 s; then the agent has two seconds
            return {'outcome': {'outcome': 'cancelled'}}
        client.host.replies['session/request_permission'] = slow
        self.assertEqual(client.prompt(session, 'permission Slowly', 'sleep 300')['stopReason'],
                         'end_turn')

    def test_the_watch_pauses_while_the_broker_runs_a_command(self):
        client, session = self.open(idle_timeout='2s', toolhost='broker')
        prompt = client.prompt(session, 'terminal sleep 3; echo done')
        self.assertEqual(prompt['stopReason'], 'end_turn')
        self.assertIn('done', client.wait_text('terminal/output ->'))

    def test_a_user_who_does_not_answer(self):
        client, session = self.open(permission_timeout='500ms')
        client.host.replies['session/request_permission'] = NEVER
        client.prompt(session, 'permission May I?')
        self.assertIn('cancelled', client.texts()[-1])
        # The question is taken back from the editor.
        client.wait_for(lambda m: m.method == '$/cancel_request')

    def test_an_idle_session_leaves_descriptors_and_memory_alone(self):
        client, session = self.open()
        turn = ('permission May I?', f'write {self.work}/a.txt x', 'diff 200000')
        for _ in range(20):
            client.prompt(session, *turn)
        files = processes.open_files(client.pid)
        memory = processes.private_bytes(client.pid)
        for _ in range(300):
            client.prompt(session, *turn)
        # A descriptor that a worker thread has open at the first count may be closed at the second.
        self.assertTrue(processes.wait_until(lambda: processes.open_files(client.pid) <= files),
                        (processes.open_files(client.pid), files))
        if not SANITIZED:  # sanitizers keep freed memory for a while
            self.assertLess(processes.private_bytes(client.pid) - memory, 8 << 20)


class Versions(Case):
    def test_an_editor_that_speaks_version_2_alone_is_told_and_can_fall_back(self):
        client = self.broker()
        error = client.response(client.start('initialize', {
            'protocolVersion': 2, 'info': {'name': 'e', 'version': '1'},
            'capabilities': {}})).value['error']
        self.assertEqual(error['code'], -32022)
        self.assertEqual((error['data']['requested'], error['data']['supported']), (2, [1]))
        self.assertEqual(error['data']['code'], 'VERSION_NOT_SPOKEN')
        self.assertEqual(client.initialize()['protocolVersion'], 1)
        self.assertTrue(client.new_session(self.work))


class SeveralDirectories(Case):
    def test_each_session_has_its_own_in_one_agent(self):
        other = self.dir / 'other'
        other.mkdir()
        client = self.broker()
        client.initialize()
        sessions = [client.new_session(path) for path in (self.work, other, self.work, other)]
        self.assertEqual(len(set(sessions)), 4)
        self.assertEqual(len(self.agent_pids()), 1)
        prompts = [client.start_prompt(session, f'say {session}', 'sleep 50', 'say again')
                   for session in sessions]
        for raw_id in prompts:
            client.answer(raw_id)
        for session in sessions:
            self.assertEqual(client.texts(session), [session, 'again'])

    def test_a_session_that_waits_holds_up_no_other(self):
        client = self.broker()
        client.initialize()
        first, second = client.new_session(self.work), client.new_session(self.work)
        client.host.replies['session/request_permission'] = NEVER
        waiting = client.start_prompt(first, 'permission May I?')
        client.wait_for(lambda m: m.method == 'session/request_permission')
        for number in range(20):
            client.prompt(second, f'say {number}')
        client.notify('session/cancel', {'sessionId': first})
        self.assertEqual(client.answer(waiting)['stopReason'], 'cancelled')


class Trace(Case):
    def test_every_message_of_every_hop_less_the_secrets(self):
        path = self.dir / 'trace'
        env = dict(self.environment(), SERVICE_TOKEN='tell-nobody-1')
        client = self.broker('--garbage-first', options=[*self.config(), '--trace', str(path)],
                             env=env)
        client.initialize()
        session = client.new_session(self.work, mcpServers=[{
            'name': 'tools', 'command': '/bin/false', 'args': [],
            'env': [{'name': 'X', 'value': 'tell-nobody-2'}]}])
        client.prompt(session, 'env SERVICE_TOKEN', 'say tell-nobody-1 again',
                      'terminal echo hello')
        client.close_stdin()
        client.wait()
        text = path.read_text()
        self.assertEqual(oct(path.stat().st_mode)[-3:], '600')
        self.assertNotIn('tell-nobody', text)
        self.assertIn('***', text)
        records = [json.loads(line) for line in text.splitlines()]
        messages = [record for record in records if 'message' in record]
        noise = [record['noise'] for record in records if 'noise' in record]
        self.assertIn('Welcome to the scripted agent!', noise)  # exact: the agent's own words
        for hop, count in (('editor', len(client.messages)),
                           ('agent 1', len(self.journal('<')) + len(self.journal('>')))):
            self.assertEqual(sum(record['hop'] == hop for record in messages), count, hop)
        self.assertTrue(all(record['direction'] in ('in', 'out') for record in records))
        self.assertEqual(sorted(record['time'] for record in records),
                         [record['time'] for record in records])
        # Only the trace masks secrets: what the agent and the editor got is unchanged.
        self.assertIn('SERVICE_TOKEN=tell-nobody-1', client.texts())
        self.assertTrue(any(b'tell-nobody-2' in line for line in self.journal('<')))


    def test_a_secret_that_the_configuration_gives_the_agent_is_one_too(self):
        path = self.dir / 'trace'
        options = [*self.config(env=['API_KEY=tell-nobody-3', 'PLAIN=tell-everybody']),
                   '--trace', str(path)]
        client = self.broker(options=options)
        client.initialize()
        client.prompt(client.new_session(self.work), 'env API_KEY', 'env PLAIN')
        self.assertIn('API_KEY=tell-nobody-3', client.texts())
        client.close_stdin()
        client.wait()
        self.assertNotIn('tell-nobody', path.read_text())
        self.assertIn('PLAIN=tell-everybody', path.read_text())


    def test_what_the_agent_prints_of_one_is_not_in_the_log(self):
        env = dict(self.environment(), SERVICE_TOKEN='tell-nobody-5')
        client = self.broker(options=self.config(env=['API_KEY=tell-nobody-6']), env=env)
        client.initialize()
        client.prompt(client.new_session(self.work), 'log on stderr: tell-nobody-5, and on',
                      'banner on stdout: tell-nobody-6', 'log the last')
        client.wait_log('the last')
        client.close_stdin()
        client.wait()
        self.assertNotIn('tell-nobody', client.stderr)
        for text in ('on stderr: ***, and on', 'on stdout: ***'):
            self.assertIn(text, client.stderr)

    def test_half_a_secret_is_one_too(self):
        """
        The trace has only the first 256 bytes of a line that is not a message, so a secret can be
        cut there.
        """
        path = self.dir / 'trace'
        env = dict(self.environment(), SERVICE_TOKEN='tell-nobody-4')
        client = self.broker(options=[*self.config(), '--trace', str(path)], env=env)
        client.initialize()
        client.prompt(client.new_session(self.work), 'raw ' + 'x' * 247 + 'tell-nobody-4 and more')
        client.close_stdin()
        client.wait()
        noise = [record['noise'] for record in map(json.loads, path.read_text().splitlines())
                 if 'noise' in record]
        self.assertEqual(noise, ['x' * 247])


class TerminalLogin(Case):
    """The editor runs its agent command again, with the method's args and env, in a terminal."""

    # Commands that an agent would like the editor to run.
    HOSTILE = ('{"id":"bad","name":"Bad","type":"terminal",'
               '"args":["--profile","local","--","sh","-c","touch PWNED"],'
               '"env":{"ACP_BROKER_LOGIN":"0","LD_PRELOAD":"./x.so"}}')

    def offered(self, *flags, **keys):
        client = self.broker('--terminal-auth', *flags, options=self.config(**keys))
        result = client.initialize({'auth': {'terminal': True}})
        client.close_stdin()
        client.wait()
        return [method for method in result['authMethods'] if method.get('type') == 'terminal']

    def log_in(self, method, password=b'', flags=('--terminal-auth',), **keys):
        """Runs the login; returns the exit status and what the terminal showed."""
        argv = [*self.broker_argv(*self.config(**keys), agent=self.agent_argv(*flags)),
                *method.get('args', [])]
        env = dict(self.environment(), **method['env'])
        keyboard, terminal = pty.openpty()
        process = subprocess.Popen(argv, cwd=self.work, env=env, stdin=terminal, stdout=terminal,
                                   stderr=subprocess.PIPE, start_new_session=True)
        os.close(terminal)
        shown = b''
        end = time.monotonic() + PATIENCE
        typed = False
        while time.monotonic() < end:
            if not select.select([keyboard], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(keyboard, 4096)
            except OSError:
                break
            shown += data
            if b'password: ' in shown and not typed:
                typed = True
                os.write(keyboard, password + b'\n')
        os.close(keyboard)
        _, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, shown.decode(), errors.decode()

    def assert_token_alone(self, method):
        self.assertEqual(method['args'], [])
        self.assertEqual(list(method['env']), ['ACP_BROKER_LOGIN'])
        self.assertRegex(method['env']['ACP_BROKER_LOGIN'], '^[0-9a-f]{32}$')

    def test_it_runs_the_agent_s_own_login_in_the_user_s_terminal(self):
        for keys in ({}, {'isolation': 'copy'}):
            with self.subTest(**keys):
                method = self.offered(**keys)[0]
                self.assert_token_alone(method)
                status, shown, errors = self.log_in(method, b'open sesame', **keys)
                self.assertEqual((status, errors), (0, ''), shown)
                self.assertIn('terminal: yes, SCRIPTED_LOGIN=yes', shown)
                self.assertIn('welcome', shown)

    def test_its_exit_status_is_the_login_s_and_it_can_be_tried_again(self):
        method = self.offered()[0]
        status, shown, _ = self.log_in(method, b'wrong')
        self.assertEqual(status, 4, shown)
        status, shown, _ = self.log_in(method, b'open sesame')
        self.assertEqual(status, 0, shown)

    def test_what_was_used_is_of_no_use(self):
        method = self.offered()[0]
        self.assertEqual(self.log_in(method, b'open sesame')[0], 0)
        status, shown, errors = self.log_in(method, b'open sesame')
        self.assertEqual((status, shown), (1, ''))
        self.assertNames(errors, 'ACP_BROKER_LOGIN | done already')

    def test_a_method_without_args_runs_the_agent_itself(self):
        method = self.offered()[1]
        self.assertEqual(method['id'], 'login-2')
        self.assert_token_alone(method)

    def test_the_agent_s_words_are_the_agent_s_alone(self):
        flags = ('--auth-methods', self.HOSTILE)
        method = self.offered(*flags)[2]
        self.assertEqual(method['id'], 'bad')
        self.assert_token_alone(method)
        status, shown, errors = self.log_in(method, flags=())
        self.assertEqual(status, 2, (shown, errors))
        self.assertIn('scripted-agent: unknown option --profile', errors)
        self.assertFalse((self.work / 'PWNED').exists())

    def test_a_member_that_stands_twice_is_not_offered(self):
        twice = '{"id":"two","type":"terminal","args":[],"args":["x"]}'
        self.assertEqual([method['id'] for method in self.offered('--auth-methods', twice)],
                         ['login', 'login-2'])

    def test_what_the_agent_says_is_for_the_user_s_eyes_alone(self):
        self.offered()
        notes = list((self.dir / 'home/state/acp-broker/logins').iterdir())
        self.assertEqual(len(notes), 2)
        self.assertEqual({note.stat().st_mode & 0o777 for note in notes}, {0o600})

    def test_the_agent_does_not_see_the_marker(self):
        env = dict(self.environment())
        client = self.broker(env=env)
        client.initialize()
        client.prompt(client.new_session(self.work), 'env ACP_BROKER_LOGIN')
        self.assertEqual(client.texts(), ['ACP_BROKER_LOGIN=(unset)'])


class Environment(Case):
    """
    Which of the broker's variables an agent on this machine gets, and what the editor is told.
    """

    GIVEN = {'DAYTONA_API_KEY': 'tell-nobody-7', 'ACP_BROKER_ODD': 'x', 'ACP_BROKER_RUN': 'y',
             'USERS_TOKEN': 'the-user-s', 'DROPPED': 'z'}

    def seen(self, *names, **keys):
        """The values of some variables in the agent and in a terminal, and the capabilities."""
        client = self.broker(options=self.config(**keys), env=self.environment() | self.GIVEN)
        told = client.initialize()['_meta']['broker']['capabilities']
        client.prompt(client.new_session(self.work), *(f'env {name}' for name in names))
        texts = client.texts()
        client.finish()
        return dict(text.split('=', 1) for text in texts), told

    def test_a_copy_keeps_it_less_the_broker_s_own_and_what_is_dropped(self):
        values, told = self.seen(*self.GIVEN, isolation='copy', drop_env='DROPPED')
        self.assertEqual(values, {
            'DAYTONA_API_KEY': '(unset)', 'ACP_BROKER_ODD': '(unset)', 'ACP_BROKER_RUN': 'y',
            'USERS_TOKEN': 'the-user-s', 'DROPPED': '(unset)'})
        self.assertEqual((told['isolated'], told['separate_files'], told['confined']),
                         (False, True, False))

    def test_in_the_workspace_itself_it_is_whole_less_what_is_dropped(self):
        values, told = self.seen(*self.GIVEN)
        self.assertEqual(values, self.GIVEN)
        self.assertEqual((told['isolated'], told['separate_files'], told['confined']),
                         (False, False, False))
        values, _ = self.seen(*self.GIVEN, drop_env=['DROPPED', 'USERS_TOKEN'])
        self.assertEqual(values, self.GIVEN | {'DROPPED': '(unset)', 'USERS_TOKEN': '(unset)'})

    def test_a_terminal_of_the_broker_s_gets_no_more_than_the_agent(self):
        client = self.broker(options=self.config(toolhost='broker', drop_env='DROPPED'),
                             env=self.environment() | self.GIVEN)
        client.initialize()
        client.prompt(client.new_session(self.work), 'terminal echo "<$DROPPED|$USERS_TOKEN>"')
        self.assertIn('<|the-user-s>', client.wait_text('terminal/output ->'))


class Toolhost(Case):
    """An agent that is not isolated works on this machine: the editor serves what it offers."""

    def test_the_editor_s_capabilities_reach_the_agent_as_they_are(self):
        for capabilities in ({'fs': {'readTextFile': True, 'writeTextFile': True},
                              'terminal': True, '_meta': {'terminal_output': True}},
                             {'elicitation': {'form': {}}, 'fs': {'readTextFile': True,
                                                                  'writeTextFile': True},
                              'terminal': True}):
            client = self.broker(options=['--toolhost', 'editor'])
            client.initialize(capabilities)
            greeting = json.loads(self.journal('<')[0])
            self.assertEqual(greeting['params']['clientCapabilities'], capabilities)

    def test_files_and_terminals_are_asked_of_the_editor(self):
        client = self.broker()
        client.initialize()
        client.host.replies['fs/read_text_file'] = {'content': 'an unsaved buffer'}
        session = client.new_session(self.work)
        client.prompt(session, f'read {self.work}/no-such-file', 'terminal echo hi')
        self.assertIn('an unsaved buffer', client.texts()[0])
        self.assertEqual([method for method, _ in client.host.seen],
                         ['fs/read_text_file', 'terminal/create', 'terminal/wait_for_exit',
                          'terminal/output', 'terminal/release'])


if __name__ == '__main__':
    main()
