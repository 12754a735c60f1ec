import { readFile } from 'node:fs/promises';
import { parseNumberedLine, type NumberedLine } from './numbered-line.ts';

/** A line in the collector's file. */
export interface Arrival extends NumberedLine {
  /** The processes that it came through, by their ids. */
  readonly shipper: number;
  readonly collector: number;
}

export interface Arrivals {
  /** In the order of the file. */
  readonly lines: readonly Arrival[];
  /** Lines that nobody has written so. */
  readonly strange: readonly string[];
}

/** Reads what collectors have written. */
export async function readArrivals(file: string): Promise<Arrivals> {
  const texts = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
  const parsed = texts.map((text) => ({ text, arrival: parseArrival(text) }));
  return {
    lines: parsed.flatMap(({ arrival }) => arrival ?? []),
    strange: parsed.filter(({ arrival }) => arrival === undefined).map(({ text }) => text),
  };
}

function parseArrival(text: string): Arrival | undefined {
  const [, collector, shipper, rest = ''] = /^collector=(\d+) shipper=(\d+) (.*)$/.exec(text) ?? [];
  const line = parseNumberedLine(rest);
  return line && { ...line, shipper: Number(shipper), collector: Number(collector) };
}
