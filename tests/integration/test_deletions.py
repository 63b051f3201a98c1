#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent deletes most of the workspace in its copy: what happens to the files here."""

import os
import re
import shutil
import signal
import subprocess

import case

from acp import RpcError
from facts import names
from host import NEVER
from processes import PATIENCE
from sync_case import TurnCase

COUNT = 300
DELETE = 'terminal rm -r many; echo new > new'
ASKED = 'session/request_permission'


class Deletions(TurnCase):
    def filled(self, **keys):
        """A session in a workspace of many files; the copy has all of them."""
        many = self.work / 'many'
        many.mkdir()
        for number in range(COUNT):
            (many / f'f{number:03}').write_text(f'{number}\n')
        (self.work / 'other').write_text('other\n')
        return self.opened(**keys)

    def here(self):
        return len(list(self.work.glob('many/f*')))

    def answer_with(self, client, option):
        """The user will answer with the option of this id, or cancel the question (None)."""
        outcome = {'outcome': 'selected', 'optionId': option} if option else {
            'outcome': 'cancelled'}
        client.host.replies[ASKED] = {'outcome': outcome}

    def asked(self, client):
        return [params for method, params in client.host.seen if method == ASKED]

    def check_given_back(self, client, session):
        self.assertEqual(self.here(), COUNT)
        self.assertEqual(len(list((self.runtime(client, session)).glob('many/f*'))), COUNT)
        self.assertTrue(any(names(title, f'deleted {COUNT} of your files | kept here')
                            for title in self.notices(client)), self.notices(client))
        self.assertEqual((self.work / 'new').read_text(), 'new\n')

    def test_fewer_are_told_with_the_command_that_brings_them_back(self):
        client, session = self.filled()
        client.prompt(session, 'terminal rm many/f0[01]*', seconds=PATIENCE)
        self.assertEqual(self.asked(client), [])
        self.assertEqual(self.here(), COUNT - 20)
        title, = [title for title in self.notices(client) if 'undelete' in title]
        self.assertNames(title, '20 of your files')
        words = re.search('`acp-broker (checkpoints undelete [0-9]+)`', title)[1].split()
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        subprocess.run([case.BROKER, *words], cwd=self.work, env=self.environment(),
                       stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertEqual(self.here(), COUNT)

    def test_a_yes_deletes_them_here_and_the_checkpoint_before_has_them(self):
        client, session = self.filled()
        before = self.status(client, session)['lastSync']['checkpoint']
        self.answer_with(client, 'delete')
        client.prompt(session, DELETE, seconds=PATIENCE)
        question, = self.asked(client)
        self.assertEqual(question['sessionId'], session)
        self.assertEqual(question['toolCall']['kind'], 'delete')
        self.assertIn(f'Delete {COUNT} of the {COUNT + 1} files in `{self.work}`',
                      question['toolCall']['title'])
        self.assertEqual([option['kind'] for option in question['options']],
                         ['allow_once', 'reject_once'])
        self.assertEqual(self.tree(), {'other': 'other\n', 'new': 'new\n'})
        self.assertTrue(any('acp-broker checkpoints list' in title
                            for title in self.notices(client)))
        client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': before},
                    PATIENCE)
        self.assertEqual(self.here(), COUNT)
        self.assertEqual((self.work / 'many/f007').read_text(), '7\n')
        client.prompt(session, 'terminal ls many | wc -l', seconds=PATIENCE)
        self.assertEqual(self.here(), COUNT)
        self.assertEqual(len(self.asked(client)), 1)
        self.ended(client)

    def test_a_no_gives_them_back(self):
        client, session = self.filled()
        self.answer_with(client, 'give-back')
        client.prompt(session, DELETE, seconds=PATIENCE)
        self.check_given_back(client, session)
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(len(self.asked(client)), 1)
        self.ended(client)

    def test_a_cancelled_question_gives_them_back(self):
        client, session = self.filled()
        self.answer_with(client, None)
        client.prompt(session, DELETE, seconds=PATIENCE)
        self.check_given_back(client, session)

    def test_a_cancelled_session_gives_them_back(self):
        client, session = self.filled()
        client.host.replies[ASKED] = lambda _: client.notify(
            'session/cancel', {'sessionId': session}) or {'outcome': {'outcome': 'cancelled'}}
        prompt = client.start_prompt(session, DELETE)
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.check_given_back(client, session)

    def test_nobody_who_answers_in_time_gives_them_back(self):
        client, session = self.filled(permission_timeout='200ms')
        client.host.replies[ASKED] = NEVER
        client.prompt(session, DELETE, seconds=PATIENCE)
        self.check_given_back(client, session)

    def test_an_editor_that_leaves_during_the_question_deletes_nothing(self):
        client, session = self.filled()
        left = []

        def leave(_):
            left.append(True)
            client.close_stdin()
            return NEVER
        client.host.replies[ASKED] = leave
        client.start_prompt(session, DELETE)
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertTrue(left)
        self.assertEqual(self.here(), COUNT)
        self.assertEqual((self.work / 'new').read_text(), 'new\n')

    def test_a_broker_that_is_killed_during_the_question_has_deleted_nothing(self):
        client, session = self.filled()
        client.host.replies[ASKED] = lambda _: os.kill(client.pid, signal.SIGKILL) or NEVER
        client.start_prompt(session, DELETE)
        client.wait(PATIENCE)
        self.assertEqual(self.here(), COUNT)
        client, session = self.opened()  # the first sync asks nobody
        self.assertEqual(self.here(), COUNT)
        self.assertEqual((self.work / 'new').read_text(), 'new\n')
        self.assertEqual(self.asked(client), [])

    def test_without_a_session_they_are_given_back(self):
        client, session = self.filled(sync='session-bidirectional')
        client.prompt(session, DELETE, seconds=PATIENCE)
        self.assertEqual(self.asked(client), [])
        self.ended(client)
        self.assertEqual(self.here(), COUNT)
        self.assertEqual((self.work / 'new').read_text(), 'new\n')

    def test_an_emptied_workspace_empties_the_copy_only_after_a_yes(self):
        client, session = self.filled()
        there = self.runtime(client, session)
        (self.work / 'many').rename(self.dir / 'unmounted')
        for answer, left in (('give-back', COUNT), ('give-back', COUNT)):
            self.answer_with(client, answer)
            client.prompt(session, 'say on', seconds=PATIENCE)
            self.assertEqual(len(list(there.glob('many/f*'))), left)
        self.assertEqual(len(self.asked(client)), 1)  # the first no holds
        (self.dir / 'unmounted').rename(self.work / 'many')
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual((self.here(), len(list(there.glob('many/f*')))), (COUNT, COUNT))
        shutil.rmtree(self.work / 'many')
        (self.work / 'other').write_text('other')
        next(there.glob('many/f*')).unlink()
        self.answer_with(client, 'delete')
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(len(self.asked(client)), 2)
        self.assertEqual(list(there.glob('many/f*')), [])

    def test_another_folder_in_its_place_gets_nothing_before_a_yes(self):
        client, session = self.filled()
        there = self.runtime(client, session)
        client.prompt(session, 'terminal echo its > new', seconds=PATIENCE)
        (there / 'later').write_text('later')
        self.work.rename(self.dir / 'unmounted')
        self.work.mkdir()
        self.answer_with(client, 'refuse')
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(raised.exception.data['code'], 'WORKSPACE_REPLACED')
        self.assertEqual((list(self.work.iterdir()), len(list(there.glob('many/f*')))),
                         ([], COUNT))
        self.work.rmdir()
        (self.dir / 'unmounted').rename(self.work)
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual((self.here(), (self.work / 'later').read_text()), (COUNT, 'later'))
        self.assertEqual(len(self.asked(client)), 1)

    def cloned_anew(self):
        """The workspace is another folder, without one file; the agent's copy has a new file."""
        client, session = self.filled()
        there = self.runtime(client, session)
        self.ended(client)
        (there / 'later').write_text('later')
        self.work.rename(self.dir / 'old')
        shutil.copytree(self.dir / 'old', self.work)
        (self.work / 'other').unlink()
        return there

    def refused(self, client, session):
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(raised.exception.data['code'], 'WORKSPACE_REPLACED')

    def test_a_session_opens_in_a_workspace_that_was_made_anew(self):
        there = self.cloned_anew()
        client, session = self.opened()
        notice, = self.notices(client)
        self.assertNames(notice, f'{self.work} is another folder | yes')
        self.answer_with(client, 'refuse')
        self.refused(client, session)
        self.refused(client, session)  # a no to one prompt does not answer the next question
        self.assertEqual(len(self.asked(client)), 2)
        self.assertEqual(((self.work / 'later').exists(), (there / 'other').exists()),
                         (False, True))
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 1)
        client, session = self.opened()
        self.answer_with(client, 'sync')
        client.prompt(session, 'terminal echo its > new', seconds=PATIENCE)
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(len(self.asked(client)), 1)
        self.assertEqual((self.work / 'later').read_text(), 'later')
        self.assertEqual((self.work / 'new').read_text(), 'its\n')
        self.assertEqual(((there / 'other').exists(), self.here()), (False, COUNT))
        self.ended(client)

    def test_before_a_prompt_it_is_asked_too(self):
        client, session = self.filled()
        for path in self.runtime(client, session).glob('many/f*'):
            path.unlink()
        self.answer_with(client, 'delete')
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(len(self.asked(client)), 1)
        self.assertEqual(self.here(), 0)

    def test_another_session_is_not_held_up_by_the_question(self):
        client, one = self.filled()
        other = self.dir / 'elsewhere'
        other.mkdir()
        seen = []

        def work_elsewhere(_):
            two = client.new_session(other)
            client.prompt(two, 'terminal echo 2 > two', seconds=PATIENCE)
            seen.append((other / 'two').read_text())
            return {'outcome': {'outcome': 'selected', 'optionId': 'delete'}}
        client.host.replies[ASKED] = work_elsewhere
        client.prompt(one, DELETE, seconds=PATIENCE)
        self.assertEqual(seen, ['2\n'])
        self.assertEqual(self.here(), 0)


class Stuck(TurnCase):
    def test_an_ignored_file_in_the_way_stops_no_sync(self):
        (self.work / 'a').write_text('1\n')
        subprocess.run(['git', 'init', '-q', str(self.work)], check=True)
        client, session = self.opened()
        (self.work / '.git/info/exclude').write_text('secret\n')
        (self.work / 'secret').write_text('mine\n')
        client.prompt(session, 'terminal echo theirs > secret; echo 2 > a', seconds=PATIENCE)
        self.assertEqual((self.work / 'a').read_text(), '2\n')
        self.assertEqual((self.work / 'secret').read_text(), 'mine\n')
        self.assertEqual(self.parked('secret'), ['theirs\n'])
        told = [title for title in self.notices(client) if 'secret' in title]
        self.assertEqual(len(told), 1)
        self.assertNames(told[0], 'secret | could not')
        client.prompt(session, 'terminal echo 3 > a', seconds=PATIENCE)
        self.assertEqual((self.work / 'a').read_text(), '3\n')
        self.assertEqual((self.work / 'secret').read_text(), 'mine\n')
        self.assertEqual(len([t for t in self.notices(client) if 'secret' in t]), 1)
        self.ended(client)


if __name__ == '__main__':
    case.main()
