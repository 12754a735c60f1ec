import { setTimeout as sleep } from 'node:timers/promises';
import type { Audience, Stage } from './stage.ts';

/** What happens in the demonstration. */
interface Play {
  readonly stage: Stage;
  readonly audience: Audience;
  readonly signal: AbortSignal;
}

/** What happens when, as a share of the duration. */
const SCRIPT: readonly (readonly [share: number, step: (play: Play) => Promise<void>])[] = [
  [0.15, killCollector],
  [0.35, startCollector],
  [0.5, killShipper],
  [0.65, killCollector],
  [0.7, killShipperWithBatch],
  [0.85, startCollector],
  [1, () => Promise.resolve()],
];

/** Plays tricks on the processes. Rejects if interrupted. */
export async function playScenario(play: Play, durationMs: number): Promise<void> {
  const startMs = performance.now();
  for (const [share, step] of SCRIPT) {
    const waitMs = startMs + share * durationMs - performance.now();
    await sleep(Math.max(waitMs, 0), undefined, { signal: play.signal });
    await step(play);
  }
}

async function killCollector({ stage, audience, signal }: Play): Promise<void> {
  await stage.until(() => (stage.status?.forwarded ?? 0) > 0, signal);
  audience.event(`the collector (pid ${stage.collector}) is killed: SIGKILL`);
  await stage.killCollector();
}

async function startCollector({ stage, audience, signal }: Play): Promise<void> {
  await stage.startCollector(signal);
  audience.event(`the collector is started again (pid ${stage.collector})`);
}

async function killShipper({ stage, audience, signal }: Play): Promise<void> {
  await stage.until(() => (stage.status?.forwarded ?? 0) > 0, signal);
  audience.event(`the shipper (pid ${stage.shipper}) is killed: SIGKILL`);
  await stage.killShipper(signal);
  audience.event(`the producer has started another one (pid ${stage.shipper})`);
}

/** While the collector is gone, and the shipper has taken lines from the spool and waits to send them. */
async function killShipperWithBatch(play: Play): Promise<void> {
  const { stage, signal } = play;
  const before = stage.status?.retries ?? 0;
  await stage.until(() => (stage.status?.retries ?? 0) > before, signal);
  await killShipper(play);
}
