#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The MCP servers of a session: the list is unchanged here, and checked if the agent works elsewhere.
"""

import json
import subprocess

import case
from acp import RpcError
from case import BROKER, Case
from test_far import FAR_BROKER
from test_transcripts import Transcript

SECONDS = 60
LOCAL = {'type': 'http', 'name': 'local', 'url': 'http://localhost:3000/mcp', 'headers': []}
REMOTE = {'type': 'sse', 'name': 'remote', 'url': 'https://example.com/mcp', 'headers': []}


def stdio(name, command, *args, **more):
    return {'name': name, 'command': str(command), 'args': list(args), 'env': [], **more}


class McpCase(Case):
    def setUp(self):
        super().setUp()
        self.inside = self.dir / 'inside'

    def write_config(self, backend, sections, **keys):
        values = dict(case.DEADLINES, backend=backend)
        if backend == 'fake':
            values['runtime-root'] = self.inside
            values['sync'] = 'none'
        values.update({name.replace('_', '-'): value for name, value in keys.items()})
        lines = ['[profile "p"]']
        for name, value in values.items():
            every = value if isinstance(value, list) else [value]
            lines += [f'\t{name} = {one}' for one in every]
        path = self.dir / 'config'
        path.write_text('\n'.join(lines) + '\n' + sections)
        return ['--config', str(path), '--profile', 'p']

    def far(self, *flags, sections='', env=None, options=(), **keys):
        """A client whose agent works in a sandbox with other paths and another loopback."""
        argv = [FAR_BROKER, *self.write_config('fake', sections, **keys), *options, '--',
                *self.agent_argv(*flags)]
        return self.start(argv, env=env)

    def near(self, *flags, sections='', env=None, options=(), **keys):
        argv = [BROKER, *self.write_config('local', sections, **keys), *options, '--',
                *self.agent_argv(*flags)]
        return self.start(argv, env=env)

    def tool(self, folder, name='tool'):
        """Puts a program into the session's directory, as the sandbox has it."""
        path = self.inside / '0' / folder
        path.mkdir(parents=True)
        path = path / name
        path.write_text('#!/bin/sh\n')
        path.chmod(0o755)

    def open(self, client, *servers):
        client.initialize()
        return client.new_session(self.work, mcpServers=list(servers))

    def given(self, method='session/new', number=0):
        """The servers in the agent's request with this number."""
        seen = [json.loads(line) for line in self.journal('<') if f'"{method}"'.encode() in line]
        return seen[number]['params'].get('mcpServers')

    def notices(self, client, session, count):
        """Waits for this many notices in the session; returns them."""
        def is_notice(message):
            if message.method != 'session/update' or message.params['sessionId'] != session:
                return False
            update = message.params['update']
            return update.get('toolCallId', '').startswith('acp-broker-notice-')

        def is_last(message):
            return is_notice(message) and sum(map(is_notice, client.received)) >= count
        if count:
            client.wait_for(is_last, SECONDS)
        client.prompt(session, 'say settled')
        found = [m for m in client.received if is_notice(m)]
        self.assertEqual(len(found), count, found)
        for message in found:
            self.assertEqual(message.params['update']['kind'], 'other')
            self.assertEqual(message.params['update']['status'], 'failed')
        return found


class Here(Transcript):
    def test_a_list_passes_to_the_byte(self):
        def conversation(client):
            client.initialize()
            client.send_line(
                b'{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"mcpServers" : [ '
                b'{"command":"/nonexistent\\/x" ,"name":"\\u0067one","args":[ ],"env":[]} , '
                b'{"type":"http","url":"http://LOCALHOST:3","name":"l","headers":[],"x":1e0}, {},7'
                b' ],"cwd":%s}}' % json.dumps(str(self.work)).encode())
            client.prompt(client.answer(b'"n"')['sessionId'], 'say hello')
            for method in ('session/load', 'session/resume'):
                client.call(method, {'sessionId': 'old', 'cwd': str(self.work), 'mcpServers': [
                    stdio('gone', '/nonexistent/x'), LOCAL]})
        self.same(conversation)


