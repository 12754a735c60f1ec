import type { EventEmitter } from 'node:events';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireMethods } from '../core/validate.ts';

/** Receives the log of a server or a scheduler. A pino logger is one. */
export interface Logger {
  /** Details that help to find a fault. */
  debug(fields: object, message: string): void;
  /** Normal events. */
  info(fields: object, message: string): void;
  /** Errors that are handled: the operation is tried again, or a task is archived. */
  warn(fields: object, message: string): void;
  /** Errors that need attention. */
  error(fields: object, message: string): void;
}

const METHODS: readonly (keyof Logger)[] = ['debug', 'info', 'warn', 'error'];

const nothing = (): void => undefined;

/** Logs nothing. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export function requireLogger(argument: string, value: unknown): asserts value is Logger {
  requireMethods(argument, 'a Logger with debug, info, warn and error', METHODS, value);
}

/** Returns a logger that ignores what `logger` throws: there is no place left to report it to. */
export function guardedLogger(logger: Logger): Logger {
  if (logger === silentLogger) return logger;
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        logger[level](fields, message);
      } catch {
        // A logger that throws must not stop what it logs.
      }
    };
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') };
}

/** Emits an event. What a listener throws is reported as an uncaught exception and does not affect the caller. */
export function emit<E extends Record<keyof E, unknown[]>, K extends keyof E & string>(
  emitter: EventEmitter<E>,
  event: K,
  ...args: E[K]
): void {
  const plain = emitter as unknown as EventEmitter;
  if (plain.listenerCount(event) === 0) return;
  try {
    plain.emit(event, ...args);
  } catch (error) {
    reportUncaught(error);
  }
}
