// A model that calls `pay`, and then repeats the tool's result.
import { MockLanguageModelV4 } from 'ai/test';

/** @param {string} amount */
export function scriptedModel(amount) {
  const input = JSON.stringify({ amount: Number(amount), currency: 'EUR', payee: 'Northwind Ltd' });
  const rest = {
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
    warnings: [],
  };
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1);
      const [part] = last?.role === 'tool' ? last.content : [];
      if (part?.type !== 'tool-result') {
        const content = [{ type: /** @type {const} */ ('tool-call'), toolCallId: 'call-1', toolName: 'pay', input }];
        return { content, finishReason: { unified: 'tool-calls', raw: undefined }, ...rest };
      }
      const text = 'value' in part.output ? String(part.output.value) : part.output.type;
      return { content: [{ type: 'text', text }], finishReason: { unified: 'stop', raw: undefined }, ...rest };
    },
  });
}
