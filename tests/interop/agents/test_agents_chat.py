#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The same session of `acp-broker chat` with today's claude-agent-acp."""

import pathlib
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

import pair  # noqa: E402,F401  (it knows where the tests have their modules)
from case import main  # noqa: E402
from agent_case import NEEDED  # noqa: E402
from chat_session import ChatSession  # noqa: E402
from todays_agents import CLAUDE  # noqa: E402


@NEEDED
class Chat(ChatSession):
    agent = CLAUDE.command

    def test_a_session_of_claude_agent_acp(self):
        self.check_session()


if __name__ == '__main__':
    main()
