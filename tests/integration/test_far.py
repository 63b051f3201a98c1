#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A sandbox whose roots are elsewhere: paths, tools and further agents, with the fake provider."""

import json
import os
import signal

import case
import processes

from case import Case, program

FAR_BROKER = program('ACP_BROKER_FAKE', 'tests/support/fake/acp-broker-fake')

class FarCase(Case):
    def far(self, flags=(), **keys):
        """A client whose agent works below `inside`, where the editor's paths do not exist."""
        self.inside = self.dir / 'inside'
        lines = ['[profile "far"]', '\tbackend = fake', '\tsync = none',
                 f'\truntime-root = {self.inside}']
        values = dict(case.DEADLINES, **{k.replace('_', '-'): v for k, v in keys.items()})
        lines += [f'\t{name} = {value}' for name, value in values.items()]
        config = self.dir / 'config'
        config.write_text('\n'.join(lines) + '\n')
        return self.start([FAR_BROKER, '--config', str(config), '--profile', 'far', '--',
                           *self.agent_argv(*flags)])

    def agent_saw(self, method):
        return [json.loads(line) for line in self.journal('<')
                if f'"{method}"'.encode() in line]

class Paths(FarCase):
    def test_the_agent_is_given_its_own_directories(self):
        client = self.far()
        client.initialize()
        more = self.dir / 'more'
        more.mkdir()
        client.new_session(self.work, additionalDirectories=[str(more)])
        params = self.agent_saw('session/new')[0]['params']
        self.assertEqual(params['cwd'], str(self.inside / '0'))
        self.assertEqual(params['additionalDirectories'], [str(self.inside / '1')])

    def test_a_prompts_uris_are_translated_and_its_text_is_not(self):
        client = self.far()
        client.initialize()
        session = client.new_session(self.work)
        blocks = [{'type': 'text', 'text': f'say {self.work}/a'},
                  {'type': 'resource_link', 'name': 'a', 'uri': f'file://{self.work}/b%20c.txt'},
                  {'type': 'resource_link', 'name': 'x', 'uri': f'file://{self.work}x/b.txt'},
                  {'type': 'resource', 'resource': {'uri': f'file://{self.work}/d', 'text': ''}}]
        client.call('session/prompt', {'sessionId': session, 'prompt': blocks})
        seen = self.agent_saw('session/prompt')[0]['params']['prompt']
        self.assertEqual(seen[0], blocks[0])
        self.assertEqual(seen[1]['uri'], f'file://{self.inside}/0/b%20c.txt')
        self.assertEqual(seen[2], blocks[2])
        self.assertEqual(seen[3]['resource']['uri'], f'file://{self.inside}/0/d')

    def test_what_the_agent_shows_is_translated_back(self):
        client = self.far()
        client.initialize()
        session = client.new_session(self.work)
        root = f'{self.inside}/0'
        update = {'sessionUpdate': 'tool_call', 'toolCallId': 'c', 'title': f'{root}/t',
                  'locations': [{'path': f'{root}/l'}, {'path': root}, {'path': f'{root}2/n'}],
                  'rawInput': {'path': f'{root}/r'},
                  'content': [{'type': 'diff', 'path': f'{root}/d', 'newText': f'{root}/n'},
                              {'type': 'content', 'content': {
                                  'type': 'resource_link', 'name': 'u',
                                  'uri': f'file://{root}/u'}}]}
        client.prompt(session, f'update {json.dumps(update)}')
        shown = [m.params['update'] for m in client.received if m.method == 'session/update'
                 and m.params['update'].get('toolCallId') == 'c'][0]
        work = str(self.work)
        self.assertEqual(shown['locations'],
                         [{'path': f'{work}/l'}, {'path': work}, {'path': f'{root}2/n'}])
        self.assertEqual(shown['content'][0]['path'], f'{work}/d')
        self.assertEqual(shown['content'][0]['newText'], f'{root}/n')
        self.assertEqual(shown['content'][1]['content']['uri'], f'file://{work}/u')
        self.assertEqual(shown['title'], f'{root}/t')
        self.assertEqual(shown['rawInput'], {'path': f'{root}/r'})

    def test_an_editor_that_is_to_serve_files_gets_its_own_names_of_them(self):
        (self.work / 'c.txt').write_text('here')
        client = self.far(toolhost='editor')
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, f'read {self.dir}/inside/0/c.txt',
                      f'write {self.dir}/inside/0/d.txt new', f'read {self.dir}/inside/0/none')
        self.assertIn('here', client.wait_text('fs/read_text_file ->'))
        seen = [params['path'] for method, params in client.host.seen if method.startswith('fs/')]
        self.assertEqual(seen, [str(self.work / name) for name in ('c.txt', 'd.txt', 'none')])
        self.assertEqual((self.work / 'd.txt').read_text(), 'new')
        self.assertIn(f'{self.inside}/0/none', client.wait_text('fs/read_text_file -> error'))

    def test_an_editor_is_not_asked_for_what_is_of_the_other_machine(self):
        client = self.far(toolhost='editor', editor_terminals='yes')
        client.initialize()
        session = client.new_session(self.work)
        root = f'{self.dir}/inside/0'
        outside = (f'{self.dir}/inside/key', f'{root}/../key', f'{root}/..', f'{root}/a/../../key',
                   '/etc/passwd')
        for path in outside:
            client.prompt(session, f'read {path}', f'write {path} x')
            client.prompt(session, 'request terminal/create ' + json.dumps(
                {'sessionId': session, 'command': 'id', 'cwd': path}))
        said = client.texts(session)
        self.assertEqual(sum('SECURITY_VIOLATION' in text for text in said), 3 * len(outside),
                         said)
        self.assertEqual(client.host.seen, [])
        client.prompt(session, f'write {root}/a..b x')
        self.assertEqual(len(client.host.seen), 1)

    def test_a_directory_the_sandbox_cannot_have_is_refused_by_name(self):
        client = self.far(fail='add-root')
        client.initialize()
        response = client.response(client.start('session/new', {
            'cwd': str(self.work), 'mcpServers': []}))
        self.failure(response, 'SANDBOX_UNAVAILABLE')
        self.assertEqual(self.agent_saw('session/new'), [])


