#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tests of syncs around turns, with the agent on another host instead of in a copy here."""

import test_deletions
import test_sync
import test_turns

from case import SANITIZED, main, selected
from ssh_case import SshCase
from together import Together, tests_of

AT_ONCE = 4

# Tests that are only about a copy on this machine.
OF_COPIES = ('test_few_scripts_are_run_in_the_sandbox',
             'test_ignored_files_do_not_come_back',
             'test_what_the_copies_are_in_is_not_copied_either')


class Far(SshCase):
    """A mixin for a SyncCase: its sandbox is on a host."""

    def copied(self, profile='test', **keys):
        client = self.broker(options=self.config(**{'start_timeout': '20s', **keys}))
        client.initialize()
        return client

    def opened(self, **keys):
        client = self.copied(**keys)
        return client, client.new_session(self.work)


def far(base, ssh_client):
    name = base.__name__ + ('ByOpenssh' if ssh_client == 'openssh' else '')
    return type(name, (Far, base), {'ssh_client': ssh_client, **dict.fromkeys(OF_COPIES)})


def load_tests(loader, _tests, _pattern):
    few = [test_sync.Turns, test_sync.Ends]
    many = [test_sync.Checkpoints, test_turns.Shown, test_turns.Failed, test_turns.Overlapping,
            test_turns.Cancelled, test_turns.Interrupted, test_deletions.Stuck]
    classes = [far(one, 'libssh2') for one in [*few, *([] if SANITIZED else many)]]
    others = [] if SANITIZED else [far(one, 'openssh') for one in few]
    return Together(AT_ONCE, tests_of(loader, classes) + selected(tests_of(loader, others)))


if __name__ == '__main__':
    main()
