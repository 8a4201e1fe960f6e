// Guards the tools of the Vercel AI SDK. Tested with `ai` 7.0.173.

import { Denied, type Authority } from '../guard.js';
import { ToolGuard, type ToolGuardOptions } from './tool-guard.js';

interface ExecuteOptions {
  abortSignal?: AbortSignal | undefined;
}

interface Tool {
  type?: string | undefined;
  isProviderExecuted?: boolean | undefined;
  args?: object | undefined;
  providerOptions?: object | undefined;
  execute?: ((input: any, options: any) => unknown) | undefined;
}

type ToolSet = Record<string, Tool>;

interface ModelTool {
  type: string;
  name: string;
  args?: object;
  providerOptions?: object;
}

/** The arguments of a model call that decide which tools can run. */
interface ModelCall {
  tools?: readonly ModelTool[] | undefined;
  providerOptions?: Record<string, { mcpServers?: unknown } | undefined> | undefined;
}

interface Part {
  type: string;
  toolName?: string;
  providerExecuted?: boolean;
}

interface Model {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: unknown;
  doGenerate(call: ModelCall): PromiseLike<{ content: readonly Part[] }>;
  doStream(call: ModelCall): PromiseLike<{ stream: ReadableStream<Part> }>;
}

/** Settings of `generateText`, `streamText` or `new ToolLoopAgent`. */
export interface AgentSettings {
  model: unknown;
  tools?: object | undefined;
  prepareCall?: ((call: any) => any) | undefined;
  prepareStep?: ((step: any) => any) | undefined;
}

const guardedTools = new WeakSet<object>();
const guardedModels = new WeakSet<object>();
/**
 * The `providerOptions` or `args` of guarded tools. The AI SDK passes these objects to the model
 * as they are, which shows there that a tool is guarded.
 */
const marks = new WeakSet<object>();

/**
 * Returns the settings with guarded tools, and with a model that refuses every call that offers
 * another tool: one added later, by `prepareCall`, or by another agent that uses this model.
 *
 * @throws {TypeError} A tool does not run by its `execute`, and is not in `unguarded`.
 */
export function guardAgent<S extends AgentSettings>(
  authority: Authority, settings: S, options: ToolGuardOptions = {},
): S {
  return guardSettings(new ToolGuard(authority, options), settings);
}

/**
 * Guards tools of an MCP server. A tool that is not in `actions` is denied: a server can add tools
 * at any time.
 */
export function wrapMcpTools<T extends object>(
  authority: Authority, tools: T, options: ToolGuardOptions & { actions: Readonly<Record<string, string>> },
): T {
  const guard = new ToolGuard(authority, options);
  return mapTools(tools, (name, tool) => (
    Object.hasOwn(options.actions, name) ? guardTool(guard, name, tool) : mark({
      ...tool,
      execute: async () => { throw new Denied('unguarded_tool', `the MCP tool ${name} is not in \`actions\``); },
    })
  ));
}

function guardSettings<S extends AgentSettings>(guard: ToolGuard, settings: S): S {
  const { model, tools, prepareCall, prepareStep } = settings;
  return {
    ...settings,
    model: guardModel(guard, model),
    ...(tools && { tools: guardTools(guard, tools) }),
    ...(prepareCall && { prepareCall: async (call: unknown) => guardSettings(guard, await prepareCall(call)) }),
    ...(prepareStep && {
      prepareStep: async (step: unknown) => {
        const prepared = await prepareStep(step);
        return prepared?.model ? { ...prepared, model: guardModel(guard, prepared.model) } : prepared;
      },
    }),
  };
}

function guardTools<T extends object>(guard: ToolGuard, tools: T): T {
  const elsewhere = Object.entries(tools as ToolSet).filter(([, tool]) => runsElsewhere(tool));
  guard.requireUnguarded(elsewhere.map(([name]) => name));
  return mapTools(tools, (name, tool) => guardTool(guard, name, tool));
}

const mapTools = <T extends object>(tools: T, change: (name: string, tool: Tool) => Tool): T => (
  Object.fromEntries(Object.entries(tools as ToolSet).map(([name, tool]) => [name, change(name, tool)])) as T
);

/** The AI SDK replaces the `execute` of tools with these members: of tool search, and of code that calls tools. */
const REPLACED = [Symbol.for('vercel.ai.toolSearch'), 'experimental_toolCaller'];
const runsElsewhere = (tool: Tool): boolean => (
  tool.isProviderExecuted === true || tool.execute === undefined || REPLACED.some((name) => name in tool)
);

function guardTool(guard: ToolGuard, name: string, tool: Tool): Tool {
  const { execute } = tool;
  if (guardedTools.has(tool) || runsElsewhere(tool) || !execute) return tool;
  return mark({
    ...tool,
    execute: (input: unknown, options: ExecuteOptions) => guard.run(name, input, (args, { signal }) => (
      last(execute.call(tool, args, { ...options, abortSignal: signal }))
    ), { signal: options?.abortSignal }),
  });
}

function mark(tool: Tool): Tool {
  const name = tool.type === 'provider' ? 'args' : 'providerOptions';
  const marked = { ...tool, [name]: { ...tool[name] } };
  marks.add(marked[name] as object);
  guardedTools.add(marked);
  return marked;
}

/** A tool that yields several results returns the last one, as the AI SDK shows it to the model. */
async function last(result: unknown): Promise<unknown> {
  const value = await result;
  if (typeof value !== 'object' || value === null || !(Symbol.asyncIterator in value)) return value;
  let latest: unknown;
  for await (const part of value as AsyncIterable<unknown>) latest = part;
  return latest;
}

function guardModel(guard: ToolGuard, given: unknown): object {
  if (typeof given !== 'object' || given === null) {
    throw new TypeError('model must be an object of a provider, such as openai("gpt-5"), not a name');
  }
  if (guardedModels.has(given)) return given;
  const model = given as Model;
  const guarded: Model = {
    specificationVersion: model.specificationVersion,
    get provider() { return model.provider; },
    get modelId() { return model.modelId; },
    get supportedUrls() { return model.supportedUrls; },
    async doGenerate(call) {
      const check = requireMarks(guard, call);
      const result = await model.doGenerate(call);
      result.content.forEach(check);
      return result;
    },
    async doStream(call) {
      const check = requireMarks(guard, call);
      const result = await model.doStream(call);
      const checked = new TransformStream<Part, Part>({
        transform(part, controller) {
          check(part);
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(checked) };
    },
  };
  guardedModels.add(guarded);
  return guarded;
}

/** Checks the tools of a model call. Returns a check for the parts of the answer. */
function requireMarks(guard: ToolGuard, { tools = [], providerOptions = {} }: ModelCall): (part: Part) => void {
  const isMarked = ({ type, args = {}, providerOptions: own = {} }: ModelTool) => marks.has(type === 'provider' ? args : own);
  const servers = Object.values(providerOptions).flatMap((given) => given?.mcpServers ?? []) as { name?: string }[];
  guard.requireUnguarded([
    ...tools.filter((tool) => !isMarked(tool)).map(({ name }) => name),
    ...servers.map(({ name }) => name ?? 'mcpServers'),
  ]);
  // Tools of an MCP server at the provider have names of their own.
  if (servers.length > 0) return () => {};
  return ({ type, providerExecuted, toolName = 'unknown' }) => {
    if (type === 'tool-call' && providerExecuted) guard.requireUnguarded([toolName]);
  };
}
