#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Files from which the user's own tools run commands (guard-paths): the user is asked before an agent
changes one.
"""

import json
import os
import signal
import subprocess

import case

from case import main
from facts import names
from host import NEVER
from policy_case import PolicyCase
from processes import PATIENCE, wait_until
from sync_case import TurnCase

ASKED = 'session/request_permission'


class Served(PolicyCase):
    """The broker serves the agent with the user's own files."""

    def guarded(self, client):
        return [question['toolCall']['locations'][0]['path']
                for question in self.questions(client)]

    def test_a_file_that_tools_run_commands_from_is_asked_about(self):
        (self.work / 'link').symlink_to('.vscode/tasks.json')
        (self.work / '.zed').symlink_to('conf')
        for policy in (None, ('mode = approve-all',), ('mode = pass', 'allow = write **')):
            client, session = self.open(toolhost='broker', policy=policy)
            self.chooses(client, 'reject_once')
            for name in ('.envrc', 'sub/.husky/pre-commit', 'link', '.zed/tasks.json'):
                client.prompt(session, f'write {self.work}/{name} x')
            self.assertEqual([path.removeprefix(f'{self.work}/')
                              for path in self.guarded(client)],
                             ['.envrc', 'sub/.husky/pre-commit', '.vscode/tasks.json',
                              'conf/tasks.json'])
            self.assertTrue(all('`guard-paths`' in question['toolCall']['title']
                                for question in self.questions(client)))
            self.assertEqual(sum('PERMISSION_DENIED' in text for text in client.texts()), 4)
            self.assertEqual({path.name for path in self.work.iterdir()}, {'link', '.zed'})
            client.prompt(session, f'write {self.work}/plain x')
            self.assertEqual(len(self.questions(client)), 4)
            (self.work / 'plain').unlink()
            for name in ('.envrc', '.zed/tasks.json'):
                said = self.explain(client, session, 'write', path=f'{self.work}/{name}')
                self.assertEqual((said['decision'], said['rule']), ('pending', 'guard-paths'))
            client.finish()

    def test_a_session_in_a_guarded_folder_is_asked_about_all_in_it(self):
        self.work = self.work / '.husky'
        (self.work / 'sub').mkdir(parents=True)
        client, session = self.open(toolhost='broker', policy=None)
        self.chooses(client, 'reject_once')
        for name in ('pre-commit', 'sub/x'):
            client.prompt(session, f'write {self.work}/{name} x')
        self.assertEqual(self.guarded(client),
                         [f'{self.work}/pre-commit', f'{self.work}/sub/x'])
        self.assertEqual([path.name for path in self.work.iterdir()], ['sub'])

    def test_always_is_an_answer_for_a_guarded_file_too(self):
        client, session = self.open(toolhost='broker', policy=None)
        self.chooses(client, 'allow_always')
        for text in ('one', 'two'):
            client.prompt(session, f'write {self.work}/.envrc {text}')
        self.assertEqual(len(self.questions(client)), 1)
        self.assertEqual((self.work / '.envrc').read_text(), 'two')

    def test_what_a_rule_denies_or_asks_about_is_no_second_question(self):
        client, session = self.open(toolhost='broker', policy=(
            'mode = pass', 'ask = write **/.envrc', 'deny = write **/.mcp.json'))
        client.prompt(session, f'write {self.work}/.envrc x', f'write {self.work}/.mcp.json x')
        question, = self.questions(client)
        self.assertIn('`ask = write **/.envrc`', question['toolCall']['title'])

    def test_guard_paths_may_be_others_or_none(self):
        client, session = self.open(toolhost='broker', policy=None, guard_paths='Makefile')
        client.prompt(session, f'write {self.work}/.envrc x', f'write {self.work}/Makefile x')
        self.assertEqual(self.guarded(client), [f'{self.work}/Makefile'])
        client, session = self.open(toolhost='broker', policy=None, guard_paths='none')
        client.prompt(session, f'write {self.work}/.envrc x')
        self.assertEqual(self.questions(client), [])

    def test_where_the_editor_serves_its_own_agent_nothing_is_guarded(self):
        client, session = self.open(toolhost='editor', policy=None)
        client.prompt(session, f'write {self.work}/.envrc x')
        self.assertEqual(self.questions(client), [])
        self.assertEqual((self.work / '.envrc').read_text(), 'x')


