import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { MINUTE_MS, NANOS_PER_MS } from '../core/units.ts';
import type { HealthJson } from './dashboard-json.ts';
import type { TasksSource } from './tasks-source.ts';

/** How often the event loop is measured, in milliseconds: Node counts this time as a part of the delay. */
const RESOLUTION_MS = 20;

/** How long the event loop is measured, in milliseconds: a reading covers the last minute or two. */
const MEASURED_MS = MINUTE_MS;

/** Health of the process, of Redis and of the folder. Measures the event loop while readings come at least once a minute. */
export class Health {
  #cpu = process.cpuUsage();
  #cpuAtMs = performance.now();
  #delays: IntervalHistogram | undefined;
  #previous: IntervalHistogram | undefined;
  #sinceMs = 0;
  #timeout: NodeJS.Timeout | undefined;

  async read(source: TasksSource | undefined): Promise<HealthJson> {
    this.#measure();
    const [redis, folder] = await Promise.all([
      source?.redisInfo?.().catch(() => undefined),
      folderOf(source?.dataPath),
    ]);
    return {
      process: this.#processHealth(),
      ...(redis !== undefined && { redis }),
      ...(folder !== undefined && { folder }),
    };
  }

  close(): void {
    clearTimeout(this.#timeout);
    this.#delays?.disable();
    this.#delays = this.#previous = undefined;
  }

  #processHealth(): HealthJson['process'] {
    const { heapUsed, rss } = process.memoryUsage();
    const [nowMs, beforeMs] = [performance.now(), this.#cpuAtMs];
    const used = process.cpuUsage(this.#cpu);
    // Several readers share it: a reading just after another one keeps the longer span.
    if (nowMs - beforeMs > 1_000) {
      this.#cpu = process.cpuUsage();
      this.#cpuAtMs = nowMs;
    }
    const cpu = (used.user + used.system) / 1_000 / (nowMs - beforeMs);
    return {
      ...{ pid: process.pid, node: process.version, uptimeMs: process.uptime() * 1_000 },
      ...{ heapBytes: heapUsed, residentBytes: rss },
      ...(Number.isFinite(cpu) && { cpu }),
      loopDelayMs: {
        median: delayMs(this.#longer?.percentile(50)),
        longest: delayMs(Math.max(this.#delays?.max ?? 0, this.#previous?.max ?? 0)),
      },
    };
  }

  get #longer(): IntervalHistogram | undefined {
    return (this.#delays?.count ?? 0) > 100 ? this.#delays : (this.#previous ?? this.#delays);
  }

  #measure(): void {
    clearTimeout(this.#timeout);
    this.#timeout = setTimeout(() => {
      this.close();
    }, MEASURED_MS);
    this.#timeout.unref();
    if (this.#delays !== undefined && performance.now() - this.#sinceMs < MEASURED_MS) return;
    this.#delays?.disable();
    this.#previous = this.#delays;
    this.#sinceMs = performance.now();
    try {
      this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#delays.enable();
    } catch {
      this.#delays = undefined; // a runtime that does not have it
    }
  }
}

function delayMs(ns = 0): number {
  return Number.isFinite(ns) ? Math.max(0, ns / NANOS_PER_MS - RESOLUTION_MS) : 0;
}

/** A file may be removed meanwhile. */
async function folderOf(path: string | undefined): Promise<HealthJson['folder']> {
  if (path === undefined) return undefined;
  const names = await readdir(path).catch(() => []);
  const files = await Promise.all(names.map((name) => stat(join(path, name)).catch(() => ({ size: 0 }))));
  return { path, files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}
