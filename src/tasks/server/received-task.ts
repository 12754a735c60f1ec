import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { decodeJson } from '../payload.ts';
import { printBytes, printFilled } from '../show-bytes.ts';
import type { TaskMessage } from '../task-message.ts';

/**
 * A task as its handler gets it. Immutable.
 *
 * @typeParam P - what `data` is.
 */
export interface ReceivedTask<P = unknown> {
  /** What has picked its handler. */
  readonly type: string;
  /** A copy, made when it is first asked for; empty if there is none. */
  readonly payload: Uint8Array;
  /** As they were enqueued. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the schema of its task type has made of the payload. Undefined if the handler was given to a pattern. */
  readonly data: P;
  /** The payload, from JSON. @throws SyntaxError - it is none. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says what it expects
  json<T = unknown>(): T;
  /** The same task, with data. */
  withData<D>(data: D): ReceivedTask<D>;
}

/** A task that is read from its message. */
export class MessageTask<P = undefined> implements ReceivedTask<P> {
  /** As users know it: a console prints it. */
  static readonly name = 'ReceivedTask';
  readonly #message: TaskMessage;
  #payload: Uint8Array | undefined;
  readonly data: P;

  constructor(message: TaskMessage, data: P) {
    this.#message = message;
    this.data = data;
  }

  get type(): string {
    return this.#message.type;
  }

  get payload(): Uint8Array {
    this.#payload ??= Buffer.from(this.#message.payload);
    return this.#payload;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#message.headers;
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says what it expects
  json<T = unknown>(): T {
    return decodeJson(this.#message.payload) as T;
  }

  withData<D>(data: D): ReceivedTask<D> {
    return new MessageTask(this.#message, data);
  }

  /** What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      type: this.type,
      payload: printBytes(this.#message.payload),
      headers: printFilled(this.headers),
    }));
  }
}
