/** What a task carries: 64 bytes of JSON. */
export interface Payload {
  readonly number: number;
  readonly padding: string;
}

/** So that all are of one length. */
const FIRST = 1_000_000;
const padding = 'x'.repeat(33);

export function payloadOf(number: number): Payload {
  return { number: FIRST + number, padding };
}

export function numberOf({ number }: Payload): number {
  return number - FIRST;
}
