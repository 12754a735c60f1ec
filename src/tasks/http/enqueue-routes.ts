import { hasCode } from '../../core/errors.ts';
import { MINUTE_MS } from '../../core/units.ts';
import { requireBoolean } from '../../core/validate.ts';
import type { Broker } from '../broker/broker.ts';
import { Client, settleEach } from '../client.ts';
import type { TaskInfo } from '../info.ts';
import { DEFAULT_QUEUE } from '../task-options.ts';
import type { Task } from '../task.ts';
import type { Action, Call } from './call.ts';
import {
  ENQUEUE_PATH,
  infoToJson,
  isSent,
  newTaskFromJson,
  type EnqueueBody,
  type OutcomeJson,
} from './enqueue-json.ts';
import { HttpError } from './http-error.ts';
import type { Route } from './route-table.ts';

/** How long an answer is kept for a retry: several times as long as a client retries by default. */
const KEPT_MS = 5 * MINUTE_MS;

/** Maximum size of the answers that are kept, in characters: those to some 20 000 tasks, or to 10 000 requests of one task. */
const MAX_KEPT_CHARACTERS = 8_000_000;

/** What an answer takes besides its text, measured in bytes: its id, its promise and its entry. */
const CHARACTERS_BESIDES = 300;

/** Maximum number of characters of the id of a request; a UUID has 36. */
const MAX_ID_CHARACTERS = 100;

type Outcome = PromiseSettledResult<TaskInfo>;
type Outcomes = readonly OutcomeJson[];

/** The route that enqueues tasks. See `enqueue-json.ts` for its JSON. */
export function enqueueRoutes(broker: Broker, maxTasks: number): readonly Route<Action>[] {
  const client = new Client({ broker });
  const recent = new RecentAnswers();
  const action: Action = async (call) => {
    const { tasks, requestId, isRetry } = await readBody(call, maxTasks);
    const known = recent.find(requestId, isRetry);
    if (known !== undefined) return { outcomes: await known };
    const outcomes = enqueue(client, tasks, call, isRetry);
    if (requestId !== undefined) recent.add(requestId, isRetry, outcomes, broker.clock.now());
    return { outcomes: await outcomes };
  };
  return [['POST', ENQUEUE_PATH, action]];
}

async function readBody(call: Call, maxTasks: number): Promise<EnqueueBody> {
  const { tasks, requestId, isRetry = false } = await call.body('tasks', 'requestId', 'isRetry');
  if (!Array.isArray(tasks)) throw new HttpError(400, 'tasks must be an array');
  if (tasks.length > maxTasks) {
    throw new HttpError(413, `a request has at most ${maxTasks} tasks. Received ${tasks.length}`);
  }
  requireBoolean('isRetry', isRetry);
  if (requestId === undefined && !isRetry) return { tasks, isRetry };
  if (typeof requestId !== 'string' || requestId === '' || requestId.length > MAX_ID_CHARACTERS) {
    throw new HttpError(400, `requestId must be a string of 1 to ${MAX_ID_CHARACTERS} characters`);
  }
  return { tasks, requestId, isRetry };
}

async function enqueue(
  client: Client,
  json: readonly unknown[],
  call: Call,
  isRetry: boolean,
): Promise<Outcomes> {
  const read = await settleEach(json, newTaskFromJson);
  const tasks = read.filter((one) => one.status === 'fulfilled').map((one) => one.value);
  const enqueued = await enqueueValid(client, tasks);
  let nth = 0;
  const outcomes: OutcomeJson[] = [];
  for (const one of read) {
    const outcome = one.status === 'rejected' ? one : (enqueued[nth++] as Outcome);
    const isDone = isRetry && one.status === 'fulfilled' && isConflict(outcome);
    const found = isDone ? await enqueuedBefore(call, one.value) : undefined;
    outcomes.push(outcomeToJson(found === undefined ? outcome : { status: 'fulfilled', value: found }, call));
  }
  return outcomes;
}

/** Instead of the broker's own message, which may have the address of its Redis. */
const UNAVAILABLE = 'the broker is unavailable';

/** @throws HttpError 503 - the broker is unavailable or closed for all tasks: the client tries again. */
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

// Retries.

function isConflict(outcome: Outcome): boolean {
  return outcome.status === 'rejected' && hasCode(outcome.reason, 'ERR_TASK_ID_CONFLICT');
}

/** Returns the task that has the id, if it is the same: an attempt whose answer was lost has enqueued it. */
async function enqueuedBefore({ inspector }: Call, task: Task): Promise<TaskInfo | undefined> {
  try {
    const { queue = DEFAULT_QUEUE, taskId = '' } = task.options;
    const info = await inspector.getTaskInfo(queue, taskId);
    return info.type === task.type && Buffer.compare(info.payload, task.payload) === 0 ? info : undefined;
  } catch {
    return undefined; // the error of the retry is the better one
  }
}

interface RecentAnswer {
  /** Text, so that its size is known and it keeps no payload in memory. */
  readonly json: Promise<string>;
  /** Whether it is the answer to a retry: its first attempt, if `authorize` has held it up, comes later and gets it too. */
  readonly isOfRetry: boolean;
  readonly atMs: number;
  /** 0 while the request is being served. */
  characters: number;
}

/**
 * Answers to recent requests, also to those that are being served. A retry gets the answer that was lost, even if its tasks have been
 * completed and removed meanwhile, when their ids no longer show that they were there.
 */
class RecentAnswers {
  /** The oldest first. */
  readonly #answers = new Map<string, RecentAnswer>();
  #characters = 0;

  find(requestId = '', isRetry: boolean): Promise<Outcomes> | undefined {
    const answer = this.#answers.get(requestId);
    if (answer === undefined || !(isRetry || answer.isOfRetry)) return undefined;
    return answer.json.then((json) => JSON.parse(json) as Outcomes);
  }

  /** An answer that fails is not kept: the retry is to enqueue the tasks. */
  add(requestId: string, isOfRetry: boolean, outcomes: Promise<Outcomes>, nowMs: number): void {
    this.#remove(requestId);
    const json = outcomes.then((all) => JSON.stringify(all));
    const answer = { json, isOfRetry, atMs: nowMs, characters: 0 };
    this.#answers.set(requestId, answer);
    answer.json.then(
      ({ length }) => {
        if (this.#answers.get(requestId) !== answer) return;
        answer.characters = CHARACTERS_BESIDES + length;
        this.#characters += answer.characters;
        this.#removeOld(nowMs - KEPT_MS);
      },
      () => {
        if (this.#answers.get(requestId) === answer) this.#remove(requestId);
      },
    );
  }

  #removeOld(beforeMs: number): void {
    for (const [requestId, { atMs, characters }] of this.#answers) {
      if (atMs >= beforeMs && this.#characters <= MAX_KEPT_CHARACTERS) return;
      if (characters > 0) this.#remove(requestId); // the others are being served
    }
  }

  #remove(requestId: string): void {
    this.#characters -= this.#answers.get(requestId)?.characters ?? 0;
    this.#answers.delete(requestId);
  }
}
