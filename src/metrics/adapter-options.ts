import type { EscapementError } from '../core/errors.ts';
import type { OptionTable, Resolved } from '../core/options.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireFunction, requireObject, requireString } from '../core/validate.ts';

/** Options of every adapter. They are validated when it is created. */
export interface MetricsAdapterOptions {
  /**
   * Put before the name of every metric.
   *
   * @default ''
   * @example 'shop_'
   */
  readonly prefix?: string | undefined;
  /**
   * Labels of every metric, for example the shard that this process serves. A metric's own label of the same name wins.
   *
   * @default none
   * @example { shard: '7' }
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Called for a value that could not be read, with code `ERR_METRIC_READ`; the message names the metric and its labels, and the
   * `cause` is what was thrown. That series is missing in that scrape; all others are in it.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onError?: ((error: EscapementError) => void) | undefined;
}

export const ADAPTER_OPTIONS = {
  prefix: [requireString, ''],
  labels: [requireLabels, {}],
  onError: [requireFunction, reportUncaught],
} satisfies OptionTable<MetricsAdapterOptions>;

/** The options with every default filled in. */
export type ResolvedAdapterOptions = Resolved<MetricsAdapterOptions, typeof ADAPTER_OPTIONS>;

function requireLabels(argument: string, labels: unknown): void {
  requireObject(argument, labels);
  for (const [name, value] of Object.entries(labels as object)) requireString(`${argument}.${name}`, value);
}
