/**
 * How busy other programs kept the processors while we measured. V8 collects with helper threads: where those
 * wait for a processor, whoever makes most garbage looks worst, and that is rarely us. A reader must know.
 */
import { cpus } from 'node:os';

/** Above this share of all processors a result is marked. A desktop at rest stays well below. */
const NOTEWORTHY_SHARE = 0.1;

const US_PER_MS = 1_000;

export class OthersLoad {
  readonly #before = snapshot();

  /** Since the meter was made: 0 is a machine of our own, 1 one without a moment to spare. */
  share(): number {
    const after = snapshot();
    const busyMs = after.busyMs - this.#before.busyMs - (after.ownMs - this.#before.ownMs);
    const totalMs = after.totalMs - this.#before.totalMs;
    return totalMs > 0 ? Math.min(Math.max(busyMs / totalMs, 0), 1) : 0;
  }
}

/** Undefined if the machine was quiet enough. */
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
