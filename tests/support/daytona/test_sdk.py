# SPDX-License-Identifier: MIT
"""
The official client drives the stand-in through a whole life of a sandbox; both directions are
checked.
"""

import json
import subprocess
import unittest

import stand_in  # first: it says where the others are
import wire_schema
from case import main

LIFE_SECONDS = 120


@stand_in.NEEDED
class SdkTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with stand_in.StandIn() as daytona:
            daytona.fail_create('no runner had room', name='broken')
            daytona.settings(limits={'sandbox-create': 7})  # the eighth create is one too many
            argv = [stand_in.node(), str(stand_in.HERE / 'sdk_life.mjs'), daytona.api,
                    daytona.key, daytona.gateway_key]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=LIFE_SECONDS)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.seen = json.loads(done.stdout)
            cls.calls = [one for one in daytona.calls() if one['name'] != 'events']
            cls.sandboxes = daytona.sandboxes(gone=True)

    def test_it_sees_each_state_a_sandbox_reaches(self):
        self.assertEqual(self.seen['states'],
                         ['started', 'started', 'stopped', 'archived', 'started', 'started'])
        passed = {one['name'].split('_')[1]: one['states'] for one in self.sandboxes}
        self.assertEqual(passed['one'], [
            'creating', 'started', 'stopping', 'stopped', 'archiving', 'archived', 'restoring',
            'started', 'stopping', 'stopped', 'starting', 'started', 'destroying', 'destroyed'])
        self.assertEqual(passed['two'][:4],
                         ['pending_build', 'building_snapshot', 'creating', 'started'])
        self.assertEqual(passed['short'], ['creating', 'started', 'destroying', 'destroyed'])

    def test_it_finds_sandboxes_by_all_of_their_labels_and_page_by_page(self):
        self.assertEqual(self.seen['listed'],
                         [['one', 'two'], ['one'], ['one', 'short', 'two'], []])
        self.assertEqual(len([one for one in self.calls if 'cursor=' in one['url']]), 2)

    def test_what_it_sets_is_what_it_reads(self):
        self.assertEqual(self.seen['settings'], {
            'autoStopInterval': 0, 'autoArchiveInterval': 120, 'autoDeleteInterval': -1,
            'networkAllowList': '10.0.0.0/8'})
        self.assertEqual(self.seen['labels'], {'broker': 'b1', 'session': 's/2'})
        self.assertEqual(self.seen['labelsReadBack'], self.seen['labels'])

    def test_of_two_tokens_the_later_one_is_valid_until_it_is_revoked(self):
        self.assertEqual(self.seen['valid'], [False, True, False])
        self.assertRegex(self.seen['command'], r'^ssh -p \d+ TOKEN@127\.0\.0\.1$')

    def test_each_refusal_becomes_its_class_of_error(self):
        self.assertEqual(self.seen['errors'], {
            'wrong key': ['DaytonaAuthenticationError', 401, 'Invalid credentials'],
            "validate with a user's key":
                ['DaytonaAuthorizationError', 403, 'Invalid authentication context'],
            'archive of a started one': ['DaytonaValidationError', 400, 'Sandbox is not stopped'],
            'stop of a stopped one':
                ['DaytonaValidationError', 400, 'Sandbox is not in a stoppable state'],
            'no such sandbox':
                ['DaytonaNotFoundError', 404, 'Sandbox with ID or name nobody not found'],
            'name is taken': ['DaytonaConflictError', 409, 'Sandbox with name one already exists'],
            'no such snapshot':
                ['DaytonaValidationError', 400, 'Snapshot nope not found. Did you add it through '
                 'the Daytona Dashboard?'],
            'fails to start':
                ['DaytonaValidationError', 400, 'Sandbox failed to start: no runner had room'],
            'fails to start, again':
                ['DaytonaConflictError', 409, 'Sandbox with name broken already exists'],
            'too many':
                ['DaytonaRateLimitError', 429, 'ThrottlerException: Too Many Requests'],
            'deleted': ['DaytonaNotFoundError', 404, 'Sandbox with ID or name one not found']})
        self.assertEqual(self.seen['errorReason'], 'no runner had room')

    def test_every_message_is_as_documented_but_for_what_is_known_to_differ(self):
        self.assertGreater(len(self.calls), 40)
        wrong, never = wire_schema.not_allowed(self.calls, wire_schema.ALLOWED)
        self.assertEqual(wrong, [])
        self.assertEqual(never, set(), 'what is allowed, and was not met')

    def test_a_message_that_is_otherwise_is_found(self):
        create = next(one for one in self.calls if one['name'] == 'create')
        for member, text, expected in [
                ('requestBody', '{"nmae": "x"}', 'create request /: has nmae'),
                ('requestBody', '{"cpu": "2"}', 'create request /cpu: str is not integer'),
                ('responseBody', '{}', 'create answer /: lacks id'),
                ('url', '/api/sandbox?wait=1', 'create request query has wait'),
                ('status', 201, 'create answer status 201')]:
            wrong, _ = wire_schema.not_allowed([{**create, member: text}], wire_schema.ALLOWED)
            self.assertIn(expected, wrong)


if __name__ == '__main__':
    main()
