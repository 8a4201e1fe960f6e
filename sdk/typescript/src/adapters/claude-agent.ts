// Guards the tools of the Claude Agent SDK. Tested with `@anthropic-ai/claude-agent-sdk` 0.3.332.

import type { Authority } from '../guard.js';
import { toMilliseconds } from '../time.js';
import { isSame, refusalText, ToolGuard, type OpenCall, type ToolGuardOptions } from './tool-guard.js';

type Hook = (input: any, toolUseId: string | undefined, options: any) => Promise<any>;

interface HookMatcher {
  matcher?: string;
  hooks: Hook[];
  timeout?: number;
}

/** Options of `query`. */
export interface QueryOptions {
  abortController?: AbortController | undefined;
  hooks?: Partial<Record<string, HookMatcher[]>> | undefined;
  permissionPromptToolName?: string | undefined;
  canUseTool?: ((name: string, input: any, options: any) => Promise<any>) | undefined;
  settings?: unknown;
  extraArgs?: Record<string, string | null> | undefined;
  env?: Record<string, string | undefined> | undefined;
}

/**
 * Arguments of Claude Code that would bring hooks of others, settings that are not in `settings`, or a
 * tool that answers permission requests and can change the arguments.
 */
const FORBIDDEN_ARGUMENTS = ['bare', 'settings', 'managed-settings', 'permission-prompt-tool'];
const CHANGED = 'Denied: the arguments of the call were changed after the decision.';
const LATE = 'Denied: the permission expired before the tool began.';

/**
 * Returns the options of `query` with a hook before every tool call: of every tool, of subagents
 * and of MCP servers. A call is denied unless it is permitted. A permitted call goes on to the
 * permission rules of Claude Code. Hooks of settings files and plugins are turned off, because they
 * could change the arguments. If a permission ends while its tool runs, the query is aborted.
 *
 * @throws {TypeError} The options would let tools run without the hook.
 */
export function guardAgent<O extends QueryOptions>(
  authority: Authority, options: O, guardOptions: ToolGuardOptions = {},
): O {
  const guard = new ToolGuard(authority, guardOptions);
  const abortController = options.abortController ?? new AbortController();
  const calls = new GuardedCalls(guard, abortController);
  // When this time is over, Claude Code denies the call.
  const timeout = Math.ceil(toMilliseconds(guardOptions.wait ?? 0) / 1000) + 60;
  const { hooks = {}, canUseTool } = options;
  const others = (event: string, change = (matcher: HookMatcher) => matcher) => (hooks[event] ?? []).map(change);
  return {
    ...options,
    ...isolated(guard, options),
    abortController,
    hooks: {
      ...hooks,
      PreToolUse: [before(calls.start, timeout), ...others('PreToolUse', calls.checked)],
      PermissionRequest: others('PermissionRequest', calls.checked),
      PostToolUse: [{ hooks: [calls.ended] }, ...others('PostToolUse')],
      PostToolUseFailure: [{ hooks: [calls.ended] }, ...others('PostToolUseFailure')],
      PreSkillShellCommand: [before(calls.refuseShellCommand, timeout), ...others('PreSkillShellCommand')],
      SessionEnd: [{ hooks: [calls.endedAll] }, ...others('SessionEnd')],
    },
    ...(canUseTool && { canUseTool: calls.permissionHandler(canUseTool) }),
  };
}

/** Without `onFailure: 'block'`, a tool would run if the hook fails. */
const before = (hook: Hook, timeout: number) => ({ hooks: [hook], timeout, onFailure: 'block' });

/** Returns settings and an environment in which only the hooks of the program run. */
function isolated(guard: ToolGuard, options: QueryOptions): Partial<QueryOptions> {
  const { env, extraArgs = {}, settings = {}, permissionPromptToolName } = options;
  const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
  const variables = env ?? process?.env ?? {};
  const forbidden = FORBIDDEN_ARGUMENTS.filter((name) => name in extraArgs).map((name) => `--${name}`);
  if (variables['CLAUDE_CODE_SIMPLE']) forbidden.push('CLAUDE_CODE_SIMPLE');
  if (permissionPromptToolName !== undefined) forbidden.push('permissionPromptToolName');
  if (forbidden.length > 0) {
    throw new TypeError(`${forbidden.join(', ')} can turn the guard's hook off or change arguments after it: remove it`);
  }
  if (typeof settings !== 'object' || settings === null) throw new TypeError('settings must be an object, not a text');
  // The advisor is a tool that runs at the provider.
  if ('advisorModel' in settings || 'advisor' in extraArgs) guard.requireUnguarded(['advisor']);
  const noAdvisor = guard.unguarded.has('advisor') ? {} : { CLAUDE_CODE_DISABLE_ADVISOR_TOOL: '1' };
  return { settings: { ...settings, disableAllHooks: true }, env: { ...variables, ...noAdvisor } };
}

