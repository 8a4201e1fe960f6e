// The log of the library.

/** A logger such as `console` or pino. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Logs warnings and errors on the console. */
export const consoleLogger: Logger = {
  debug() {},
  info() {},
  warn: (message) => console.warn(`agent-authority: ${message}`),
  error: (message) => console.error(`agent-authority: ${message}`),
};

/** Returns the type of an error, for logs and reports: messages may have private data. */
export const typeName = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
