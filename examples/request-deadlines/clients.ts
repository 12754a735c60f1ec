/** A worker thread of main.ts: sends requests, and reports what came back. On a thread, so that it does not delay the server. */
import { Agent, get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { clearInterval, setInterval } from 'escapement/timers';

export interface ClientOptions {
  readonly port: number;
  readonly durationMs: number;
  readonly ratePerSecond: number;
}

export interface ClientCounts {
  sent: number;
  answered: number;
  timedOut: number;
  failed: number;
}

const SEND_EVERY_MS = 10;

const { port, durationMs, ratePerSecond } = workerData as ClientOptions;
const agent = new Agent({ keepAlive: true });
const counts: ClientCounts = { sent: 0, answered: 0, timedOut: 0, failed: 0 };
const startMs = performance.now();

function send(): void {
  counts.sent++;
  const request = get({ host: '127.0.0.1', port, agent }, (response) => {
    counts[response.statusCode === 504 ? 'timedOut' : 'answered']++;
    response.resume();
  });
  request.on('error', () => counts.failed++).on('close', reportIfDone);
}

/** Sends what is due by now, so that a tick that comes late changes nothing in the rate. */
const sending = setInterval(() => {
  const elapsedMs = Math.min(performance.now() - startMs, durationMs);
  while (counts.sent < (elapsedMs * ratePerSecond) / 1_000) send();
  if (elapsedMs === durationMs) stop();
}, SEND_EVERY_MS);

let isStopped = false;
function stop(): void {
  isStopped = true;
  clearInterval(sending);
  reportIfDone();
}

function reportIfDone(): void {
  const pending = counts.sent - counts.answered - counts.timedOut - counts.failed;
  if (!isStopped || pending > 0) return;
  agent.destroy();
  parentPort?.postMessage(counts);
  parentPort?.close();
}

parentPort?.once('message', stop);
