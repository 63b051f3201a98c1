#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent in a copy: which files and commands an editor serves to it, and in which sessions."""

import json
import os
import subprocess
import unittest

from case import main
from sync_case import SyncCase


class Elsewhere(SyncCase):
    def setUp(self):
        super().setUp()
        self.secret = self.dir / 'secret'
        self.secret.write_text('the key')
        (self.work / 'a.txt').write_text('eins')

    def said(self, *lines):
        before = len(self.client.texts())
        self.client.prompt(self.session, *lines)
        return self.client.texts()[before:]

    def begin(self, **keys):
        self.client, self.session = self.opened(toolhost='editor', **keys)
        return self.runtime(self.client, self.session)

    def served(self):
        return [(method, params.get('path')) for method, params in self.client.host.seen
                if not method.startswith('session/')]

    def test_no_link_leads_the_editor_out_of_the_workspace(self):
        for number, policy in enumerate(((), ('mode = approve-all',))):
            place = self.begin(policy=policy)
            (place / f'out{number}').symlink_to(self.secret)
            (place / f'up{number}').symlink_to('..')
            (place / f'deep{number}').symlink_to(f'up{number}')
            (place / f'new{number}').symlink_to(self.dir / f'not-there-{number}')
            (place / f'in{number}').symlink_to('a.txt')
            self.said('say done')
            self.assertTrue((self.work / f'new{number}').is_symlink())
            said = []
            for name in ('out', f'up{number}/secret', f'deep{number}/secret', 'new'):
                path = place / (name if '/' in name else f'{name}{number}')
                said += self.said(f'read {path}', f'write {path} x')
            self.assertEqual(sum('SECURITY_VIOLATION' in text for text in said), 8, said)
            self.assertEqual(self.served(), [])
            self.assertEqual(self.secret.read_text(), 'the key')
            self.assertFalse((self.dir / f'not-there-{number}').exists())
            self.assertIn('eins', self.said(f'read {place}/in{number}')[0])
            self.assertIn('-> {}', self.said(f'write {place}/sub.txt x')[0])
            self.assertEqual(self.served(), [
                ('fs/read_text_file', f'{self.work}/in{number}'),
                ('fs/write_text_file', f'{self.work}/sub.txt')])
            self.client.finish()

    def test_the_editor_writes_nothing_that_git_runs(self):
        for name in ('.git/hooks', 'bare/objects', 'bare/refs'):
            (self.work / name).mkdir(parents=True)
        (self.work / '.git/config').write_text('mine')
        (self.work / 'bare/HEAD').write_text('ref: refs/heads/main')
        (self.work / 'gate').symlink_to('.git')
        for policy in ((), ('mode = approve-all',)):
            place = self.begin(policy=policy)
            for path in ('.git/config', '.GIT/hooks/x', 'sub/.git', 'gate/hooks/x', 'bare/config',
                         'bare/hooks/update', 'bare/commondir'):
                self.assertIn('SECURITY_VIOLATION', self.said(f'write {place}/{path} x')[0], path)
            self.assertEqual(self.served(), [])
            self.said(f'write {place}/config x', f'write {place}/bare/description x')
            self.assertEqual([path for _, path in self.served()],
                             [f'{self.work}/config', f'{self.work}/bare/description'])
            self.client.finish()
        self.assertEqual((self.work / '.git/config').read_text(), 'mine')

    def refused(self, client, session):
        """Sends messages of a session that is not open; checks that none reaches the agent."""
        client.notify('session/cancel', {'sessionId': session})
        for method, params in (
                ('session/prompt', {'prompt': [{'type': 'text', 'text': 'say hi'}]}),
                ('session/set_mode', {'modeId': 'ask'}), ('_x/y', {})):
            asked = client.start(method, {'sessionId': session, **params})
            self.failure(client.response(asked), 'INVALID_PARAMS')

    def test_a_session_that_was_not_opened_is_not_prompted(self):
        """
        Whatever has failed: without the session's first sync the agent would work on other files.
        """
        client = self.copied()
        missing = {'cwd': str(self.work / 'missing'), 'mcpServers': []}
        self.failure(client.response(client.start('session/new', missing)), 'DIRECTORY_NOT_FOUND')
        self.refused(client, 'sess-1')
        heard = [json.loads(line)['method'] for line in self.journal('<')]
        self.assertEqual(heard, ['initialize'])

    @unittest.skipUnless(os.getuid() == 0, 'no file system can be mounted')
    def test_nor_is_one_whose_disk_was_full(self):
        small = self.state.parent
        small.mkdir(parents=True)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4m', 'small', small],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest('no file system can be mounted here')
        self.addCleanup(subprocess.run, ['umount', '-l', small], check=False)
        (self.work / 'large').write_bytes(os.urandom(8 << 20))
        client = self.copied()
        asked = {'cwd': str(self.work), 'mcpServers': []}
        self.failure(client.response(client.start('session/new', asked)), 'SYSTEM_ERROR')
        self.refused(client, 'sess-1')
        (self.work / 'large').unlink()
        session = client.new_session(self.work)  # everything before it has been passed on
        client.prompt(session, 'say on')
        heard = [json.loads(line).get('method') for line in self.journal('<')]
        self.assertEqual(heard, ['initialize', 'session/new', 'session/prompt'])

    def test_a_guarded_file_that_the_editor_would_write_is_asked_about_once(self):
        place = self.begin()
        self.client.host.permission = 'reject_once'
        self.assertIn('PERMISSION_DENIED', self.said(f'write {place}/.envrc x')[0])
        self.assertFalse((self.work / '.envrc').exists())
        self.client.host.permission = 'allow_once'
        self.said(f'write {place}/.envrc x')
        self.assertEqual((self.work / '.envrc').read_text(), 'x')
        self.said('say on')
        self.assertEqual((place / '.envrc').read_text(), 'x')
        self.assertEqual(len([method for method, _ in self.client.host.seen
                              if method == 'session/request_permission']), 2)

    def test_a_rule_is_about_the_file_that_a_link_leads_to(self):
        place = self.begin(policy=('mode = pass', 'deny = write **/a.txt'))
        (place / 'link').symlink_to('a.txt')
        self.said('say done')
        self.assertIn('PERMISSION_DENIED', self.said(f'write {place}/link x')[0])
        self.assertEqual((self.work / 'a.txt').read_text(), 'eins')

    def test_a_yes_is_to_the_file_that_was_shown(self):
        """A link that appears while the question is open does not lead the write elsewhere."""
        place = self.begin(policy=('mode = ask-all',))
        (self.work / 'sub').mkdir()

        def linking(name, target, option):
            def reply(_):
                path = self.work / name
                if path.is_dir():
                    path.rmdir()
                path.symlink_to(target)
                return {'outcome': {'outcome': 'selected', 'optionId': option}}
            return reply
        for name, path, target, option in (
                ('notes', 'notes', self.secret, 'allow'), ('more', 'more', 'a.txt', 'allow'),
                ('sub', 'sub/a.txt', '.', 'allow-always'), ('hooks', 'hooks/x', '.git', 'allow')):
            self.client.host.replies['session/request_permission'] = linking(name, target, option)
            self.assertIn('SECURITY_VIOLATION', self.said(f'write {place}/{path} x')[0], name)
        self.assertEqual(self.served(), [])
        self.assertEqual(self.secret.read_text(), 'the key')
        self.assertEqual((self.work / 'a.txt').read_text(), 'eins')
        del self.client.host.replies['session/request_permission']
        self.said(f'write {place}/more x')
        self.assertEqual(self.served(), [('fs/write_text_file', f'{self.work}/more')])

    def test_the_editor_runs_no_command_of_an_agent_elsewhere(self):
        place = self.begin()
        params = json.dumps({'sessionId': self.session, 'command': f'touch {self.dir}/ran'})
        self.assertIn('PERMISSION_DENIED', self.said(f'request terminal/create {params}')[0])
        other = json.dumps({'sessionId': self.session, 'terminalId': 'term-1'})
        self.assertIn('PERMISSION_DENIED', self.said(f'request terminal/output {other}')[0])
        self.assertEqual(self.client.host.seen, [])
        greeting, = [json.loads(line) for line in self.journal('<') if b'"initialize"' in line]
        self.assertIs(greeting['params']['clientCapabilities']['terminal'], False)
        self.assertTrue(place.is_dir())

    def test_the_editor_runs_its_commands_where_the_profile_says_so(self):
        place = self.begin(editor_terminals='yes')
        self.assertIn(str(self.work), ''.join(self.said('terminal pwd')))
        self.assertNotEqual(place, self.work)
        greeting, = [json.loads(line) for line in self.journal('<') if b'"initialize"' in line]
        self.assertIs(greeting['params']['clientCapabilities']['terminal'], True)


if __name__ == '__main__':
    main()
