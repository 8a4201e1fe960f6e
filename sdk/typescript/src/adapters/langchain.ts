// Guards the tools of LangChain and LangGraph. Tested with `langchain` 1.5.14.

import { AsyncLocalStorage } from 'node:async_hooks';
import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { ToolMessage } from '@langchain/core/messages';
import { mergeConfigs, Runnable } from '@langchain/core/runnables';
import { isStructuredTool } from '@langchain/core/utils/function_calling';
import { getCurrentTaskInput, interrupt, isGraphBubbleUp } from '@langchain/langgraph';
import { createMiddleware, ToolInvocationError } from 'langchain';
import { Denied, Held, type Authority } from '../guard.js';
import { isRefusal, refusalText, ToolGuard, type ToolGuardOptions } from './tool-guard.js';

export interface LangChainOptions extends ToolGuardOptions {
  /**
   * With `interrupt`, a call that is still held at the end of `wait` interrupts the graph. The value
   * of the interrupt is the `Held` as JSON. Resume the graph after the approval: it asks again. The
   * graph needs a checkpointer. By default, the model reads that the call is held. So it does if a
   * graph of your own runs several calls in one task: they would all run again.
   */
  held?: 'refuse' | 'interrupt' | undefined;
}

interface Tool {
  name: string;
  invoke(input: any, config?: any): Promise<unknown>;
}

type Config = { signal?: AbortSignal; metadata?: { langgraph_path?: unknown[] } } | undefined;

interface ToolCallInput {
  type: 'tool_call';
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

/** Parameters of `createAgent`. */
export interface AgentParams {
  tools?: readonly unknown[] | undefined;
  middleware?: readonly unknown[] | undefined;
}

/**
 * Returns the parameters of `createAgent` with a last middleware that guards every tool call,
 * also of tools that other middleware adds, and checks the tools of every model call.
 *
 * @throws {TypeError} A tool runs at the provider and is not in `unguarded`.
 */
export function guardAgent<P extends AgentParams>(authority: Authority, params: P, options: LangChainOptions = {}): P {
  const guard = new ToolGuard(authority, options);
  const others = (params.middleware ?? []) as { tools?: readonly unknown[]; wrapToolCall?: unknown }[];
  requireClientTools(guard, [...(params.tools ?? []), ...others.flatMap((middleware) => middleware.tools ?? [])]);
  const isOnly = others.every((middleware) => !middleware.wrapToolCall);
  const last = createMiddleware({
    name: 'agent-authority',
    wrapModelCall: (request, handler) => {
      requireClientTools(guard, request.tools);
      return handler(request);
    },
    wrapToolCall: async (request, handler) => {
      const { tool, toolCall } = request;
      // The agent would find a tool by the call's name, which other middleware may have changed.
      if (!tool) return errorMessage(toolCall, `${toolCall.name} is not a tool of this agent`);
      try {
        return await handler({ ...request, tool: guardTool(guard, tool as typeof tool & Tool, options) });
      } catch (error) {
        // Without middleware, the agent shows errors of tools to the model.
        if (!isOnly || isGraphBubbleUp(error) || ToolInvocationError.isInstance(error)) throw error;
        return errorMessage(toolCall, `${error}\n Please fix your mistakes.`);
      }
    },
  });
  return { ...params, middleware: [...others, last] };
}

/** Returns guarded tools for a `ToolNode` or a graph of your own. */
export function guardTools<T extends { name: string }>(
  authority: Authority, tools: readonly T[], options: LangChainOptions = {},
): T[] {
  const guard = new ToolGuard(authority, options);
  requireClientTools(guard, tools);
  return tools.map((tool) => (isClientTool(tool) ? guardTool(guard, tool, options) : tool));
}

const isClientTool = (tool: unknown): tool is Tool => Runnable.isRunnable(tool);

function requireClientTools(guard: ToolGuard, tools: readonly unknown[]): void {
  const others = tools.filter((tool) => !isClientTool(tool)) as Partial<Record<'name' | 'type', string>>[];
  guard.requireUnguarded(others.map((tool) => tool.name ?? tool.type ?? 'unknown'));
}

function guardTool<T extends object>(guard: ToolGuard, tool: T & Tool, options: LangChainOptions): T {
  const invoke = async (input: unknown, config?: Config): Promise<unknown> => {
    const call = isToolCall(input) ? input : undefined;
    const run = (args: Record<string, unknown>, { signal }: { signal: AbortSignal }) => startOnce(tool, () => (
      tool.invoke(call ? { ...call, args } : args, mergeConfigs(config, { signal, callbacks: [new NestedTools()] }))
    ));
    try {
      return await guard.run(tool.name, call ? call.args : input, run, { signal: config?.signal });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (options.held === 'interrupt' && error instanceof Held && isOwnTask(config)) interrupt(error.toJSON());
      if (!call) throw error;
      return errorMessage(call, refusalText(error));
    }
  };
  return Object.create(tool, { invoke: { value: invoke }, call: { value: invoke } }) as T;
}

/** Whether the task has no other call. When a graph is resumed, all calls of the task run again. */
function isOwnTask(config: Config): boolean {
  if (config?.metadata?.langgraph_path?.[0] === '__pregel_push') return true;
  const { messages } = getCurrentTaskInput() as { messages?: { tool_calls?: unknown[] }[] };
  return messages?.at(-1)?.tool_calls?.length === 1;
}

const isToolCall = (input: unknown): input is ToolCallInput => (
  typeof input === 'object' && input !== null && (input as ToolCallInput).type === 'tool_call'
);

const errorMessage = (call: { id?: string | undefined; name: string }, content: string): ToolMessage => (
  new ToolMessage({ content, tool_call_id: call.id ?? '', name: call.name, status: 'error' })
);

/** The one tool that may start in this context, and its run. */
const starts = new AsyncLocalStorage<{ runId?: string }>();

function startOnce<T>(tool: object, body: () => T): T {
  return starts.run(isStructuredTool(tool as Parameters<typeof isStructuredTool>[0]) ? {} : { runId: 'none' }, body);
}

/** Refuses tools of agents that a guarded tool runs, unless they are guarded themselves. */
class NestedTools extends BaseCallbackHandler {
  override name = 'agent-authority';
  override awaitHandlers = true;
  override raiseError = true;

  override handleToolStart(_tool: unknown, _input: string, runId: string): void {
    const start = starts.getStore();
    if (start && (start.runId ??= runId) === runId) return;
    const problem = 'a tool of an agent within a tool has no guard: use guardAgent for that agent as well';
    throw new Denied('unguarded_tool', problem);
  }
}