class Tools(FarCase):
    def test_files_and_terminals_are_served_in_the_sandbox_and_not_by_the_editor(self):
        client = self.far()
        client.initialize()
        session = client.new_session(self.work)
        (self.inside / '0' / 'a.txt').write_text('far\n')
        (self.work / 'a.txt').write_text('near\n')
        client.prompt(session, f'read {self.inside}/0/a.txt',
                      f'write {self.inside}/0/b/c.txt new', 'terminal pwd')
        self.assertIn('far\\n', client.wait_text('fs/read_text_file ->'))
        self.assertEqual((self.inside / '0/b/c.txt').read_text(), 'new')
        self.assertFalse((self.work / 'b').exists())
        self.assertIn(f'{self.inside}/0', client.wait_text('terminal/output ->'))
        asked = {m.method for m in client.received if m.is_request}
        self.assertEqual(asked, set())

    def test_the_agent_is_told_that_the_broker_serves(self):
        client = self.far()
        client.initialize(capabilities={'_meta': {'x': 1}})
        told = self.agent_saw('initialize')[0]['params']['clientCapabilities']
        self.assertEqual(told, {'fs': {'readTextFile': True, 'writeTextFile': True},
                                'terminal': True, '_meta': {'x': 1}})

    def test_the_editors_own_paths_lead_nowhere(self):
        client = self.far()
        client.initialize()
        session = client.new_session(self.work)
        (self.work / 'secret').write_text('here')
        client.prompt(session, f'read {self.work}/secret')
        self.assertIn('SECURITY_VIOLATION', client.wait_text('fs/read_text_file -> error'))

