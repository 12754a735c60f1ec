import { randomUUID } from 'node:crypto';
import { original } from '../../../core/host.ts';
import { callEach } from '../../../core/report-uncaught.ts';
import type { BrokerListener, CancelOutcome } from '../broker.ts';
import { CANCEL_CHANNEL, CANCEL_REQUEST_CHANNEL, cancelReplyChannel } from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { Script } from './script.ts';

/**
 * Requests that the run of a task stops: first from our servers, then from Go servers; a listener to both channels receives them
 * in that order.
 *
 * KEYS[1]  any key
 * ARGV[1]  our channel
 * ARGV[2]  the request
 * ARGV[3]  asynq's channel
 * ARGV[4]  id of the task
 */
export const CANCEL = new Script(`
redis.call('PUBLISH', ARGV[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
`);

/** A cancel request as it is published: JSON. */
interface PublishedRequest {
  readonly taskId: string;
  readonly queue?: string | undefined;
  readonly outcome: CancelOutcome;
  /** Channel on which an answer is awaited; absent if none is. */
  readonly replyTo?: string;
}

const OUTCOMES: readonly string[] = ['retry', 'archive', 'delete'] satisfies CancelOutcome[];

/** How long asynq's message about a task counts as the second half of our own, in milliseconds. */
const ECHO_MS = 1_000;

/** Between the ids of one message: a script that settles many tasks publishes them together. */
const SEPARATOR = '\0';

type Channel = readonly [name: string, onMessage: (message: Buffer) => void];

/**
 * Operations with pub/sub messages, of which asynq has only one, and polls.
 *
 * A queue's channel of work has two kinds of messages: an empty one means that the pending list is no longer empty; one with text
 * means that the group of that name has grown. A server that was given fewer tasks than it requested has emptied the
 * list, so a task that is enqueued behind others needs no message.
 */
export const NOTIFICATIONS = {
  /** Notifies a listener of the events that it has methods for. */
  async subscribe(redis, listener, queues) {
    const { connection, listeners } = redis;
    const wanted = [...new Set(queues)].flatMap((queue) => channelsOf(redis, listener, queue));
    if (listener.cancel !== undefined) wanted.push(...cancelChannelsOf(redis, listener));
    const close = (): Promise<void> => {
      listeners.delete(listener);
      for (const [name, onMessage] of wanted.splice(0)) connection.channels.unsubscribe(name, onMessage);
      return Promise.resolve();
    };
    try {
      listeners.add(listener);
      await Promise.all(wanted.map((channel) => connection.channels.subscribe(...channel)));
    } catch (error) {
      await close();
      throw error;
    }
    return { close };
  },

  async cancel(redis, { taskId, queue, outcome }, waitMs) {
    const request: PublishedRequest = { taskId, queue, outcome };
    if (waitMs <= 0) {
      await publishRequest(redis, request);
      return false;
    }
    const replyTo = cancelReplyChannel(randomUUID());
    let settle: (isAnswered: boolean) => void = () => undefined;
    const answer = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const onAnswer = (): void => {
      settle(true);
    };
    await redis.connection.channels.subscribe(replyTo, onAnswer);
    const timeout = redis.settings.clock.setTimeout(() => {
      settle(false);
    }, waitMs);
    try {
      await publishRequest(redis, { ...request, replyTo });
      return await answer;
    } finally {
      timeout.cancel();
      redis.connection.channels.unsubscribe(replyTo, onAnswer);
    }
  },
} satisfies RedisOperations;

/** Notifies every listener that the broker is closed, and of nothing after that. */
export function closeListeners({ listeners }: RedisAccess): void {
  const closed = [...listeners];
  listeners.clear();
  const { queueMicrotask } = original;
  queueMicrotask(() => {
    callEach(closed, (listener) => listener.closed?.());
  });
}

function channelsOf(redis: RedisAccess, listener: BrokerListener, queue: string): Channel[] {
  const { workChannel, settledChannel, progressChannel } = redis.keysOf(queue);
  const channels: Channel[] = [];
  if (listener.work !== undefined || listener.grouped !== undefined) {
    channels.push([
      workChannel,
      (message) => {
        if (message.length === 0) listener.work?.(queue);
        else listener.grouped?.(queue, message.toString());
      },
    ]);
  }
  if (listener.settled !== undefined) {
    channels.push([
      settledChannel,
      (message) => {
        for (const id of message.toString().split(SEPARATOR)) listener.settled?.(queue, id);
      },
    ]);
  }
  if (listener.progressed !== undefined) {
    channels.push([progressChannel, (message) => listener.progressed?.(queue, message.toString())]);
  }
  return channels;
}

/**
 * Our own message contains the outcome and requests an answer; asynq's, which follows it, is for Go servers, which have one
 * outcome and do not answer. A listener receives both, and ignores the second one unless it comes alone.
 */
function cancelChannelsOf(redis: RedisAccess, listener: BrokerListener): Channel[] {
  const { clock } = redis.settings;
  const echoUntilMs = new Map<string, number>();
  return [
    [
      CANCEL_REQUEST_CHANNEL,
      (message) => {
        const request = parse(message);
        if (request === undefined) return;
        const { taskId, queue, outcome, replyTo } = request;
        const nowMs = clock.now();
        for (const [id, untilMs] of echoUntilMs) if (untilMs <= nowMs) echoUntilMs.delete(id);
        echoUntilMs.set(taskId, nowMs + ECHO_MS);
        const isStopping = listener.cancel?.({ taskId, queue, outcome }) === true;
        if (!isStopping || replyTo === undefined) return;
        redis.send((client) => client.publish(replyTo, '1')).catch(() => undefined); // the caller waits no longer than its limit
      },
    ],
    [
      CANCEL_CHANNEL,
      (message) => {
        const taskId = message.toString();
        if ((echoUntilMs.get(taskId) ?? 0) > clock.now()) return;
        listener.cancel?.({ taskId, queue: undefined, outcome: 'retry' });
      },
    ],
  ];
}

async function publishRequest(redis: RedisAccess, request: PublishedRequest): Promise<void> {
  const args = [CANCEL_REQUEST_CHANNEL, JSON.stringify(request), CANCEL_CHANNEL, request.taskId];
  await redis.run(CANCEL, [CANCEL_REQUEST_CHANNEL], args);
}

/** Returns undefined if it is not a valid request: every client of Redis may publish. */
function parse(message: Buffer): PublishedRequest | undefined {
  try {
    const request = JSON.parse(message.toString()) as Partial<PublishedRequest> | null;
    if (typeof request?.taskId !== 'string' || !OUTCOMES.includes(String(request.outcome))) return undefined;
    return request as PublishedRequest;
  } catch {
    return undefined;
  }
}
