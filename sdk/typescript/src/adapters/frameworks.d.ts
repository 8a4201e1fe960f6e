// Declares the parts of the frameworks that the adapters use. The library builds without the
// frameworks. The tests of the adapters run with the frameworks themselves.

declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined;
    run<R>(store: T, body: () => R): R;
  }
}

declare module '@langchain/core/callbacks/base' {
  export abstract class BaseCallbackHandler {
    abstract name: string;
    awaitHandlers: boolean;
    raiseError: boolean;
    handleToolStart?(tool: unknown, input: string, runId: string): void;
  }
}

declare module '@langchain/core/messages' {
  export class ToolMessage {
    constructor(fields: { content: string; tool_call_id: string; name: string; status: 'error' });
  }
}

declare module '@langchain/core/runnables' {
  export class Runnable {
    static isRunnable(thing: unknown): boolean;
  }
  export function mergeConfigs(...configs: (object | undefined)[]): object;
}

declare module '@langchain/core/utils/function_calling' {
  export function isStructuredTool(tool: object): boolean;
}

declare module '@langchain/langgraph' {
  export function getCurrentTaskInput(): unknown;
  export function interrupt(value: unknown): unknown;
  export function isGraphBubbleUp(error: unknown): boolean;
}

declare module 'langchain' {
  interface ToolCallRequest {
    tool: object | undefined;
    toolCall: { id?: string; name: string };
  }
  type Handler<Request> = (request: Request) => Promise<unknown>;

  export class ToolInvocationError {
    static isInstance(error: unknown): boolean;
  }
  export function createMiddleware(middleware: {
    name: string;
    wrapModelCall(request: { tools: readonly unknown[] }, handler: Handler<object>): Promise<unknown>;
    wrapToolCall(request: ToolCallRequest, handler: Handler<ToolCallRequest>): Promise<unknown>;
  }): object;
}

declare module '@openai/agents' {
  type Details = { signal?: AbortSignal; toolCall?: { callId: string } } | undefined;
  type RunContext = { context: unknown };

  export type Tool = { type: 'computer' | 'shell' | 'apply_patch'; name: string } | {
    type: 'hosted_tool';
    name: string;
    providerData?: Record<string, unknown>;
  } | {
    type: 'function';
    name: string;
    invoke(context: RunContext, input: string, details?: Details): Promise<unknown>;
    needsApproval(context: RunContext, input: unknown, callId?: string): Promise<boolean>;
  };
  interface ModelSettings {
    providerData?: Record<string, unknown>;
  }
  export interface RunConfig {
    modelSettings?: ModelSettings;
  }
  export class Agent<Context, Output> {
    tools: Tool[];
    handoffs: (Agent<Context, Output> | { agent: Agent<Context, Output> })[];
    prompt?: unknown;
    modelSettings: ModelSettings;
    getAllTools(...args: unknown[]): Promise<Tool[]>;
  }
  export class Runner {
    constructor(config?: Partial<RunConfig>);
    run(agent: Agent<unknown, unknown>, input: unknown, options?: unknown): Promise<unknown>;
  }
}
