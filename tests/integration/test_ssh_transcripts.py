#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The conversations of test_transcripts.py with the agent on another host: both ends see the same
bytes as directly, except for the table of edits and the names of the directories.
"""

import functools
import re

import test_transcripts

from case import SANITIZED, main, selected
from ssh_case import SshCase
from together import Together, tests_of

AT_ONCE = 4
HINT = re.compile(rb' \(acp-broker: [^"]*\)(?=")')


def without_hint(line):
    """An auth_required error without its last sentence, which test_ssh_login_env.py tests."""
    return HINT.sub(b'', line) if b'"code":-32000' in line else line


class Far(SshCase):
    """
    A mixin for a Transcript: the agent is on the host, and the editor serves files and terminals.
    """

    def direct(self, *flags, **more):
        self.is_far = False
        return super().direct(*flags, **more)

    def broker(self, *flags, **more):
        self.is_far = True
        self.__dict__.pop('names', None)
        options = self.config(toolhost='editor', editor_terminals='yes', sync='none',
                              start_timeout='20s')
        return super().broker(*flags, options=options, **more)

    def there(self):
        return next(path for path in self.workspaces() if path.name == self.work.name) \
            if self.is_far else self.work

    @functools.cached_property
    def names(self):
        """The names of the directories (there, here), after a conversation has ended."""
        heres = {'work': self.work, 'share': '/usr/share'}  # a further directory, empty there
        return [(str(path).encode(), str(heres.get(path.name, self.dir / path.name)).encode())
                for path in self.workspaces()]

    def near(self, line):
        for there, here in self.names:
            line = line.replace(there, here)
        return without_hint(line)

    def shown(self, message):
        """The agent's own text names the directories as the agent does."""
        return without_hint(message.line) if message.text is None else self.near(message.line)


class Methods(Far, test_transcripts.Methods):
    # An agent on another host gets no such login; test_ssh.py has that.
    test_terminal_authentication_is_offered_with_a_marker = None


class Bytes(Far, test_transcripts.Bytes):
    # The broker refuses a prompt for a session that it has not opened there (test_elsewhere.py).
    passes_unknown_sessions = False


class Sessions(Far, test_transcripts.Sessions):
    # They are those of the host; test_ssh.py has that.
    test_the_agent_s_surroundings_are_the_editor_s = None


def by_openssh(base):
    return type(base.__name__ + 'ByOpenssh', (base,), {'ssh_client': 'openssh'})


def load_tests(loader, _tests, _pattern):
    classes = [Methods, Bytes, Sessions]
    others = [] if SANITIZED else [by_openssh(one) for one in classes]
    return Together(AT_ONCE, tests_of(loader, classes) + selected(tests_of(loader, others)))


if __name__ == '__main__':
    main()
