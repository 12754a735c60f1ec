import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ServerOptions } from '../../../../src/tasks.ts';
import { until } from '../../../until.ts';
import type { NodeEvent } from './handle.ts';

const PROGRAM = fileURLToPath(new URL('node-worker.ts', import.meta.url));

/** A server of ours in a process of its own, which can be killed as a crash does. */
export class NodeWorkerProcess {
  /** What its handlers have said. */
  readonly events: NodeEvent[] = [];
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #ended: Promise<unknown>;
  #isServing = false;

  private constructor(url: string, options: Partial<ServerOptions>) {
    const args = ['--import', 'tsx', PROGRAM, url, JSON.stringify(options)];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#ended = once(this.#child, 'exit');
    createInterface(this.#child.stdout).on('line', (line) => {
      const event = JSON.parse(line) as NodeEvent | { event: 'serving' };
      if (event.event === 'serving') this.#isServing = true;
      else this.events.push(event);
    });
  }

  /** Resolves when it serves. */
  static async start(url: string, options: Partial<ServerOptions>): Promise<NodeWorkerProcess> {
    const worker = new NodeWorkerProcess(url, options);
    await until('the worker serves', () => worker.#isServing);
    return worker;
  }

  async heard(event: NodeEvent['event'], task: string): Promise<NodeEvent> {
    const heard = (): NodeEvent | undefined =>
      this.events.find((one) => one.event === event && one.task === task);
    await until(`the worker's handler of ${task} has ${event}`, () => heard() !== undefined);
    return heard() as NodeEvent;
  }

  /** It does nothing, and nobody knows: as a host that sleeps. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
