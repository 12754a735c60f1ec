import type { Status } from '../shipper/progress.ts';

const FIELDS = ['pid', 'depth', 'bytes', 'taken', 'forwarded', 'retries', 'rejected'] as const;

/** `status pid=4711 depth=3 …`: a line that people read as well as programs. */
export function statusText(status: Status): string {
  return ['status', ...FIELDS.map((field) => `${field}=${status[field]}`)].join(' ');
}

/** What `statusText` wrote; undefined if it is something else. */
export function parseStatus(text: string): Status | undefined {
  if (!text.startsWith('status ')) return undefined;
  const values = new Map(text.split(' ').map((pair) => pair.split('=') as [string, string]));
  const value = (field: (typeof FIELDS)[number]): number => Number(values.get(field));
  return {
    pid: value('pid'),
    depth: value('depth'),
    bytes: value('bytes'),
    taken: value('taken'),
    forwarded: value('forwarded'),
    retries: value('retries'),
    rejected: value('rejected'),
  };
}
