import { EscapementError } from 'escapement';
import { Client, Inspector, Server, Task, type Broker } from 'escapement/tasks';
import { flakyBroker, type FlakyBroker } from 'escapement/testing';
import { expect, vi } from 'vitest';
import { seededRandom } from '../../../src/tasks/broker/flaky-broker.ts';

const TASKS = 100;

/** Repeats an operation until the broker is available for it. */
export async function surely(operation: () => Promise<unknown>, isDone = 'nothing'): Promise<void> {
  for (;;) {
    try {
      await operation();
      return;
    } catch (error) {
      const code = error instanceof EscapementError ? error.code : undefined;
      if (code === isDone) return;
      if (code !== 'ERR_BROKER_UNAVAILABLE') throw error;
    }
  }
}

/** Enqueues a task with an id, so that it can be repeated until the task is known to be there. */
export function enqueueSurely(client: Client, taskId: string, key?: string): Promise<void> {
  const task = new Task('work', taskId);
  return surely(() => client.enqueue(task, { taskId, key, retentionMs: 86_400_000 }), 'ERR_TASK_ID_CONFLICT');
}

/** A hundred tasks, and a server whose handler fails now and then, with a broker behind a flaky network. */
export class FlakyWork {
  readonly flaky: FlakyBroker;
  readonly server: Server;
  readonly inspector: Inspector;
  readonly #random: () => number;

  /** @param inner - the broker that no network is in front of. @param driven - the same, as servers see it. */
  constructor(inner: Broker, seed: number, driven: Broker = inner) {
    this.flaky = flakyBroker(driven, { failRate: 0.15, loseReplyRate: 0.15, delayMs: 50, seed });
    this.#random = seededRandom(seed);
    vi.spyOn(Math, 'random').mockImplementation(seededRandom(-seed)); // of back-offs
    this.inspector = new Inspector({ broker: inner });
    this.server = new Server({
      ...{ broker: this.flaky, concurrency: 8, retryDelayMs: () => 1_000, maxRecoveries: 1_000 },
    });
  }

  /** Starts the server, and enqueues the tasks. */
  async start(): Promise<void> {
    const client = new Client({ broker: this.flaky });
    const handler = (): void => {
      if (this.#random() < 0.2) throw new Error('now and then');
    };
    const enqueued = Array.from({ length: TASKS }, (_, n) => enqueueSurely(client, String(n)));
    await Promise.all([surely(() => this.server.start(handler)), ...enqueued]);
  }

  async isDone(): Promise<boolean> {
    return (await this.inspector.getQueueInfo('default')).completed === TASKS;
  }

  /** Checks that all tasks are done, although the network has failed. */
  async check(): Promise<void> {
    expect(this.flaky.counts.failed).toBeGreaterThan(TASKS / 10);
    expect(this.flaky.counts.repliesLost).toBeGreaterThan(TASKS / 10);
    expect(await this.inspector.getQueueInfo('default')).toMatchObject({ size: TASKS, completed: TASKS });
  }
}