class Left(McpCase):
    def test_a_command_the_sandbox_does_not_have_is_left_out_and_told(self):
        client = self.far()
        session = self.open(client, stdio('gone', '/nonexistent/server', '-x'))
        self.assertEqual(self.given(), [])
        told = self.notices(client, session, 1)[0]
        title = told.params['update']['title']
        self.assertIn('"gone" was left out', title)
        self.assertIn('"/nonexistent/server"', title)
        answer = client.response(b'1')
        self.assertLess(client.messages.index(answer), client.messages.index(told))

    def test_a_url_of_this_machine_is_left_out_and_told(self):
        client = self.far()
        session = self.open(client, LOCAL, dict(LOCAL, url='http://u:p@[::1]:1/?t=hidden'))
        self.assertEqual(self.given(), [])
        told = [m.params['update']['title'] for m in self.notices(client, session, 2)]
        self.assertIn('http://localhost:3000/mcp', told[0])
        self.assertNotIn('hidden', told[1])

    def test_the_broker_s_own_server_is_only_for_agents_on_this_machine(self):
        client = self.far(mcp_exec='yes')
        session = self.open(client)
        self.assertEqual(self.given(), [])
        told = self.notices(client, session, 1)[0]
        self.assertNames(told.params['update']['title'], 'acp-broker | mcp-exec')

    def test_all_kinds_together(self):
        self.tool('bin')
        client = self.far()
        there = stdio('there', 'sh', str(self.work))
        unknown = {'type': 'acp', 'name': 'acp', 'serverId': 'x'}
        below = stdio('below', f'{self.work}/bin/tool')
        session = self.open(client, stdio('gone', 'no-such-command-here'), there, LOCAL, unknown,
                            REMOTE, below, stdio('here', f'{self.work}/bin/other'))
        self.assertEqual(self.given(), [
            there, unknown, REMOTE, dict(below, command=f'{self.inside}/0/bin/tool')])
        told = [m.params['update']['title'] for m in self.notices(client, session, 3)]
        for name, title in zip(('gone', 'local', 'here'), told):
            self.assertIn(f'MCP server "{name}" was left out', title)

    def test_what_is_there_passes_to_the_byte(self):
        client = self.far()
        client.initialize()
        raw = b'[ {"command":"sh","name":"\\u0061", "args":[1.50],"x":{}} ,{"name":"b"} ]'
        client.send_line(b'{"jsonrpc":"2.0","id":"n","method":"session/new","params":'
                         b'{"mcpServers": %s, "cwd":%s}}'
                         % (raw, json.dumps(str(self.work)).encode()))
        session = client.answer(b'"n"')['sessionId']
        line = [line for line in self.journal('<') if b'"session/new"' in line][0]
        self.assertIn(b'"mcpServers": ' + raw + b', "cwd"', line)
        self.notices(client, session, 0)

    def test_an_empty_list_passes(self):
        client = self.far()
        session = self.open(client)
        self.assertEqual(self.given(), [])
        self.notices(client, session, 0)

    def test_a_session_that_is_loaded_or_resumed_is_looked_at_too(self):
        client = self.far()
        client.initialize()
        for number, method in enumerate(('session/load', 'session/resume')):
            session = f'old-{number}'
            client.call(method, {'sessionId': session, 'cwd': str(self.work),
                                 'mcpServers': [LOCAL, REMOTE]})
            self.assertEqual(self.given(method), [REMOTE])
            self.notices(client, session, 1)

    def test_a_command_that_came_later_is_found_by_the_next_session(self):
        client = self.far()
        server = stdio('late', f'{self.work}/bin/tool')
        first = self.open(client, server)
        self.notices(client, first, 1)
        self.tool('bin')
        second = client.new_session(self.work, mcpServers=[server])
        self.assertEqual(self.given(number=1),
                         [dict(server, command=f'{self.inside}/0/bin/tool')])
        self.notices(client, second, 0)

    def test_a_sandbox_that_shares_the_loopback_keeps_its_urls(self):
        client = self.far(isolated='false')
        session = self.open(client, LOCAL, stdio('gone', '/nonexistent/x'))
        self.assertEqual(self.given(), [LOCAL])
        self.notices(client, session, 1)

    def test_a_further_agent_is_given_what_its_sandbox_has(self):
        client = self.far(roots_max=1)
        self.open(client)
        other = self.dir / 'other'
        other.mkdir()
        session = client.new_session(other, mcpServers=[LOCAL, stdio('there', 'sh')])
        self.assertEqual(self.given(number=1), [stdio('there', 'sh')])
        self.notices(client, session, 1)

    def test_a_sandbox_that_does_not_answer_in_time_is_given_all(self):
        client = self.far(mcp_timeout='1ms', delay='200ms')
        gone = stdio('gone', '/nonexistent/x')
        session = self.open(client, gone, LOCAL)
        self.assertEqual(self.given(), [gone])
        told = [m.params['update']['title'] for m in self.notices(client, session, 2)]
        self.assertIn('mcp-timeout', told[1])

    def test_the_same_list_without_a_directory_reaches_the_agent(self):
        client = self.far()
        client.initialize()
        gone = stdio('gone', '/nonexistent/x')
        client.call('session/new', {'mcpServers': [gone, LOCAL]})
        self.assertEqual(self.given(), [gone])


