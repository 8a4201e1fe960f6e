// A model that calls `pay`, and then repeats the tool's result.
import { AIMessage, fakeModel } from 'langchain';

/** @param {string} amount */
export function scriptedModel(amount) {
  const args = { amount: Number(amount), currency: 'EUR', payee: 'Northwind Ltd' };
  return fakeModel()
    .respond(new AIMessage({ content: '', tool_calls: [{ id: 'call-1', name: 'pay', args, type: 'tool_call' }] }))
    .respond((messages) => new AIMessage(messages.at(-1)?.text ?? ''));
}
