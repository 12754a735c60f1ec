/** A line that the producer has written. */
export interface NumberedLine {
  /** 1, 2, 3 and so on. */
  readonly number: number;
  /** Of the shipper that it was first given to: 1, 2, 3. A line that is given to another one counts as another. */
  readonly run: number;
}

const LENGTH = 100;

/** As a program would log it; every byte is known from its numbers, so that it can be checked. */
export function numberedLine({ number, run }: NumberedLine): string {
  const status = number % 17 === 0 ? 500 : 200;
  const path = `/orders/${((number * 7_919) % 99_991).toString(36)}`;
  return `line=${number} run=${run} GET ${path} ${status} ${number % 250}ms `.padEnd(LENGTH, '·');
}

/** @returns undefined if not every byte is as it was written. */
export function parseNumberedLine(text: string): NumberedLine | undefined {
  const match = /^line=(\d+) run=(\d+) /.exec(text);
  const line = { number: Number(match?.[1]), run: Number(match?.[2]) };
  return text === numberedLine(line) ? line : undefined;
}
