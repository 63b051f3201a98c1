# SPDX-License-Identifier: MIT
"""
Finds tests that compare a sentence of the product instead of the facts in it. A sentence is five
words in a row; a number, a path, a name and the operating system's words (strerror) end the row.
A literal compares one if it is an argument of a comparison, and also, wherever it is, if it has
five words in a row of a literal of the product, one of which may be filled in there (%s). Where
the exact text is the interface, a comment on a line of the literal, or on the line above it, says
"exact: " and why.
"""

import ast
import errno
import os
import re

WORDS = 5
FILLED = 'filledin'  # a word that stands for a directive of the product's
FOLDERS = ('unit', 'integration', 'conformance', 'interop', 'soak')  # of tests
COMPARES = re.compile(r'assert\w*|strstr|strcmp|strncmp|expect\w*|wait_log')
MARK = re.compile(r'(//|/\*|#) exact: \w')
OPERANDS = {'assertTrue': 1, 'assertFalse': 1, 'assertIsNone': 1, 'assertIsNotNone': 1,
            'assertNames': 2}  # of unittest's assertions; then comes what is said of a failure

NAME = re.compile(r'"[^\s"]*"|[A-Z][A-Z_]+')
WORD = re.compile(r"[\"'(\[`]*([A-Za-z]+(?:['-][A-Za-z]+)*)[\"')\]`.,:;?!]*")
SYSTEM = re.compile('|'.join(re.escape(os.strerror(number)) for number in errno.errorcode))
DIRECTIVE = re.compile(r'%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j)?[a-zA-Z]')
C_ESCAPE = re.compile(r'\\(?:[ntr]|x[0-9a-fA-F]+|[0-7]+|(.))')
C_STRING = r'"(?:\\.|[^"\\])*"'
C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|(?P<text>' + C_STRING + r'(?:\s*' + C_STRING + r')*)'
                     r"|'(?:\\.|[^'\\])+'|(?P<name>[A-Za-z_]\w*)|(?P<open>[(\[{])"
                     r'|(?P<close>[)\]}])', re.DOTALL)


def phrases(text, filled='|'):
    """Every WORDS words in a row of a text, in lower case; `filled` stands for a directive."""
    row, found = [], set()
    for piece in SYSTEM.sub(' | ', DIRECTIVE.sub(filled, text)).replace('\n', ' | ').split():
        word = WORD.fullmatch(piece)
        row = [*row, word.group(1).lower()] if word and not NAME.match(piece) else []
        if len(row) >= WORDS:
            found.add(tuple(row[-WORDS:]))
    return found


def literals_of_c(source):
    """(first line, last line, text, function it is an argument of) of each literal."""
    calls, name = [], ''
    for token in C_TOKEN.finditer(source):
        if token['text']:
            text = ''.join(part[1:-1] for part in re.findall(C_STRING, token['text']))
            text = C_ESCAPE.sub(lambda escape: escape.group(1) or '\n', text)
            first = source.count('\n', 0, token.start()) + 1
            yield first, first + token['text'].count('\n'), text, calls[-1] if calls else ''
        elif token['open']:
            calls.append(name if token['open'] == '(' else '')
        elif token['close'] and calls:
            calls.pop()
        name = token['name'] or ''


def text_of(node):
    """The text of a literal of Python, with "|" for each value in it; None if it is none."""
    if isinstance(node, ast.JoinedStr):
        return ''.join(text_of(part) or ' | ' for part in node.values)
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bytes):
        return value.decode(errors='replace')
    return value if isinstance(value, str) else None


def literals_of_python(source):
    """As literals_of_c, without docstrings."""
    def walk(node, call):
        text = text_of(node)
        if text is not None:
            yield node.lineno, node.end_lineno, text, call
        elif isinstance(node, ast.Call):
            name = getattr(node.func, 'attr', getattr(node.func, 'id', ''))
            operands = OPERANDS.get(name, 2 if re.match('assert[A-Z]', name) else None)
            yield from walk(node.func, '')
            for argument in node.args[:operands]:
                yield from walk(argument, name)
        elif not isinstance(node, ast.Expr) or text_of(node.value) is None:
            for child in ast.iter_child_nodes(node):
                yield from walk(child, call if isinstance(node, ast.expr) else '')
    yield from walk(ast.parse(source), '')


def with_a_gap(phrase):
    """The phrase, and it with each of its words filled in."""
    return {phrase} | {(*phrase[:at], FILLED, *phrase[at + 1:]) for at in range(WORDS)}


READERS = {'.c': literals_of_c, '.h': literals_of_c, '.py': literals_of_python}


def sentences_compared(files, product):
    """What is wrong with each literal of a test that compares a sentence of the product."""
    known = set()
    for path, lines in files:
        if path.parts[0] in product and path.suffix in ('.c', '.h'):
            for *_, text, _ in literals_of_c('\n'.join(lines)):
                known |= phrases(text, FILLED)
    for path, lines in files:
        if path.parts[0] != 'tests' or path.parts[1] not in FOLDERS or path.suffix not in READERS:
            continue
        for first, last, text, call in READERS[path.suffix]('\n'.join(lines)):
            found = phrases(text)
            if not COMPARES.fullmatch(call):
                found = {phrase for phrase in found if known & with_a_gap(phrase)}
            if found and not any(MARK.search(line) for line in lines[max(first - 2, 0):last]):
                yield (f'{path}:{first}: compares the sentence "{" ".join(min(found))} …"; '
                       'compare the facts in it (tests/support/facts.h)')
