#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An agent dies or loses its link in mid-session: the next prompt restores the session with its
memory, or says why it cannot.
"""

import json
import os
import signal

import processes
from processes import PATIENCE
from case import Case, main
from host import NEVER
from ssh_case import SshCase
from sync_case import TurnCase


class Restore(Case):
    def begin(self, *flags, **keys):
        """A session whose agent remembers it in a file."""
        self.client = self.broker('--sessions', str(self.dir / 'memory'), *flags,
                                  options=self.config(**keys))
        self.client.initialize()
        self.session = self.client.new_session(self.work)

    def die(self):
        prompt = self.client.start_prompt(self.session, 'exit 3')
        self.failure(self.client.response(prompt), 'AGENT_EXITED')

    def refused(self, code, *lines, session=None):
        prompt = self.client.start_prompt(session or self.session, *(lines or ['say hello']))
        return self.failure(self.client.response(prompt), code)

    def says(self, text, session=None):
        self.client.prompt(session or self.session, f'say {text}')
        self.assertEqual(self.client.texts()[-1], text)

    def heard(self, method):
        """What the agents received of a method, without the ids."""
        mark = b'"method":"%s"' % method.encode()
        return [line[line.index(mark):] for line in self.journal('<') if mark in line]

    def wrapped(self, *flags, **keys):
        """The same, with an agent that ends at once while a certain file exists."""
        self.dead = self.dir / 'dead'
        script = self.dir / 'agent'
        script.write_text(f'#!/bin/sh\n[ -e {self.dead} ] && exit 7\nexec "$@"\n')
        script.chmod(0o755)
        memory = ('--sessions', str(self.dir / 'memory'))
        self.client = self.broker(options=self.config(**keys),
                                  agent=[str(script), *self.agent_argv(*memory, *flags)])
        self.client.initialize()
        self.session = self.client.new_session(self.work)

    # ---- the agent has the session again ----

    def test_by_resume(self):
        self.begin()
        self.die()
        self.says('back again')
        resumed, = self.heard('session/resume')
        self.assertIn(b'"sessionId":"%s"' % self.session.encode(), resumed)
        self.assertIn(b'"cwd":"%s"' % str(self.work).encode(), resumed)
        self.assertIn(b'"mcpServers":[]', resumed)
        self.assertEqual(self.heard('session/load'), [])
        self.assertEqual(len(self.heard('initialize')), 2)
        self.says('and again')
        self.assertEqual(len(self.heard('session/resume')), 1)

    def test_by_load_whose_replay_is_not_shown(self):
        self.begin('--no-resume', '--load-replay', '6')
        self.die()
        before = len(self.client.messages)
        self.says('back again')
        self.assertEqual(len(self.heard('session/load')), 1)
        shown = [m.params['update'] for m in self.client.messages[before:]
                 if m.method == 'session/update']
        self.assertEqual([u['sessionUpdate'] for u in shown],
                         ['current_mode_update', 'agent_message_chunk'])
        self.assertEqual(shown[0]['currentModeId'], 'ask')

    def test_a_replay_that_goes_on_after_the_answer_is_not_shown(self):
        self.begin('--no-resume', '--load-replay', '2000', '--late-replay')
        self.kill()
        before = len(self.client.messages)
        self.says('back again')
        self.assertEqual(len(self.heard('session/load')), 1)
        self.assertEqual([m.params['update']['sessionUpdate']
                          for m in self.client.messages[before:] if m.method == 'session/update'],
                         ['current_mode_update', 'agent_message_chunk'])

    def test_the_editors_own_load_is_shown(self):
        self.begin('--load-replay', '6', '--late-replay')
        self.die()
        self.client.call('session/load', {'sessionId': self.session, 'cwd': str(self.work),
                                          'mcpServers': []})
        self.says('back again')
        self.assertEqual(len(self.client.texts()), 4)

    def test_what_follows_the_editors_own_load_waits_for_it(self):
        self.begin('--no-resume', '--load-replay', '6')
        self.die()
        load = self.client.start('session/load', {'sessionId': self.session,
                                                  'cwd': str(self.work), 'mcpServers': []})
        self.says('back again')
        place = self.client.messages.index(self.client.response(load))
        shown = [m.params['update']['sessionUpdate'] for m in self.client.messages[:place]
                 if m.method == 'session/update']
        self.assertEqual(shown.count('agent_message_chunk'), 3)
        self.assertEqual(len(self.client.texts()), 4)
        self.assertEqual(len(self.heard('session/load')), 1)

    def test_after_authentication(self):
        self.client = self.broker('--sessions', str(self.dir / 'memory'), '--need-auth',
                                  options=self.config())
        self.client.initialize()
        self.client.call('authenticate', {'methodId': 'token'})
        self.session = self.client.new_session(self.work)
        self.die()
        self.says('back again')
        self.assertEqual(len(self.heard('authenticate')), 2)

    def test_after_logout_nobody_is_logged_in_again(self):
        self.client = self.broker('--sessions', str(self.dir / 'memory'), '--need-auth',
                                  options=self.config())
        self.client.initialize()
        self.client.call('authenticate', {'methodId': 'token'})
        self.session = self.client.new_session(self.work)
        self.client.call('logout', {})
        self.die()
        self.client.response(self.client.start_prompt(self.session, 'say x'))
        self.assertEqual(len(self.heard('authenticate')), 1)
        answer = self.client.response(self.client.start('session/new', {
            'cwd': str(self.work), 'mcpServers': []}))
        self.assertIn('error', answer.value)

    def test_every_session_of_it_and_whatever_is_asked(self):
        self.begin()
        second = self.client.new_session(self.work)
        third = self.client.new_session(self.work)
        self.die()
        waiting = [self.client.start_prompt(self.session, 'say one'),
                   self.client.start_prompt(second, 'say two'),
                   self.client.start('session/set_mode', {'sessionId': third, 'modeId': 'code'}),
                   self.client.start_prompt(self.session, 'say three')]
        for raw_id in waiting:
            self.client.answer(raw_id)
        self.assertEqual(sorted(self.client.texts()), ['one', 'three', 'two'])
        self.assertEqual(len(self.heard('initialize')), 2)
        self.assertEqual(len(self.heard('session/resume')), 3)

    def test_a_session_that_is_closed_needs_no_agent(self):
        self.begin()
        self.die()
        self.client.call('session/close', {'sessionId': self.session})
        self.assertEqual(len(self.heard('initialize')), 1)

    def test_a_loaded_session_is_loaded_as_it_was(self):
        self.begin()
        self.client.call('session/load', {'sessionId': self.session, 'cwd': str(self.dir),
                                          'mcpServers': [], '_meta': {'mine': 1}})
        self.die()
        self.says('back again')
        resumed, = self.heard('session/resume')
        self.assertIn(b'"cwd":"%s","mcpServers":[],"_meta":{"mine":1}'
                      % str(self.dir).encode(), resumed)

    def test_a_cancel_does_not_wait(self):
        self.begin()
        os.kill(self.agent_pids()[0], signal.SIGKILL)
        self.assertTrue(processes.wait_until(
            lambda: 'SIGKILL' in self.client.stderr, PATIENCE))
        prompt = self.client.start_prompt(self.session, 'hang')
        self.client.notify('session/cancel', {'sessionId': self.session})
        self.assertEqual(self.client.answer(prompt), {'stopReason': 'cancelled'})
        self.says('still here')

    # ---- what the editor has chosen ----

    def kill(self):
        """
        Kills the agent, and waits until the broker has noticed, so that the next request is not
        lost with it.
        """
        before = self.client.stderr.count('SIGKILL')
        self.assertTrue(processes.wait_until(self.agent_pids))
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.assertTrue(processes.wait_until(
            lambda: self.client.stderr.count('SIGKILL') > before))

    def set_mode(self, mode):
        self.client.call('session/set_mode', {'sessionId': self.session, 'modeId': mode})

    def methods(self):
        return [json.loads(line).get('method') for line in self.journal('<')]

    def test_a_killed_agent_comes_back_in_its_mode_before_the_prompt(self):
        for flags in ((), ('--no-resume',)):
            self.begin(*flags)
            self.set_mode('ask')
            self.set_mode('code')
            self.client.call('session/set_config_option', {
                'sessionId': self.session, 'configId': 'model', 'value': 'large'})
            self.kill()
            before = len(self.client.messages)
            self.says('back again')
            again = self.methods()[self.methods().index('initialize', 1):]
            self.assertEqual(again[2:], ['session/set_mode', 'session/set_config_option',
                                         'session/prompt'])
            self.assertIn(b'"modeId":"code"', self.heard('session/set_mode')[-1])
            self.assertIn(b'"configId":"model","value":"large"',
                          self.heard('session/set_config_option')[-1])
            modes = [m.params['update'] for m in self.client.messages[before:]
                     if m.method == 'session/update']
            self.assertEqual([u['currentModeId'] for u in modes if 'currentModeId' in u][-1],
                             'code')
            self.client.finish()

    def test_a_session_in_which_nothing_was_chosen_is_told_nothing(self):
        self.begin()
        self.kill()
        self.says('back again')
        self.assertEqual(self.heard('session/set_mode'), [])

    def test_a_refused_mode_fails_the_prompt_and_the_next_choice_counts(self):
        refuses = self.dir / 'refuses'
        script = self.dir / 'agent'
        script.write_text(f'#!/bin/sh\n[ -e {refuses} ] && set -- "$@" --refuse-modes\n'
                          'exec "$@"\n')
        script.chmod(0o755)
        memory = ('--sessions', str(self.dir / 'memory'))
        self.client = self.broker(options=self.config(),
                                  agent=[str(script), *self.agent_argv(*memory)])
        self.client.initialize()
        self.session = self.client.new_session(self.work)
        self.set_mode('code')
        refuses.write_text('')
        self.kill()
        error = self.refused('CHOICE_REFUSED')
        self.assertIn('mode "code"', error['message'])
        # exact: the agent's own words
        self.assertIn('I stay as I am', error['message'])
        self.assertNotIn('session/prompt', self.methods())
        refuses.unlink()
        self.kill()
        self.set_mode('ask')
        self.says('back again')
        self.assertIn(b'"modeId":"ask"', self.heard('session/set_mode')[-1])

    # ---- the agent has lost the session ----

    def test_neither_offered_is_said(self):
        self.begin('--no-resume', '--no-load')
        self.die()
        error = self.refused('SESSION_LOST')
        self.assertIn(self.session, error['message'])
        self.assertIn('neither session/resume nor session/load', error['message'])
        self.assertIn(str(self.work), error['message'])
        self.assertFalse(error['data']['retryable'])
        self.assertEqual(len(self.heard('initialize')), 1)
        self.session = self.client.new_session(self.work)
        self.says('anew')

    def test_why_the_agent_refuses_is_said(self):
        self.begin('--error-data')
        self.die()
        (self.dir / 'memory').unlink()
        error = self.refused('SESSION_LOST')
        self.assertIn('Resource not found: session', error['message'])
        self.assertEqual(error['data']['detail'], '{"of":"memory"}')
        self.assertEqual(self.client.texts(), [])

    def test_an_agent_that_dies_at_each_start_is_not_started_for_ever(self):
        self.wrapped(restart_limit='2')
        self.die()
        self.dead.write_text('')
        for _ in range(2):
            error = self.refused('AGENT_EXITED')
            self.assertIn('status 7', error['message'])
        error = self.refused('RESOURCE_LIMIT_EXCEEDED')
        self.assertIn('restart-limit', error['message'])
        self.assertTrue(error['data']['retryable'])
        self.dead.unlink()
        self.refused('RESOURCE_LIMIT_EXCEEDED')
        self.client.new_session(self.work)  # session/new starts the agent nevertheless
        self.says('back again')

    def test_the_end_comes_while_it_is_restored(self):
        self.begin()
        self.die()
        prompt = self.client.start_prompt(self.session, 'hang')
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0)
        self.assertEqual(self.client.response(prompt).value['result'],
                         {'stopReason': 'cancelled'})


class RestoreInCopy(TurnCase):
    """The same with an agent in a copy: its files come here, and its sandbox stays."""

    def begin(self, **keys):
        self.memory = str(self.dir / 'memory')
        options = self.config(isolation='copy', **keys)
        self.client = self.broker('--sessions', self.memory, options=options)
        self.client.initialize()
        self.session = self.client.new_session(self.work)
        self.there = self.runtime(self.client, self.session)

    def die(self):
        self.client.host.replies['session/request_permission'] = NEVER
        prompt = self.client.start_prompt(self.session, 'permission May I?')
        self.client.wait_for(lambda m: m.method == 'session/request_permission')
        (self.there / 'late.txt').write_text('late\n')
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.failure(self.client.response(prompt), 'AGENT_EXITED')

    def check(self):
        self.die()
        self.assertTrue(processes.wait_until((self.work / 'late.txt').exists, PATIENCE))
        (self.there / 'ignored').write_text('')
        (self.work / 'mine.txt').write_text('mine\n')
        self.client.prompt(self.session, 'say back again')
        self.assertEqual(self.client.texts()[-1], 'back again')
        self.assertEqual((self.there / 'mine.txt').read_text(), 'mine\n')
        self.assertEqual(self.runtime(self.client, self.session), self.there)
        record, = self.records()
        self.assertEqual(record['state'], 'active')
        self.assertEqual(self.notices(self.client), [])
        self.ended(self.client)
        record, = self.records()
        self.assertEqual(record['state'], 'stopped')

    def test_its_edits_are_here_and_it_goes_on(self):
        self.begin()
        self.check()
        self.assertTrue(self.there.exists())

    def test_what_is_transient_outlives_its_agent(self):
        self.begin(persistence='transient')
        self.check()
        self.assertFalse(self.there.exists())

    def test_a_sandbox_without_an_agent_is_collected_at_the_end(self):
        self.begin(persistence='transient')
        self.die()
        (self.there / 'last.txt').write_text('last\n')
        self.ended(self.client)
        self.assertEqual((self.work / 'last.txt').read_text(), 'last\n')
        self.assertFalse(self.there.exists())


class RestoreOverSsh(SshCase):
    """The link is lost: the next prompt connects again, and the session is the same."""

    def begin(self, **keys):
        memory = str(self.dir / 'memory')
        self.client, self.session = self.opened(
            '--sessions', memory, **{'outlives': 'never', **keys})
        self.there = self.runtime(self.client, self.session)

    def lose(self):
        prompt = self.client.start_prompt(self.session, 'say begun', 'hang')
        self.client.wait_text('begun')
        (self.there / 'late.txt').write_text('late\n')
        self.sshd.kill_connections()
        self.failure(self.client.response(prompt), 'LINK_LOST')

    def go_on(self):
        self.client.prompt(self.session, 'say back again')
        self.assertEqual(self.client.texts()[-1], 'back again')
        self.assertEqual(sum(b'session/resume' in line for line in self.journal('<')), 1)

    def ended(self):
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)

    def test_it_goes_on_where_it_was(self):
        self.begin()
        self.lose()
        self.go_on()
        self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')
        self.assertEqual(self.runtime(self.client, self.session), self.there)
        self.ended()

    def test_two_sessions_share_the_new_link(self):
        self.begin()
        second = self.client.new_session(self.work)
        self.lose()
        waiting = [self.client.start_prompt(one, 'say here') for one in (self.session, second)]
        for raw_id in waiting:
            self.client.answer(raw_id)
        self.assertEqual(sum(b'initialize' in line for line in self.journal('<')), 2)
        self.ended()

    def test_a_transient_folder_is_found_again_by_its_broker(self):
        self.begin(persistence='transient')
        self.lose()
        self.go_on()
        self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')
        self.assertEqual(self.runtime(self.client, self.session), self.there)
        self.ended()
        self.assertFalse(self.there.parent.exists())

    def test_a_host_that_is_not_there_is_said_and_tried_again(self):
        self.begin(**{'connect-timeout': '15s'})
        self.lose()
        self.sshd.freeze()
        prompt = self.client.start_prompt(self.session, 'say anyone?')
        message = self.client.response(prompt, PATIENCE)
        self.sshd.thaw()
        error = self.failure(message, 'TIMEOUT_EXCEEDED')
        self.assertTrue(error['data']['retryable'])
        self.go_on()
        self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')
        self.ended()


if __name__ == '__main__':
    main()
