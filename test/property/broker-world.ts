import type { Broker, LeasedTask, NewTask, TaskRecord, TaskSet } from 'escapement/tasks';
import { expect } from 'vitest';
import { MOMENT_MS, type BrokerAction, type TaskSpec } from './broker-actions.ts';
import { BrokerModel } from './broker-model.ts';
import { byId } from './broker-model-parts.ts';
import { showBroker } from './broker-show.ts';
import type { BrokerSide, OpenBrokerSide } from './broker-side.ts';

const QUEUES = ['q', 'r'];
/** Far in the future: nothing expires by the clock of Redis meanwhile. */
export const OPTIONS = { startMs: Date.UTC(2100, 0, 1), archiveRetentionMs: 40_000 * MOMENT_MS };
/** What a delay counts in: so many moments that each delay can have one of its own. */
const UNIT = 1_000;
/** By the id of a task. A broker with a folder does not keep the largest in memory, and compacts its small files because of them. */
const PAYLOAD_BYTES: Readonly<Record<string, number>> = { f: 200, g: 1_100, h: 3_000 };

/** The same, as the broker and as the model know it. */
interface Pair<T> {
  readonly real: T;
  readonly model: T;
}

/** A history, done to the broker and to the model: after every step both say and show the same. */
export class BrokerWorld {
  readonly #side: BrokerSide;
  readonly #model: BrokerModel;
  readonly #leases: Pair<LeasedTask>[] = [];
  readonly #sets: Pair<TaskSet>[] = [];
  #written = 0;
  #delayed = 0;

  private constructor(side: BrokerSide, model: BrokerModel) {
    this.#side = side;
    this.#model = model;
  }

  static async run(
    open: OpenBrokerSide,
    maxArchived: number,
    history: readonly BrokerAction[],
  ): Promise<void> {
    const options = { ...OPTIONS, maxArchived };
    await using side = await open(options);
    await BrokerWorld.goOn(side, new BrokerModel({ ...options, ties: side.ties }), history);
  }

  /** @param done - called after each action, when the broker and the model are the same. */
  static async goOn(
    side: BrokerSide,
    model: BrokerModel,
    history: readonly BrokerAction[],
    done?: (action: BrokerAction) => void,
  ): Promise<void> {
    const world = new BrokerWorld(side, model);
    model.arrangeAs(await showBroker(side));
    for (const action of history) {
      await world.#do(action);
      const shown = await showBroker(side);
      model.arrangeAs(shown);
      expect(shown).toEqual(model.show());
      await side.check();
      done?.(action);
    }
  }

