import { outOfRange } from '../core/errors.ts';
import { requireIntegerAtLeast, requireOptions, type OptionNames } from '../core/validate.ts';
import type { Page } from './broker/broker.ts';

/** Which part of a list is wanted. */
export interface ListOptions {
  /** From 1. @default 1 */
  readonly page?: number | undefined;
  /** How many entries a page has, from 1 to 1000. @default 30 */
  readonly pageSize?: number | undefined;
}

const OPTIONS: OptionNames<ListOptions> = { page: true, pageSize: true };

const DEFAULT_PAGE_SIZE = 30;

/** A page is made in one go. */
const MAX_PAGE_SIZE = 1_000;

/** Its last entry has a place that is a whole number. */
const MAX_PAGE = Math.floor(Number.MAX_SAFE_INTEGER / MAX_PAGE_SIZE);

/** @throws TypeError or RangeError - an option is wrong. */
export function pageOf(options: ListOptions): Page {
  requireOptions('Inspector', options, OPTIONS);
  const { page = 1, pageSize = DEFAULT_PAGE_SIZE } = options;
  requireIntegerAtLeast('options.page', 1, page);
  if (page > MAX_PAGE) throw outOfRange('options.page', `at most ${MAX_PAGE}`, page);
  requireIntegerAtLeast('options.pageSize', 1, pageSize);
  if (pageSize > MAX_PAGE_SIZE) throw outOfRange('options.pageSize', `at most ${MAX_PAGE_SIZE}`, pageSize);
  return { page, size: pageSize };
}
