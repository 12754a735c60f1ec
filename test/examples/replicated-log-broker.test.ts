import { checkPurgatory } from 'escapement/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LeaderServer } from '../../examples/replicated-log/broker/leader-server.ts';
import { Leader } from '../../examples/replicated-log/broker/leader.ts';
import { JsonClient, type JsonAnswer } from '../../examples/replicated-log/http/json-client.ts';
import type { FetchAnswer } from '../../examples/replicated-log/wire.ts';

/** Longer than any of these tests may take, in milliseconds: what waits so long waits for an event. */
const LONG_MS = 20_000;
const SHORT_MS = 40;
/** A session that a test waits to expire; ample for what must happen before. */
const SESSION_MS = 300;

let leader: Leader;
let server: LeaderServer;
let client: JsonClient;

async function start(sessionTimeoutMs: number): Promise<void> {
  leader = new Leader({ partitions: 2, minInSync: 2, sessionTimeoutMs });
  server = new LeaderServer(leader);
  client = new JsonClient(await server.listen());
}

async function stop(): Promise<void> {
  client.close();
  await server.close();
}

beforeEach(() => start(LONG_MS));

afterEach(async () => {
  const { produces, fetches, inSync, sessions } = leader.waiting;
  checkPurgatory(produces);
  checkPurgatory(fetches);
  checkPurgatory(inSync);
  checkPurgatory(sessions);
  await stop();
});

function produce(
  values: string[],
  { partition = 0, acks = 'all', timeoutMs = LONG_MS } = {},
): Promise<JsonAnswer> {
  return client.post(`/produce?acks=${acks}&timeoutMs=${timeoutMs}`, { partitions: [{ partition, values }] });
}

function fetch(offset: number, minBytes: number, maxWaitMs = LONG_MS): Promise<JsonAnswer> {
  return client.get(`/fetch?partition=0&offset=${offset}&minBytes=${minBytes}&maxWaitMs=${maxWaitMs}`);
}

/** Asks as a follower does. */
function replicate(member: string, offsets: readonly number[], maxWaitMs = LONG_MS): Promise<JsonAnswer> {
  return client.get(`/replicate?member=${member}&offsets=${offsets.join(',')}&maxWaitMs=${maxWaitMs}`);
}

/** A follower that is alive, and in sync. */
async function join(member: string, offsets: readonly number[] = [0, 0]): Promise<void> {
  await client.post(`/heartbeat?member=${member}`);
  await replicate(member, offsets, 0);
}

/** What an answer holds of its first partition. */
function valuesOf({ body }: JsonAnswer): readonly string[] {
  return (body as FetchAnswer).partitions[0]?.values ?? [];
}

/** Every 20 ms, until it is called off. */
function keepAlive(member: string): () => void {
  const beats = setInterval(() => {
    leader.sessions.heartbeat(member);
  }, 20);
  return () => {
    clearInterval(beats);
  };
}

