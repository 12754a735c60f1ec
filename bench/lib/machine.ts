/** The machine of a result, without anything that identifies its owner; its load; and what this process uses of it. */
import { arch, cpus, platform, totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import { US_PER_MS } from './part.ts';

const BYTES_PER_GIB = 2 ** 30;
/** Above this share of all processors a result is marked. A desktop at rest stays well below. */
const NOTEWORTHY_SHARE = 0.1;

export interface Machine {
  readonly node: string;
  readonly v8: string;
  readonly platform: string;
  readonly arch: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
}

export function describeMachine(): Machine {
  const processors = cpus();
  return {
    node: process.versions.node,
    v8: process.versions.v8,
    platform: platform(),
    arch: arch(),
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / BYTES_PER_GIB),
  };
}

/**
 * Starts to measure the load of other programs. V8 collects garbage with helper threads: if those wait for a processor,
 * the contestant with the most garbage suffers most, which is rarely ours.
 *
 * @returns a function that returns their share of all processors since then: 0 is an idle machine, 1 a saturated one.
 */
export function watchOthers(): () => number {
  const before = snapshot();
  return () => {
    const after = snapshot();
    const busyMs = after.busyMs - before.busyMs - (after.ownMs - before.ownMs);
    const totalMs = after.totalMs - before.totalMs;
    return totalMs > 0 ? Math.min(Math.max(busyMs / totalMs, 0), 1) : 0;
  };
}

/** @returns undefined if the machine was quiet enough. */
export function describeOthersLoad(share: number): string | undefined {
  if (share <= NOTEWORTHY_SHARE) return undefined;
  return `Other programs used ${Math.round(share * 100)} % of the processors meanwhile: measure again on a quiet machine.`;
}

function snapshot(): { busyMs: number; totalMs: number; ownMs: number } {
  const { user, system } = process.cpuUsage();
  let busyMs = 0;
  let idleMs = 0;
  for (const { times } of cpus()) {
    busyMs += times.user + times.nice + times.sys + times.irq;
    idleMs += times.idle;
  }
  return { busyMs, totalMs: busyMs + idleMs, ownMs: (user + system) / US_PER_MS };
}

/** @returns how long `action` took, and the CPU time of this process meanwhile. */
export async function spentBy(
  action: () => Promise<unknown>,
): Promise<{ readonly elapsedMs: number; readonly cpuUs: number }> {
  const before = process.cpuUsage();
  const startMs = performance.now();
  await action();
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  return { elapsedMs, cpuUs: user + system };
}

/** Returns the number of host timeouts that keep the process alive. */
export function activeTimeouts(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}
