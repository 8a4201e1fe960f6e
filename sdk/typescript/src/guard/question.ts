// The question that a decision answers: as callers write it, and in the service's normal form.

import { digestText, utf8 } from '../bytes.js';
import { canonicalize, isObject, type Json, type JsonObject } from '../jcs.js';
import { Denied } from './failures.js';
import { serializeContext, snapshot } from './values.js';

/** A question: may this agent perform this action, for this purpose, with these facts? */
export interface Question {
  /** A dotted name: `payment.execute`. */
  readonly action: string;
  /** The agent; the `subject` of the `Authority` if absent. */
  readonly subject?: string | undefined;
  /** The purpose, by its slug. Never take it from a model. */
  readonly purpose?: string | undefined;
  /** Facts: `amount` (text such as `1200.50`), `currency`, `jurisdiction`, and any others. */
  readonly context?: Readonly<Record<string, unknown>> | undefined;
  readonly resourceId?: string | undefined;
  readonly workspaceId?: string | undefined;
  readonly projectId?: string | undefined;
  readonly delegationId?: string | undefined;
  readonly toolId?: string | undefined;
  /** For a tool of an MCP server: the digest of the definition that is called. */
  readonly toolDefinitionDigest?: string | undefined;
  /** The principal that the action is for: a delegator of the authority. */
  readonly onBehalfOf?: string | undefined;
  readonly actionDeclaration?: {
    readonly effectClass?: string; readonly reversibility?: string; readonly rollbackAvailable?: boolean;
  } | undefined;
  readonly actionRiskClassification?: {
    readonly riskTier?: string; readonly requiredOversightMode?: string;
  } | undefined;
  /** The requester's own reason, shown to approvers. It is not verified. */
  readonly justification?: string | undefined;
  /** For `decide`: the obligations that the caller meets itself. `permit` takes handlers instead. */
  readonly supportedObligations?: readonly string[] | undefined;
  /** Whether the answer has the findings of each stage and the smallest change. */
  readonly explain?: boolean | undefined;
  readonly atLeastRevision?: number | undefined;
}

/** Levels of objects and arrays in a context. */
export const CONTEXT_LEVELS = 32;

/** The members of a question, with the API's names. */
const MEMBERS: Readonly<Record<keyof Question, string>> = {
  action: 'action', subject: 'subject', purpose: 'purpose', context: 'context', resourceId: 'resource_id',
  workspaceId: 'workspace_id', projectId: 'project_id', delegationId: 'delegation_id', toolId: 'tool_id',
  toolDefinitionDigest: 'tool_definition_digest',
  onBehalfOf: 'on_behalf_of', actionDeclaration: 'action_declaration',
  actionRiskClassification: 'action_risk_classification', justification: 'justification',
  supportedObligations: 'supported_obligations', explain: 'explain', atLeastRevision: 'at_least_revision',
};

/** The types of members that are not text. */
const TYPES: Readonly<Record<string, string>> = {
  actionDeclaration: 'object', actionRiskClassification: 'object', explain: 'boolean', atLeastRevision: 'number',
};

/** Members that are not part of the question that people approve. */
const NOT_ASKED = ['approval_id', 'justification', 'client_nonce', 'include_record', 'explain', 'at_least_revision'];

/** Returns the normal form of a question, with the API's names. @throws {Denied} It is invalid. */
export async function normalize(question: Question): Promise<JsonObject> {
  try {
    const { context, supportedObligations, ...others } = question;
    const facts = snapshot(context ?? {}, CONTEXT_LEVELS);
    const members: Record<string, Json> = {};
    for (const [name, value] of Object.entries(others)) {
      const member = Object.hasOwn(MEMBERS, name) && MEMBERS[name as keyof Question];
      if (!member) throw new TypeError(`a question has no member ${name}`);
      if (value == null) continue;
      const type = Object.hasOwn(TYPES, name) ? TYPES[name] : 'string';
      if (typeof value !== type || Array.isArray(value)) throw new TypeError(`${name} of a question must be of type ${type}`);
      const plain = typeof value === 'object' ? snakeCased(snapshot(value)) : value;
      const isEmpty = isObject(plain) && Object.keys(plain).length === 0;
      if (plain !== false && !isEmpty) members[member] = plain;
    }
    if (typeof members['action'] !== 'string') throw new TypeError('a question needs an action');
    const supported = supportedObligations && { supported_obligations: [...new Set(supportedObligations)].sort() };
    return { ...members, context: await serializeContext(facts), ...supported };
  } catch (error) {
    throw new Denied('invalid_question', (error as Error).message, { cause: error });
  }
}

function snakeCased(members: object): JsonObject {
  const entries = Object.entries(members).filter(([, value]) => value != null);
  return Object.fromEntries(entries.map(
    ([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value as Json],
  ));
}

/** Returns the digest of a question, which people approve: `sha256:…`. */
export function digestQuestion(question: JsonObject): Promise<string> {
  const asked = Object.entries(question).filter(([name]) => !NOT_ASKED.includes(name));
  const whole = { ...Object.fromEntries(asked), tenant_id: tenantOf(String(question['subject'])) };
  return digestText(utf8(canonicalize(whole)));
}

/** Returns the tenant of a principal: `svc:tenant:acme`. */
export function tenantOf(principal: string): string {
  return `svc:tenant:${principal.split(':')[2] ?? ''}`;
}

/** What a permission is for: a record with such a member is for no question without it. */
const PERMITTED = ['action', 'project_id', 'resource_id', 'tool_definition_digest', 'tool_id', 'workspace_id'];
/** By whom, for what and how a decision was asked. */
const ASKED = [
  'action_declaration', 'action_risk_classification', 'at_least_revision', 'client_nonce', 'delegation_id',
  'on_behalf_of', 'purpose', 'subject', 'supported_obligations',
];

/**
 * Returns the first member of a record's request that differs from the question; undefined if none.
 * The approval is not compared: the service also cites a ready approval that the request did not name.
 *
 * @param isOwn Whether the question is the caller's own. Another party knows only the call.
 */
export function differingMember(recorded: JsonObject, question: JsonObject, isOwn: boolean): string | undefined {
  const text = (value: Json | undefined) => canonicalize(value ?? null);
  const known = isOwn ? ASKED : ASKED.filter((name) => question[name] !== undefined);
  return [...PERMITTED, ...known].find((name) => text(recorded[name]) !== text(question[name]));
}
