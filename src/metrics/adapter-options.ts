import { wrongType, type EscapementError } from '../core/errors.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireFunction, requireObject, requireOptions, type OptionNames } from '../core/validate.ts';

/** What every adapter takes. All options are checked when it is made. */
export interface MetricsAdapterOptions {
  /**
   * Goes before every name.
   *
   * @default ''
   * @example 'shop_'
   */
  readonly prefix?: string;
  /**
   * Go with every metric, for instance the shard this process serves. A metric's own label of the same name wins.
   *
   * @default none
   * @example { shard: '7' }
   */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * Told of a value that could not be read, with code `ERR_METRIC_READ`; the message names the metric and its labels,
   * the `cause` is what was thrown. That series is left out of that scrape, all others are in it.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onError?: (error: EscapementError) => void;
}

export const ADAPTER_OPTIONS: OptionNames<MetricsAdapterOptions> = {
  prefix: true,
  labels: true,
  onError: true,
};

/** The options with every default filled in. */
export type ResolvedAdapterOptions = Required<MetricsAdapterOptions>;

export function resolveAdapterOptions(
  subject: string,
  options: MetricsAdapterOptions,
  names: OptionNames<MetricsAdapterOptions>,
): ResolvedAdapterOptions {
  requireOptions(subject, options, names);
  const { prefix = '', labels = {}, onError = reportUncaught } = options;
  if (typeof prefix !== 'string') throw wrongType('prefix', 'a string', prefix);
  requireObject('labels', labels);
  for (const [name, value] of Object.entries(labels)) requireString(`labels.${name}`, value);
  requireFunction('onError', onError);
  return { prefix, labels: { ...labels }, onError };
}

function requireString(argument: string, value: unknown): void {
  if (typeof value !== 'string') throw wrongType(argument, 'a string', value);
}
