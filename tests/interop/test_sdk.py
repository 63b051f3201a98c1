#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The protocol's own TypeScript library on both ends: its example agent, and a client of ours that
uses its client side; directly and through the broker.
"""

import json
import re

from pair import HERE, NEEDED, NODE, Pair, conversation, path_of
from case import AGENT as SCRIPTED, BROKER, ROOT, main
from compare import compare_hops

AGENT = [str(NODE), path_of('@agentclientprotocol/sdk/dist/examples/agent.js')]


@NEEDED
class Sdk(Pair):
    def converse(self, mode, through_broker):
        self.fresh()
        for hop in ('direct', 'editor', 'agent'):
            self.log(hop).unlink(missing_ok=True)
        argv = [str(NODE), str(HERE / 'sdk_client.mjs'), str(self.work), mode,
                *self.agent_command(AGENT, through_broker)]
        return json.loads(self.run_program(argv).stdout.splitlines()[-1])

    def both(self, mode):
        direct = self.converse(mode, through_broker=False)
        self.check_schema('direct')
        before = conversation(self.lines('direct'))
        through = self.converse(mode, through_broker=True)
        for hop in ('editor', 'agent'):
            self.check_schema(hop)
        compare_hops(self.lines('editor'), self.lines('agent'))
        for one, other in zip(before, conversation(self.lines('editor'))):
            self.assertEqual(one, other)
        self.assertEqual(direct, through)
        self.assertEqual(through['ended'], {'code': 0, 'signal': None})
        return through

    def test_a_turn_in_which_permission_is_given(self):
        seen = self.both('allow')
        self.assertEqual(seen['stopReason'], 'end_turn')
        self.assertEqual(seen['permissions'], 1)
        self.assertIn('tool_call_update', seen['updates'])

    def test_a_turn_in_which_permission_is_refused(self):
        self.assertEqual(self.both('reject')['stopReason'], 'end_turn')

    def test_a_turn_that_is_cancelled(self):
        self.assertEqual(self.both('cancel')['stopReason'], 'cancelled')


@NEEDED
class Daemon(Pair):
    """The TypeScript client in docs/daemons.md, unchanged."""

    def test_one_prompt(self):
        page = (ROOT / 'docs' / 'daemons.md').read_text()
        source, = re.findall(r'^```ts\n(.*?)^```$', page, re.M | re.S)
        self.assertLessEqual(source.count('\n'), 40)
        (self.dir / 'client.ts').write_text(source)
        (self.dir / 'package.json').write_text('{"type": "module"}')
        (self.dir / 'node_modules').symlink_to(HERE / 'node_modules')
        (self.dir / 'bin').mkdir()
        (self.dir / 'bin' / 'acp-broker').symlink_to(BROKER)
        place = self.dir / 'home' / 'config' / 'acp-broker'
        place.mkdir(parents=True)
        (place / 'config').write_text(f'[agent "a"]\n\tcommand = {SCRIPTED}\n'
                                      '[profile "job"]\n\tagent = a\n\tisolation = copy\n')
        path = f'{self.dir / "bin"}:{self.environment()["PATH"]}'
        done = self.run_program([str(NODE), str(self.dir / 'client.ts'), str(self.work),
                                 'say Done.'], PATH=path)
        self.assertEqual(done.stdout, 'Done.', done.stderr)


if __name__ == '__main__':
    main()
