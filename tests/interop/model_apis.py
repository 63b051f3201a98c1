# SPDX-License-Identifier: MIT
"""
The HTTP APIs by which agents call their models: Anthropic's messages, OpenAI's responses and chat
completions, Gemini's generateContent. Each reads the conversation from a request, and writes one
content block as the answer: {'type': 'text', 'text'} or {'type': 'tool_use', 'id', 'name',
'input'}. A tool that takes free text has the input {'input': TEXT}. `results` gives the
conversation's tool results as texts, with True for words of the user's, and None for everything
else.
"""

import json


def sse(events, named):
    """Server-sent events; `named` writes each one's type as the event's name."""
    return ''.join((f'event: {event["type"]}\n' if named else '') + f'data: {json.dumps(event)}\n\n'
                   for event in events).encode()


def words(text):
    return [word + ' ' for word in text.split()]


class Messages:
    """POST /v1/messages (Anthropic)."""

    # The text that Claude Code adds to the user's words.
    NOT_A_PERSONS = ('<system-reminder>', '[SUGGESTION MODE', '[Request interrupted')

    @staticmethod
    def serves(path):
        return path.endswith('/messages')

    @staticmethod
    def length(request):
        return len(request['messages'])

    @staticmethod
    def tools(request):
        return [tool['name'] for tool in request.get('tools') or []]

    @staticmethod
    def results(request):
        entries = []
        for message in request['messages']:
            content = message['content']
            blocks = [{'type': 'text', 'text': content}] if isinstance(content, str) else content
            entries += [json.dumps(block.get('content', '')) if block['type'] == 'tool_result'
                        else True for block in blocks if message['role'] == 'user'
                        and not block.get('text', '').startswith(Messages.NOT_A_PERSONS)]
        return entries

    @staticmethod
    def reply(_, request, block):
        # Claude Code merges answers with the same id, so the length of the conversation makes them
        # differ.
        message = {'id': f'msg_{Messages.length(request):02}',
                   'type': 'message', 'role': 'assistant',
                   'model': request.get('model', 'scripted'), 'content': [], 'stop_reason': None,
                   'stop_sequence': None, 'usage': {'input_tokens': 10, 'output_tokens': 1}}
        reason = 'tool_use' if block['type'] == 'tool_use' else 'end_turn'
        if not request.get('stream'):
            return dict(message, content=[block], stop_reason=reason)
        if block['type'] == 'text':
            start = {'type': 'text', 'text': ''}
            deltas = [{'type': 'text_delta', 'text': word} for word in words(block['text'])]
        else:
            start = dict(block, input={})
            deltas = [{'type': 'input_json_delta', 'partial_json': json.dumps(block['input'])}]
        events = [{'type': 'message_start', 'message': message},
                  {'type': 'content_block_start', 'index': 0, 'content_block': start}]
        events += [{'type': 'content_block_delta', 'index': 0, 'delta': delta} for delta in deltas]
        events += [{'type': 'content_block_stop', 'index': 0},
                   {'type': 'message_delta', 'delta': {'stop_reason': reason,
                                                       'stop_sequence': None},
                    'usage': {'output_tokens': 10}},
                   {'type': 'message_stop'}]
        return sse(events, named=True)


class Completions:
    """POST /v1/chat/completions with `stream` (OpenAI)."""

    @staticmethod
    def serves(path):
        return path.endswith('/chat/completions')

    @staticmethod
    def length(request):
        return len(request['messages'])

    @staticmethod
    def tools(request):
        return [tool[tool['type']]['name'] for tool in request.get('tools') or []]

    @staticmethod
    def results(request):
        return [json.dumps(message['content']) if message['role'] == 'tool'
                else True if message['role'] == 'user' else None
                for message in request['messages']]

    @staticmethod
    def reply(_, request, block):
        if block['type'] == 'text':
            delta, reason = {'content': block['text']}, 'stop'
        else:
            delta = {'content': None, 'tool_calls': [{
                'index': 0, 'id': block['id'], 'type': 'function', 'function': {
                    'name': block['name'], 'arguments': json.dumps(block['input'])}}]}
            reason = 'tool_calls'
        base = {'id': 'chatcmpl-01', 'created': 1, 'model': request['model']}
        usage = {'prompt_tokens': 10, 'completion_tokens': 1, 'total_tokens': 11}
        delta['role'] = 'assistant'
        chunk = dict(base, object='chat.completion.chunk')
        events = [
            dict(chunk, choices=[{'index': 0, 'delta': delta, 'finish_reason': None}]),
            dict(chunk, choices=[{'index': 0, 'delta': {}, 'finish_reason': reason}]),
            dict(chunk, choices=[], usage=usage)]
        return sse(events, named=False) + b'data: [DONE]\n\n'


