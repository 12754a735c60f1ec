import type { Defect, DefectKind } from '../broker.ts';
import { groups } from './aggregation.ts';
import { requireQueue } from './inspection.ts';
import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { secondsDown, secondsUp } from './redis-time.ts';
import { listOf, messageIfOf, numberOf, textOf } from './replies.ts';
import type { ScriptReply } from './script.ts';
import { CHECK_GROUPS } from './scripts/check-groups.ts';
import { CHECK_LEASES } from './scripts/check-leases.ts';
import { CHECK_LOCKS } from './scripts/check-locks.ts';
import { CHECK_PLACE } from './scripts/check-place.ts';
import { CHECK_TASKS } from './scripts/check-tasks.ts';

/** What one script looks at. */
const PER_SCRIPT = 500;

/** Keys that Redis looks at for one step of a scan. */
const PER_SCAN = 1_000;

const OF_PLACE: readonly (DefectKind | undefined)[] = [undefined, 'id-without-task', 'id-in-wrong-list'];
const OF_TASK: readonly (DefectKind | undefined)[] = [
  undefined,
  'task-without-message',
  'task-in-no-list',
  'group-not-listed',
];

/**
 * Goes through a queue from both sides: from lists to tasks, then from tasks to lists; then its locks. What looks wrong is
 * looked at again by the script that would repair it, in one step: somebody may have been in the middle of something.
 */
export async function repair(access: RedisAccess, queue: string, apply: boolean): Promise<Defect[]> {
  await requireQueue(access, queue);
  const round = new Round(access, queue, apply);
  await round.checkLists();
  await round.checkTasks();
  await round.checkLocks();
  return round.defects;
}

class Round {
  readonly defects: Defect[] = [];
  readonly #access: RedisAccess;
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #flag: 0 | 1;
  /** Ids that were seen in a list, where Redis would have to search for them. */
  readonly #listed = new Set<string>();

  constructor(access: RedisAccess, queue: string, apply: boolean) {
    this.#access = access;
    this.#queue = queue;
    this.#keys = access.keysOf(queue);
    this.#flag = apply ? 1 : 0;
  }

