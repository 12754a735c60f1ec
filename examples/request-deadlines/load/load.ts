/** The load process: sends the requests of a plan, reports what came back, and ends. */
import { once } from 'node:events';
import { HttpClients } from './http-clients.ts';
import type { LoadCommand, LoadPlan, LoadReport } from './load-protocol.ts';
import { PoissonArrivals } from './poisson-arrivals.ts';

/** How long an answer may be overdue before the process stops waiting for it. */
const PATIENCE_MS = 5_000;

async function run(plan: LoadPlan, stopped: AbortSignal): Promise<void> {
  const clients = new HttpClients(plan);
  stopped.addEventListener('abort', () => {
    clients.destroy();
  });
  await Promise.race([open(clients, plan), once(stopped, 'abort')]);
  report('started');
  await sendAll(plan, clients, stopped);
  const impatience = setTimeout(() => {
    clients.destroy();
  }, plan.timeoutMs + PATIENCE_MS);
  await clients.drain();
  clearTimeout(impatience);
  clients.destroy();
  report({ result: clients.result() });
}

async function open(clients: HttpClients, { connections }: LoadPlan): Promise<void> {
  try {
    await clients.open();
  } catch (error) {
    clients.destroy();
    const hint = 'fewer --connections or a higher limit of open files (ulimit -n) may help';
    throw new Error(`${connections} connections cannot be opened: ${String(error)}; ${hint}`, {
      cause: error,
    });
  }
}

async function sendAll(plan: LoadPlan, clients: HttpClients, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted) return;
  await new Promise<void>((resolve) => {
    const arrivals = new PoissonArrivals({ ...plan, arrive: clients.send, onEnd: resolve });
    stopped.addEventListener('abort', () => {
      arrivals.stop();
    });
  });
}

function report(message: LoadReport): void {
  if (process.connected) process.send?.(message);
}

async function obey(plan: LoadPlan, stopped: AbortSignal): Promise<void> {
  try {
    await run(plan, stopped);
  } catch (error) {
    report({ failure: error instanceof Error ? error.message : String(error) });
  } finally {
    // Nothing else keeps the process alive.
    if (process.connected) process.disconnect();
  }
}

const stop = new AbortController();
process.on('message', (command: LoadCommand) => {
  if (command === 'stop') stop.abort();
  else void obey(command.plan, stop.signal);
});
// Whether Ctrl-C gets here depends on the platform; either way the parent decides what it means.
process.on('SIGINT', () => undefined);
// The parent is gone, however it went.
process.on('disconnect', () => {
  stop.abort();
});
