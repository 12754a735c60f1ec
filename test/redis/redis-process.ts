import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import { askRedis } from './ask-redis.ts';
import { requireRedisProgram } from './find-redis.ts';

/** How a server is started. */
export interface RedisSettings {
  /** More arguments, such as `--requirepass secret`, one word each. */
  readonly args?: readonly string[];
  /** The whole configuration, for what no argument can say: a file that the server may write to, as a sentinel does. */
  readonly config?: string;
  /** As a sentinel. @default false */
  readonly isSentinel?: boolean;
  /** On a port that leaves room for the one that nodes of a cluster have besides. @default false */
  readonly isClusterNode?: boolean;
  /** @default a free one */
  readonly port?: number;
}

/*
 * A shell that becomes the server, and leaves somebody behind who waits for the end of our pipe. It ends when we do, however
 * that happens: then the server is killed, and its folder removed. A line in the pipe says that there is nothing to do.
 */
const KEEPER = `folder=$1; shift
{ read _ <&3 || { kill -9 $$; rm -rf "$folder"; }; } >/dev/null 2>&1 &
exec "$@" 3<&-`;

/** The other port of a node is that much higher. */
const CLUSTER_BUS_OFFSET = 10_000;
const LAST_CLUSTER_PORT = 65_535 - CLUSTER_BUS_OFFSET;

/** A port that was free may be taken when the server binds it. */
const ATTEMPTS = 5;
const POLL_MS = 5;
/** What a server, or a sentinel, logs when it listens. */
const LISTENS = /Ready to accept connections|Sentinel ID is/g;

let program: string | undefined;

/** A real server, on a port of the loopback, that keeps nothing and does not outlive this process. */
export class RedisProcess {
  readonly port: number;
  /** Where it runs. Files for it can be put there; it is removed in the end. */
  readonly folder: string;
  readonly #settings: RedisSettings;
  readonly #configPath: string;
  #child: ChildProcess | undefined;

  private constructor(port: number, settings: RedisSettings) {
    this.port = port;
    this.#settings = settings;
    this.folder = mkdtempSync(join(tmpdir(), 'escapement-redis-'));
    this.#configPath = join(this.folder, 'redis.conf');
    writeFileSync(this.#configPath, settings.config ?? '');
  }

  /** Starts one, and waits until it listens. @throws Error - with its output. */
  static async start(settings: RedisSettings = {}): Promise<RedisProcess> {
    const lastPort = settings.isClusterNode === true ? LAST_CLUSTER_PORT : undefined;
    for (let attempt = 1; ; attempt++) {
      const server = new RedisProcess(settings.port ?? (await freePort(lastPort)), settings);
      try {
        await server.start();
        return server;
      } catch (error) {
        await server.stop();
        if (settings.port !== undefined || attempt === ATTEMPTS) throw error;
      }
    }
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the server does not run');
    return pid;
  }

  /** Again, after {@link RedisProcess.kill}: on the same port, in the same folder. */
  async start(): Promise<void> {
    const before = this.#starts();
    const child = this.#spawn();
    this.#child = child;
    child.once('exit', () => {
      this.#child = undefined;
      tellKeeper(child);
    });
    while (this.#starts() === before) {
      if (this.#child !== child) throw new Error(`redis-server has not started: ${this.log()}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Ends the server, and waits until its process has ended. Its folder stays. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, 'exit');
    child.ref();
    child.kill(signal);
    await gone;
  }

  /** It takes connections and bytes, and does nothing with them. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Ends the server, paused or not, and removes its folder. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** What it has logged. */
  log(): string {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8');
    } catch {
      return '(nothing)';
    }
  }

  /** Sends commands to the server, without a client. */
  ask(...commands: string[]): Promise<string[]> {
    return askRedis(this.port, commands);
  }

  /** How often it has begun to listen. An answer would not show that: it may be of a server that has taken the port meanwhile. */
  #starts(): number {
    return this.log().match(LISTENS)?.length ?? 0;
  }

  #spawn(): ChildProcess {
    const { args = [], isSentinel = false, isClusterNode = false } = this.#settings;
    program ??= requireRedisProgram();
    const command = [
      ...[program, this.#configPath],
      ...(isSentinel ? ['--sentinel'] : ['--save', '', '--appendonly', 'no']),
      ...['--port', String(this.port), '--bind', '127.0.0.1'],
      ...(isClusterNode ? ['--cluster-enabled', 'yes'] : []),
      ...['--dir', this.folder, '--logfile', join(this.folder, 'log')],
      ...args,
    ];
    // Its output before it has read the path of its log belongs there too.
    const log = openSync(join(this.folder, 'log'), 'a');
    // Apart from our group of processes: what a terminal sends to that is for us, and we decide.
    const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', this.folder, ...command], {
      stdio: ['ignore', log, log, 'pipe'],
      detached: true,
    });
    closeSync(log);
    // A program that is done ends, and the server with it.
    child.unref();
    keeperOf(child).unref();
    return child;
  }
}

function keeperOf(child: ChildProcess): Socket {
  return child.stdio[3] as Socket;
}

/** The server has ended: its id may soon be that of another process. */
function tellKeeper(child: ChildProcess): void {
  keeperOf(child)
    .on('error', () => {
      // It has seen the end already.
    })
    .end('\n');
}
