/** What the numbers were measured on: enough to judge them by, nothing that tells whose machine it was. */
import { arch, cpus, platform, totalmem } from 'node:os';

const BYTES_PER_GIB = 2 ** 30;

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
