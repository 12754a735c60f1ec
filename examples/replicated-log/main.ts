/**
 * A replicated log, as Kafka has it: a leader (leader.ts, in this process) and two followers (follower.ts, in processes of their own).
 *
 *     npm run example:replicated-log            five seconds; `-- --help` lists the options
 *
 * A producer writes orders and payments, and gets its answer when every in-sync replica has them. A consumer reads both by long
 * polls. In the middle a follower is killed with SIGKILL. You see writes wait for it, the first ones expire (504), and the rest
 * complete at once when its session ends; later it is started again, copies the log, and is in sync.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { command, count, exitCodeOf, number, say, stopSignal } from '../command-line.ts';
import { Leader, type Records } from './leader.ts';

const TOPICS = ['orders', 'payments'];
const SESSION_MS = 1_000;
/** A write is answered 504 if it is not on every in-sync replica by then. */
const WRITE_TIMEOUT_MS = 400;

const options = command(
  'example:replicated-log',
  'A leader, two followers of which one is killed, a producer and a consumer.',
)
  .option('--duration <seconds>', 'how long the producer writes (1 to 600)', number(1, 600), 4)
  .option('--rate <number>', 'writes a second (1 to 1000)', number(1, 1_000), 100)
  .parse()
  .opts<{ duration: number; rate: number }>();

const stop = stopSignal();
const followers = new Map<string, ChildProcess>();
let isProducing = true;
const totals = { written: 0, acknowledged: 0, expired: 0, failed: 0, consumed: 0 };

const leader = new Leader({
  topics: TOPICS,
  sessionMs: SESSION_MS,
  onSessionEnd: (follower) => {
    say(`the session of ${follower} has ended: what waited for it completes`);
  },
});
const url = await leader.listen();
await exitCodeOf(main(), stop);

async function main(): Promise<void> {
  try {
    say(`a leader at ${url}, and two followers`);
    start('follower-1');
    start('follower-2');
    await leader.followersInSync(2, { timeoutMs: 30_000, signal: stop });
    say('both followers are in sync');
    await write(++totals.written);
    say('the first order is on all of them');
    const gauges = setInterval(showGauges, 250);
    await Promise.all([produce(), consume(), killOneAndStartItAgain()]).finally(() => {
      clearInterval(gauges);
    });
    await showResult();
  } finally {
    for (const follower of followers.values()) follower.kill('SIGKILL');
    await leader.close();
  }
}

function start(name: string): void {
  const follower = fork(new URL('./follower.ts', import.meta.url), [url, name, ...TOPICS]);
  followers.set(name, follower);
  say(`${name} starts (pid ${follower.pid})`);
}

async function killOneAndStartItAgain(): Promise<void> {
  const signal = stop;
  await sleep((options.duration * 1_000) / 4, undefined, { signal });
  const victim = followers.get('follower-1');
  victim?.kill('SIGKILL');
  say('follower-1 is killed with SIGKILL: writes wait for it');
  await sleep(SESSION_MS + (options.duration * 1_000) / 4, undefined, { signal });
  start('follower-1');
  await leader.followersInSync(2, { timeoutMs: 30_000, signal });
  say('follower-1 has copied the log, and is in sync again');
}

/** Writes at a steady rate, whether or not earlier writes were answered. Every third order is paid at once. */
async function produce(): Promise<void> {
  const answers: Promise<void>[] = [];
  const startMs = performance.now();
  for (let elapsedMs = 0; elapsedMs < options.duration * 1_000; elapsedMs = performance.now() - startMs) {
    while (totals.written < (elapsedMs * options.rate) / 1_000) answers.push(write(++totals.written));
    await sleep(5, undefined, { signal: stop });
  }
  await Promise.all(answers);
  isProducing = false;
}

async function write(number: number): Promise<void> {
  const orders = [`order ${number}`];
  const records: Records =
    number % 3 === 0 ? { orders, payments: [`payment of order ${number}`] } : { orders };
  const path = `${url}/records?timeoutMs=${WRITE_TIMEOUT_MS}`;
  const init = { method: 'POST', body: JSON.stringify(records) };
  const status = await fetch(path, init).then(
    (response) => response.status,
    () => 'no answer',
  );
  totals[status === 200 ? 'acknowledged' : status === 504 ? 'expired' : 'failed']++;
}

/** Reads until it has every record: also those whose writer has got 504. They are in the log, and are replicated later. */
async function consume(): Promise<void> {
  const next: Record<string, number> = { orders: 0, payments: 0 };
  for (let isOver = false; !isOver;) {
    const offsets = Object.entries(next).map(([topic, offset]) => `${topic}=${offset}`);
    const response = await fetch(`${url}/records?${offsets.join('&')}&waitMs=300`, { signal: stop });
    for (const [topic, records] of Object.entries((await response.json()) as Records)) {
      next[topic] = (next[topic] ?? 0) + records.length;
      totals.consumed += records.length;
    }
    isOver = !isProducing && totals.consumed === totals.written + Math.floor(totals.written / 3);
  }
}

function showGauges(): void {
  const { written, acknowledged, expired } = totals;
  const { numDelayed, watched } = leader.produces;
  say(
    `written ${count(written)}, acknowledged ${count(acknowledged)}, expired ${expired}; waiting ${numDelayed}, watched ${watched}`,
  );
}

async function showResult(): Promise<void> {
  const { written, acknowledged, expired, failed, consumed } = totals;
  console.log(`
${count(written)} writes: ${count(acknowledged)} acknowledged, ${count(expired)} expired (504), ${count(failed)} failed
${count(consumed)} records were consumed`);
  for (const [name, follower] of followers) {
    follower.send('log');
    const [log] = (await once(follower, 'message')) as [Records];
    console.log(`${count(Object.values(log).flat().length)} records are at ${name}`);
  }
  console.log(`${leader.produces.watched + leader.inSync.watched} operations are still watched`);
}
