/** The purgatories that the harness drives, each with requests of its own kind. */
import { performance } from 'node:perf_hooks';
import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
import type { Role } from '../lib/part.ts';
import { KafkaOperation, KafkaPurgatory } from './kafka-purgatory.ts';
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import type { Tally } from './tally.ts';

/** What the harness holds of a request that will complete before its timeout. */
export interface HarnessRequest {
  readonly completesAtMs: number;
  /** Whether its timeout was over first. */
  readonly hasExpired: boolean;
  forceComplete(): boolean;
}

export interface HarnessPurgatory {
  /** A request arrives: makes it and watches it. */
  send(id: number, latencyMs: number, keys: readonly string[]): HarnessRequest;
  checkAndComplete(key: string): number;
  /** Watch entries: a request that waits should have one for each of its keys, any other none. */
  readonly watched: number;
  close(): void;
}

export interface HarnessKind {
  /** For the command line. */
  readonly id: 'ours' | 'naive' | 'kafka';
  readonly name: string;
  readonly role: Role;
  /** Whether nothing that is completed stays watched. */
  readonly isExact: boolean;
  open(timeoutMs: number, tally: Tally): HarnessPurgatory;
}

class OurRequest extends DelayedOperation {
  declare readonly id: number;
  declare readonly completesAtMs: number;
  declare readonly tally: Tally;
  declare hasExpired: boolean;

  constructor(id: number, latencyMs: number, timeoutMs: number, tally: Tally) {
    super(timeoutMs);
    this.id = id;
    this.completesAtMs = performance.now() + latencyMs;
    this.tally = tally;
    this.hasExpired = false;
  }

  tryComplete(): boolean {
    return performance.now() >= this.completesAtMs && this.forceComplete();
  }

  onComplete(): void {
    this.tally.complete(this.id);
  }

  onExpiration(): void {
    this.hasExpired = true;
    this.tally.expire();
  }
}

class NaiveRequest extends NaiveOperation {
  declare readonly id: number;
  declare readonly completesAtMs: number;
  declare readonly tally: Tally;
  declare hasExpired: boolean;

  constructor(id: number, latencyMs: number, timeoutMs: number, tally: Tally) {
    super(timeoutMs);
    this.id = id;
    this.completesAtMs = performance.now() + latencyMs;
    this.tally = tally;
    this.hasExpired = false;
  }

  tryComplete(): boolean {
    return performance.now() >= this.completesAtMs && this.forceComplete();
  }

  onComplete(): void {
    this.tally.complete(this.id);
  }

  onExpiration(): void {
    this.hasExpired = true;
    this.tally.expire();
  }
}

class KafkaRequest extends KafkaOperation {
  declare readonly id: number;
  declare readonly completesAtMs: number;
  declare readonly tally: Tally;
  declare hasExpired: boolean;

  constructor(id: number, latencyMs: number, timeoutMs: number, tally: Tally) {
    super(timeoutMs);
    this.id = id;
    this.completesAtMs = performance.now() + latencyMs;
    this.tally = tally;
    this.hasExpired = false;
  }

  tryComplete(): boolean {
    return performance.now() >= this.completesAtMs && this.forceComplete();
  }

  onComplete(): void {
    this.tally.complete(this.id);
  }

  onExpiration(): void {
    this.hasExpired = true;
    this.tally.expire();
  }
}

function openOurs(timeoutMs: number, tally: Tally): HarnessPurgatory {
  const purgatory = new DelayedOperationPurgatory<string, OurRequest>('fake purgatory');
  return {
    send: (id, latencyMs, keys) => {
      const request = new OurRequest(id, latencyMs, timeoutMs, tally);
      purgatory.tryCompleteElseWatch(request, keys);
      return request;
    },
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

function openNaive(timeoutMs: number, tally: Tally): HarnessPurgatory {
  const purgatory = new NaivePurgatory();
  return {
    send: (id, latencyMs, keys) => {
      const request = new NaiveRequest(id, latencyMs, timeoutMs, tally);
      purgatory.tryCompleteElseWatch(request, keys);
      return request;
    },
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

function openKafka(timeoutMs: number, tally: Tally): HarnessPurgatory {
  const purgatory = new KafkaPurgatory();
  return {
    send: (id, latencyMs, keys) => {
      const request = new KafkaRequest(id, latencyMs, timeoutMs, tally);
      purgatory.tryCompleteElseWatch(request, keys);
      return request;
    },
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

export const HARNESS_KINDS: readonly HarnessKind[] = [
  { id: 'naive', name: 'setTimeout + Map', role: 'baseline', isExact: true, open: openNaive },
  { id: 'kafka', name: "Kafka's design", role: 'rival', isExact: false, open: openKafka },
  { id: 'ours', name: 'ours', role: 'ours', isExact: true, open: openOurs },
];

export function kindOf(id: HarnessKind['id']): HarnessKind {
  return HARNESS_KINDS.find((kind) => kind.id === id) as HarnessKind;
}
