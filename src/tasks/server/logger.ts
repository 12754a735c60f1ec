import { requireMethods } from '../../core/validate.ts';

/** Where a server says what happens to it. A pino logger is one. */
export interface Logger {
  /** What only helps to find a fault. */
  debug(fields: object, message: string): void;
  /** What happens now and then. */
  info(fields: object, message: string): void;
  /** What went wrong, and is tried again. */
  warn(fields: object, message: string): void;
  /** What went wrong, and somebody should look at. */
  error(fields: object, message: string): void;
}

const METHODS: readonly (keyof Logger)[] = ['debug', 'info', 'warn', 'error'];

const nothing = (): void => undefined;

/** Says nothing. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** @throws TypeError - it is not a logger. */
export function requireLogger(argument: string, value: unknown): asserts value is Logger {
  requireMethods(argument, 'a Logger with debug, info, warn and error', METHODS, value);
}

/** A logger that throws must not stop what it is told of. */
export function guardedLogger(logger: Logger): Logger {
  if (logger === silentLogger) return logger;
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        logger[level](fields, message);
      } catch {
        // There is nobody left to tell.
      }
    };
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') };
}
