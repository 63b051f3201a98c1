#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Finds the tests that a rewording of messages breaks. It prints two lists:

- words of tests that no message has any more: two to four words in a row that messages had before;
- facts that tests compare and that a reworded message has lost, even if another message still has
  them. Each is printed with the old text of the message; the reader judges whether the test means
  that message.

    reworded.py [COMMIT|RANGE]    from a commit (HEAD) to the files here, or a range A..B
"""

import difflib
import pathlib
import re
import subprocess
import sys

from phrases import COMPARES, DIRECTIVE, FOLDERS, literals_of_c, literals_of_python

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / 'tests/integration'))
from facts import pattern  # noqa: E402

ROW = 4
PRODUCT = ('acp', 'base', 'broker', 'providers', 'sync')
SOURCES = ('.c', '.h', '.sh')
SEPARATOR = ' | '  # of the facts in one literal
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*|[^\sA-Za-z]+")


def git(*words):
    return subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True, check=True,
                          errors='replace').stdout


class Tree:
    """The program's sources in a commit, or those in the working tree if it is None."""

    def __init__(self, commit):
        self.commit, self.known = commit, {}
        listed = (git('ls-tree', '-r', '--name-only', commit, '--', *PRODUCT) if commit
                  else git('ls-files', '--', *PRODUCT))
        self.names = [name for name in listed.split('\n') if name.endswith(SOURCES)]

    def literals(self, name):
        """The texts of a file, [] if there is none. A script's texts are its lines of code."""
        if name not in self.known:
            self.known[name] = self.texts(name)
        return self.known[name]

    def texts(self, name):
        if self.commit:
            source = git('show', f'{self.commit}:{name}') if name in self.names else ''
        else:
            source = (ROOT / name).read_text() if (ROOT / name).exists() else ''
        if name.endswith('.sh'):
            return [line for line in source.split('\n') if not line.lstrip().startswith('#')]
        return [text for _, _, text, _ in literals_of_c(source)]


def rows(text):
    """Every two to ROW words in a row; anything but blanks between them ends the row."""
    words = [word.lower() for word in WORD.findall(DIRECTIVE.sub('|', text))]
    found = set()
    for first in range(len(words)):
        for end in range(first, min(first + ROW, len(words))):
            if not words[end][0].isalpha():
                break
            if end > first:
                found.add(tuple(words[first:end + 1]))
    return found


def rows_of(tree, names):
    return {row for name in names for text in tree.literals(name) for row in rows(text)}


def lost_texts(old, new, still):
    """(old text, what stands in its place) of each text that changed between two lists. A text
    that is still somewhere else has only moved."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, first, end, new_first, new_end in matcher.get_opcodes():
        if kind in ('replace', 'delete'):
            same = end - first == new_end - new_first
            all_new = ' | '.join(new[new_first:new_end])
            for at in range(first, end):
                instead = new[new_first + at - first] if same else all_new
                if old[at] not in still and len(WORD.findall(old[at])) > 1 and ' ' in old[at]:
                    yield old[at], instead


def has(text, fact):
    return fact in text and bool(re.search(pattern(fact), DIRECTIVE.sub('|', text)))


def facts_of(text, call):
    """The facts in a literal of a test. A single word is one only where facts are compared, as
    other comparisons of a word are rarely with a message."""
    compares_facts = 'names' in call.lower() or SEPARATOR in text
    if not compares_facts and not COMPARES.fullmatch(call):
        return []
    return [fact for fact in text.split(SEPARATOR)
            if re.search(r'[A-Za-z]{3}', fact) and fact == fact.strip()
            and (2 - compares_facts) <= len(fact.split()) <= ROW]


def facts_lost(facts, old, new):
    """The facts that the old text has and the new one lacks, unless the test means another
    message: most of the words that it compares are not in the old text."""
    here = [fact for fact in facts if has(old, fact)]
    words = [fact for fact in facts if fact.replace(' ', '').isalpha()]
    if len(here) < len(set(words) - set(here)):
        return []
    return [fact for fact in here if not has(new, fact)]


def literals_of_tests():
    """(place, text, function it is an argument of) of each literal of the tests."""
    for folder in FOLDERS:
        for path in sorted((ROOT / 'tests' / folder).rglob('*')):
            literals = {'.c': literals_of_c, '.h': literals_of_c,
                        '.py': literals_of_python}.get(path.suffix)
            if literals and 'node_modules' not in path.parts:
                for first, _, text, call in literals(path.read_text()):
                    yield f'{path.relative_to(ROOT)}:{first}', text, call


def with_gone_words(literals, gone):
    for place, text, _ in literals:
        row = min(rows(text) & gone, default=None,
                  key=lambda row: (len(row), text.lower().find(' '.join(row))))
        if row:
            yield f'{place}: "{" ".join(row)}" is in no message any more'


def with_lost_facts(literals, lost):
    """A block for each reworded message: its old text, and the places that compare what it lost."""
    compared = [(place, facts) for place, text, call in literals
                for facts in [facts_of(text, call)] if facts]
    for name, old, new in lost:
        places = [f'  {place}: "{fact}"' for place, facts in compared
                  for fact in facts_lost(facts, old, new)]
        if places:
            yield '\n'.join([f'{name}: {old!r} has lost what is compared in', *places])


def main():
    span = sys.argv[1] if len(sys.argv) > 1 else 'HEAD'
    first, _, last = span.partition('..')
    before, now = Tree(first), Tree(last or None)
    changed = [name for name in git('diff', '--name-only', span, '--', *PRODUCT).split('\n')
               if name.endswith(SOURCES)]
    still = {text for name in now.names for text in now.literals(name)} if changed else set()
    gone = rows_of(before, changed) - rows_of(now, now.names) if changed else set()
    lost = [(name, old, new) for name in changed
            for old, new in lost_texts(before.literals(name), now.literals(name), still)]
    literals = list(literals_of_tests())
    found = [*with_gone_words(literals, gone), *with_lost_facts(literals, lost)]
    print('\n'.join(found) if found else 'no test has words that have gone from the messages')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
