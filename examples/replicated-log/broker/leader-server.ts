import type { DelayedOperation } from 'escapement';
import { JsonServer, type Exchange } from '../http/json-server.ts';
import { BadRequest } from '../http/query.ts';
import type { ProduceRequest } from '../wire.ts';
import type { Leader } from './leader.ts';

/** No request waits longer, in milliseconds. */
const MAX_WAIT_MS = 60_000;
const MAX_MIN_BYTES = 1_000_000;

/** The leader over HTTP: what goes in and out of it, and what happens when a client hangs up. */
export class LeaderServer {
  readonly #leader: Leader;
  readonly #server: JsonServer;

  constructor(leader: Leader) {
    this.#leader = leader;
    this.#server = new JsonServer({
      'POST /produce': this.#produce,
      'GET /fetch': this.#fetch,
      'GET /replicate': this.#replicate,
      'POST /heartbeat': this.#heartbeat,
      'POST /leave': this.#leave,
      'GET /in-sync': this.#inSync,
      'GET /status': ({ reply }) => {
        reply(200, leader.status());
      },
    });
  }

  /** @returns the port. */
  listen(): Promise<number> {
    return this.#server.listen();
  }

  /** Answers everybody who waits, and ends. */
  async close(): Promise<void> {
    const closed = this.#server.close();
    this.#leader.close();
    await closed;
  }

  readonly #produce = ({ query, body, reply, onEnd }: Exchange): void => {
    const acks = query.word('acks', ['all', '1']);
    const timeoutMs = query.whole('timeoutMs', MAX_WAIT_MS, 5_000);
    const operation = this.#leader.produce(this.#produceRequest(body), acks, timeoutMs, reply);
    if (operation !== undefined) onEnd(giveUp(operation));
  };

  readonly #fetch = ({ query, reply, onEnd }: Exchange): void => {
    const partition = this.#partition(query.whole('partition', Number.MAX_SAFE_INTEGER));
    const offset = query.whole('offset', this.#logEnd(partition));
    const minBytes = query.whole('minBytes', MAX_MIN_BYTES, 1);
    const maxWaitMs = query.whole('maxWaitMs', MAX_WAIT_MS, 500);
    onEnd(giveUp(this.#leader.fetch({ partition, offset }, minBytes, maxWaitMs, reply)));
  };

  readonly #replicate = ({ query, reply, onEnd }: Exchange): void => {
    const offsets = query.wholes('offsets');
    const { partitions } = this.#leader;
    const fit = partitions.every(({ log }, index) => (offsets[index] ?? Infinity) <= log.endOffset);
    if (offsets.length !== partitions.length || !fit)
      throw new BadRequest(`parameter 'offsets' is not an offset in each of ${partitions.length} partitions`);
    const maxWaitMs = query.whole('maxWaitMs', MAX_WAIT_MS, 500);
    onEnd(giveUp(this.#leader.replicate(query.text('member'), offsets, maxWaitMs, reply)));
  };

  readonly #heartbeat = ({ query, reply }: Exchange): void => {
    this.#leader.sessions.heartbeat(query.text('member'));
    reply(200, {});
  };

  readonly #leave = ({ query, reply }: Exchange): void => {
    this.#leader.sessions.leave(query.text('member'));
    reply(200, {});
  };

  readonly #inSync = async ({ query, reply, onEnd }: Exchange): Promise<void> => {
    const gone = new AbortController();
    onEnd(() => {
      gone.abort();
    });
    const size = query.whole('size', Number.MAX_SAFE_INTEGER);
    const timeoutMs = query.whole('timeoutMs', MAX_WAIT_MS, 5_000);
    try {
      reply(200, { size: await this.#leader.inSyncIs(size, timeoutMs, gone.signal) });
    } catch (error) {
      // Expired, closed, or the client is gone.
      reply(504, { error: String(error), partitions: this.#leader.status().partitions });
    }
  };

  #partition(index: number): number {
    if (index < this.#leader.partitions.length) return index;
    throw new BadRequest(`there is no partition ${index}`, 404);
  }

  #logEnd(index: number): number {
    return this.#leader.partitions[index]?.log.endOffset ?? 0;
  }

  #produceRequest(body: unknown): ProduceRequest {
    if (!isProduceRequest(body))
      throw new BadRequest('the body is not { "partitions": [{ "partition": 0, "values": ["…"] }, …] }');
    for (const { partition } of body.partitions) this.#partition(partition);
    return body;
  }
}

/** Nobody waits for the answer any longer. If it was sent, which is the rule, this does nothing. */
function giveUp(operation: DelayedOperation): () => void {
  return () => {
    operation.forceComplete();
  };
}

function isProduceRequest(body: unknown): body is ProduceRequest {
  const partitions = (body as { partitions?: unknown } | null | undefined)?.partitions;
  return Array.isArray(partitions) && partitions.length > 0 && partitions.every(isBatch);
}

function isBatch(batch: unknown): boolean {
  const { partition, values } = (batch ?? {}) as { partition?: unknown; values?: unknown };
  const hasValues = Array.isArray(values) && values.length > 0;
  return Number.isInteger(partition) && hasValues && values.every((value) => typeof value === 'string');
}
