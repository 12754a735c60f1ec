import { EventEmitter, once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { describeImage, goodSample } from '../../examples/jobs/demo/sample-images.ts';
import { ImageStore } from '../../examples/jobs/service/image-store.ts';
import type { JobView } from '../../examples/jobs/service/job-view.ts';
import { JobsService } from '../../examples/jobs/service/jobs-service.ts';
import type { RunLine } from '../../examples/jobs/service/run-log.ts';
import type { Digest } from '../../examples/jobs/service/tasks.ts';

/** Of an image that is sent. */
const MAX_BYTES = 100_000;
const UNKNOWN = '/jobs/00000000-0000-4000-8000-000000000000';

/** Keeps who stores a size waiting, while it is shut. */
class GatedStore extends ImageStore {
  arrivals = 0;
  isShut = false;
  readonly #events = new EventEmitter();

  open(): void {
    this.isShut = false;
    this.#events.emit('open');
  }

  override async putSize(id: string, width: number, image: Uint8Array): Promise<void> {
    this.arrivals++;
    if (this.isShut) await once(this.#events, 'open');
    await super.putSize(id, width, image);
  }
}

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

interface TestService {
  readonly url: string;
  readonly service: JobsService;
  readonly store: GatedStore;
  readonly runs: readonly RunLine[];
  readonly digests: readonly Digest[];
  /** Files of what was sent. */
  readonly originals: () => Promise<readonly string[]>;
}

async function startService(graceMs = 50): Promise<TestService> {
  const directory = await mkdtemp(join(tmpdir(), 'jobs-service-test-'));
  const store = new GatedStore(directory);
  const runs: RunLine[] = [];
  const digests: Digest[] = [];
  const { service, url } = await JobsService.start({
    ...{ store, port: 0, workers: 2, maxBytes: MAX_BYTES, graceMs, cleanUpSpec: '@every 1h' },
    keepMs: 60_000,
    retryDelayMs: () => 1,
    tell: (line) => runs.push(line),
    send: (digest) => digests.push(digest),
  });
  onTestFinished(async () => {
    store.open();
    await service.close();
    await rm(directory, { recursive: true });
  });
  return { url, service, store, runs, digests, originals: () => readdir(join(directory, 'originals')) };
}

async function image(): Promise<Uint8Array<ArrayBuffer>> {
  return (await goodSample('image', 400, 200, 'jpeg')).bytes;
}

async function send(url: string, body: Body, query = ''): Promise<{ status: number; json: unknown }> {
  const response = await fetch(`${url}/images${query}`, { method: 'POST', body, duplex: 'half' });
  return { status: response.status, json: await response.json() };
}

async function accepted(url: string, body: Body, query?: string): Promise<string> {
  const { status, json } = await send(url, body, query);
  expect(status).toBe(202);
  return (json as { id: string }).id;
}

async function job(url: string, path: string): Promise<JobView> {
  return (await (await fetch(`${url}/jobs/${path}`)).json()) as JobView;
}

/** A body of unknown length. */
function stream(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull: (controller) => {
      const size = Math.min(left, 10_000);
      left -= size;
      if (size > 0) controller.enqueue(new Uint8Array(size));
      else controller.close();
    },
  });
}

