# SPDX-License-Identifier: MIT
"""
The facts that tests compare in a message for people; its other words may change. A fact is a path,
a name, a number, a setting, or up to four words that tell it from another message. One text can
hold several facts, in any order: 'profile.p.network | open | "closed"'.
"""

import re


def pattern(fact):
    """Finds the fact, but not as a part of a longer word, name or number: "sync-timeout", "2.0"."""
    before = r'(?<!\w)(?<!\w-)' if re.match(r'\w', fact) else ''
    before += r'(?<!\d\.)' if re.match(r'\d', fact) else ''
    after = r'(?!\w)(?!-\w)' if re.search(r'\w$', fact) else ''
    after += r'(?!\.\d)' if re.search(r'\d$', fact) else ''
    return before + re.escape(fact) + after


def names(text, facts):
    """Whether the text has each of the facts."""
    return all(re.search(pattern(fact), text) for fact in facts.split(' | '))
