import { EscapementError } from './errors.ts';
import { builtinModule } from './host.ts';
import { requireBoolean } from './validate.ts';

/** The stores of every `AsyncLocalStorage` at one call: what is used here of Node's `AsyncResource`. */
export interface AsyncContext {
  /** Calls a function in the context. */
  runInAsyncScope<This, Args extends unknown[]>(
    callback: (this: This, ...args: Args) => void,
    self: This,
    ...args: Args
  ): void;
  /** Number of the context, unique in the process. */
  asyncId(): number;
}

interface AsyncHooks {
  readonly AsyncResource: new (type: string) => AsyncContext;
}

/** Class of contexts; undefined in a runtime without them: a browser, or Cloudflare Workers without `nodejs_compat`. */
export const AsyncResource = /* @__PURE__ */ builtinModule<AsyncHooks>('node:async_hooks')?.AsyncResource;

/**
 * Checks the option `asyncContext`.
 *
 * @throws EscapementError `ERR_FEATURE_UNAVAILABLE` - it is true, and the runtime has no async contexts.
 */
export function requireAsyncContext(argument: string, value: unknown): void {
  requireBoolean(argument, value);
  if (!value || AsyncResource !== undefined) return;
  const message = `${argument} needs node:async_hooks, which this runtime does not have`;
  throw new EscapementError('ERR_FEATURE_UNAVAILABLE', message);
}
