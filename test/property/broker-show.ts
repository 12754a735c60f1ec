import type { TaskRecord } from 'escapement/tasks';
import { expect } from 'vitest';
import { GROUPS, MOMENT_MS } from './broker-actions.ts';
import { byId, byKey } from './broker-model-parts.ts';
import type { BrokerSide } from './broker-side.ts';

const LISTED = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed'] as const;
const PAGE = { page: 1, size: 1_000 };

/** What is seen of a queue. */
interface ShownQueue {
  /** Keys in the order of their turns. */
  readonly turns: readonly string[];
  readonly [other: string]: unknown;
}

export type ShownBroker = Readonly<Record<string, ShownQueue>>;

/** All that can be seen of a broker, as the model shows it. */
export async function showBroker(side: BrokerSide): Promise<ShownBroker> {
  const queues = await side.broker.queues();
  const shown = await Promise.all(queues.map((queue) => showQueue(side, queue)));
  return Object.fromEntries(shown.map((one, at) => [queues[at] ?? '', one]));
}

async function showQueue(side: BrokerSide, queue: string): Promise<ShownQueue> {
  const { broker, ties } = side;
  const [stats, limits, keys, groups, tasks, inGroups] = await Promise.all([
    broker.queueStats(queue),
    broker.limits(queue),
    broker.keys(queue, PAGE),
    broker.groups(queue),
    Promise.all(LISTED.map((state) => broker.tasks(queue, state, PAGE))),
    Promise.all(GROUPS.map((group) => broker.tasks(queue, 'aggregating', PAGE, group))),
  ]);
  const { isPaused, processedTotal, failedTotal, counts } = stats;
  for (const [at, state] of LISTED.entries()) expect(counts[state]).toBe(tasks[at]?.length);
  expect(stats.groups).toBe(groups.length);
  const sizes = Object.fromEntries(groups.map(({ group, size }) => [group, size]));
  // In which order tasks are active that were recovered, or are held, is not promised.
  const [active = [], pending = [], ...others] = tasks;
  const held = new Set(keys.filter(({ heldBy }) => heldBy !== undefined).map(({ key }) => key));
  const turns = [...new Set(pending.map(({ message }) => message.key))].filter((key) => !held.has(key));
  const shownGroups = inGroups.map((records, at): [string, TaskRecord[]] => {
    const group = GROUPS[at] as string;
    const waiting = sizes[group] ?? 0;
    return [group, [...records.slice(0, waiting), ...records.slice(waiting).sort(byId)]];
  });
  return {
    isPaused,
    processed: processedTotal,
    failed: failedTotal,
    limits,
    held: stats.held,
    // A part of a token that is missing does not count.
    keys: keys
      .map((one) => ({ ...one, againInMs: one.againInMs && roundToMoment(one.againInMs) }))
      .sort((a, b) => (a.key < b.key ? -1 : 1)),
    turns: (await side.turns?.(queue)) ?? turns,
    tasks: [ties === 'id' ? [...active].sort(byId) : active, [...pending].sort(byKey), ...others],
    sizes,
    groups: Object.fromEntries(shownGroups),
    aggregating: counts.aggregating,
  };
}

function roundToMoment(ms: number): number {
  return Math.round(ms / MOMENT_MS) * MOMENT_MS;
}
