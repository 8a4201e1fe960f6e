// Guards the tools of the OpenAI Agents SDK. Tested with `@openai/agents` 0.20.0.

import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent, Runner, type RunConfig, type Tool } from '@openai/agents';
import { Denied, Held, type Authority } from '../guard.js';
import { isRefusal, isSame, refusalText, ToolGuard, type OpenCall, type ToolGuardOptions } from './tool-guard.js';

export interface OpenAIOptions extends ToolGuardOptions {
  /**
   * With `interrupt`, a call that is still held at the end of `wait` interrupts the run
   * (`result.interruptions`). The context of the run has the `Held` as JSON, under `held` and the id
   * of the call. After the approval, approve the interruption in the `RunState` and run again: the
   * tool asks again, and runs only if the service permits it. By default, the model reads that the
   * call is held.
   */
  held?: 'refuse' | 'interrupt' | undefined;
}

type AnyAgent = Agent<any, any>;
type FunctionTool = Extract<Tool, { type: 'function' }>;
type Details = Parameters<FunctionTool['invoke']>[2];

/** The guard of the run to which the current code belongs, also after handoffs and in agents as tools. */
const current = new AsyncLocalStorage<RunGuard>();
const guardedTools = new WeakSet<object>();

/**
 * Returns a runner that guards every function tool of every agent in its runs: also tools that are
 * added later, of MCP servers, of agents after a handoff, and of agents as tools. `run` fails if an
 * agent has a tool that can't be guarded and is not in `unguarded`.
 */
export function guardedRunner(
  authority: Authority, options: OpenAIOptions = {}, config: Partial<RunConfig> = {},
): Runner {
  const runner = new Runner(config);
  const guard = new ToolGuard(authority, options);
  guard.requireUnguarded(rawTools(config.modelSettings));
  const run = runner.run.bind(runner) as (...args: unknown[]) => Promise<unknown>;
  runner.run = (async (agent: AnyAgent, ...rest: unknown[]) => {
    guardAgentTools(guard, agent);
    const calls = new RunGuard(guard, options.held === 'interrupt');
    const result = await current.run(calls, () => run(agent, ...rest)).catch((error: unknown) => {
      calls.close();
      throw error;
    }) as { completed?: Promise<void> };
    void Promise.resolve(result.completed).catch(() => {}).finally(() => calls.close());
    return result;
  }) as Runner['run'];
  return runner;
}

const { getAllTools } = Agent.prototype;

/** The SDK takes all tools from here: before each call of a model, and when it reads a `RunState`. */
Agent.prototype.getAllTools = async function getGuardedTools(this: AnyAgent, ...args): Promise<Tool[]> {
  const tools = await getAllTools.apply(this, args);
  const run = current.getStore();
  if (run) guardAgentTools(run.guard, this, tools);
  for (const tool of tools) if (tool.type === 'function') guardTool(tool);
  return tools;
};

/** Checks and guards the tools of an agent, and of the agents to which it hands off. */
function guardAgentTools(guard: ToolGuard, start: AnyAgent, tools: readonly Tool[] = []): void {
  const agents = new Set<AnyAgent>([start]);
  for (const agent of agents) {
    if (!(agent instanceof Agent)) throw new TypeError('the agent is of another copy of @openai/agents');
    const others = [...agent.tools, ...tools].filter((tool) => tool.type !== 'function').map(nameOf);
    // A prompt that is stored at the provider can have tools of its own.
    const stored = agent.prompt ? ['prompt'] : [];
    guard.requireUnguarded([...others, ...stored, ...rawTools(agent.modelSettings)]);
    for (const tool of agent.tools) if (tool.type === 'function') guardTool(tool);
    for (const handoff of agent.handoffs) agents.add('agent' in handoff ? handoff.agent : handoff as AnyAgent);
  }
}

/** Names a tool without a guard. The tools that a search of the program loads have no guard either. */
const nameOf = (tool: Tool): string => (
  tool.type === 'hosted_tool' && tool.providerData?.['execution'] === 'client' ? `${tool.name}:client` : tool.name
);

