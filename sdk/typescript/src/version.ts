/** Identifies the library in the service's log. The test compares it with package.json. */
export const USER_AGENT = 'agent-authority-typescript/0.1.0';
