import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { requireFunction } from '../core/validate.ts';
import { requireText } from './argument-checks.ts';
import { type Handler, type Middleware, type ReceivedTask, SkipRetry, type TaskContext } from './handler.ts';
import { isTaskType, type TaskType } from './task-type.ts';

/**
 * Finds the handler of a task by its type: the one that is registered for exactly that type, else the one with the longest pattern
 * that the type begins with.
 *
 * @example
 * ```ts
 * const mux = new ServeMux();
 * mux.use(logged);
 * mux.handle('email:welcome', sendWelcome);
 * mux.handle('image:', resizeOrConvert); // every type that begins with it
 * await server.start(mux);
 * ```
 */
export class ServeMux {
  /** Handlers by pattern, in the order of registration, without middleware. */
  readonly #handlers = new Map<string, Handler>();
  #middleware: readonly Middleware[] = [];
  /** The same with their middleware: wrapped at their first use, and again after a change. `undefined` is the pattern of other types. */
  readonly #wrapped = new Map<string | undefined, Handler>();
  /** Patterns that other types begin with, the longest first. */
  #prefixes: string[] = [];

  /** The mux as a handler: a server or another mux calls it. */
  readonly handler: Handler = (task, context) => this.#find(task.type)(task, context);

  /**
   * Registers a handler for a type, and for every type that begins with it and has no handler of a longer pattern. With a
   * {@link TaskType}, for exactly that type: `task.data` is the parsed payload, and a task whose payload its schema rejects is
   * archived.
   *
   * @throws TypeError - the pattern is blank or has a handler already, or the handler is not a function or a mux.
   */
  handle<Input, Output>(taskType: TaskType<Input, Output>, handler: Handler<Output>): this;
  handle(pattern: string, handler: Handler | ServeMux): this;
  handle<Output>(target: string | TaskType<unknown, Output>, handler: Handler<Output> | ServeMux): this {
    const taskType = isTaskType(target) ? target : undefined;
    const pattern: unknown = taskType === undefined ? target : taskType.type;
    requireText('pattern', pattern);
    if (this.#handlers.has(pattern))
      throw wrongValue('pattern', 'a pattern that has no handler yet', pattern);
    const called = callable(handler);
    this.#handlers.set(pattern, taskType === undefined ? (called as Handler) : checked(taskType, called));
    if (taskType === undefined)
      this.#prefixes = [...this.#prefixes, pattern].sort((a, b) => b.length - a.length);
    this.#wrapped.clear();
    return this;
  }

  /** Wraps every handler in middleware, and also the error if there is no handler; the first middleware is outermost. */
  use(...middleware: readonly Middleware[]): this {
    for (const one of middleware) requireFunction('middleware', one);
    this.#middleware = [...this.#middleware, ...middleware];
    this.#wrapped.clear();
    return this;
  }

  /** Processes a task with its handler. @throws EscapementError `ERR_HANDLER_NOT_FOUND` - there is no handler for its type. */
  async process(context: TaskContext, task: ReceivedTask): Promise<void> {
    await this.handler(task, context);
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      handler: undefined,
      patterns: [...this.#handlers.keys()],
      middleware: this.#middleware.length,
    }));
  }

  #find(type: string): Handler {
    const exact = this.#wrapped.get(type);
    if (exact !== undefined) return exact;
    const pattern = this.#handlers.has(type)
      ? type
      : this.#prefixes.find((prefix) => type.startsWith(prefix));
    return this.#wrapped.get(pattern) ?? this.#wrap(pattern);
  }

  #wrap(pattern: string | undefined): Handler {
    const handler = pattern === undefined ? undefined : this.#handlers.get(pattern);
    const wrapped = this.#middleware.reduceRight<Handler>((next, middleware) => {
      const outer = middleware(next);
      requireFunction('the result of middleware', outer);
      return outer;
    }, handler ?? notFound);
    this.#wrapped.set(pattern, wrapped);
    return wrapped;
  }
}

export function callable<P>(handler: Handler<P> | ServeMux): Handler<P> {
  if (typeof handler === 'function') return handler;
  const mux = handler as Partial<ServeMux> | null | undefined; // of this or of another loaded copy of the package
  if (typeof mux?.handler === 'function') return mux.handler;
  throw wrongType('handler', 'a function or a ServeMux', handler);
}

const notFound: Handler = ({ type }) => {
  const message = `handler not found for task ${JSON.stringify(type)}`;
  throw new EscapementError('ERR_HANDLER_NOT_FOUND', message, { op: 'ServeMux.process' });
};

/** A payload that is wrong now is wrong at every retry. */
function checked<Output>(taskType: TaskType<unknown, Output>, handler: Handler<Output>): Handler {
  return async (task, context) => {
    let data: Output;
    try {
      data = await taskType.read(task);
    } catch (error) {
      throw new SkipRetry(error instanceof Error ? error.message : String(error), { cause: error });
    }
    return handler(task.withData(data), context);
  };
}
