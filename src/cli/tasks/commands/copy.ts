import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hasCode } from '../../../core/errors.ts';
import type { Broker } from '../../../tasks/broker/broker.ts';
import { LOG_NAME } from '../../../tasks/broker/embedded/durable-store.ts';
import { EmbeddedBroker } from '../../../tasks/broker/embedded/embedded-broker.ts';
import { copyTasks } from '../../../tasks/copy-tasks.ts';
import { CommandError } from '../../command-error.ts';
import { ProgressBar } from '../../terminal/progress-bar.ts';
import { endWith, EXIT_CODES, printError } from '../../terminal/terminal.ts';
import { counted, formatCount, printable } from '../../terminal/text.ts';
import { connectRedis, openFolder, requireIdle } from '../connect.ts';
import { connectionOf, type ConnectionOptions } from '../connection.ts';
import { print, type Invocation, type TasksCommand } from '../run.ts';

const HELP = `
FROM and TO are each

  redis://…      Redis; the other schemes of --uri, too
  a folder       that of an embedded broker, which no process has open
  a file         a dump: JSON lines. As TO it must not exist, and end in .jsonl

Everything is copied as it is: tasks in every state, with all they have, unique
locks, paused queues, groups, counts, and the ticks and history of schedules.
FROM does not change. Stop its servers and clients first: the copy is refused
while a server runs or a task is active. Start servers of TO after the copy.

TO must have no tasks. With --merge those that it has stay as they are, and an
interrupted copy goes on: no task is copied twice.

Exit codes: 0 copied; 1 copied without the damaged parts of a folder; 2 wrong
usage, refused, or not finished; 130 interrupted.`;

interface CopyOptions extends ConnectionOptions {
  readonly merge?: boolean;
}

/** One end of a copy. */
interface Place {
  /** Where it is, for messages; without a password. */
  readonly name: string;
  readonly at: Broker | string;
  /** Called at the end of the copy. @throws CommandError - the copy may be wrong. */
  readonly close: () => Promise<unknown>;
}

export function addCopy(part: TasksCommand): void {
  part
    .command('copy')
    .description('copy all tasks from Redis, a folder or a dump to another')
    .argument('<from>', 'where they are')
    .argument('<to>', 'where they are to be')
    .option('--merge', 'TO may have tasks, which stay; an interrupted copy goes on')
    .addHelpText('after', HELP)
    .calls(copy);
}

async function copy(call: Invocation<CopyOptions>): Promise<void> {
  const { options, terminal, words } = call;
  if (options.uri !== undefined || options.path !== undefined) {
    throw new CommandError('copy has FROM and TO, and needs neither --uri nor --path');
  }
  const [fromWord = '', toWord = ''] = words;
  if (fromWord === toWord || (!isUri(toWord) && resolve(fromWord) === resolve(toWord)))
    throw new CommandError('FROM and TO are the same');
  let damages = 0;
  const from = await openSource(fromWord, call, () => damages++);
  const opened = [from];
  let bar: ProgressBar | undefined;
  try {
    const to = await openTarget(toWord, call);
    opened.push(to);
    bar = new ProgressBar(terminal.err, printable(`${from.name} to ${to.name}`));
    const onProgress = (done: number, total: number): void => bar?.update(done, total);
    const { merge } = options;
    const copied = await copyTasks(from.at, to.at, { merge, onProgress, signal: terminal.signal });
    for (let place = opened.pop(); place !== undefined; place = opened.pop()) await place.close();
    bar.stop();
    if (damages > 0) await reportDamages(call, from.name, damages);
    const { queues, tasks, added } = copied;
    const there = tasks === added ? '' : `; ${formatCount(tasks - added)} of them were there already`;
    const what = `${counted(tasks, 'task')} in ${counted(queues, 'queue')}`;
    await print(call, {
      json: () => ({ from: from.name, to: to.name, ...copied, damages }),
      lines: () => [`${printable(from.name)} to ${printable(to.name)}: ${what}${there}`],
    });
  } catch (error) {
    const isDump = typeof opened[1]?.at === 'string';
    if (!hasCode(error, 'ERR_QUEUE_NOT_EMPTY') || isDump) throw error;
    throw new CommandError('TO has tasks: with --merge they stay, and an interrupted copy goes on');
  } finally {
    bar?.stop();
    for (const place of opened) await place.close().catch(() => undefined);
  }
}

async function reportDamages(
  { terminal }: Invocation<unknown>,
  path: string,
  damages: number,
): Promise<void> {
  endWith(terminal, EXIT_CODES.problems);
  const message = `${path}: ${counted(damages, 'damaged part')} left out; 'tasks verify' lists them`;
  await printError(terminal, printable(message));
}

const DUMP = '.jsonl';

async function openSource(word: string, call: Invocation<CopyOptions>, onDamage: () => void): Promise<Place> {
  if (isUri(word)) return openRedis(word, call);
  const found = statSync(word, { throwIfNoEntry: false });
  if (found === undefined) throw new CommandError(`${word}: no such file or folder`);
  if (!found.isDirectory()) return dump(word);
  const broker = await openFolder(word, 'read', onDamage);
  const close = async (): Promise<void> => {
    await broker.close();
    await requireIdle(word); // a process that has opened it meanwhile may have run tasks that were copied
  };
  return { name: word, at: broker, close };
}

async function openTarget(word: string, call: Invocation<CopyOptions>): Promise<Place> {
  if (isUri(word)) return openRedis(word, call);
  const found = statSync(word, { throwIfNoEntry: false });
  if (found?.isDirectory() === false || (found === undefined && word.endsWith(DUMP))) return dump(word);
  if (found !== undefined) {
    await requireIdle(word);
    const other = (await readdir(word)).find((name) => !name.startsWith(`${LOG_NAME}.`));
    if (other !== undefined) throw new CommandError(`${word}: other files are in this folder, as ${other}`);
  }
  // 'os': what was copied is synced when the broker is closed, and not for each piece.
  const broker = await EmbeddedBroker.open({ dataPath: word, durability: 'os' });
  return { name: word, at: broker, close: () => broker.close() };
}

function dump(path: string): Place {
  return { name: path, at: path, close: () => Promise.resolve() };
}

async function openRedis(
  uri: string,
  { options, environment, terminal }: Invocation<CopyOptions>,
): Promise<Place> {
  const connection = connectionOf({ ...options, uri }, environment);
  if (connection.kind !== 'redis') {
    throw new CommandError('the HTTP API has not everything of a task; copy from its folder, or from Redis');
  }
  const broker = await connectRedis(connection, terminal.signal);
  return { name: connection.name, at: broker, close: () => broker.close() };
}

function isUri(word: string): boolean {
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(word);
}