describe('a produce with acks=all', () => {
  it('waits until every in-sync replica has asked for what follows', async () => {
    await join('follower-1');
    await join('follower-2');
    const polls = [replicate('follower-1', [0, 0]), replicate('follower-2', [0, 0])];
    const answer = produce(['a', 'b']);
    for (const copied of await Promise.all(polls)) expect(valuesOf(copied)).toEqual(['a', 'b']);

    await replicate('follower-1', [2, 0], 0);
    expect(leader.waiting.produces).toMatchObject({ watched: 1, numDelayed: 1, watchedKeys: 1 });
    await replicate('follower-2', [2, 0], 0);

    expect(await answer).toEqual({
      status: 200,
      body: {
        partitions: [{ partition: 0, firstOffset: 0, inSync: ['leader', 'follower-1', 'follower-2'] }],
      },
    });
    expect(leader.waiting.produces.watched).toBe(0);
  });

  it('is answered 504 with what is missing when its time is over, and its records stay', async () => {
    await join('follower-1');
    const answer = await produce(['a', 'b'], { timeoutMs: SHORT_MS });

    expect(answer.status).toBe(504);
    const missing = [{ partition: 0, requiredOffset: 2, highWatermark: 0, behind: ['follower-1'] }];
    expect(answer.body).toMatchObject({ missing });
    expect(leader.status().partitions[0]).toMatchObject({ logEnd: 2, highWatermark: 0, expiredProduces: 1 });
    expect(leader.status().purgatories.produce.completed.expired).toBe(1);
  });

  it('to two partitions waits for both', async () => {
    await join('follower-1');
    const replies: number[] = [];
    const batches = [0, 1].map((partition) => ({ partition, values: ['a'] }));
    leader.produce({ partitions: batches }, 'all', LONG_MS, (status) => replies.push(status));
    expect(leader.waiting.produces).toMatchObject({ watched: 2, numDelayed: 1, watchedKeys: 2 });

    leader.replicate('follower-1', [1, 0], 0, () => undefined);
    expect(replies).toEqual([]);
    leader.replicate('follower-1', [1, 1], 0, () => undefined);
    expect(replies).toEqual([200]);
  });

  it('is refused at once, and appends nothing, without enough in-sync replicas', async () => {
    expect(await produce(['a'])).toMatchObject({ status: 503 });
    expect(leader.status().partitions[0]).toMatchObject({ logEnd: 0 });
  });

  it('is forgotten when its client hangs up', async () => {
    await join('follower-1');
    const copied = replicate('follower-1', [0, 0]);
    const hangUp = new AbortController();
    const path = `/produce?acks=all&timeoutMs=${LONG_MS}`;
    const answer = client.post(path, { partitions: [{ partition: 0, values: ['a'] }] }, hangUp.signal);
    await copied;
    hangUp.abort();

    await expect(answer).rejects.toThrow();
    await vi.waitFor(() => {
      expect(leader.status().purgatories.produce.completed.forced).toBe(1);
    });
    expect(leader.waiting.produces).toMatchObject({ watched: 0, numDelayed: 0, watchedKeys: 0 });
  });
});

describe('a produce with acks=1', () => {
  it('is answered at once; its records are not readable before the replicas have them', async () => {
    await join('follower-1');

    expect(await produce(['a'], { acks: '1' })).toMatchObject({ status: 200 });
    expect(valuesOf(await fetch(0, 1, 0))).toEqual([]);
    await replicate('follower-1', [1, 0], 0);
    expect(valuesOf(await fetch(0, 1, 0))).toEqual(['a']);
  });
});

describe('a fetch', () => {
  it('waits for minBytes below the high watermark, and answers all that is there then', async () => {
    await join('follower-1');
    const answer = fetch(0, 4);
    await produce(['abc'], { acks: '1' });
    await replicate('follower-1', [1, 0], 0);
    expect(leader.waiting.fetches.watched).toBe(1);
    await produce(['def', 'g'], { acks: '1' });
    await replicate('follower-1', [3, 0], 0);

    expect(valuesOf(await answer)).toEqual(['abc', 'def', 'g']);
  });

  it('answers what is there when maxWaitMs is over', async () => {
    await produce(['abc'], { acks: '1' });

    expect(valuesOf(await fetch(0, 1_000, SHORT_MS))).toEqual(['abc']);
    expect(leader.status().purgatories.fetch.completed.expired).toBe(1);
    expect(leader.status().purgatories.fetch.missedTriggers).toBe(0);
  });
});

describe('a follower whose session expires', () => {
  beforeEach(async () => {
    await stop();
    await start(SESSION_MS);
  });

  it('leaves the in-sync set, which moves the high watermark and releases who waits', async () => {
    await join('follower-1');
    await join('follower-2');
    const rest = keepAlive('follower-2');
    const answer = produce(['a']);
    await replicate('follower-2', [0, 0]);
    await replicate('follower-2', [1, 0], 0);

    expect(await answer).toMatchObject({
      status: 200,
      body: { partitions: [{ inSync: ['leader', 'follower-2'] }] },
    });
    rest();
    expect(leader.sessions.members).toEqual(['follower-2']);
    expect(leader.status().purgatories.sessions.completed.expired).toBe(1);
  });

  it('has a produce answered 503 if too few replicas are left', async () => {
    await join('follower-1');

    expect(await produce(['a'])).toMatchObject({ status: 503 });
    expect(leader.status().partitions[0]).toMatchObject({ highWatermark: 1, inSync: ['leader'] });
  });
});

