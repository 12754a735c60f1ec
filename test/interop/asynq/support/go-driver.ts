import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { createInterface } from 'node:readline';
import { inject } from 'vitest';
import { until } from '../../../until.ts';
import type { GoEntry, GoEvent, GoNewTask, GoServing, GoTaskInfo } from './go-types.ts';
import type { GoVersion } from './go-versions.ts';

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A server of the driver. */
export interface GoServer {
  /** As asynq does it: what runs has `shutdownMs`, and goes back into its queue then. */
  shutdown(): Promise<void>;
}

/** The real asynq in a process of its own: a client, an inspector, and as many servers and schedulers as are asked for. */
export class GoDriver {
  /** What its handlers have said, in order. */
  readonly events: GoEvent[] = [];
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(version: GoVersion, address: string) {
    this.#child = spawn(inject('asynqDrivers')[version], [address], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => {
      // It was killed: who waits for an answer is told.
    });
    this.#ended = once(this.#child, 'exit').then(() => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the driver has ended'));
    });
    createInterface(this.#child.stdout).on('line', (line) => {
      this.#take(JSON.parse(line) as Reply | GoEvent);
    });
  }

  /** @throws Error - what asynq says. */
  enqueue(task: GoNewTask): Promise<GoTaskInfo> {
    return this.#ask('enqueue', wireTask(task));
  }

  /** Calls a method of asynq's Inspector. @throws Error - what it says. */
  inspect<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    return this.#ask('inspect', { method, args });
  }

  task(queue: string, id: string): Promise<GoTaskInfo> {
    return this.inspect('GetTaskInfo', queue, id);
  }

  entries(): Promise<GoEntry[]> {
    return this.inspect('SchedulerEntries');
  }

  async serve(serving: GoServing): Promise<GoServer> {
    const number = await this.#ask('serve', serving);
    return {
      shutdown: async () => {
        await this.#ask('shutdown', number);
      },
    };
  }

  /** Starts a scheduler with one entry. @returns the entry's id, and what shuts the scheduler down. */
  async schedule(
    spec: string,
    task: GoNewTask,
  ): Promise<{ entry: string; shutdown: () => Promise<unknown> }> {
    const args = { spec, task: wireTask(task) };
    const { entry, scheduler } = await this.#ask<{ entry: string; scheduler: number }>('schedule', args);
    return { entry, shutdown: () => this.#ask('unschedule', scheduler) };
  }

  /** Waits until a handler has said so of a task; the `nth` time. */
  async heard(event: GoEvent['event'], task: string, nth = 1): Promise<GoEvent> {
    const heard = (): GoEvent | undefined =>
      this.events.filter((one) => one.event === event && one.task === task)[nth - 1];
    await until(`Go's handler of ${task} has ${event}`, () => heard() !== undefined);
    return heard() as GoEvent;
  }

  /** As a crash does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Waits until it has ended by itself. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  #ask<T>(verb: string, args: unknown): Promise<T> {
    const id = ++this.#lastId;
    return new Promise<T>((resolve, reject) => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        reject(new Error('the driver has ended'));
        return;
      }
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, verb, args })}\n`);
    });
  }

  #take(line: Reply | GoEvent): void {
    if ('event' in line) {
      this.events.push(line);
      return;
    }
    const waiting = this.#waiting.get(line.id);
    this.#waiting.delete(line.id);
    if (line.error === undefined) waiting?.resolve(line.value);
    else waiting?.reject(new Error(line.error));
  }
}

/** Go reads bytes from Base64, and an empty text as bytes that are none, but not nil. */
function wireTask({ payload, ...options }: GoNewTask): object {
  return { ...options, payload: payload == null ? null : Buffer.from(payload).toString('base64') };
}

/** The other way round. */
export function textOf(bytes: string | null | undefined): string {
  return Buffer.from(bytes ?? '', 'base64').toString();
}