GITHUB = '''
[mcp "github"]
	command = sh
	arg = -c
	arg = "exit # x"
	env = MODE=ro
	secret-env = GITHUB_PAT
'''
DOCS = '''
[mcp "docs"]
	url = http://localhost:9/mcp
	header = "Authorization: Bearer header-hunter2"
'''
SECRET = 'pat-hunter2-pat'
GIVEN_GITHUB = {'name': 'github', 'command': 'sh', 'args': ['-c', 'exit # x'],
                'env': [{'name': 'MODE', 'value': 'ro'}, {'name': 'GITHUB_PAT', 'value': SECRET}]}
GIVEN_DOCS = {'type': 'http', 'name': 'docs', 'url': 'http://localhost:9/mcp',
              'headers': [{'name': 'Authorization', 'value': 'Bearer header-hunter2'}]}


class Configured(McpCase):
    def environment(self):
        return dict(super().environment(), GITHUB_PAT=SECRET)

    def test_servers_are_mapped_and_added_here(self):
        client = self.near(sections=GITHUB + DOCS, mcp=['docs', 'github'])
        gone = stdio('gone', '/nonexistent/x')
        session = self.open(client, gone, stdio('github', '/opt/here', x=1), LOCAL)
        self.assertEqual(self.given(), [gone, GIVEN_GITHUB, LOCAL, GIVEN_DOCS])
        self.notices(client, session, 0)

    def test_servers_are_mapped_and_added_elsewhere(self):
        client = self.far(sections=GITHUB + DOCS, mcp=['docs', 'github'])
        session = self.open(client, stdio('github', '/nonexistent/here'), LOCAL)
        self.assertEqual(self.given(), [GIVEN_GITHUB, GIVEN_DOCS])
        self.notices(client, session, 1)

    def test_a_configured_command_that_is_not_there_is_left_out_too(self):
        client = self.far(sections='[mcp "m"]\n\tcommand = no-such-command-here\n', mcp='m')
        session = self.open(client)
        self.assertEqual(self.given(), [])
        self.assertIn('"m" was left out',
                      self.notices(client, session, 1)[0].params['update']['title'])

    def test_a_section_that_no_profile_names_does_nothing(self):
        client = self.near(sections=GITHUB)
        session = self.open(client)
        self.assertEqual(self.given(), [])
        self.notices(client, session, 0)

    def test_an_agent_that_takes_no_urls_is_not_given_one_of_the_configuration(self):
        for start in (self.near, self.far):
            with self.subTest(start.__name__):
                client = start('--only-stdio', sections=GITHUB + DOCS, mcp=['docs', 'github'])
                session = self.open(client, REMOTE)
                self.assertEqual(self.given(), [REMOTE, GIVEN_GITHUB])
                title = self.notices(client, session, 1)[0].params['update']['title']
                self.assertIn('"docs" was left out', title)
                self.assertIn('type http', title)

    def test_no_secret_is_in_the_trace_or_the_log(self):
        trace = self.dir / 'trace'
        client = self.near(sections=GITHUB + DOCS, mcp=['github', 'docs'],
                           options=('--trace', str(trace), '--log-level', 'debug'))
        session = self.open(client)
        client.prompt(session, f'say the token is {SECRET}')
        self.assertEqual(self.given(), [GIVEN_GITHUB, GIVEN_DOCS])
        client.close_stdin()
        client.wait(SECONDS)
        text = trace.read_text()
        self.assertIn('"github"', text)
        self.assertIn('the token is ***', text)
        for secret in (SECRET, 'header-hunter2'):
            self.assertNotIn(secret, text)
            self.assertNotIn(secret, client.stderr)

    def test_check_prints_them_and_no_secret(self):
        options = self.write_config('local', GITHUB + DOCS, mcp=['github', 'docs'])
        result = subprocess.run([BROKER, 'check', *options, '--', 'sh'], capture_output=True,
                                text=True, env=self.environment(), timeout=SECONDS, check=True)
        for line in ('mcp                 "github"', '  secret-env        GITHUB_PAT',
                     '  url               "http://localhost:9/mcp"',
                     '  header            Authorization'):
            self.assertIn(line + '\n', result.stdout)
        self.assertNotIn('hunter2', result.stdout + result.stderr)

    def test_a_secret_that_is_not_set_is_a_mistake(self):
        options = self.write_config('local', GITHUB, mcp='github')
        env = {k: v for k, v in self.environment().items() if k != 'GITHUB_PAT'}
        result = subprocess.run([BROKER, *options, '--', 'sh'], capture_output=True, text=True,
                                env=env, timeout=SECONDS, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn('mcp.github.secret-env: ', result.stderr)
        self.assertIn('GITHUB_PAT', result.stderr)

    def test_a_list_that_is_too_long_is_refused_where_it_must_be_read(self):
        client = self.near(sections=GITHUB, mcp='github')
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work, mcpServers=[7] * 20000)
        self.assertEqual(caught.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        client.new_session(self.work)
        self.assertEqual(self.given(), [GIVEN_GITHUB])


if __name__ == '__main__':
    case.main()