describe('the image service', () => {
  it('makes every size that was asked for, once each, and tells of it in one digest', async () => {
    const { url, digests } = await startService();
    const id = await accepted(url, await image(), '?width=100&width=50&width=100&notify=ada@example');

    const done = await job(url, `${id}/wait`);

    expect(done).toMatchObject({ state: 'completed', retried: 0, progress: { done: 2, of: 2 } });
    expect(done.sizes.map(({ width, height }) => [width, height])).toEqual([
      [100, 50],
      [50, 25],
    ]);
    expect(await job(url, id)).toEqual(done);
    const answer = await fetch(url + (done.sizes[1]?.url ?? ''));
    expect(answer.headers.get('content-type')).toBe('image/webp');
    expect(await describeImage(await answer.arrayBuffer())).toMatchObject({ width: 50, height: 25 });
    await vi.waitFor(() => {
      expect(digests).toEqual([{ recipient: 'ada@example', images: [{ id, sizes: 2 }] }]);
    });
  });

  it('archives at once what is no image', async () => {
    const { url, runs } = await startService();
    const id = await accepted(url, 'a letter');

    const over = await job(url, `${id}/wait`);

    expect(over).toMatchObject({ state: 'archived', retried: 0, sizes: [] });
    expect(over.lastError).toContain('no image');
    expect(runs).toHaveLength(1);
  });

  it.each([
    ['that says so', (): Body => new Uint8Array(MAX_BYTES + 1)],
    ['that turns out to be', (): Body => stream(MAX_BYTES * 3)],
  ])('refuses what is too large, and keeps nothing of it: %s', async (_, body) => {
    const { url, originals } = await startService();

    expect(await send(url, body())).toMatchObject({ status: 413 });

    expect(await originals()).toEqual([]);
    expect(await accepted(url, new Uint8Array(MAX_BYTES))).toMatch(/^[\da-f-]{36}$/);
  });

  it('keeps nothing of an upload that is cut off, and says nothing', async () => {
    const { url, originals } = await startService();
    const warn = vi.spyOn(process, 'emitWarning');
    onTestFinished(() => {
      warn.mockRestore();
    });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write('POST /images HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nhalf');
    await vi.waitFor(async () => {
      expect(await originals()).toHaveLength(1);
    });

    socket.destroy();

    await vi.waitFor(async () => {
      expect(await originals()).toEqual([]);
    });
    expect(warn).not.toHaveBeenCalled();
  });

  it.each(['?width=0', '?width=', '?width=x', '?width=5000', '?width=1e2.5', '?notify=', '?notify=a%20b'])(
    'refuses %s before it reads the image',
    async (query) => {
      const { url, originals } = await startService();

      expect(await send(url, 'an image', query)).toMatchObject({ status: 400 });

      expect(await originals()).toEqual([]);
    },
  );

  it('refuses an empty image', async () => {
    const { url, originals } = await startService();
    expect(await send(url, '')).toMatchObject({ status: 400 });
    expect(await originals()).toEqual([]);
  });

  it.each([
    ['GET', UNKNOWN, 404],
    ['GET', `${UNKNOWN}/wait`, 404],
    ['GET', UNKNOWN.replace('jobs', 'images'), 404],
    ['GET', '/images/..%2f..%2fetc%2fpasswd?width=640', 404],
    ['GET', '/jobs/%zz', 404],
    ['GET', '//', 404],
    ['GET', '/admin', 404],
    ['DELETE', '/images', 405],
    ['POST', '/admin/api/queues/images:pause', 405],
  ])('answers %s %s with %i, also before there was any job', async (method, path, status) => {
    const { url } = await startService();
    expect((await fetch(url + path, { method })).status).toBe(status);
  });

  it('lets a client that waits go, and does its job all the same', async () => {
    const { url, store } = await startService();
    store.isShut = true;
    const id = await accepted(url, await image());
    const patience = new AbortController();
    const waiting = fetch(`${url}/jobs/${id}/wait`, { signal: patience.signal });
    await vi.waitFor(() => {
      expect(store.arrivals).toBe(1);
    });
    expect(await job(url, id)).toMatchObject({ state: 'active', sizes: [] });

    patience.abort();
    await expect(waiting).rejects.toThrow();
    store.open();

    expect(await job(url, `${id}/wait`)).toMatchObject({ state: 'completed' });
  });

  it('tells who waits when it closes, and finishes what is in work', async () => {
    const { url, service, store } = await startService(60_000);
    store.isShut = true;
    const id = await accepted(url, await image(), '?width=100');
    const waiting = fetch(`${url}/jobs/${id}/wait`);
    await vi.waitFor(() => {
      expect(store.arrivals).toBe(1);
    });

    const closed = service.close();
    expect((await waiting).status).toBe(503);
    store.open();

    expect(await closed).toBe(1); // its notification
  });

  it('says when its port is in use, and leaves nothing open', async () => {
    const { url, store } = await startService();
    const port = Number(new URL(url).port);
    const options = {
      ...{ store, port, workers: 1, maxBytes: 1, graceMs: 50, cleanUpSpec: '@every 1h', keepMs: 1 },
      ...{ retryDelayMs: () => 1, tell: () => undefined, send: () => undefined },
    };
    await expect(JobsService.start(options)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
