import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../../free-port.ts';
import { until } from '../../until.ts';

/** asynqmon's command in a process of its own. */
export class Asynqmon {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.url = `http://127.0.0.1:${port}`;
    this.#child = child;
  }

  /** Starts it, and waits until it answers. Its times are in UTC, as ours are. */
  static async start(program: string, redisAddress: string, prometheusUrl: string): Promise<Asynqmon> {
    const port = await freePort();
    const args = ['--port', String(port), '--redis-addr', redisAddress, '--prometheus-addr', prometheusUrl];
    const env = { ...process.env, TZ: 'UTC' };
    const asynqmon = new Asynqmon(port, spawn(program, args, { env, stdio: 'ignore' }));
    await until('asynqmon answers', () =>
      fetch(`${asynqmon.url}/api/queues`).then(
        () => true,
        () => false,
      ),
    );
    return asynqmon;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}