class Synced(TurnCase):
    """The agent works in a copy, and a sync would bring its file here."""

    GUARDED = ('mkdir .husky; echo its > .husky/pre-commit; echo new > .envrc; '
               'echo plain > plain; ln -s /etc/hostname out')

    def begin(self, choice=None, **keys):
        """The user answers with an option of this kind, or (None) never."""
        (self.work / '.envrc').write_text('old\n')
        client, session = self.opened(**keys)
        if choice:
            client.host.permission = choice
        else:
            client.host.replies[ASKED] = NEVER
        return client, session, self.runtime(client, session)

    def conflicts(self):
        output = subprocess.run([case.BROKER, 'conflicts', 'list', '--json'], cwd=self.work,
                                env=self.environment(), stdout=subprocess.PIPE, check=True).stdout
        return json.loads(output)['conflicts']

    def told(self, client, *facts):
        return sum(names(title, ' | '.join(facts)) for title in self.notices(client))

    def check_held(self, place):
        self.assertEqual(self.tree(), {'.envrc': 'old\n', 'plain': 'plain\n',
                                       'out': (self.work / 'out').read_text()})
        self.assertTrue((self.work / 'out').is_symlink())
        self.assertEqual((place / '.envrc').read_text(), 'new\n')
        self.assertEqual((place / '.husky/pre-commit').read_text(), 'its\n')

    def questions(self, client):
        return [m.params for m in client.received if m.method == ASKED]

    def here(self):
        return (self.work / '.envrc').read_text()

    def test_a_yes_brings_it_and_the_turn_does_not_wait(self):
        for transport in ('git', 'rsync'):
            with self.subTest(transport):
                client, session, place = self.begin(transport=transport, profile=transport)
                client.prompt(session, 'terminal ' + self.GUARDED)
                self.check_held(place)
                client.prompt(session, 'say on')
                question, = [m for m in client.received if m.method == ASKED]
                call = question.params['toolCall']
                self.assertEqual(question.params['sessionId'], session)
                self.assertEqual(call['kind'], 'edit')
                for fact in ('acp-broker', '`guard-paths`', '`.envrc`', '`.husky/pre-commit`'):
                    self.assertIn(fact, call['title'])
                self.assertEqual(
                    [(item['path'], item['oldText'], item['newText'])
                     for item in call['content'] if item['type'] == 'diff'],
                    [(f'{self.work}/.envrc', 'old\n', 'new\n'),
                     (f'{self.work}/.husky/pre-commit', None, 'its\n')])
                self.assertEqual([option['kind'] for option in question.params['options']],
                                 ['allow_once', 'allow_always', 'reject_once'])
                self.answer(client, question, 'allow_once')
                self.assertTrue(wait_until(lambda: self.here() == 'new\n'))
                client.prompt(session, 'say on')
                self.assertEqual(self.here(), 'new\n')
                self.assertEqual((self.work / '.husky/pre-commit').read_text(), 'its\n')
                self.assertEqual(len(self.questions(client)), 1)
                self.ended(client)
                self.assertEqual(self.conflicts(), [])
                for name in ('plain', 'out', '.husky/pre-commit'):
                    (self.work / name).unlink()

    def words(self, question):
        """
        The lines of the question's text that say what a diff does not show, one for each path.
        """
        text, = [item['content']['text'] for item in question['toolCall']['content']
                 if item['type'] == 'content']
        return [line for line in text.split('\n') if line.startswith('- ')]

    def test_the_question_says_what_no_diff_shows(self):
        (self.work / '.husky').mkdir()
        (self.work / '.husky/f').write_text('its\n')
        (self.work / '.mcp.json').write_text('{}\n')
        client, session, place = self.begin()
        for name, text in (('t', 'plain\r\n\t'), ('u', 'a\u202eb'), ('v\n- `w\u2066`', 'x')):
            (place / name).mkdir()
            (place / name / '.envrc').write_bytes(text.encode())
        client.prompt(session, 'terminal chmod +x .envrc; rm .mcp.json; rm -r .husky; '
                               r'ln -s /tmp .husky; mkdir -p s; printf "a\0b" > s/.envrc')
        question = self.questions(client)[-1]
        facts = {'`.envrc`': 'be executable', '`.mcp.json`': 'deleted', '`.husky`': 'your folder',
                 '`s/.envrc`': 'binary', '`t/.envrc`': '', '`u/.envrc`': 'not shown',
                 r'``v\n- `w<U+2066>`/.envrc``': ''}
        lines = self.words(question)
        self.assertEqual(len(lines), len(facts))
        for path, fact in facts.items():
            line, = [line for line in lines if line.startswith(f'- {path}')]
            self.assertIn(fact, line)
            self.assertEqual(line == f'- {path}', not fact)

    def test_of_many_files_each_question_names_all_that_a_yes_to_it_brings(self):
        client, session, _ = self.begin('allow_once')
        client.prompt(session, 'terminal for i in $(seq 1 24); do mkdir $i; '
                               r'printf "\0" > $i/.envrc; done; echo x > .mcp.json')
        def has_all():
            client.prompt(session, 'say on')
            return len(self.tree()) == 26
        self.assertTrue(wait_until(has_all))
        first, second = self.questions(client)
        self.assertIn(' 25 ', first['toolCall']['content'][0]['content']['text'])
        self.assertEqual([len(self.words(question)) for question in (first, second)], [20, 5])

    def test_a_no_leaves_it_and_is_asked_again_when_it_is_another(self):
        client, session, place = self.begin('reject_once')
        client.prompt(session, 'terminal echo new > .envrc')
        client.prompt(session, 'say on')
        self.assertEqual((self.here(), len(self.questions(client))), ('old\n', 1))
        self.assertEqual((place / '.envrc').read_text(), 'new\n')
        self.assertTrue(self.told(client, '.envrc', 'stays in the sandbox'))
        client.prompt(session, 'terminal echo newer > .envrc')
        self.assertEqual(len(self.questions(client)), 2)
        self.assertEqual(self.here(), 'old\n')
        self.ended(client)
        self.assertEqual([conflict['path'] for conflict in self.conflicts()], ['.envrc'])

    def test_always_is_for_the_path_in_this_workspace(self):
        client, session, _ = self.begin('allow_always')
        client.prompt(session, 'terminal echo new > .envrc')
        client.prompt(session, 'say on')
        self.assertEqual((self.here(), len(self.questions(client))), ('new\n', 1))
        self.ended(client)
        client, session, _ = self.begin('reject_once')
        client.prompt(session, 'terminal echo newer > .envrc; echo x > .mcp.json')
        question, = self.questions(client)
        self.assertNotIn('.envrc', question['toolCall']['title'])
        self.assertIn('.mcp.json', question['toolCall']['title'])
        self.assertEqual(self.here(), 'newer\n')
        self.assertFalse((self.work / '.mcp.json').exists())

    def test_what_nobody_answers_is_asked_again_by_the_next_sync(self):
        client, session, _ = self.begin(permission_timeout='200ms')
        client.prompt(session, 'terminal echo new > .envrc')
        client.wait_for(lambda m: m.method == '$/cancel_request', PATIENCE)
        client.prompt(session, 'say on')
        self.assertGreaterEqual(len(self.questions(client)), 2)
        self.assertEqual(self.here(), 'old\n')

    def test_a_question_about_what_is_no_more_is_withdrawn(self):
        client, session, _ = self.begin()
        client.prompt(session, 'terminal echo new > .envrc')
        client.prompt(session, 'terminal echo newer > .envrc')
        first, second = [m for m in client.received if m.method == ASKED]
        client.prompt(session, 'terminal echo old > .envrc')
        withdrawn = [m.params['requestId'] for m in client.received
                     if m.method == '$/cancel_request']
        self.assertEqual(withdrawn, [int(first.id), int(second.id)])
        client.prompt(session, 'terminal echo newest > .envrc')
        third = [m for m in client.received if m.method == ASKED][2]
        client.call('session/close', {'sessionId': session})
        withdrawn = [m.params['requestId'] for m in client.received
                     if m.method == '$/cancel_request']
        self.assertEqual(withdrawn[2:], [int(third.id)])

    def answer(self, client, question, kind):
        chosen, = [option['optionId'] for option in question.params['options']
                   if option['kind'] == kind]
        client.send({'jsonrpc': '2.0', 'id': int(question.id), 'result': {
            'outcome': {'outcome': 'selected', 'optionId': chosen}}})

    def test_what_the_broker_writes_into_the_sandbox_is_one_question_of_the_syncs(self):
        client, session, place = self.begin('allow_once', toolhost='broker')
        client.prompt(session, f'write {place}/.envrc new')
        client.prompt(session, 'say on')
        self.assertEqual((self.here(), len(self.questions(client))), ('new', 1))

    def test_a_yes_in_a_turn_is_done_at_its_end(self):
        client, session, place = self.begin()
        client.prompt(session, 'terminal echo new > .envrc')
        question, = [m for m in client.received if m.method == ASKED]
        turn = client.start_prompt(
            session, 'terminal echo half > half; while [ ! -e go ]; do sleep 0.1; done; rm go')
        self.assertTrue(wait_until((place / 'half').exists))
        self.answer(client, question, 'allow_once')
        self.assertEqual(self.status(client, session)['lastSync']['reason'], 'turn')
        self.assertEqual((self.here(), (self.work / 'half').exists()), ('old\n', False))
        (place / 'go').write_text('')
        client.answer(turn, PATIENCE)
        self.assertEqual(self.tree(), {'.envrc': 'new\n', 'half': 'half\n'})

    def test_a_broker_that_was_killed_has_neither_brought_nor_lost_it(self):
        client, session, place = self.begin()
        client.prompt(session, 'terminal echo new > .envrc')
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        client, session, place = self.begin('reject_once')
        client.prompt(session, 'say on')
        self.assertEqual(len(self.questions(client)), 1)
        self.ended(client)
        kept, = self.conflicts()
        self.assertEqual((kept['path'], self.here()), ('.envrc', 'old\n'))
        self.assertEqual((self.work / kept['file']).read_text(), 'new\n')

    def test_policy_can_refuse_for_the_user_and_not_allow(self):
        client, session, place = self.begin('reject_once', policy=(
            'mode = approve-all', 'deny = grant edit'))
        (place / '.envrc').write_text('new\n')
        client.prompt(session, 'say on')
        self.assertEqual((self.here(), self.questions(client)), ('old\n', []))
        self.ended(client)
        client, session, place = self.begin('reject_once', policy=('mode = approve-all',))
        (place / '.envrc').write_text('newer\n')
        client.prompt(session, 'say on')
        self.assertEqual((self.here(), len(self.questions(client))), ('old\n', 1))

    def test_what_waits_is_in_the_sandbox_alone_and_told_once(self):
        for transport in ('git', 'rsync'):
            with self.subTest(transport):
                client, session, place = self.begin(transport=transport, profile=transport)
                client.prompt(session, 'terminal ' + self.GUARDED)
                self.check_held(place)
                self.assertEqual(self.told(client, 'guard-paths', '.envrc', '.husky/pre-commit'),
                                 1)
                (self.work / 'mine').write_text('mine')
                client.prompt(session, 'say on')
                self.assertEqual((place / 'mine').read_text(), 'mine')
                (self.work / 'mine').unlink()
                client.prompt(session, 'say on')
                self.check_held(place)
                self.assertEqual(self.told(client, 'guard-paths'), 1)
                self.assertEqual(self.conflicts(), [])
                self.ended(client)
                self.assertEqual([conflict['path'] for conflict in self.conflicts()],
                                 ['.envrc', '.husky/pre-commit'])
                self.assertEqual((self.work / '.envrc').read_text(), 'old\n')
                for conflict in self.conflicts():
                    subprocess.run([case.BROKER, 'conflicts', 'take', conflict['id'], 'local'],
                                   cwd=self.work, env=self.environment(), check=True,
                                   stdout=subprocess.DEVNULL)
                (self.work / 'plain').unlink()
                (self.work / 'out').unlink()

    def test_the_next_broker_finds_it_as_it_was_left(self):
        for transport in ('git', 'rsync'):
            with self.subTest(transport):
                keys = {'transport': transport, 'profile': transport, 'persistence': 'reuse'}
                client, session, place = self.begin(**keys)
                client.prompt(session, 'terminal echo new > .envrc; echo x > .mcp.json')
                self.ended(client)
                client, session, place = self.begin(**keys)
                client.prompt(session, 'terminal cat .envrc .mcp.json; echo on > on')
                self.assertIn(r'"output":"new\nx\n"', ''.join(client.texts()))
                self.assertEqual((self.work / 'on').read_text(), 'on\n')
                self.assertEqual((self.work / '.envrc').read_text(), 'old\n')
                self.assertFalse((self.work / '.mcp.json').exists())
                self.ended(client)


if __name__ == '__main__':
    main()
