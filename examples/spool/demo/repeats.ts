import type { Arrival } from './arrivals.ts';

/** Lines that have arrived more than once, and why. */
export interface Repeats {
  /** The shipper had no answer, because the collector was killed: it sent them to the next one. */
  readonly ofCollectorKills: number;
  /** The shipper was killed before it could write down that they were forwarded: the next one sent them. */
  readonly ofShipperKills: number;
  /** The producer had no confirmation, because the shipper was killed: it gave them to the next one. */
  readonly ofProducer: number;
  /** By one shipper to one collector. There is no excuse for that. */
  readonly unexplained: readonly Arrival[];
}

export function countRepeats(arrivals: readonly Arrival[]): Repeats {
  const last = new Map<string, Arrival>();
  const unexplained: Arrival[] = [];
  let [ofCollectorKills, ofShipperKills] = [0, 0];
  for (const arrival of arrivals) {
    const key = `${arrival.run}/${arrival.number}`;
    const before = last.get(key);
    last.set(key, arrival);
    if (before === undefined) continue;
    if (before.shipper !== arrival.shipper) ofShipperKills++;
    else if (before.collector !== arrival.collector) ofCollectorKills++;
    else unexplained.push(arrival);
  }
  const ofProducer = last.size - new Set(arrivals.map(({ number }) => number)).size;
  return { ofCollectorKills, ofShipperKills, ofProducer, unexplained };
}
