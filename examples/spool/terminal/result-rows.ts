import { formatCount } from '../../shared/number-format.ts';
import type { ResultRow } from '../../shared/report-table.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import { countRepeats } from '../demo/repeats.ts';

/** The result as the terminal shows it. */
export function resultRows(result: DemoResult): ResultRow[] {
  const { produced, ratePerSecond, runs, arrivals, deepest, retries, left } = result;
  const { ofCollectorKills, ofShipperKills, ofProducer } = countRepeats(arrivals.lines);
  const arrived = new Set(arrivals.lines.map(({ number }) => number)).size;
  return [
    row(
      'lines written',
      produced,
      `${formatCount(ratePerSecond)} a second, to ${runs.length} shippers, one after the other`,
    ),
    row('lines confirmed', runs.at(-1)?.confirmed ?? 0, 'by the shippers: in the spool'),
    row('lines arrived', arrived, 'in the file of the collector'),
    row('twice: collector', ofCollectorKills, 'on its disk, and killed before it could say so'),
    row('twice: shipper', ofShipperKills, 'forwarded, and killed before it could write that down'),
    row('twice: producer', ofProducer, 'in the spool, and killed before it could confirm them'),
    row('deepest spool', deepest, 'lines, while the collector was away'),
    row('requests repeated', retries, 'the collector was away, or answered 503'),
    row('left in the spool', left, 'at the end'),
  ];
}

function row(label: string, value: number, note: string): ResultRow {
  return { label, value: formatCount(value), note };
}