class Responses:
    """POST /v1/responses with `stream` (OpenAI)."""

    OUTPUTS = ('function_call_output', 'custom_tool_call_output', 'local_shell_call_output')

    @staticmethod
    def serves(path):
        return path.endswith('/responses')

    @staticmethod
    def length(request):
        return len(request['input'])

    @staticmethod
    def tools(request):
        return [tool['name'] for tool in request.get('tools') or [] if 'name' in tool]

    @staticmethod
    def results(request):
        return [json.dumps(item['output']) if item.get('type') in Responses.OUTPUTS
                else True if item.get('role') == 'user' else None for item in request['input']]

    @staticmethod
    def item(request, block):
        """Writes the block as an output item."""
        if block['type'] == 'text':
            return {'id': 'msg_01', 'type': 'message', 'role': 'assistant', 'status': 'completed',
                    'content': [{'type': 'output_text', 'text': block['text'], 'annotations': []}]}
        kinds = {tool.get('name'): tool['type'] for tool in request['tools']}
        if kinds[block['name']] == 'custom':
            return {'id': 'ctc_01', 'type': 'custom_tool_call', 'call_id': block['id'],
                    'status': 'completed', 'name': block['name'], 'input': block['input']['input']}
        return {'id': 'fc_01', 'type': 'function_call', 'call_id': block['id'],
                'status': 'completed', 'name': block['name'],
                'arguments': json.dumps(block['input'])}

    @staticmethod
    def reply(_, request, block):
        item = Responses.item(request, block)
        response = {'id': 'resp_01', 'object': 'response', 'created_at': 1,
                    'model': request['model'], 'status': 'in_progress', 'output': [],
                    'parallel_tool_calls': False, 'tool_choice': 'auto', 'tools': [],
                    'error': None, 'incomplete_details': None, 'usage': None}
        done = dict(response, status='completed', output=[item], usage={
            'input_tokens': 10, 'input_tokens_details': {'cached_tokens': 0},
            'output_tokens': 1, 'output_tokens_details': {'reasoning_tokens': 0},
            'total_tokens': 11})
        events = [{'type': 'response.created', 'response': response},
                  {'type': 'response.output_item.added', 'output_index': 0,
                   'item': dict(item, status='in_progress', **(
                       {'content': []} if block['type'] == 'text' else {}))}]
        place = {'item_id': item['id'], 'output_index': 0}
        if block['type'] == 'text':
            part, = item['content']
            place['content_index'] = 0
            events += [
                dict(place, type='response.content_part.added', part=dict(part, text='')),
                dict(place, type='response.output_text.delta', delta=part['text'], logprobs=[]),
                dict(place, type='response.output_text.done', text=part['text'], logprobs=[]),
                dict(place, type='response.content_part.done', part=part)]
        elif item['type'] == 'function_call':
            events += [
                dict(place, type='response.function_call_arguments.delta',
                     delta=item['arguments']),
                dict(place, type='response.function_call_arguments.done',
                     arguments=item['arguments'], name=item['name'])]
        events += [{'type': 'response.output_item.done', 'output_index': 0, 'item': item},
                   {'type': 'response.completed', 'response': done}]
        return sse([dict(event, sequence_number=number) for number, event in enumerate(events)],
                   named=True)


class GenerateContent:
    """POST /v1beta/models/MODEL:streamGenerateContent (Gemini)."""

    @staticmethod
    def serves(path):
        return path.endswith(':streamGenerateContent')

    @staticmethod
    def length(request):
        return len(request['contents'])

    @staticmethod
    def tools(request):
        return [function['name'] for tool in request.get('tools') or []
                for function in tool.get('functionDeclarations') or []]

    @staticmethod
    def results(request):
        entries = []
        for content in request['contents']:
            results = [json.dumps(part['functionResponse']['response'])
                       for part in content['parts'] if 'functionResponse' in part]
            entries += results or [True if content.get('role') == 'user' else None]
        return entries

    @staticmethod
    def reply(path, request, block):
        part = {'text': block['text']} if block['type'] == 'text' else {
            'functionCall': {'id': block['id'], 'name': block['name'], 'args': block['input']}}
        response = {
            'candidates': [{'content': {'role': 'model', 'parts': [part]}, 'index': 0,
                            'finishReason': 'STOP'}],
            'usageMetadata': {'promptTokenCount': 10, 'candidatesTokenCount': 1,
                              'totalTokenCount': 11},
            'modelVersion': path.split('/')[-1].split(':')[0], 'responseId': 'r01'}
        return sse([response], named=False)


APIS = (Messages, Completions, Responses, GenerateContent)
