// A model that calls `pay`, and then repeats the tool's result.
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from '@openai/agents-core/testing';

/** @param {string} amount */
export function scriptedModel(amount) {
  const args = { amount: Number(amount), currency: 'EUR', payee: 'Northwind Ltd' };
  return new ScriptedModel([
    [functionCall('pay', args, { callId: 'call-1' })],
    modelResponder(({ request }) => {
      const last = typeof request.input === 'string' ? undefined : request.input.at(-1);
      const output = last?.type === 'function_call_result' ? last.output : undefined;
      return [assistantMessage(typeof output === 'object' && 'text' in output ? String(output.text) : String(output))];
    }),
  ]);
}