  async #do(action: BrokerAction): Promise<void> {
    const { broker } = this.#side;
    const model = this.#model;
    switch (action.kind) {
      case 'advance':
        model.advance(action.ms);
        await this.#side.advance(action.ms);
        return;
      case 'enqueue': {
        const task = this.#newTask(action.task);
        return this.#same(broker.enqueue(task), () => model.enqueue(task));
      }
      case 'enqueueMany': {
        // On Redis, duplicates of such a call replace others when its other tasks have been added.
        const added = this.#side.ties === 'id' ? { onDuplicate: 'reject' as const } : {};
        const tasks = action.tasks.map((task) => this.#newTask({ ...task, ...added }));
        return this.#same(valuesOf(broker.enqueueMany(tasks)), () => model.enqueueMany(tasks));
      }
      case 'tick': {
        const task = this.#newTask(action.task);
        const tick = { entryKey: action.entry, atMs: action.atMs };
        return this.#same(broker.enqueueTick(task, tick), () => model.enqueueTick(task, tick));
      }
      case 'dequeue': {
        const { queue, limit, leaseMs } = action;
        this.#leased(await broker.dequeue(queue, limit, leaseMs), model.dequeue(queue, limit, leaseMs));
        return;
      }
      case 'recover': {
        const { graceMs, leaseMs } = action;
        const real = await broker.recover(QUEUES, graceMs, leaseMs);
        const fromModel = model.recover(QUEUES, graceMs, leaseMs);
        if (this.#side.ties === 'arrival') this.#leased(real, fromModel);
        else this.#leased([...real].sort(byId), fromModel.sort(byId));
        return;
      }
      case 'end':
        return this.#end(action.how, action.back);
      case 'retry': {
        const lease = this.#leases.at(-1 - action.back);
        if (lease === undefined) return;
        const failure = { error: 'failed', isFailure: action.isFailure, isRecovery: action.isRecovery };
        const atMs = this.#momentAfter(action.delay);
        return this.#same(broker.retry(lease.real, failure, atMs), () => {
          model.retry(lease.model, failure, atMs);
        });
      }
      case 'extend': {
        const leases = action.backs.flatMap((back) => this.#leases.at(-1 - back) ?? []);
        const [reals, models] = [leases.map(({ real }) => real), leases.map((lease) => lease.model)];
        const lost = await broker.extendLeases(reals, action.leaseMs);
        const modelLost = model.extendLeases(models, action.leaseMs);
        expect(reals.map((task) => lost.includes(task))).toEqual(
          models.map((task) => modelLost.includes(task)),
        );
        return;
      }
      case 'takeGroup': {
        const { queue, group, holdMs, graceMs, maxDelayMs, maxSize } = action;
        const limits = { graceMs, maxDelayMs, maxSize };
        const real = await broker.takeGroup(queue, group, limits, holdMs);
        const fromModel = model.takeGroup(queue, group, limits, holdMs);
        expect(real.againInMs).toBe(fromModel.againInMs);
        expect(real.set?.messages).toEqual(fromModel.set?.messages);
        if (real.set && fromModel.set) this.#sets.push({ real: real.set, model: fromModel.set });
        return;
      }
      case 'replaceSet': {
        const set = this.#sets.at(-1 - action.back);
        if (set === undefined) return;
        const queue = action.isElsewhere ? action.task.queue : set.real.queue;
        const task = this.#newTask({ ...action.task, queue });
        return this.#same(broker.replaceSet(set.real, task), () => model.replaceSet(set.model, task));
      }
      case 'sweep': {
        const counts = [
          await broker.forward(QUEUES),
          await broker.reclaimSets(QUEUES),
          await broker.deleteExpired(QUEUES, 1_000),
        ];
        expect(counts).toEqual(model.sweep(QUEUES));
        return;
      }
      case 'one': {
        const { change, queue, id } = action;
        return this.#same(broker.change(queue, { id }, change), () => model.change(queue, { id }, change));
      }
      case 'all': {
        const { queue, state } = action;
        // In which order groups and keys come is not promised: what is moved comes from one, and what is pending is not moved.
        const change = state === 'pending' ? 'delete' : action.change;
        const target = { state, group: change === 'delete' ? action.group : (action.group ?? 'x') };
        return this.#same(broker.change(queue, target, change), () => model.change(queue, target, change));
      }
      case 'updatePayload': {
        const payload = new Uint8Array(PAYLOAD_BYTES[action.id] ?? 1).fill(++this.#written);
        return this.#same(broker.updatePayload(action.queue, action.id, payload), () => {
          model.updatePayload(action.queue, action.id, payload);
        });
      }
      case 'pause':
      case 'resume':
        return this.#same(broker[action.kind](action.queue), () => {
          model[action.kind](action.queue);
        });
      case 'setLimits': {
        const { queue, limits } = action;
        return this.#same(broker.setLimits(queue, limits), () => {
          model.setLimits(queue, limits);
        });
      }
      case 'reopen':
        if (this.#side.reopen === undefined) return;
        await this.#side.reopen();
        model.reopen(this.#side.reopensFull !== true);
        return;
      case 'removeQueue': {
        const { queue, force } = action;
        return this.#same(broker.removeQueue(queue, { force }), () => {
          model.removeQueue(queue, { force });
        });
      }
    }
  }

  async #end(
    how: 'complete' | 'archive' | 'release' | 'discard' | 'writeResult' | 'writeProgress',
    back: number,
  ): Promise<void> {
    const lease = this.#leases.at(-1 - back);
    if (lease === undefined) return;
    const failure = { error: 'failed for good', isFailure: true };
    const result = Uint8Array.of(++this.#written % 256);
    const end = (target: Broker | BrokerModel, task: LeasedTask): unknown => {
      if (how === 'archive') return target.archive(task, failure);
      if (how === 'writeResult') return target.writeResult(task, result);
      if (how === 'writeProgress') return target.writeProgress(task, `${this.#written}`);
      return target[how](task);
    };
    await this.#same(end(this.#side.broker, lease.real) as Promise<unknown>, () =>
      end(this.#model, lease.model),
    );
  }

  #leased(real: readonly LeasedTask[], model: readonly LeasedTask[]): void {
    const shown = (tasks: readonly LeasedTask[]): unknown =>
      tasks.map(({ message, recoveries }) => ({ message, recoveries }));
    expect(shown(real)).toEqual(shown(model));
    real.forEach((one, i) => {
      const namesakes = this.#leases.filter(({ real: lease }) => byId(lease, one) === 0);
      expect(one.epoch).toBeGreaterThan(Math.max(0, ...namesakes.map((lease) => lease.real.epoch)));
      this.#leases.push({ real: one, model: model[i] as LeasedTask });
    });
  }

  #made = 0;

  async #same(real: Promise<unknown>, model: () => unknown): Promise<void> {
    const outcome = await real.catch(codeOf);
    try {
      expect(outcome).toEqual(model());
    } catch (error) {
      if ((error as { code?: unknown }).code === undefined || outcome === undefined) throw error;
      expect(outcome).toBe(codeOf(error));
    }
  }

  /** Of what is due in one moment, a timer does not promise the order. */
  #momentAfter(delay: number): number {
    const own = delay === 0 ? 0 : ++this.#delayed % UNIT;
    return this.#side.wallNow() + (delay * UNIT + own) * MOMENT_MS;
  }

  #newTask(spec: TaskSpec): NewTask {
    const { id, queue, group, key, lock, isNext, delay, ttlMs, retentionMs, onDuplicate } = spec;
    return {
      onDuplicate,
      isNext,
      processAtMs: delay === 0 ? 0 : this.#momentAfter(delay),
      uniqueTtlMs: lock === '' ? 0 : ttlMs,
      message: {
        ...{ id, queue, group, key, retentionMs, type: 't', headers: {} },
        uniqueKey: lock === '' ? '' : `asynq:{${queue}}:unique:t:${lock}`,
        payload: new Uint8Array(PAYLOAD_BYTES[id] ?? 1).fill(++this.#made),
        ...{ maxRetry: 5, retried: 0, lastError: '', lastFailedAtMs: 0, completedAtMs: 0 },
        ...{ timeoutMs: 0, deadlineMs: 0 },
      },
    };
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code: unknown }).code;
}

async function valuesOf(outcomes: Promise<readonly PromiseSettledResult<TaskRecord>[]>): Promise<unknown[]> {
  return (await outcomes).map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : codeOf(outcome.reason),
  );
}
