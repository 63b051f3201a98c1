#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The reference pair with its agent on another host: one client is compared with the direct
conversation, and the other works in a synced workspace.
"""

import shutil

import test_reference_pair

from case import main
from pair import NEEDED
from ssh_case import SshCase


class OnHost(SshCase, test_reference_pair.Far):
    """The agent gets the environment of the profile; its home is on the host."""

    backend = 'ssh'
    test_by_the_broker_where_every_path_is_another = None

    def settings(self):
        settings = dict(super().settings(), **self.ssh_keys(), env=[
            f'ANTHROPIC_BASE_URL={self.model.url}', 'ANTHROPIC_API_KEY=x', 'DISABLE_AUTOUPDATER=1',
            'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1'])
        del settings['runtime_root']
        return settings

    def config(self, deadlines=True, policy=None, backend='ssh', **keys):
        return super(SshCase, self).config(deadlines, policy, backend, **keys)

    def broker_argv(self, *options, agent):
        return super(test_reference_pair.Far, self).broker_argv(*options, agent=agent)

    def find_root(self):
        """Finds the agent's path of the workspace, which a session has made."""
        client = self.broker(options=self.config(**self.settings()))
        client.initialize()
        session = client.new_session(self.work)
        self.root = self.runtime(client, session)
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)


@NEEDED
class Compared(OnHost):
    def test_the_conversation_is_the_direct_one(self):
        self.run_direct()
        self.fresh()
        self.find_root()
        shutil.copy(self.work / 'notes.txt', self.root)
        self.run_pair(through_broker=True)
        self.check()
        self.assertEqual([path.name for path in self.work.iterdir()], ['notes.txt'])


@NEEDED
class InStep(OnHost):
    ssh_client = 'openssh'

    def settings(self):
        return dict(super().settings(), sync='turn-bidirectional')

    def test_what_the_agent_has_written_is_here(self):
        self.fresh()
        self.find_root()
        self.run_pair(through_broker=True)
        self.check_schema('editor')
        self.check_schema('agent')
        self.assertEqual((self.work / 'notes.txt').read_text(), 'one\nzwei\n')
        self.assertEqual((self.work / 'new.txt').read_text(), 'neu\n')


if __name__ == '__main__':
    main()
