import { hasCode } from '../../core/errors.ts';
import type { Broker } from '../broker/broker.ts';
import { Client, settleEach } from '../client.ts';
import type { TaskInfo } from '../info.ts';
import type { Task } from '../task.ts';
import type { Action, Call } from './call.ts';
import { ENQUEUE_PATH, infoToJson, isSent, newTaskFromJson, type OutcomeJson } from './enqueue-json.ts';
import { HttpError } from './http-error.ts';
import type { Route } from './route-table.ts';

type Outcome = PromiseSettledResult<TaskInfo>;

/** The route that enqueues tasks. See `enqueue-json.ts` for its JSON. */
export function enqueueRoutes(broker: Broker, maxTasks: number): readonly Route<Action>[] {
  const client = new Client({ broker });
  const action: Action = async (call) => {
    const { tasks } = await call.body('tasks');
    if (!Array.isArray(tasks)) throw new HttpError(400, 'tasks must be an array');
    if (tasks.length > maxTasks) {
      throw new HttpError(413, `a request has at most ${maxTasks} tasks. Received ${tasks.length}`);
    }
    return { outcomes: await enqueue(client, tasks, call) };
  };
  return [['POST', ENQUEUE_PATH, action]];
}

async function enqueue(
  client: Client,
  json: readonly unknown[],
  call: Call,
): Promise<readonly OutcomeJson[]> {
  const read = await settleEach(json, newTaskFromJson);
  const tasks = read.filter((one) => one.status === 'fulfilled').map((one) => one.value);
  const enqueued = await enqueueValid(client, tasks);
  let nth = 0;
  return read.map((one) =>
    outcomeToJson(one.status === 'rejected' ? one : (enqueued[nth++] as Outcome), call),
  );
}

/** Instead of the broker's own message, which may have the address of its Redis. */
const UNAVAILABLE = 'the broker is unavailable';

/** @throws HttpError 503 - the broker is unavailable or closed for all tasks. */
async function enqueueValid(client: Client, tasks: readonly Task[]): Promise<readonly Outcome[]> {
  const outcomes = await client.enqueueMany(tasks);
  const isAway = outcomes.every((one) => one.status === 'rejected' && isGone(one.reason));
  if (isAway && outcomes.length > 0) throw new HttpError(503, UNAVAILABLE);
  return outcomes;
}

function isGone(reason: unknown): boolean {
  return hasCode(reason, 'ERR_BROKER_UNAVAILABLE', 'ERR_BROKER_CLOSED');
}

function outcomeToJson(outcome: Outcome, call: Call): OutcomeJson {
  if (outcome.status === 'fulfilled') return { task: infoToJson(outcome.value) };
  const reason: unknown = outcome.reason;
  if (isSent(reason)) return { error: { code: reason.code, message: reason.message } };
  if (!isGone(reason)) call.report(reason);
  const message = isGone(reason) ? UNAVAILABLE : 'internal error';
  return { error: { code: 'ERR_BROKER_UNAVAILABLE', message } };
}
