import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { LeasedTask } from '../broker.ts';
import type { LeaseHolder, LeaseHolderOptions } from '../lease-holder.ts';
import {
  clusterSettings,
  commonSettings,
  isClusterClient,
  reconnectDelayMs,
  type RedisClient,
} from './client.ts';
import { planConnection, type RedisConnectionOptions, type RedisUrlOptions } from './connection-options.ts';
import { RedisConnection } from './connection.ts';
import { LeaseBoard, makeLeaseCells, type LeaseCells, type LongId } from './lease-board.ts';

/** What the thread starts with; see lease-thread-main.ts. */
export interface LeaseThreadData {
  readonly cells: LeaseCells;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly route: LeaseRoute;
}

/** Messages to the thread: to wake it after a task was put on the board, and ids that are too long for the board. */
export type ToLeaseThread = 'wake' | LongId;

/** Message from the thread: renewals have begun to fail. */
export interface FromLeaseThread {
  readonly error: unknown;
}

/** What a thread is made of. */
export interface LeaseThreadOptions extends LeaseHolderOptions {
  /** Returns the program of the thread. Called when it starts, as `route`. @throws unknown - it cannot be found. */
  readonly file: () => URL;
  /** Returns how the thread connects to Redis. */
  readonly route: () => LeaseRoute;
  readonly onClose: (thread: LeaseThread) => void;
}

/**
 * A thread with its own connection, which renews leases while our event loop is blocked.
 *
 * It starts with the first lease, and keeps no process alive. If it cannot start, or ends, that is reported once, and it is not
 * started again: then only the event loop renews leases.
 */
export class LeaseThread implements LeaseHolder {
  readonly #options: LeaseThreadOptions;
  readonly #cells: LeaseCells;
  readonly #board: LeaseBoard;
  readonly #queues: ReadonlyMap<string, number>;
  #worker: Worker | undefined;
  /** It has ended, could not start, or was closed. */
  #isOver = false;

  constructor(options: LeaseThreadOptions) {
    this.#options = options;
    this.#cells = makeLeaseCells(options.places);
    this.#board = new LeaseBoard(this.#cells);
    this.#queues = new Map(options.queues.map((queue, index) => [queue, index]));
  }

  hold(place: number, { message: { id, queue }, epoch }: LeasedTask, untilWallMs: number): void {
    const index = this.#queues.get(queue);
    if (this.#isOver || index === undefined) return;
    const longId = this.#board.put(place, { id, epoch }, index, untilWallMs);
    if (this.#worker === undefined) this.#start();
    else if (this.#board.mustWake()) this.#send('wake');
    if (longId !== undefined) this.#send(longId);
  }

  release(place: number): void {
    this.#board.free(place);
  }

  renewedUntilMs(place: number): number {
    return this.#board.renewedUntilMs(place);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#options.onClose(this);
    await this.#worker?.terminate();
  }

  #start(): void {
    const { file, route, queues, leaseMs, onError } = this.#options;
    try {
      const data: LeaseThreadData = { cells: this.#cells, queues, leaseMs, route: route() };
      // The flags of the process are for its program: what they preload would be loaded twice, and some end a thread.
      const worker = new Worker(file(), { name: 'escapement leases', execArgv: [], workerData: data });
      worker.unref();
      worker.on('message', ({ error }: FromLeaseThread) => {
        if (!this.#isOver) onError(error);
      });
      worker.on('error', this.#fail);
      worker.on('exit', (code) => {
        this.#fail(`exit code ${code}`);
      });
      this.#worker = worker;
    } catch (error) {
      this.#fail(error);
    }
  }

  #send(message: ToLeaseThread): void {
    this.#worker?.postMessage(message);
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    const message =
      'the lease thread is not running: a handler that blocks the event loop may lose its lease';
    this.#options.onError(new Error(message, { cause }));
  };
}

/** Relative to `dist`, to `dist/tasks`, and to this file. */
const PROGRAM_FILES = [
  './tasks/redis-lease-thread.js',
  './redis-lease-thread.js',
  '../../../../dist/tasks/redis-lease-thread.js',
];

/**
 * Returns the program of the thread: a file of the package with a build of its own.
 *
 * @throws Error - it is missing: a bundler has put a program and its packages into one file without it.
 */
export function leaseThreadFile(): URL {
  // The build for `require` has the first, the one for `import` the second.
  const here = typeof __filename === 'string' ? pathToFileURL(__filename).href : import.meta.url;
  const file = PROGRAM_FILES.map((path) => new URL(path, here)).find((url) => existsSync(url));
  if (file === undefined) throw new Error('cannot find the file tasks/redis-lease-thread.js of escapement');
  return file;
}

/** The options of a client that determine the server and the user. */
const WHERE = [
  ...(['host', 'port', 'path', 'family', 'db', 'username', 'password', 'tls'] as const),
  ...(['keepAlive', 'noDelay'] as const),
  ...(['sentinels', 'name', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'] as const),
  ...(['enableTLSForSentinelMode', 'natMap'] as const),
];

type Where = Pick<RedisOptions, (typeof WHERE)[number]>;

/** How a thread connects to Redis. It can be sent to the thread unless it contains functions. */
export type LeaseRoute =
  | { readonly kind: 'url'; readonly options: RedisUrlOptions }
  | { readonly kind: 'server'; readonly where: Where; readonly timeoutMs: number }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly Where[];
      readonly where: Where;
      readonly natMap: ClusterOptions['natMap'];
      readonly timeoutMs: number;
    };

/** @throws Error - the client that was passed in connects in a way that cannot be copied. */
export function leaseRouteOf(options: RedisConnectionOptions): LeaseRoute {
  if ('url' in options)
    return { kind: 'url', options: pickSet(options, ['url', 'username', 'password', 'tls', 'timeoutMs']) };
  const { timeoutMs } = planConnection(options);
  const { client } = options;
  if (!isClusterClient(client)) return { kind: 'server', where: whereOf(client.options), timeoutMs };
  const nodes = client.nodes().map((node) => pickSet(node.options, ['host', 'port']));
  if (nodes.length === 0) throw new Error('no node of the cluster is known');
  const { redisOptions = {}, natMap } = client.options;
  return { kind: 'cluster', nodes, where: whereOf(redisOptions), natMap, timeoutMs };
}

/** Connects with the first operation. Called in the thread. */
export function connect(route: LeaseRoute): RedisConnection {
  if (route.kind === 'url') return new RedisConnection(route.options);
  return new RedisConnection({ client: clientOf(route), timeoutMs: route.timeoutMs });
}

function clientOf(route: Exclude<LeaseRoute, { kind: 'url' }>): RedisClient {
  const settings = {
    ...commonSettings(route.timeoutMs),
    retryStrategy: reconnectDelayMs,
    sentinelRetryStrategy: reconnectDelayMs,
    lazyConnect: true,
    ...route.where,
  };
  if (route.kind === 'server') return new Redis(settings);
  const { nodes, natMap } = route;
  return new Cluster([...nodes], {
    ...clusterSettings(settings),
    ...(natMap === undefined ? {} : { natMap }),
  });
}

function whereOf(options: RedisOptions): Where {
  if (options.Connector !== undefined) throw new Error('the client has a connector of its own');
  return pickSet(options, WHERE);
}

/** The named options that are set. */
function pickSet<T extends object, K extends keyof T>(options: T, names: readonly K[]): Pick<T, K> {
  const set = names.filter((name) => options[name] !== undefined && options[name] !== null);
  return Object.fromEntries(set.map((name) => [name, options[name]])) as Pick<T, K>;
}
