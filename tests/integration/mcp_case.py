# SPDX-License-Identifier: MIT
"""A session with mcp-exec = yes, and the MCP server of its agent, as the agent would start it."""

import json
import os
import signal

import processes

from acp import Client
from policy_case import PolicyCase
from processes import PATIENCE

ASK = 'session/request_permission'


class McpExecCase(PolicyCase):
    def begin(self, *flags, policy=('mode = approve-all',), mcp_exec='yes', **keys):
        self.client, self.session = self.open(*flags, policy=policy, mcp_exec=mcp_exec, **keys)

    def given(self, number=None, method='session/new'):
        """The MCP servers in the agent's latest request to open a session."""
        seen = [json.loads(line) for line in self.journal('<', number)
                if f'"{method}"'.encode() in line]
        return seen[-1]['params']['mcpServers']

    def entry(self):
        return next(server for server in self.given() if server['name'] == 'acp-broker')

    def latest(self):
        """The entry of the agent's latest request to open a session again."""
        return next(server for server in self.given(method='session/resume')
                    if server['name'] == 'acp-broker')

    def start_server(self, entry=None, **env):
        entry = entry or self.entry()
        variables = {item['name']: item['value'] for item in entry['env']}
        server = Client([entry['command'], *entry['args']],
                        env={**self.environment(), **variables, **env})
        self.clients.insert(0, server)  # ends before the broker
        return server

    def connect(self, entry=None):
        server = self.start_server(entry)
        self.greet(server)
        return server

    def greet(self, server, version='2025-06-18'):
        result = server.call('initialize', {
            'protocolVersion': version, 'capabilities': {},
            'clientInfo': {'name': 'test', 'version': '1'}})
        server.notify('notifications/initialized')
        return result

    def assert_refused(self, server):
        """It gets an error, and then the program ends."""
        server.wait_for(lambda m: 'error' in m.value and m.id == b'null')
        server.wait()

    def begin_tool(self, server, tool='exec', **arguments):
        return server.start('tools/call', {'name': tool, 'arguments': arguments})

    def tool(self, server, tool='exec', **arguments):
        return self.content(server.answer(self.begin_tool(server, tool, **arguments)))

    def content(self, result):
        return result['isError'], [item['text'] for item in result['content']]

    def exec(self, server, *command, **more):
        return self.tool(server, command=list(command), **more)

    # ---- commands that run until they are killed ----

    def sleeper(self, server, name='begun'):
        """Starts a command that keeps running; returns the call's id and the process id."""
        place = self.dir / name
        call = self.begin_tool(server, command=[
            'sh', '-c', f'echo $$ > {place}.new; mv {place}.new {place}; exec sleep 1000'])
        self.assertTrue(processes.wait_until(place.exists, PATIENCE))
        return call, int(place.read_text())

    def assert_ends(self, pid):
        self.assertTrue(processes.wait_until(lambda: not processes.is_running(pid), PATIENCE))

    # ---- questions ----

    def asked(self, count=1):
        """Waits until the editor has been asked this often; returns the questions' raw ids."""
        def is_question(message):
            return message.method == ASK

        def is_last(message):
            return is_question(message) and sum(
                map(is_question, self.client.received)) >= count
        self.client.wait_for(is_last)
        return [message.id for message in self.client.received if is_question(message)]

    def withdrawn(self, raw_id):
        """Waits until the editor is told that nobody waits for this question any more."""
        self.client.wait_for(lambda m: m.method == '$/cancel_request'
                             and m.params['requestId'] == json.loads(raw_id))

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
