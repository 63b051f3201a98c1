#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker chat` in a terminal with claude-code-acp: what a person does in it, once."""

from pair import NEEDED, NODE, path_of
from case import main
from chat_session import ChatSession


@NEEDED
class Chat(ChatSession):
    agent = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]

    def test_a_session_of_claude_code_acp(self):
        self.check_session()


if __name__ == '__main__':
    main()
