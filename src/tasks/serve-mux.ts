import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { requireFunction } from '../core/validate.ts';
import type { Handler, Middleware } from './server/handler.ts';
import type { ReceivedTask } from './server/handler.ts';
import type { TaskContext } from './server/handler.ts';
import { requireText } from './require-text.ts';
import { SkipRetry } from './handler-errors.ts';
import { isTaskType, type TaskType } from './task-type.ts';

interface Route {
  readonly pattern: string;
  readonly handler: Handler;
}

/**
 * Finds the handler of a task by its type: the one that is registered for exactly that, else the one with the longest
 * pattern that the type begins with.
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
  /** In the order of registration, without middleware. */
  readonly #handlers = new Map<string, Handler>();
  #middleware: readonly Middleware[] = [];
  /** The handlers with middleware around them: made when they are first needed, and again after a change. */
  #wrapped = new Map<string, Handler>();
  #notFound: Handler | undefined;
  /** Those that also stand for longer types: the longest pattern first. */
  #prefixes: Route[] = [];

  /** The mux as a handler: what a server or another mux calls. */
  readonly handler: Handler = (task, context) => this.#find(task.type)(task, context);

  /**
   * Registers a handler for a type, and for every type that begins with it and has no handler of a longer pattern.
   * With a {@link TaskType}, for exactly that type: `task.data` is the checked payload, and a task whose payload is not what
   * its schema asks for is archived.
   *
   * @throws TypeError - the pattern is blank or has a handler already, or the handler is not a function or a mux.
   */
  handle<Input, Output>(taskType: TaskType<Input, Output>, handler: Handler<Output>): this;
  handle(pattern: string, handler: Handler | ServeMux): this;
  handle<Output>(target: string | TaskType<unknown, Output>, handler: Handler<Output> | ServeMux): this {
    const taskType = isTaskType(target) ? target : undefined;
    const pattern: unknown = taskType === undefined ? target : taskType.type;
    requireText('pattern', pattern);
    if (this.#handlers.has(pattern)) throw wrongValue('pattern', 'one that has no handler yet', pattern);
    const called = callable(handler);
    if (taskType !== undefined) {
      this.#add(pattern, checked(taskType, called));
    } else {
      this.#add(pattern, called as Handler);
      this.#prefixes = [...this.#prefixes, { pattern, handler: called as Handler }].sort(byLength);
    }
    return this;
  }

  /** Puts middleware around every handler, and around what happens if there is none; the first one is outermost. */
  use(...middleware: readonly Middleware[]): this {
    for (const one of middleware) requireFunction('middleware', one);
    this.#middleware = [...this.#middleware, ...middleware];
    this.#forgetWrapped();
    return this;
  }

  /** Processes a task with its handler. @throws EscapementError `ERR_HANDLER_NOT_FOUND` - it has none. */
  async process(context: TaskContext, task: ReceivedTask): Promise<void> {
    await this.handler(task, context);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      handler: undefined,
      patterns: [...this.#handlers.keys()],
      middleware: this.#middleware.length,
    }));
  }

  #add(pattern: string, handler: Handler): void {
    this.#handlers.set(pattern, handler);
    this.#forgetWrapped();
  }

  #forgetWrapped(): void {
    this.#wrapped = new Map();
    this.#notFound = undefined;
  }

  #find(type: string): Handler {
    return this.#wrapped.get(type) ?? this.#wrapExact(type) ?? this.#findPrefix(type);
  }

  #wrapExact(type: string): Handler | undefined {
    const handler = this.#handlers.get(type);
    return handler === undefined ? undefined : this.#wrapOnce(type, handler);
  }

  #findPrefix(type: string): Handler {
    for (const { pattern, handler } of this.#prefixes) {
      if (type.startsWith(pattern)) return this.#wrapped.get(pattern) ?? this.#wrapOnce(pattern, handler);
    }
    this.#notFound ??= this.#wrap(notFound);
    return this.#notFound;
  }

  #wrapOnce(pattern: string, handler: Handler): Handler {
    const wrapped = this.#wrap(handler);
    this.#wrapped.set(pattern, wrapped);
    return wrapped;
  }

  #wrap(handler: Handler): Handler {
    return this.#middleware.reduceRight<Handler>((next, middleware) => {
      const wrapped = middleware(next);
      requireFunction('what middleware returns', wrapped);
      return wrapped;
    }, handler);
  }
}

function callable<P>(handler: Handler<P> | ServeMux): Handler<P> {
  if (typeof handler === 'function') return handler;
  if (isServeMux(handler)) return handler.handler;
  throw wrongType('handler', 'a function or a ServeMux', handler);
}

/** Told by its shape: it may come from another loaded copy of the package. */
export function isServeMux(value: unknown): value is ServeMux {
  const mux = value as Partial<ServeMux> | null | undefined;
  return typeof mux === 'object' && mux !== null && typeof mux.handler === 'function';
}

function byLength(a: Route, b: Route): number {
  return b.pattern.length - a.pattern.length;
}

const notFound: Handler = ({ type }) => {
  throw new EscapementError('ERR_HANDLER_NOT_FOUND', `handler not found for task ${JSON.stringify(type)}`);
};

/** A payload that is wrong now will be wrong when it is tried again. */
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
