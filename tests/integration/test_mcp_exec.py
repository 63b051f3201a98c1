#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mcp-exec: the broker's own MCP server, by which an agent runs commands under the policy."""

import json
import os
import signal
import socket
import subprocess

import processes

from acp import RpcError
from case import main
from host import NEVER
from mcp_case import ASK, McpExecCase
from processes import PATIENCE
from sync_case import TurnCase


class Offer(McpExecCase):
    def test_the_server_follows_the_editor_s_own(self):
        options = self.config(mcp_exec='yes')
        client = self.broker(options=options)
        client.initialize()
        mine = {'name': 'mine', 'command': 'true', 'args': [], 'env': []}
        client.new_session(self.work, mcpServers=[mine])
        self.assertEqual([server['name'] for server in self.given()], ['mine', 'acp-broker'])
        self.assertEqual(self.given()[0], mine)
        client.call('session/load', {'sessionId': 'old', 'cwd': str(self.work),
                                     'mcpServers': []})
        self.assertEqual([server['name'] for server in self.given(method='session/load')],
                         ['acp-broker'])

    def test_without_the_key_there_is_none(self):
        self.begin(mcp_exec='no')
        self.assertEqual(self.given(), [])
        self.assertEqual(list(self.dir.glob('acp-mcp-*')), [])

    def test_each_session_has_its_own_secret_and_no_argument_has_it(self):
        self.begin()
        one = self.entry()
        self.client.new_session(self.work)
        other = self.entry()
        secrets = [{item['name']: item['value'] for item in entry['env']}['ACP_BROKER_MCP_SECRET']
                   for entry in (one, other)]
        self.assertNotEqual(*secrets)
        for secret in secrets:
            self.assertNotIn(secret, ' '.join(one['args'] + other['args']))

    def left_out(self, *agent, **keys):
        client = self.broker(options=self.config(mcp_exec='yes', **keys), agent=agent or None)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'say settled')
        self.assertEqual(self.given(), [])
        titles = [m.params['update']['title'] for m in client.received
                  if m.method == 'session/update' and m.params['update'].get('toolCallId', '')
                  .startswith('acp-broker-notice-')]
        self.assertEqual(len(titles), 1, titles)
        self.assertNames(titles[0], 'acp-broker | mcp-exec')

    def test_an_agent_with_a_sandbox_of_its_own_gets_none_and_the_user_is_told(self):
        for name in ('codex-acp', 'bwrap'):
            with self.subTest(name):
                link = self.dir / name
                link.symlink_to(self.agent_argv()[0])
                self.left_out(str(link), *self.agent_argv()[1:])

    def test_the_socket_is_gone_after_the_end(self):
        self.begin()
        folder = next(self.dir.glob('acp-mcp-*'))
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.client.close_stdin()
        self.client.wait()
        self.assertFalse(folder.exists())