describe('a follower', () => {
  it('joins the in-sync set when it is alive and has caught up, not before', async () => {
    await produce(['a'], { acks: '1' });
    await client.post('/heartbeat?member=follower-1');
    const back = client.get(`/in-sync?size=2&timeoutMs=${LONG_MS}`);

    expect(valuesOf(await replicate('follower-1', [0, 0]))).toEqual(['a']);
    expect(leader.status().partitions[0]?.inSync).toEqual(['leader']);
    await replicate('follower-1', [1, 0], 0);
    expect(await back).toEqual({ status: 200, body: { size: 2 } });
  });

  it('is dropped at once if it comes back with less than it had', async () => {
    await join('follower-1');
    const copied = replicate('follower-1', [0, 0]);
    const answer = produce(['a']);
    await copied;
    await replicate('follower-1', [1, 0], 0);
    await answer;
    await replicate('follower-1', [0, 0], 0);

    expect(leader.status().partitions[0]).toMatchObject({ highWatermark: 1, inSync: ['leader'] });
  });

  it('that says goodbye is dropped, and nothing expires', async () => {
    await join('follower-1');
    await client.post('/leave?member=follower-1');

    expect(leader.waiting.sessions).toMatchObject({ watched: 0, numDelayed: 0 });
    expect(leader.status().partitions[0]?.inSync).toEqual(['leader']);
  });
});

describe('the leader', () => {
  it('answers 504 to whoever waits for an in-sync set that does not come', async () => {
    expect(await client.get(`/in-sync?size=3&timeoutMs=${SHORT_MS}`)).toMatchObject({ status: 504 });
    expect(leader.waiting.inSync).toMatchObject({ watched: 0, numDelayed: 0, watchedKeys: 0 });
  });

  it('answers everybody who waits when it is closed', async () => {
    await join('follower-1');
    const copied = replicate('follower-1', [0, 0]);
    const waiting = [produce(['a']), fetch(0, 1_000), client.get('/in-sync?size=3')];
    await copied;
    await vi.waitFor(() => {
      expect(leader.waiting.fetches.watched + leader.waiting.inSync.watchedKeys).toBe(3);
    });
    await server.close();

    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([503, 503, 504]);
  });

  it('releases the others, and reports it, when an operation throws', async () => {
    await join('follower-1');
    const replies: number[] = [];
    const request = { partitions: [{ partition: 0, values: ['a'] }] };
    let isBroken = true;
    leader.produce(request, 'all', LONG_MS, () => {
      if (isBroken) {
        isBroken = false;
        throw new Error('no more sockets');
      }
    });
    leader.produce(request, 'all', LONG_MS, (status) => replies.push(status));
    leader.replicate('follower-1', [2, 0], 0, () => undefined);

    expect(replies).toEqual([200]);
    expect(leader.status().errors).toEqual(['Error: no more sockets']);
  });

  it.each([
    ['GET', '/fetch?partition=0&offset=1', 400, 'not a whole number from 0 to 0'],
    ['GET', '/fetch?offset=0', 400, "parameter 'partition' is missing"],
    ['GET', '/fetch?partition=7&offset=0', 404, 'there is no partition 7'],
    ['GET', '/replicate?member=f&offsets=0', 400, 'not an offset in each of 2 partitions'],
    ['POST', '/produce?acks=2', 400, "parameter 'acks' is '2', not all or 1"],
    ['POST', '/produce', 400, 'the body is not {'],
    ['GET', '/nowhere', 404, 'there is no GET /nowhere'],
  ])('answers %s %s with %i and says why', async (method, path, status, error) => {
    const answer = await (method === 'GET' ? client.get(path) : client.post(path));

    expect(answer.status).toBe(status);
    expect((answer.body as { error: string }).error).toContain(error);
  });
});
