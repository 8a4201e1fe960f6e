// A server that answers like Anthropic's Messages API, from a script.
import { createServer } from 'node:http';

/**
 * Starts a model that calls `pay`, and then repeats the tool's result.
 * @param {string} amount
 */
export function startScriptedModel(amount) {
  const input = { amount: Number(amount), currency: 'EUR', payee: 'Northwind Ltd' };
  return startScriptedClaude((messages) => {
    const result = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .find(({ type }) => type === 'tool_result');
    if (!result) return { name: 'mcp__bank__pay', input };
    return typeof result.content === 'string' ? result.content : result.content[0].text;
  });
}

/**
 * Starts the server. `script` returns a text, or the name and input of a tool to call. The `env` is
 * for Claude Code.
 * @param {(messages: any[], request: any) => string | { name: string, input: object }} script
 */
export async function startScriptedClaude(script) {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname !== '/v1/messages') return response.writeHead(404).end('{}');
    const asked = JSON.parse(body);
    const step = script(asked.messages, asked);
    const content = typeof step === 'string' ? { type: 'text', text: step }
      : { type: 'tool_use', id: `toolu_${crypto.randomUUID()}`, ...step };
    answer(response, asked, content);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', () => resolve(undefined)); });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    env: {
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: 'scripted',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {{ model: string, stream?: boolean }} request
 * @param {any} content
 */
function answer(response, { model, stream }, content) {
  const stop_reason = content.type === 'text' ? 'end_turn' : 'tool_use';
  const message = {
    id: `msg_${crypto.randomUUID()}`, type: 'message', role: 'assistant', model, content: [content], stop_reason,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  };
  if (!stream) return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  /** @type {(type: string, members: object) => void} */
  const send = (type, members) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
  const isText = content.type === 'text';
  send('message_start', { message: { ...message, content: [], stop_reason: null } });
  send('content_block_start', { index: 0, content_block: isText ? { type: 'text', text: '' } : { ...content, input: {} } });
  const delta = isText ? { type: 'text_delta', text: content.text } : { type: 'input_json_delta', partial_json: JSON.stringify(content.input) };
  send('content_block_delta', { index: 0, delta });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } });
  send('message_stop', {});
  return response.end();
}