  async checkLists(): Promise<void> {
    const keys = this.#keys;
    for (const state of ['pending', 'active'] as const) {
      for await (const ids of this.#idsOf(keys[state], true)) {
        for (const id of ids) this.#listed.add(id);
        await this.#checkPlace(keys[state], 'list', state, ids);
        if (state === 'active') await this.#checkLeases(ids);
      }
    }
    for (const state of ['scheduled', 'retry', 'archived', 'completed'] as const) {
      await this.#checkZset(keys[state], state);
    }
    await this.#checkZset(keys.lease, 'active');
    for (const { group } of await groups(this.#access, this.#queue)) {
      await this.#checkZset(keys.group(group), 'aggregating');
    }
    await this.#checkGroups();
    const sets = await this.#access.ask((client) => client.zrange(keys.aggregationSets, '0', '-1'));
    for (const set of sets) await this.#checkZset(set, 'aggregating');
  }

  async checkTasks(): Promise<void> {
    const { taskPrefix, groupPrefix, pending, active, lease, ...places } = this.#keys;
    const { scheduled, retry, archived, completed, groups: listed, aggregationSets } = places;
    const keys = [pending, active, lease, scheduled, retry, archived, completed, listed, aggregationSets];
    for await (const names of this.#scan(taskPrefix)) {
      const ids = names.map((name) => name.slice(taskPrefix.length));
      const unlisted = ids.filter((id) => !this.#listed.has(id));
      const nowS = secondsUp(this.#access.wallNowMs);
      const args = [taskPrefix, groupPrefix, nowS, this.#flag, ...unlisted];
      const reply = listOf(await this.#access.run(CHECK_TASKS, keys, args));
      for (let at = 0; at < reply.length; at += 3) {
        this.#tell(OF_TASK[numberOf(reply[at + 1])], reply[at], textOf(reply[at + 2]));
      }
      await this.#checkMessages(ids);
    }
  }

  async checkLocks(): Promise<void> {
    const { prefix, taskPrefix } = this.#keys;
    for await (const locks of this.#scan(`${prefix}unique:`)) {
      const reply = listOf(await this.#access.run(CHECK_LOCKS, locks, [taskPrefix, this.#flag]));
      for (let at = 0; at < reply.length; at += 2) {
        this.#tell('leaked-lock', reply[at + 1], textOf(reply[at]));
      }
    }
  }

  async #checkGroups(): Promise<void> {
    const { prefix, groups: key } = this.#keys;
    const names = await this.#access.ask((client) => client.smembers(key));
    for (let first = 0; first < names.length; first += PER_SCRIPT) {
      const args = [prefix, this.#flag, ...names.slice(first, first + PER_SCRIPT)];
      for (const group of listOf(await this.#access.run(CHECK_GROUPS, [key], args))) {
        this.defects.push({ kind: 'group-without-tasks', queue: this.#queue, id: '', where: textOf(group) });
      }
    }
  }

  async #checkZset(key: string, state: string): Promise<void> {
    for await (const ids of this.#idsOf(key, false)) await this.#checkPlace(key, 'zset', state, ids);
  }

  async #checkPlace(key: string, kind: string, state: string, ids: readonly string[]): Promise<void> {
    const args = [kind, this.#keys.taskPrefix, state, this.#flag, ...ids];
    const reply = listOf(await this.#access.run(CHECK_PLACE, [key], args));
    for (let at = 0; at < reply.length; at += 2)
      this.#tell(OF_PLACE[numberOf(reply[at + 1])], reply[at], key);
  }

  async #checkLeases(ids: readonly string[]): Promise<void> {
    const { lease, active, taskPrefix } = this.#keys;
    const args = [taskPrefix, secondsDown(this.#access.wallNowMs), this.#flag, ...ids];
    const reply = listOf(await this.#access.run(CHECK_LEASES, [lease], args));
    for (const id of reply) this.#tell('active-without-lease', id, active);
  }

  async #checkMessages(ids: readonly string[]): Promise<void> {
    const messages = await this.#access.ask((client) =>
      Promise.all(ids.map((id) => client.hgetBuffer(this.#keys.task(id), 'msg').catch(nullIfWrongType))),
    );
    for (const [at, id] of ids.entries()) {
      const message = messages[at] ?? null;
      if (message !== null && messageIfOf(this.#queue, id, message) === undefined) {
        this.defects.push({ kind: 'unreadable-message', queue: this.#queue, id, where: '' });
      }
    }
  }

  /** Piece by piece, from behind: what is taken out of a piece, or comes in front, moves nothing that was not seen yet. */
  async *#idsOf(key: string, isList: boolean): AsyncGenerator<string[]> {
    const size = await this.#access.ask((client) => (isList ? client.llen(key) : client.zcard(key)));
    for (let end = size; end > 0; end -= PER_SCRIPT) {
      const [first, last] = [String(Math.max(end - PER_SCRIPT, 0)), String(end - 1)];
      const ids = await this.#access.ask((client) =>
        isList ? client.lrange(key, first, last) : client.zrange(key, first, last),
      );
      if (ids.length > 0) yield ids;
    }
  }

  /** Keys that begin so, wherever in a cluster they are. */
  async *#scan(prefix: string): AsyncGenerator<string[]> {
    const pattern = `${prefix.replaceAll(/[*?[\]\\]/gu, String.raw`\$&`)}*`;
    const nodes = await this.#access.ask((client) =>
      Promise.resolve('nodes' in client ? client.nodes('master') : [client]),
    );
    for (const node of nodes) {
      for (let cursor = ''; cursor !== '0';) {
        const [next, names] = await this.#access.ask(() =>
          node.scan(cursor || '0', 'MATCH', pattern, 'COUNT', PER_SCAN),
        );
        cursor = next;
        if (names.length > 0) yield names;
      }
    }
  }

  #tell(kind: DefectKind | undefined, id: ScriptReply | undefined, where: string): void {
    if (kind !== undefined) this.defects.push({ kind, queue: this.#queue, id: textOf(id), where });
  }
}

/** A key of another type is reported as a task without a message. */
function nullIfWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}