class Close(FarCase):
    def test_a_session_is_closed_while_what_its_agent_asks_for_is_looked_up(self):
        """The broker refuses that request by another message, before the one in hand has gone."""
        options = self.config(policy=['deny = write **/f1'], backend='fake', sync='none',
                              delay='300ms', runtime_root=str(self.dir / 'inside'))
        client = self.start([FAR_BROKER, *options, '--', *self.agent_argv()])
        client.initialize()
        session = client.new_session(self.work)
        for _ in range(8):  # so that the editor's ids differ from the agent's
            client.response(client.start('_broker/nothing'), 10)
        path = self.dir / 'inside' / '0' / 'a.txt'
        write = json.dumps({'sessionId': session, 'path': str(path), 'content': 'x'})
        prompt = client.start('session/prompt', {'sessionId': session, 'prompt': [
            {'type': 'text', 'text': f'fire fs/write_text_file {write}\nhang'}]})
        self.assertTrue(processes.wait_until(
            lambda: any(b'fs/write_text_file' in line for line in self.journal('>')), 10))
        close = client.start('session/close', {'sessionId': session})
        self.assertEqual(client.answer(close, 10), {})
        client.response(prompt, 10)
        self.assertFalse(path.exists())


class FurtherAgents(FarCase):
    def two(self, **keys):
        """Two sessions of one client, each with its own agent."""
        client = self.far(roots_max=1, **keys)
        client.initialize()
        client.call('authenticate', {'methodId': 'token'})
        other = self.dir / 'other'
        other.mkdir()
        return client, client.new_session(self.work), client.new_session(other)

    def test_a_further_directory_gets_a_further_agent_that_knows_what_the_first_knows(self):
        client, first, second = self.two()
        self.assertEqual(len(self.agent_pids()), 2)
        self.assertNotEqual(first, second)
        seen = [json.loads(line)['method'] for line in self.journal('<')]
        self.assertEqual(seen.count('initialize'), 2)
        self.assertEqual(seen.count('authenticate'), 2)

    def test_sessions_that_are_opened_at_once_in_a_further_directory_share_the_agent(self):
        client = self.far(roots_max=1, delay='50ms')
        client.initialize()
        client.new_session(self.work)
        other = self.dir / 'other'
        other.mkdir()
        opened = [client.start('session/new', {'cwd': str(other), 'mcpServers': []})
                  for _ in range(3)]
        sessions = [client.answer(raw_id)['sessionId'] for raw_id in opened]
        self.assertEqual(len(set(sessions)), 3)
        self.assertEqual(len(self.agent_pids()), 2)

    def test_sessions_that_both_agents_call_the_same_are_told_apart(self):
        client, first, second = self.two()
        client.prompt(first, 'say one')
        client.prompt(second, 'say two')
        self.assertEqual(client.texts(first), ['one'])
        self.assertEqual(client.texts(second), ['two'])

    def test_one_that_dies_leaves_the_other_alone(self):
        client, first, second = self.two()
        prompt = client.start_prompt(second, 'say begun', 'hang')
        client.wait_text('begun')
        os.kill(self.agent_pids()[1], signal.SIGKILL)
        self.failure(client.response(prompt), 'AGENT_EXITED')
        client.prompt(first, 'say still here')
        self.assertEqual(client.texts(first), ['still here'])

    def test_one_that_is_stuck_holds_nobody_up(self):
        client, first, second = self.two()
        os.kill(self.agent_pids()[1], signal.SIGSTOP)
        stuck = client.start_prompt(second, 'say late')
        client.prompt(first, 'say on time')
        os.kill(self.agent_pids()[1], signal.SIGCONT)
        client.answer(stuck)
        self.assertEqual(client.texts(second), ['late'])

if __name__ == '__main__':
    case.main()