class Protocol(McpExecCase):
    def test_initialize_agrees_on_a_version(self):
        self.begin()
        for version, agreed in (('2024-11-05', '2024-11-05'), ('2025-11-25', '2025-11-25'),
                                ('1999-01-01', '2025-11-25')):
            result = self.greet(self.start_server(), version)
            self.assertEqual((result['protocolVersion'], result['capabilities']),
                             (agreed, {'tools': {}}))

    def test_the_tools_are_listed(self):
        self.begin()
        server = self.start_server()
        with self.assertRaises(RpcError):
            server.call('tools/list')
        self.greet(server)
        tools = server.call('tools/list')['tools']
        self.assertEqual([tool['name'] for tool in tools], ['exec', 'run'])
        self.assertIn('python', tools[1]['inputSchema']['properties']['language']['enum'])
        self.assertEqual(server.call('ping'), {})

    def test_an_id_is_answered_to_the_byte(self):
        self.begin()
        server = self.connect()
        for raw in (b'"\\u0061"', b'9007199254740993', b'-1.50e3'):
            server.send_line(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % raw)
            self.assertEqual(server.answer(raw), {})

    def test_hostile_lines_are_answered_with_errors_and_the_server_goes_on(self):
        self.begin()
        server = self.connect()
        deep = b'[' * 100000
        call = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec",'
                b'"arguments":{"command":["false"],"command":["touch","%s"]}}}'
                % str(self.dir / 'touched').encode())
        for line in (b'?', deep, call, b'[]', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
                     b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b'x' * 300),
                     b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"%s"}' % (b'y' * (1 << 20))):
            before = len(server.received)
            server.outgoing.put(line + b'\n')
            self.assertTrue(processes.wait_until(
                lambda before=before: len(server.received) > before, PATIENCE))
            self.assertIn('error', server.received[-1].value)
        with self.assertRaises(RpcError):
            server.call('no/such')
        with self.assertRaises(RpcError):
            server.call('tools/call', {'name': 'no-such', 'arguments': {}})
        self.assertEqual(server.call('ping'), {})
        self.assertFalse((self.dir / 'touched').exists())

    def test_a_refused_line_is_answered_with_its_id(self):
        self.begin()
        server = self.connect()
        long = b'"params":{"x":"%s"}' % (b'y' * (1 << 20))
        for line in (b'{"jsonrpc":"2.0","id":"a1","method":"ping",%s}' % long,
                     b'{"jsonrpc":"2.0","method":"ping",%s,"id":"a2"}' % long,
                     b'{"jsonrpc":"2.0","id":"a3","method":"ping"',
                     b'{"jsonrpc":"2.0","id":"a4","method":"ping","params":{"name":1,"name":2}}',
                     b'{"id":"a5","method":"ping"}'):
            server.outgoing.put(line + b'\n')
        for number in range(1, 6):
            server.wait_for(lambda m, n=number: 'error' in m.value and m.id == b'"a%d"' % n)

    def test_a_broken_answer_or_notification_is_not_answered(self):
        self.begin()
        server = self.connect()
        before = len(server.received)
        server.outgoing.put(b'{"jsonrpc":"2.0","id":1,"result":{}\n')
        self.assertEqual(server.call('ping'), {})
        self.assertEqual(len(server.received), before + 1)

    def test_requests_are_answered_after_the_end_of_the_input(self):
        self.begin()
        entry = self.entry()
        env = {item['name']: item['value'] for item in entry['env']}
        lines = [{'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18'}},
                 {'id': 2, 'method': 'tools/call', 'params': {
                     'name': 'exec', 'arguments': {'command': ['echo', 'late']}}},
                 {'id': 3, 'method': 'ping'}]
        text = '\n'.join(json.dumps({'jsonrpc': '2.0', **line}) for line in lines)
        result = subprocess.run([entry['command'], *entry['args']], input=text.encode(),
                                stdout=subprocess.PIPE, env={**self.environment(), **env},
                                timeout=PATIENCE, check=True)
        answers = {a['id']: a for a in map(json.loads, result.stdout.splitlines())}
        self.assertEqual(sorted(answers), [1, 2, 3])
        self.assertIn('late', answers[2]['result']['content'][1]['text'])

    def test_arguments_that_are_wrong_are_told_to_the_model(self):
        self.begin()
        server = self.connect()
        for wrong in ({}, {'command': []}, {'command': 'ls'}, {'command': ['']},
                      {'command': ['a\0b']}, {'command': ['ls'], 'cwd': 'relative'},
                      {'command': ['ls'], 'timeoutMs': 0}, {'command': ['ls'], 'stdin': 7}):
            is_error, _ = self.tool(server, **wrong)
            self.assertTrue(is_error, wrong)
        self.assertTrue(self.tool(server, 'run', language='cobol', code='x')[0])

    def test_a_wrong_secret_is_refused_at_once(self):
        self.begin()
        server = self.start_server(ACP_BROKER_MCP_SECRET='0' * 32)
        self.assert_refused(server)

    def test_the_program_without_a_broker_names_the_key(self):
        self.begin()
        server = self.start_server(ACP_BROKER_MCP_SOCKET=str(self.dir / 'none'))
        self.assertEqual(server.wait(), 1)
        self.assertNames(server.stderr, 'mcp-exec | none')

    def test_too_many_clients_are_refused_at_once_and_one_that_leaves_makes_room(self):
        self.begin()
        servers = [self.connect() for _ in range(4)]
        refused = self.start_server()
        self.assert_refused(refused)
        servers[0].close_stdin()
        servers[0].wait()
        self.assertEqual(self.exec(self.connect(), 'true'), (False, ['exit code 0']))

    def test_connections_without_a_secret_are_limited(self):
        self.begin()
        path = {item['name']: item['value'] for item in self.entry()['env']}[
            'ACP_BROKER_MCP_SOCKET']
        strangers = []
        for _ in range(9):
            strangers.append(socket.socket(socket.AF_UNIX))
            self.addCleanup(strangers[-1].close)
            strangers[-1].settimeout(PATIENCE)
            strangers[-1].connect(path)
        self.assertIn(b'"error"', strangers[-1].recv(1000))
        self.assertEqual(strangers[-1].recv(1000), b'')
        for stranger in strangers:
            stranger.close()
        self.connect()

    def test_a_client_that_asks_much_at_once_gets_every_answer(self):
        self.begin()
        client = self.connect()
        line = json.dumps({'jsonrpc': '2.0', 'id': 'x' * 200, 'method': 'tools/list'}).encode()
        before = len(client.received)
        client.send_bytes((line + b'\n') * 5000)
        self.assertTrue(processes.wait_until(
            lambda: len(client.received) == before + 5000, PATIENCE), len(client.received))

    def test_a_client_that_does_not_read_is_not_read_and_others_go_on(self):
        self.begin()
        deaf = self.connect()
        deaf.pause()
        line = json.dumps({'jsonrpc': '2.0', 'id': 'x' * 200, 'method': 'tools/list'}).encode()
        deaf.send_bytes((line + b'\n') * 20000)
        other = self.connect()
        self.assertEqual(self.exec(other, 'true'), (False, ['exit code 0']))
        self.assertTrue(processes.wait_until(lambda: not deaf.outgoing.empty()
                                             or len(deaf.sent) > 20000, PATIENCE))
        self.kill(deaf.pid)
        self.assertEqual(self.exec(self.connect(), 'true'), (False, ['exit code 0']))


