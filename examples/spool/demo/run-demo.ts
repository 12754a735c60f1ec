import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskQueue } from 'escapement/diskqueue';
import type { DemoOptions } from '../options.ts';
import { SPOOL_NAME } from '../shipper/shipper.ts';
import { readArrivals } from './arrivals.ts';
import type { DemoResult } from './demo-result.ts';
import type { ProducerResult } from './producer.ts';
import { playScenario } from './scenario.ts';
import { BATCH_LINES, Stage, type Audience } from './stage.ts';

/** Runs everything in a directory of its own, and removes it. Rejects if interrupted; no process is left either way. */
export async function runDemo(
  options: DemoOptions,
  audience: Audience,
  interrupt: AbortSignal,
): Promise<DemoResult> {
  const directory = await mkdtemp(join(tmpdir(), 'escapement-spool-'));
  const stage = new Stage(directory, options, audience);
  const signal = AbortSignal.any([interrupt, stage.failed.signal]);
  try {
    const result = await perform(stage, options, audience, signal);
    return await inspect(stage, options, result);
  } catch (error) {
    stage.failed.signal.throwIfAborted();
    throw error;
  } finally {
    await stage.clear();
    await rm(directory, { recursive: true });
  }
}

async function perform(
  stage: Stage,
  { durationMs }: DemoOptions,
  audience: Audience,
  signal: AbortSignal,
): Promise<ProducerResult> {
  await stage.startCollector(signal);
  stage.startProducer();
  await stage.until(() => stage.status !== undefined, signal);
  const { producer, shipper, collector } = stage;
  audience.event(
    `a producer (pid ${producer}), its shipper (pid ${shipper}) and a collector (pid ${collector}) are running`,
  );
  await playScenario({ stage, audience, signal }, durationMs);
  audience.event('the producer ends its pipe');
  return stage.finish();
}

/** Looks at what is left, when nobody runs any more. */
async function inspect(
  stage: Stage,
  { ratePerSecond }: DemoOptions,
  result: ProducerResult,
): Promise<DemoResult> {
  await stage.clear();
  const { deepest, retries } = stage.totals;
  return {
    ...result,
    ...{ ratePerSecond, batchLines: BATCH_LINES, deepest, retries },
    arrivals: await readArrivals(stage.file),
    left: await depthOf(stage.spool),
    processes: await stage.fates(result),
  };
}

async function depthOf(spool: string): Promise<number> {
  await using queue = await DiskQueue.open({ name: SPOOL_NAME, dataPath: spool });
  return queue.depth;
}
