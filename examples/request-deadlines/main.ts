/**
 * An HTTP server in which every request has a deadline, and one `SystemTimer` for all of them.
 *
 *     npm run demo                                      five seconds; `-- --help` lists the options
 *     npm run demo -- --duration 60 --port 8080         and, in another terminal: curl -i http://127.0.0.1:8080/
 *
 * Each request asks a backend. The backend is simulated: it takes 200 ms at the median, and sometimes much longer. A request whose
 * backend has not answered within 500 ms is answered 504. So nearly every deadline is cancelled, because the answer came first.
 *
 * Once a second a line shows what was answered, what has timed out, and how few timeouts of the host all the timers needed. With
 * the default deadline 9.5 % of the requests must time out, and none of them early: the last lines show both.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { SystemTimer, systemClock, type Clock, type TimerId } from 'escapement';
import { command, count, integer, number, stopSignal } from '../command-line.ts';
import type { ClientCounts, ClientOptions } from './clients.ts';

const options = command(
  'demo',
  'An HTTP server in which every request has a deadline, and clients that load it.',
)
  .option('--duration <seconds>', 'how long the clients send (0.1 to 3600)', number(0.1, 3_600), 5)
  .option('--rate <number>', 'requests a second (1 to 10000)', number(1, 10_000), 1_000)
  .option('--timeout-ms <ms>', 'deadline of a request (1 to 60000)', number(1, 60_000), 500)
  .option('--port <number>', 'port of the server; 0 is a free one (0 to 65535)', integer(0, 65_535), 0)
  .parse()
  .opts<{ duration: number; rate: number; timeoutMs: number; port: number }>();

/** A timer sees the host through its clock alone, so this one counts what the timers cost the host. */
let hostWakeUps = 0;
const clock: Clock = {
  now: () => systemClock.now(),
  wallNow: () => systemClock.wallNow(),
  setTimeout(callback, delayMs) {
    return systemClock.setTimeout(() => {
      hostWakeUps++;
      callback();
    }, delayMs);
  },
};
const timer = new SystemTimer({ name: 'requests', clock });

let answered = 0;
let abandoned = 0;
/** How long after its deadline each 504 was written, in milliseconds; a negative one would be early. */
const lateMs: number[] = [];

/** A request that waits for its backend or its deadline, whichever comes first. */
class Exchange {
  readonly response: ServerResponse;
  readonly #deadlineMs = clock.now() + options.timeoutMs;
  // Two timers, and no closure: the timer passes the exchange to one callback that all of them share. The simulated backend hangs
  // in the same timer: when the process stalls, both are late alike, and still run in the order in which they are due.
  readonly #deadline: TimerId = timer.schedule(options.timeoutMs, expire, this);
  readonly #backend: TimerId = timer.schedule(backendTakesMs(), answer, this);

  constructor(response: ServerResponse) {
    this.response = response;
  }

  answer(): void {
    answered++;
    timer.cancel(this.#deadline);
    this.response.end('hello\n');
  }

  expire(): void {
    lateMs.push(clock.now() - this.#deadlineMs);
    timer.cancel(this.#backend);
    this.response.writeHead(504).end('the backend did not answer in time\n');
  }

  abandon(): void {
    abandoned++;
    timer.cancel(this.#deadline);
    timer.cancel(this.#backend);
  }
}

function answer(exchange: Exchange): void {
  exchange.answer();
}

function expire(exchange: Exchange): void {
  exchange.expire();
}

const server = createServer((_request, response) => {
  const exchange = new Exchange(response);
  response.once('close', () => {
    if (!response.writableEnded) exchange.abandon(); // the client has hung up
  });
});

/** A lognormal time, as service times are: median 200 ms, sigma 0.7. */
function backendTakesMs(): number {
  const gaussian = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return 200 * Math.exp(0.7 * gaussian);
}

server.listen(options.port, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

const stop = stopSignal();
console.log(`A server at http://127.0.0.1:${port}/ gives every request ${options.timeoutMs} ms.
Clients send ${count(options.rate)} requests a second for ${options.duration} s. Ctrl-C ends it early.

  seconds  answered  timed out  waiting  timers  host wake-ups`);

const startMs = performance.now();
const lines = setInterval(() => {
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
  // Every waiting request has two timers: its deadline, and its backend.
  const cells = [answered, lateMs.length, timer.size / 2, timer.size, hostWakeUps].map(count);
  console.log(
    [seconds, ...cells].map((cell, column) => cell.padStart([9, 10, 11, 9, 8, 15][column] ?? 0)).join(''),
  );
}, 1_000);

const workerData: ClientOptions = { port, durationMs: options.duration * 1_000, ratePerSecond: options.rate };
const clients = new Worker(new URL('./clients.ts', import.meta.url), { workerData });
stop.addEventListener('abort', () => {
  clients.postMessage('stop');
});
const [seen] = (await once(clients, 'message')) as [ClientCounts];
clearInterval(lines);
server.close();

lateMs.sort((a, b) => a - b);
const timedOut = lateMs.length;
const requests = answered + timedOut + abandoned;
const early = lateMs.filter((late) => late < 0).length;
console.log(`
${count(requests)} requests: ${count(answered)} answered, ${count(timedOut)} timed out (${percent(timedOut / requests)}), ${count(abandoned)} abandoned
${count(seen.sent)} seen by the clients: ${count(seen.answered)} answered, ${count(seen.timedOut)} timed out, ${count(seen.failed)} failed
Timeouts were ${ms(lateMs[timedOut >> 1])} late at the median, ${ms(lateMs.at(-1))} at most; ${early} were early.
${count(2 * requests)} timers took ${count(hostWakeUps)} timeouts of the host; ${timer.size} are left.`);
timer.close();
if (stop.aborted) process.exitCode = 130;

function percent(share: number): string {
  return `${(100 * share || 0).toFixed(2)} %`;
}

function ms(value = 0): string {
  return `${value.toFixed(2)} ms`;
}