const deny = (event: string, reason: string) => ({
  hookSpecificOutput: event === 'PermissionRequest'
    ? { hookEventName: event, decision: { behavior: 'deny', message: reason } }
    : { hookEventName: event, permissionDecision: 'deny', permissionDecisionReason: reason },
});

interface ToolInput {
  hook_event_name: string;
  tool_use_id: string;
  tool_name: string;
  tool_input: unknown;
}

/** The calls of tools in Claude Code: from the hook before a tool to the hook after it. */
class GuardedCalls {
  readonly #guard: ToolGuard;
  readonly #query: AbortController;
  readonly #running = new Map<string, OpenCall & { asked: unknown }>();

  constructor(guard: ToolGuard, query: AbortController) {
    this.#guard = guard;
    this.#query = query;
  }

  /** Returns when the call is permitted, without an opinion. Its scope stays open until its end. */
  readonly start: Hook = async (input: ToolInput, _id, { signal }: { signal: AbortSignal }) => {
    try {
      const asked = structuredClone(input.tool_input);
      const call = await this.#guard.open(input.tool_name, asked, { signal });
      call.stopped.catch((reason) => this.#query.abort(reason));
      this.#running.set(input.tool_use_id, { ...call, asked });
      return {};
    } catch (error) {
      return deny('PreToolUse', refusalText(error));
    }
  };

  /** Ends the scope of a tool that has run. */
  readonly ended: Hook = async ({ tool_use_id, tool_input, error }) => {
    const call = this.#running.get(tool_use_id);
    const isChanged = call !== undefined && !isSame(call.asked, tool_input);
    this.#finish(tool_use_id, isChanged || error !== undefined ? 'the tool failed' : undefined);
    return isChanged ? { continue: false, stopReason: CHANGED } : {};
  };

  /** Ends the scopes of calls whose tools did not run, for example because another hook denied them. */
  readonly endedAll: Hook = async () => {
    for (const id of this.#running.keys()) this.#finish(id, 'the tool did not run');
    return {};
  };

  #finish(id: string, problem?: string): void {
    this.#running.get(id)?.finish(problem);
    this.#running.delete(id);
  }

  /** A shell command in a skill runs before the skill is read, without a call of a tool. */
  readonly refuseShellCommand: Hook = async ({ hook_event_name: event }: ToolInput) => (
    this.#guard.unguarded.has(event) ? {} : deny(event, 'Denied: shell commands in skills are not guarded.')
  );

  /** Wraps hooks of the program, which can deny a call, but neither change nor delay it. */
  readonly checked = (matcher: HookMatcher): HookMatcher => ({
    ...matcher,
    hooks: matcher.hooks.map((hook): Hook => async (input: ToolInput, ...rest) => {
      // The hook may edit the input in place and return it.
      const given = structuredClone(input.tool_input);
      const output = await hook(input, ...rest);
      const { updatedInput, decision } = output?.hookSpecificOutput ?? {};
      const problem = this.#problem(input.tool_use_id, [updatedInput, decision?.updatedInput], given);
      return problem ? deny(input.hook_event_name, problem) : output;
    }),
  });

  /** Wraps the permission handler of the program in the same way. */
  permissionHandler(canUseTool: NonNullable<QueryOptions['canUseTool']>): NonNullable<QueryOptions['canUseTool']> {
    return async (name, input, options) => {
      const asked = structuredClone(input);
      const result = await canUseTool(name, input, options);
      const problem = this.#problem(options.toolUseID, [result?.updatedInput ?? input], asked);
      const answer = problem ? { behavior: 'deny', message: problem } : result;
      if (answer?.behavior === 'deny') this.#finish(options.toolUseID, 'the tool did not run');
      return answer;
    };
  }

  #problem(id: string, updates: readonly unknown[], given: unknown): string | undefined {
    if (updates.some((updated) => updated !== undefined && !isSame(updated, given))) return CHANGED;
    return this.#running.get(id)?.isLate() ? LATE : undefined;
  }
}
