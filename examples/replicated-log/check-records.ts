import type { ExampleResult, FollowerCopy } from './example-result.ts';
import type { Ack } from './clients/produce-load.ts';

/** What became of the records: each a question, answered with a complaint, or with undefined if all is well. */
export const RECORD_CHECKS: readonly ((result: ExampleResult) => string | undefined)[] = [
  acknowledgedAreReadable,
  noneTwice,
  inOrderOfAcknowledgement,
  consumersReadTheSame,
  followersHaveTheSame,
  enoughReplicas,
  replicasHadItBefore,
];

function acknowledgedAreReadable({ acks, logs }: ExampleResult): string | undefined {
  const isReadable = ({ partition, firstOffset, values }: Ack): boolean =>
    values.every((value, index) => logs[partition]?.[firstOffset + index] === value);
  const lost = acks.find((ack) => !isReadable(ack));
  return lost && `acknowledged and not readable at offset ${place(lost)}: '${lost.values[0] ?? ''}'`;
}

function noneTwice({ logs }: ExampleResult): string | undefined {
  const all = logs.flat();
  const twice = all.length - new Set(all).size;
  return twice === 0 ? undefined : `${twice} records are readable twice`;
}

/** What was sent after the acknowledgement of something else must come behind it. */
function inOrderOfAcknowledgement({ acks, logs }: ExampleResult): string | undefined {
  for (const partition of logs.keys()) {
    let latestSentMs = -Infinity;
    const inLog = acks.filter((ack) => ack.partition === partition);
    for (const ack of inLog.toSorted((a, b) => a.firstOffset - b.firstOffset)) {
      if (ack.ackedAtMs < latestSentMs) return `out of order at offset ${place(ack)}`;
      latestSentMs = Math.max(latestSentMs, ack.sentAtMs);
    }
  }
  return undefined;
}

function consumersReadTheSame({ consumers, logs }: ExampleResult): string | undefined {
  const complaint = consumers.flatMap(({ complaints }) => complaints)[0];
  if (complaint !== undefined) return complaint;
  const wrong = consumers.find(({ partition, values }) => !isSame(values, logs[partition] ?? []));
  return wrong && `a consumer of partition ${wrong.partition} did not read what is in the log`;
}

function followersHaveTheSame({ copies, logs }: ExampleResult): string | undefined {
  for (const { member, partitions } of copies) {
    const wrong = logs.findIndex((log, index) => !isSame(partitions[index]?.values ?? [], log));
    if (wrong >= 0) return `the copy of partition ${wrong} on ${member} is not what is in the log`;
  }
  return undefined;
}

function enoughReplicas({ acks, minInSync }: ExampleResult): string | undefined {
  const short = acks.find((ack) => ack.acks === 'all' && ack.inSync.length < minInSync);
  return (
    short && `acknowledged with ${short.inSync.length} replicas of ${minInSync} at offset ${place(short)}`
  );
}

/** By the followers' own clock, which is everybody's. What a killed process had is gone with it. */
function replicasHadItBefore({ acks, copies }: ExampleResult): string | undefined {
  for (const ack of acks.filter(({ acks }) => acks === 'all')) {
    const late = copies.find((copy) => isNamed(ack, copy) && !(arrivedAtMs(ack, copy) <= ack.ackedAtMs));
    if (late !== undefined) return `acknowledged before ${late.member} had it: offset ${place(ack)}`;
  }
  return undefined;
}

function isNamed({ inSync, sentAtMs }: Ack, { member, startedAtMs }: FollowerCopy): boolean {
  return inSync.includes(member) && sentAtMs > startedAtMs;
}

function arrivedAtMs({ partition, firstOffset, values }: Ack, { partitions }: FollowerCopy): number {
  return partitions[partition]?.appendedAtMs[firstOffset + values.length - 1] ?? NaN;
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((value, index) => value === right[index]);
}

function place({ partition, firstOffset }: Ack): string {
  return `${firstOffset} of partition ${partition}`;
}