/** Names tools in the raw members of a request to the provider. */
const rawTools = (settings: { providerData?: Record<string, unknown> } | undefined): string[] => (
  settings?.providerData?.['tools'] ? ['modelSettings.providerData.tools'] : []
);

/** Guards a tool in place: the SDK recognizes tools by identity. Outside of guarded runs it is unchanged. */
function guardTool(tool: FunctionTool): void {
  if (guardedTools.has(tool)) return;
  const { invoke, needsApproval } = tool;
  tool.invoke = async (context, input, details) => {
    const body = (changed: Details) => invoke.call(tool, context, input, changed);
    return current.getStore()?.invoke(tool.name, input, details, body) ?? body(details);
  };
  tool.needsApproval = async (context, input, callId) => (
    await needsApproval.call(tool, context, input, callId)
    || (await current.getStore()?.mustInterrupt(tool.name, input, callId, context.context) ?? false)
  );
  guardedTools.add(tool);
}

interface DecidedCall {
  readonly args: unknown;
  readonly open?: OpenCall;
  readonly refusal?: unknown;
}

/** The calls of one run. */
class RunGuard {
  /** Calls that were decided before the SDK runs their tools. Calls of two agents can have the same id. */
  readonly #decided = new Map<string, DecidedCall>();

  constructor(readonly guard: ToolGuard, private readonly interrupts: boolean) {}

  /** Runs a tool with a permit. The arguments are a text, so that no hook can change them. */
  async invoke(
    name: string, input: string, details: Details, body: (details: Details) => Promise<unknown>,
  ): Promise<unknown> {
    const withSignal = (signal: AbortSignal) => body(Object.create(Object.prototype, {
      ...Object.getOwnPropertyDescriptors(details ?? {}),
      signal: { value: signal, enumerable: true },
    }) as Details);
    try {
      const args: unknown = input === '' ? {} : JSON.parse(input);
      const decided = this.#take(name, details?.toolCall?.callId);
      if (decided) return await finishAfter(decided, args, withSignal);
      return await this.guard.run(name, args, (_copy, { signal }) => withSignal(signal), { signal: details?.signal });
    } catch (error) {
      if (isRefusal(error) || error instanceof SyntaxError) return refusalText(error);
      throw error;
    }
  }

  /** Asks before the SDK runs a tool. If the call is held, the run must be interrupted. */
  async mustInterrupt(
    name: string, args: unknown, callId: string | undefined, context: unknown,
  ): Promise<boolean> {
    if (!this.interrupts || callId === undefined) return false;
    try {
      this.#decided.set(keyOf(name, callId), { args, open: await this.guard.open(name, args) });
    } catch (refusal) {
      if (refusal instanceof Held) {
        // The context is a part of the RunState.
        const { held } = context as { held?: object };
        Object.assign(context as object, { held: { ...held, [callId]: refusal.toJSON() } });
        return true;
      }
      this.#decided.set(keyOf(name, callId), { args, refusal });
    }
    return false;
  }

  /** Ends the scopes of calls whose tools did not run, for example because a guardrail rejected them. */
  close(): void {
    for (const { open } of this.#decided.values()) open?.finish('the tool did not run');
    this.#decided.clear();
  }

  #take(name: string, callId: string | undefined): DecidedCall | undefined {
    if (callId === undefined) return undefined;
    const decided = this.#decided.get(keyOf(name, callId));
    this.#decided.delete(keyOf(name, callId));
    return decided;
  }
}

const keyOf = (name: string, callId: string) => JSON.stringify([name, callId]);

async function finishAfter(
  { args, open, refusal }: DecidedCall, given: unknown, body: (signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  if (!open) return refusalText(refusal);
  const isChanged = !isSame(args, given);
  if (isChanged || open.isLate()) {
    open.finish('the tool did not run');
    return refusalText(isChanged
      ? new Denied('arguments_changed', 'the arguments changed after the decision')
      : new Denied('late', 'the permission expired before the tool began'));
  }
  try {
    const result = await Promise.race([body(open.signal), open.stopped]);
    open.finish();
    return result;
  } catch (error) {
    open.finish('the tool failed');
    if (open.signal.aborted) return refusalText(error);
    throw error;
  }
}