class Commands(McpExecCase):
    def test_both_outputs_and_the_end(self):
        self.begin()
        server = self.connect()
        self.assertEqual(self.exec(server, 'sh', '-c', 'echo "$1"; echo bad >&2; exit 7', 'sh',
                                   'a  $HOME'),
                         (True, ['exit code 7', 'stdout:\na  $HOME\n', 'stderr:\nbad\n']))
        self.assertEqual(self.exec(server, 'sh', '-c', 'kill -TERM $$'),
                         (True, ['killed by SIGTERM']))
        self.assertEqual(self.exec(server, 'pwd')[1][1], f'stdout:\n{self.work}\n')

    def test_input_and_the_directory(self):
        self.begin()
        inner = self.work / 'inner'
        inner.mkdir()
        server = self.connect()
        self.assertEqual(self.exec(server, 'sh', '-c', 'cat; pwd', stdin='typed\n',
                                   cwd=str(inner)),
                         (False, ['exit code 0', f'stdout:\ntyped\n{inner}\n']))
        (self.work / 'out').symlink_to('/')
        for outside in ('/', str(self.work / '..'), str(self.work / 'out')):
            is_error, texts = self.exec(server, 'touch', str(self.dir / 'touched'), cwd=outside)
            self.assertTrue(is_error)
            self.assertNames(texts[0], outside)
        self.assertFalse((self.dir / 'touched').exists())

    def test_languages(self):
        self.begin()
        server = self.connect()
        self.assertEqual(self.tool(server, 'run', language='python', code='print("$(id)", 6*7)'),
                         (False, ['exit code 0', 'stdout:\n$(id) 42\n']))
        self.assertEqual(self.tool(server, 'run', language='sh', code='read x; echo "<$x>"',
                                   stdin='in'),
                         (False, ['exit code 0', 'stdout:\n<in>\n']))

    def test_a_long_output_is_cut_between_characters_and_says_so(self):
        self.begin()
        server = self.connect()
        code = 'import sys; sys.stdout.write("x" + "\u20ac" * 100000)'
        _, texts = self.tool(server, 'run', language='python', code=code)
        self.assertNames(texts[1].splitlines()[-1], 'stdout | 65536')
        self.assertNotIn('\ufffd', texts[1])
        self.assertEqual(texts[1].count('\u20ac'), 65535 // 3)

    def test_a_deadline_kills_it(self):
        self.begin(terminal_timeout='300ms')
        server = self.connect()
        for more in ({}, {'timeoutMs': 100}):
            is_error, texts = self.exec(server, 'sleep', '1000', **more)
            self.assertTrue(is_error)
            self.assertEqual(len(texts), 1)

    def test_commands_that_fail_leave_room_for_others(self):
        self.begin(max_terminals=2)
        server = self.connect()
        for _ in range(6):
            is_error, texts = self.exec(server, '/no/such/program')
            self.assertTrue(is_error)
            self.assertNames(texts[0], '/no/such/program')
        self.assertEqual(self.exec(server, 'true'), (False, ['exit code 0']))

    def test_calls_at_once_are_limited(self):
        self.begin(max_terminals=2)
        server = self.connect()
        first, pid = self.sleeper(server, 'one')
        self.sleeper(server, 'two')
        self.assertTrue(self.exec(server, 'true')[0])
        self.kill(pid)
        self.assertEqual(self.content(server.answer(first)), (True, ['killed by SIGKILL']))
        self.assertEqual(self.exec(server, 'true'), (False, ['exit code 0']))

    def test_it_runs_in_the_session_s_copy(self):
        self.begin(isolation='copy')
        server = self.connect()
        self.assertEqual(self.exec(server, 'sh', '-c', 'echo made > file'),
                         (False, ['exit code 0']))
        self.assertFalse((self.work / 'file').exists())
        self.client.prompt(self.session, 'say on')
        self.assertEqual((self.work / 'file').read_text(), 'made\n')
        self.assertTrue(self.exec(server, 'true', cwd='/')[0])


class Policy(McpExecCase):
    def test_a_mode_that_asks_asks_and_the_question_shows_all(self):
        self.begin(policy=('mode = ask-all',))
        server = self.connect()
        self.assertEqual(self.exec(server, 'sh', stdin='echo hidden'),
                         (False, ['exit code 0', 'stdout:\nhidden\n']))
        question = self.questions(self.client)[0]
        self.assertEqual(question['sessionId'], self.session)
        self.assertIn('echo hidden', json.dumps(question))
        self.chooses(self.client, 'reject_once')
        self.assertTrue(self.exec(server, 'touch', str(self.dir / 'touched'))[0])
        self.assertFalse((self.dir / 'touched').exists())
        self.assertEqual(len(self.questions(self.client)), 2)

    def test_always_holds_for_the_same_command_and_input(self):
        self.begin(policy=('mode = ask-all',))
        server = self.connect()
        self.chooses(self.client, 'allow_always')
        for given in ('echo 1', 'echo 1', 'echo 2'):
            self.exec(server, 'sh', stdin=given)
        self.assertEqual(len(self.questions(self.client)), 2)

    def test_rules_decide_and_the_audit_has_them(self):
        self.begin(policy=('mode = approve-all', 'deny = terminal rm *'),
                   broker=(f'audit = {self.dir}/audit',))
        server = self.connect()
        is_error, texts = self.exec(server, 'rm', 'x')
        self.assertTrue(is_error)
        self.assertNames(texts[0], 'terminal rm')
        self.exec(server, 'true', 'x')
        rows = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual([(row['session'], row['operation'], row['subject'], row['decision'],
                           row['by']) for row in rows],
                         [(self.session, 'terminal/create', 'rm x', 'reject-once', 'policy'),
                          (self.session, 'terminal/create', 'true x', 'allow-once', 'policy')])

    def test_a_program_with_a_blank_in_its_name_is_no_line_of_a_shell(self):
        self.begin(policy=('mode = deny-all', 'allow = terminal make *'))
        (self.work / 'make tests').mkdir()
        program = self.work / 'make tests/unit'
        program.write_text('#!/bin/sh\necho > ran\n')
        program.chmod(0o755)
        server = self.connect()
        self.assertTrue(self.exec(server, 'make tests/unit')[0])
        self.assertFalse((self.work / 'ran').exists())

    def test_no_call_runs_in_a_paused_session(self):
        self.begin()
        server = self.connect()
        named = {'sessionId': self.session}
        self.client.call('_broker/session/pause', named)
        is_error, texts = self.exec(server, 'touch', 'made')
        self.assertTrue(is_error)
        self.assertNames(texts[0], 'paused')
        self.client.call('_broker/session/resume', named)
        self.assertFalse((self.work / 'made').exists())
        self.assertFalse(self.exec(server, 'touch', 'made')[0])

    def test_a_mode_that_is_an_option_counts_whoever_sets_it_last(self):
        self.begin()
        server = self.connect()
        for value, is_refused in (('plan', True), ('code', False)):
            option = {'id': 'mode', 'name': 'Mode', 'type': 'select', 'currentValue': value,
                      'options': [{'value': 'plan', 'name': 'Plan'},
                                  {'value': 'code', 'name': 'Code'}]}
            self.client.prompt(self.session, 'update ' + json.dumps(
                {'sessionUpdate': 'config_option_update', 'configOptions': [option]}))
            self.assertEqual(self.exec(server, 'true')[0], is_refused, value)
        self.client.call('session/set_mode', {'sessionId': self.session, 'modeId': 'plan'})
        self.assertTrue(self.exec(server, 'true')[0])

    def test_a_mode_that_plans_or_reads_runs_nothing(self):
        self.begin(broker=(f'audit = {self.dir}/audit',))
        server = self.connect()
        for mode, is_refused in (('plan', True), ('read-only', True), ('code', False)):
            self.client.call('session/set_mode', {'sessionId': self.session, 'modeId': mode})
            self.assertEqual(self.exec(server, 'true')[0], is_refused, mode)
        rows = [json.loads(line)['decision']
                for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual(rows, ['reject-once', 'reject-once', 'allow-once'])

    def test_a_mode_that_the_agent_began_in_or_reports_counts(self):
        modes = {'currentModeId': 'plan', 'availableModes': [{'id': 'plan', 'name': 'Plan'}]}
        self.begin('--modes', f'"modes":{json.dumps(modes)}')
        server = self.connect()
        self.assertTrue(self.exec(server, 'true')[0])
        for mode, is_refused in (('code', False), ('plan', True)):
            self.client.prompt(self.session, 'update ' + json.dumps(
                {'sessionUpdate': 'current_mode_update', 'currentModeId': mode}))
            self.assertEqual(self.exec(server, 'true')[0], is_refused, mode)

    def test_an_agent_cannot_take_the_call_s_answer_or_question(self):
        """The agent uses every id that it can know; the call goes its own way."""
        self.begin(policy=('mode = ask-all',))
        self.client.host.replies[ASK] = NEVER
        server = self.connect()
        call = self.begin_tool(server, command=['true'])
        question = self.asked()[0]
        self.client.prompt(self.session, 'raw ' + json.dumps(
            {'jsonrpc': '2.0', 'method': '$/cancel_request', 'params': {'requestId': 0}}),
            'say on')
        option = self.questions(self.client)[0]['options'][0]['optionId']
        self.client.send_line(json.dumps({
            'jsonrpc': '2.0', 'id': json.loads(question),
            'result': {'outcome': {'outcome': 'selected', 'optionId': option}}}).encode())
        self.assertEqual(self.content(server.answer(call)), (False, ['exit code 0']))
        self.assertFalse([line for line in self.journal('<') if b'"result"' in line
                          and b'exit' in line])


class TakenBack(McpExecCase):
    def cancel(self, server, call):
        server.notify('notifications/cancelled', {'requestId': json.loads(call)})

    def test_a_call_taken_back_is_killed_and_not_answered(self):
        self.begin()
        server = self.connect()
        call, pid = self.sleeper(server)
        self.cancel(server, call)
        self.assert_ends(pid)
        server.call('ping')
        self.assertFalse([m for m in server.received if m.id == call])

    def test_a_call_taken_back_closes_its_question_and_frees_its_place(self):
        self.begin(policy=('mode = ask-all',), max_requests=3)
        self.client.host.replies[ASK] = NEVER
        server = self.connect()
        for count in range(1, 11):
            call = self.begin_tool(server, command=['true'])
            question = self.asked(count)[-1]
            self.cancel(server, call)
            self.withdrawn(question)
        del self.client.host.replies[ASK]
        self.assertEqual(self.exec(server, 'true'), (False, ['exit code 0']))

    def test_a_client_that_goes_takes_its_calls_back(self):
        self.begin(policy=('mode = ask-all', 'allow = terminal sh *'))
        self.client.host.replies[ASK] = NEVER
        server = self.connect()
        self.begin_tool(server, command=['true', 'x'])
        question = self.asked()[0]
        other = self.connect()
        self.kill(server.pid)
        self.withdrawn(question)
        self.assertTrue(self.begin_tool(other, command=['true', 'y']))
        self.asked(2)

    def test_a_running_command_ends_with_its_client(self):
        self.begin()
        server = self.connect()
        _, pid = self.sleeper(server)
        self.kill(server.pid)
        self.assert_ends(pid)

    def test_a_cancelled_turn_ends_them_and_the_model_is_told(self):
        self.begin(policy=('mode = ask-all', 'allow = terminal sh *', 'ask = terminal true *'))
        server = self.connect()
        self.client.host.replies[ASK] = NEVER
        waits = self.begin_tool(server, command=['true', 'x'])
        question = self.asked()[0]
        runs, pid = self.sleeper(server)
        self.client.notify('session/cancel', {'sessionId': self.session})
        for call in (waits, runs):
            self.assertTrue(self.content(server.answer(call))[0])
        self.withdrawn(question)
        self.assert_ends(pid)
        self.client.host.replies.clear()
        self.assertEqual(self.exec(server, 'true', 'z'), (False, ['exit code 0']))

    def test_the_end_of_the_session_ends_them_and_the_connection(self):
        self.begin()
        server = self.connect()
        other = self.client.new_session(self.work)
        kept = self.connect()
        _, pid = self.sleeper(server)
        self.client.call('session/close', {'sessionId': self.session})
        self.assert_ends(pid)
        server.wait()
        self.assertEqual(self.exec(kept, 'true'), (False, ['exit code 0']))
        self.client.call('session/close', {'sessionId': other})
        kept.wait()

    def test_the_end_of_the_agent_ends_them_and_a_restored_session_has_another_server(self):
        self.begin()
        server = self.connect()
        old = self.entry()
        _, pid = self.sleeper(server)
        with self.assertRaises(RpcError):
            self.client.prompt(self.session, 'exit 3')
        self.assert_ends(pid)
        server.wait()
        self.client.prompt(self.session, 'say on')
        self.assertEqual(self.exec(self.connect(self.latest()), 'true'), (False, ['exit code 0']))
        refused = self.start_server(old)
        self.assert_refused(refused)

    def test_the_end_of_the_broker_waits_for_no_client(self):
        self.begin()
        server = self.connect()
        _, pid = self.sleeper(server)
        server.pause()
        os.kill(server.pid, signal.SIGSTOP)
        self.addCleanup(self.kill, server.pid)
        self.client.close_stdin()
        self.client.wait()
        self.assert_ends(pid)
        os.kill(server.pid, signal.SIGCONT)


class BehindASync(McpExecCase, TurnCase):
    def test_a_call_that_waits_behind_a_sync_can_be_taken_back(self):
        self.begin(isolation='copy', policy=('mode = pass',))
        server = self.connect()
        release = self.hold_when_asked(self.client)
        prompt = self.client.start_prompt(self.session, 'permission go', 'say done')
        self.client.wait_text('done', PATIENCE)
        self.wait_held(self.client, self.session)
        taken = self.begin_tool(server, command=['touch', str(self.dir / 'touched')])
        kept = self.begin_tool(server, command=['true'])
        server.notify('notifications/cancelled', {'requestId': json.loads(taken)})
        server.call('ping')
        gone = self.connect()
        self.begin_tool(gone, command=['touch', str(self.dir / 'touched')])
        gone.call('ping')
        self.kill(gone.pid)
        self.assertNotEqual(gone.wait(), 0)
        release()
        self.client.answer(prompt)
        self.assertEqual(self.content(server.answer(kept)), (False, ['exit code 0']))
        self.assertFalse((self.dir / 'touched').exists())


if __name__ == '__main__':
    main()
