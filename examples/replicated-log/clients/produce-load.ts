import { setTimeout as sleep } from 'node:timers/promises';
import { JsonClient, type JsonAnswer } from '../http/json-client.ts';
import { machineNowMs } from '../machine-clock.ts';
import type { MissingReplicas, ProduceAnswer, ProduceRequest } from '../wire.ts';

/** Records of one partition that the leader has acknowledged. Times are on the clock of the machine. */
export interface Ack {
  readonly acks: 'all' | '1';
  readonly partition: number;
  readonly firstOffset: number;
  readonly values: readonly string[];
  readonly inSync: readonly string[];
  readonly sentAtMs: number;
  readonly ackedAtMs: number;
}

/** How the requests ended, in numbers. */
export interface ProduceCounts {
  sent: number;
  /** Of `sent`: with `acks=all`. */
  sentAll: number;
  acknowledged: number;
  /** 504: not on every in-sync replica in time. */
  timedOut: number;
  /** 503: too few in-sync replicas. */
  refused: number;
  /** Anything else: nothing of it is expected. */
  failed: number;
}

/** Every so many requests … */
const EVERY = { acks1: 10, impatient: 6, twoPartitions: 4 };
/** Shorter than it takes to notice that a follower is gone: these requests are answered 504 then. */
const IMPATIENT_MS = 250;
const PATIENT_MS = 10_000;
const RECORD_BYTES = 80;
const MAX_RECORDS = 3;
const TICK_MS = 10;

/** Sends produces at a steady rate, whether or not earlier ones were answered, and keeps what was acknowledged. */
export class ProduceLoad {
  readonly acks: Ack[] = [];
  readonly latenciesMs: number[] = [];
  readonly counts: ProduceCounts = {
    sent: 0,
    sentAll: 0,
    acknowledged: 0,
    timedOut: 0,
    refused: 0,
    failed: 0,
  };
  /** Replicas that 504 answers named, and how often. */
  readonly namedBehind = new Map<string, number>();
  readonly #client: JsonClient;
  readonly #partitions: number;
  readonly #underWay = new Set<Promise<void>>();

  constructor(leaderPort: number, partitions: number) {
    this.#client = new JsonClient(leaderPort);
    this.#partitions = partitions;
  }

  /** Sends until the signal fires, and resolves when the last answer is here. */
  async run(ratePerSecond: number, until: AbortSignal): Promise<void> {
    const startMs = machineNowMs();
    while (!until.aborted) {
      const due = ((machineNowMs() - startMs) * ratePerSecond) / 1_000;
      while (this.counts.sent < due) this.#start();
      await sleep(TICK_MS);
    }
    await Promise.all(this.#underWay);
  }

  /** Hangs up. */
  close(): void {
    this.#client.close();
  }

  #start(): void {
    const sent = this.#send(this.counts.sent++).catch(() => {
      this.counts.failed++;
    });
    this.#underWay.add(sent);
    void sent.then(() => this.#underWay.delete(sent));
  }

  async #send(serial: number): Promise<void> {
    const acks = serial % EVERY.acks1 === 0 ? '1' : 'all';
    if (acks === 'all') this.counts.sentAll++;
    const timeoutMs = serial % EVERY.impatient === 1 ? IMPATIENT_MS : PATIENT_MS;
    const request = this.#request(serial);
    const sentAtMs = machineNowMs();
    const answer = await this.#client.post(`/produce?acks=${acks}&timeoutMs=${timeoutMs}`, request);
    const ackedAtMs = machineNowMs();
    if (!this.#isAcknowledged(answer)) return;
    this.latenciesMs.push(ackedAtMs - sentAtMs);
    for (const [place, stored] of (answer.body as ProduceAnswer).partitions.entries()) {
      const values = request.partitions[place]?.values ?? [];
      this.acks.push({ acks, ...stored, values, sentAtMs, ackedAtMs });
    }
  }

  #isAcknowledged({ status, body }: JsonAnswer): boolean {
    if (status === 200) this.counts.acknowledged++;
    else if (status === 503) this.counts.refused++;
    else if (status === 504) this.#timedOut((body as { missing: MissingReplicas[] }).missing);
    else this.counts.failed++;
    return status === 200;
  }

  #timedOut(missing: readonly MissingReplicas[]): void {
    this.counts.timedOut++;
    for (const member of new Set(missing.flatMap(({ behind }) => behind))) {
      this.namedBehind.set(member, (this.namedBehind.get(member) ?? 0) + 1);
    }
  }

  /** One to three records, for one partition or for two. No two records are the same. */
  #request(serial: number): ProduceRequest {
    const batches = this.#partitions > 1 && serial % EVERY.twoPartitions === 0 ? 2 : 1;
    return {
      partitions: Array.from({ length: batches }, (_, batch) => ({
        partition: (serial + batch) % this.#partitions,
        values: Array.from({ length: 1 + (serial % MAX_RECORDS) }, (_, record) =>
          `request ${serial}, batch ${batch}, record ${record} `.padEnd(RECORD_BYTES, '·'),
        ),
      })),
    };
  }
}
