# SPDX-License-Identifier: MIT
"""
What tests compare of a message for people, which may be reworded: the facts in it. A fact is a
path, a name, a number, a setting, or up to four words that tell it from another message. Several
facts are one text, in any order: 'profile.p.network | open | "closed"'.
"""

import re


def pattern(fact):
    """The fact, but not as a part of a longer word, name or number: "sync-timeout", "2.0"."""
    before = r'(?<!\w)(?<!\w-)' if re.match(r'\w', fact) else ''
    before += r'(?<!\d\.)' if re.match(r'\d', fact) else ''
    after = r'(?!\w)(?!-\w)' if re.search(r'\w$', fact) else ''
    after += r'(?!\.\d)' if re.search(r'\d$', fact) else ''
    return before + re.escape(fact) + after


def names(text, facts):
    """Whether the text has each of the facts."""
    return all(re.search(pattern(fact), text) for fact in facts.split(' | '))
