import { randomUUID } from 'node:crypto';
import type { BrokerListener, CancelOutcome, CancelRequest } from '../broker.ts';
import { CANCEL_CHANNEL, CANCEL_REQUEST_CHANNEL, cancelReplyChannel } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { CANCEL } from './scripts/cancel.ts';

/** As it is published: JSON. */
interface PublishedRequest {
  readonly taskId: string;
  readonly queue?: string | undefined;
  readonly outcome: CancelOutcome;
  /** Where an answer is waited for; none is if it is absent. */
  readonly replyTo?: string;
}

const OUTCOMES: readonly string[] = ['retry', 'archive', 'delete'] satisfies CancelOutcome[];

/** For that long asynq's message about a task is taken for the second half of our own, in milliseconds. */
const ECHO_MS = 1_000;

/**
 * Cancelling runs wherever they are: our own message says in what way and asks for an answer; asynq's, which follows it, is for
 * Go servers, which know one way and do not answer. A listener of ours hears both, and heeds the second only if it comes alone.
 */
export class Cancellation {
  readonly #access: RedisAccess;

  constructor(access: RedisAccess) {
    this.#access = access;
  }

  /** The channels that a listener with `cancel` needs. */
  channelsOf(listener: BrokerListener): [name: string, tell: (message: Buffer) => void][] {
    const echoes = new Map<string, number>();
    return [
      [
        CANCEL_REQUEST_CHANNEL,
        (message) => {
          const request = parse(message);
          if (request === undefined) return;
          const nowMs = this.#access.clock.now();
          for (const [id, untilMs] of echoes) if (untilMs <= nowMs) echoes.delete(id);
          echoes.set(request.taskId, nowMs + ECHO_MS);
          const { taskId, queue, outcome, replyTo } = request;
          if (listener.cancel?.({ taskId, queue, outcome }) === true && replyTo !== undefined) {
            this.#access.publish(replyTo, '1');
          }
        },
      ],
      [
        CANCEL_CHANNEL,
        (message) => {
          const taskId = message.toString();
          if ((echoes.get(taskId) ?? 0) > this.#access.clock.now()) return;
          listener.cancel?.({ taskId, queue: undefined, outcome: 'retry' });
        },
      ],
    ];
  }

  /** @returns whether somebody has answered within `waitMs`. */
  async ask({ taskId, queue, outcome }: CancelRequest, waitMs: number): Promise<boolean> {
    const request: PublishedRequest = { taskId, queue, outcome };
    if (waitMs <= 0) {
      await this.#publish(request);
      return false;
    }
    const replyTo = cancelReplyChannel(randomUUID());
    let settle: (isAnswered: boolean) => void = () => undefined;
    const answer = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const answered = (): void => {
      settle(true);
    };
    await this.#access.subscribe(replyTo, answered);
    const timeout = this.#access.clock.setTimeout(() => {
      settle(false);
    }, waitMs);
    try {
      await this.#publish({ ...request, replyTo });
      return await answer;
    } finally {
      timeout.cancel();
      this.#access.unsubscribe(replyTo, answered);
    }
  }

  async #publish(request: PublishedRequest): Promise<void> {
    const args = [CANCEL_REQUEST_CHANNEL, JSON.stringify(request), CANCEL_CHANNEL, request.taskId];
    await this.#access.run(CANCEL, [CANCEL_REQUEST_CHANNEL], args);
  }
}

/** Undefined for what is no request: anybody may publish. */
function parse(message: Buffer): PublishedRequest | undefined {
  try {
    const request = JSON.parse(message.toString()) as Partial<PublishedRequest> | null;
    if (typeof request?.taskId !== 'string' || !OUTCOMES.includes(String(request.outcome))) return undefined;
    return request as PublishedRequest;
  } catch {
    return undefined;
  }
}
