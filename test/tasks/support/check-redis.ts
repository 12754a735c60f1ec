import { fromBinary } from '@bufbuild/protobuf';
import { groupKeyOfSet, QUEUES_KEY, QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { TaskMessageSchema } from '../../../src/tasks/wire/asynq-messages.gen.ts';
import { decodeTaskMessage } from '../../../src/tasks/wire/message-codec.ts';
import type { RedisDump } from './redis-dump.ts';

const NOTHING: ReadonlyMap<string, string> = new Map();
const TASK_FIELDS = new Set([
  ...['msg', 'state', 'group', 'unique_key', 'pending_since', 'result'],
  ...['x:lease', 'x:recoveries', 'x:progress', 'x:key'],
]);
/** Counts of days: what removes a queue cannot know of all of them, and they expire. */
const DAY_COUNT = /^(?:processed|failed):\d{4}-\d\d-\d\d$/u;
const FOR_ONE = /^(?:t|g|unique|x:later|x:next):/u;

/**
 * Checks the queues of a database, as RedisBrokers and asynq need them: every id is in exactly one list, and its task has that state;
 * active tasks and leases are the same; groups and sets are listed if and only if they have tasks; the holder of a lock exists.
 *
 * @param hasGo - whether Go programs have ended tasks, too: they leave fields that are ours.
 * @throws Error - naming the first thing that does not hold.
 */
export function checkQueues(dump: RedisDump, { hasGo = false } = {}): void {
  for (const [key, scores] of dump.zsets) if (!key.includes('}:x:')) requireWhole(key, scores);
  for (const queue of dump.sets.get(QUEUES_KEY) ?? []) new QueueCheck(dump, queue, hasGo).run();
}

/** The same, and that there is nothing but queues. */
export function checkRedis(dump: RedisDump): void {
  const queues = dump.sets.get(QUEUES_KEY) ?? new Set();
  for (const key of keysOf(dump)) {
    if (key === QUEUES_KEY) continue;
    const [, queue = '', rest = ''] = /^asynq:\{(.*?)\}:(.*)$/u.exec(key) ?? [];
    ensure(rest !== '', `'${key}' is of no queue`);
    ensure(queues.has(queue) || DAY_COUNT.test(rest), `'${key}' is of a queue that is not registered`);
  }
  checkQueues(dump);
}

/** Lists of asynq before 0.26 read whole numbers only. */
function requireWhole(key: string, scores: ReadonlyMap<string, string>): void {
  for (const [id, score] of scores)
    ensure(/^\d+$/u.test(score), `'${id}' in '${key}' has the score ${score}`);
}

class QueueCheck {
  readonly #dump: RedisDump;
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #hasGo: boolean;
  /** Where each id is. */
  readonly #places = new Map<string, string>();

  constructor(dump: RedisDump, queue: string, hasGo: boolean) {
    this.#hasGo = hasGo;
    this.#dump = dump;
    this.#queue = queue;
    this.#keys = new QueueKeys(queue);
  }

  run(): void {
    this.#checkNames();
    for (const state of ['pending', 'active'] as const) {
      for (const id of this.#dump.lists.get(this.#keys[state]) ?? [])
        this.#place(this.#keys[state], state, id);
    }
    for (const state of ['scheduled', 'retry', 'archived', 'completed'] as const) {
      for (const id of this.#zset(this.#keys[state]).keys()) this.#place(this.#keys[state], state, id);
    }
    for (const id of [...this.#waiting().values()].flat()) this.#place(this.#keys.firsts, 'pending', id);
    this.#checkGroups();
    this.#checkTurns();
    this.#checkTasks();
    this.#checkLeases();
    this.#checkLocks();
    this.#checkNumbers();
  }

  #checkNames(): void {
    const { prefix, ...own } = this.#keys;
    const known = new Set<string>(Object.values(own));
    for (const key of keysOf(this.#dump)) {
      if (!key.startsWith(prefix)) continue;
      const rest = key.slice(prefix.length);
      ensure(known.has(key) || DAY_COUNT.test(rest) || FOR_ONE.test(rest), `nobody knows '${key}'`);
    }
  }

  #zset(key: string): ReadonlyMap<string, string> {
    return this.#dump.zsets.get(key) ?? NOTHING;
  }

  #field(id: string, field: string): string | undefined {
    return this.#dump.hashes.get(this.#keys.task(id))?.get(field)?.toString();
  }

  #place(key: string, state: string, id: string): void {
    const other = this.#places.get(id);
    ensure(other === undefined, `'${id}' is in '${key}', and in '${other ?? ''}'`);
    this.#places.set(id, key);
    ensure(this.#field(id, 'msg') !== undefined, `'${id}' in '${key}' has no task`);
    const shown = this.#field(id, 'state') ?? 'nothing';
    ensure(shown === state, `'${id}' in '${key}' is ${shown}`);
  }

  /** The pending tasks of each key, in their order. */
  #waiting(): Map<string, string[]> {
    const { firsts, nextPrefix } = this.#keys;
    const waiting = new Map<string, string[]>();
    for (const [key, first] of this.#dump.hashes.get(firsts) ?? []) {
      const id = first.toString();
      waiting.set(key, id === '' ? [] : [id]);
    }
    for (const [name, ids] of this.#dump.lists) {
      if (!name.startsWith(nextPrefix)) continue;
      const key = name.slice(nextPrefix.length);
      ensure((waiting.get(key) ?? []).length === 1, `'${name}' has tasks, and its key no first one`);
      waiting.get(key)?.push(...[...ids].reverse());
    }
    return waiting;
  }

  /**
   * Every key with pending tasks has one turn, or waits for one; every run of a task with a key has a place. Tasks without key may have
   * come or gone by scripts that know nothing of turns: the next dequeue finds that.
   */
  #checkTurns(): void {
    const { limits, ring, parked, runs, active, rates } = this.#keys;
    const waiting = this.#waiting();
    for (const [key, ids] of waiting) {
      for (const id of ids) ensure(this.#field(id, 'x:key') === key, `'${id}' is not of '${key}'`);
      ensure((key === '') === (ids.length === 0), `'${key}' has ${ids.length} first tasks`);
    }
    const counted = this.#dump.strings.get(this.#keys.waiting);
    const size = [...waiting.values()].flat().length;
    ensure(Number(counted ?? 0) === size, `${size} tasks with keys, of which ${counted} are counted`);
    const isFlow = this.#dump.hashes.has(limits) || counted !== undefined;
    ensure(isFlow || waiting.size === 0, `turns in a queue without turns`);
    const turns = [...(this.#dump.lists.get(ring) ?? []), ...(this.#dump.zsets.get(parked)?.keys() ?? [])];
    const [has = '', needs = ''] = [turns, [...waiting.keys()]].map((keys) => JSON.stringify(keys.sort()));
    ensure(has === needs, `turns of ${has}, and tasks of ${needs}`);
    const areCounted = this.#dump.hashes.get(limits)?.has('kc') ?? false;
    const places = (areCounted ? (this.#dump.lists.get(active) ?? []) : []).flatMap((id) => {
      const key = this.#field(id, 'x:key') ?? '';
      return key === '' ? [] : [`${'-'.repeat(64)}${Buffer.byteLength(key)}:${key}:${id}`];
    });
    const taken = [...(this.#dump.zsets.get(runs)?.keys() ?? [])];
    ensure(
      taken.sort().join() === places.sort().join(),
      `places of ${taken.join()}, and runs of ${places.join()}`,
    );
    for (const [key, fullAt] of this.#dump.zsets.get(rates) ?? [])
      ensure(Number(fullAt) > 0, `the bucket of '${key}' is full at ${fullAt}`);
  }

  #checkGroups(): void {
    const { groups, groupPrefix, aggregationSets } = this.#keys;
    const listed = this.#dump.sets.get(groups) ?? new Set();
    const sets = this.#zset(aggregationSets);
    for (const group of listed) this.#checkListed(group);
    for (const key of sets.keys()) ensure(this.#dump.zsets.has(key), `'${key}' is listed, and has no tasks`);
    for (const key of this.#dump.zsets.keys()) {
      if (!key.startsWith(groupPrefix)) continue;
      const group = (sets.has(key) ? groupKeyOfSet(key) : key).slice(groupPrefix.length);
      ensure(sets.has(key) || listed.has(group), `'${key}' has tasks, and is not listed`);
      for (const id of this.#zset(key).keys()) {
        this.#place(key, 'aggregating', id);
        ensure(this.#field(id, 'group') === group, `'${id}' in '${key}' is of another group`);
      }
    }
  }

  /** A group is listed before its first task comes if that is scheduled: a Go server may forward it. */
  #checkListed(group: string): void {
    const { groupPrefix, prefix } = this.#keys;
    const later = [...(this.#dump.sets.get(`${prefix}x:later:${group}`) ?? [])];
    for (const id of later) {
      const isScheduled = this.#field(id, 'state') === 'scheduled' && this.#field(id, 'group') === group;
      ensure(isScheduled, `'${id}' is not scheduled for group '${group}'`);
    }
    const hasTasks = this.#dump.zsets.has(groupPrefix + group);
    ensure(hasTasks || later.length > 0, `group '${group}' is listed, and has no tasks`);
  }

  #checkTasks(): void {
    const { taskPrefix } = this.#keys;
    for (const [key, fields] of this.#dump.hashes) {
      if (!key.startsWith(taskPrefix)) continue;
      const id = key.slice(taskPrefix.length);
      ensure(this.#places.has(id), `'${key}' is in no list`);
      for (const field of fields.keys()) ensure(TASK_FIELDS.has(field), `'${key}' has a field '${field}'`);
      const message = decodeTaskMessage(fields.get('msg') ?? Buffer.alloc(0));
      ensure(message.id === id && message.queue === this.#queue, `the message of '${key}' is of another one`);
      ensure(
        (this.#field(id, 'group') ?? '') === message.group,
        `'${key}' has another group than its message`,
      );
      const keyed = this.#field(id, 'x:key') ?? '';
      ensure(keyed === message.key, `'${key}' has another key than its message`);
      const { timeout, deadline } = fromBinary(TaskMessageSchema, fields.get('msg') ?? Buffer.alloc(0));
      ensure(timeout + deadline > 0n, `'${key}' has neither timeout nor deadline, which asynq requires`);
      const state = this.#field(id, 'state');
      const since = this.#field(id, 'pending_since') ?? 'nothing';
      if (state === 'pending') ensure(/^\d{19}$/u.test(since), `'${key}' is pending since ${since}`);
      if (state === 'active' && keyed === '')
        ensure(since === 'nothing', `'${key}' is active, and pending since ${since}`);
    }
  }

  #checkLeases(): void {
    const { active, lease, epoch, taskPrefix } = this.#keys;
    const leases = this.#zset(lease);
    const ids = this.#dump.lists.get(active) ?? [];
    ensure(leases.size === ids.length, `${leases.size} leases for ${ids.length} active tasks`);
    const epochs = new Set<number>();
    for (const id of ids) {
      const [, ofTask = '', score] = /^(\d+):(\d+)$/u.exec(this.#field(id, 'x:lease') ?? '') ?? [];
      ensure(score !== undefined && score === leases.get(id), `'${id}' has not the lease that it says`);
      ensure(Number(ofTask) <= Number(this.#dump.strings.get(epoch)), `'${id}' is of an epoch to come`);
      epochs.add(Number(ofTask));
    }
    ensure(epochs.size === ids.length, `two active tasks are of one epoch`);
    if (this.#hasGo) return;
    for (const [key, fields] of this.#dump.hashes) {
      const isOver = key.startsWith(taskPrefix) && !leases.has(key.slice(taskPrefix.length));
      ensure(!isOver || !fields.has('x:lease'), `'${key}' has a lease, and is not active`);
    }
  }

  #checkLocks(): void {
    for (const [key, id] of this.#dump.strings) {
      if (!key.startsWith(`${this.#keys.prefix}unique:`)) continue;
      ensure(this.#field(id, 'unique_key') === key, `'${key}' is held by '${id}', which does not know of it`);
      const state = this.#field(id, 'state') ?? '';
      ensure(state !== 'archived' && state !== 'completed', `'${key}' is held by '${id}', which is ${state}`);
    }
  }

  #checkNumbers(): void {
    const { paused, processed, failed, epoch } = this.#keys;
    for (const key of [paused, processed, failed, epoch]) {
      const value = this.#dump.strings.get(key) ?? '0';
      ensure(/^\d+$/u.test(value), `'${key}' is ${value}`);
    }
    const failures = Number(this.#dump.strings.get(failed) ?? 0);
    ensure(
      failures <= Number(this.#dump.strings.get(processed) ?? 0),
      `more have failed than were processed`,
    );
  }
}

function keysOf({ strings, lists, sets, zsets, hashes }: RedisDump): string[] {
  return [strings, lists, sets, zsets, hashes].flatMap((some: ReadonlyMap<string, unknown>) => [
    ...some.keys(),
  ]);
}

function ensure(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`checkRedis: ${claim}`);
}
