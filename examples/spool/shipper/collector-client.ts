/** What came of a request. */
export type Answer =
  /** 2xx: the collector has the lines. */
  | { readonly kind: 'accepted' }
  /** It will never take them, however often they are sent. */
  | { readonly kind: 'refused'; readonly status: number }
  /** Anything else: what is wrong is not the lines, so they wait until it is mended. */
  | { readonly kind: 'trouble'; readonly reason: string; readonly retryAfterMs: number };

/**
 * Statuses that are about what was sent. Others of 4xx are about who sends it, where to and how often: a wrong token
 * (401) or a wrong path (404) must not cost a line.
 */
const REFUSALS = new Set([400, 413, 415, 422]);
/** A collector that takes longer is as good as gone. */
const TIMEOUT_MS = 10_000;
const MAX_RETRY_AFTER_MS = 60_000;
const NEWLINE = Buffer.from('\n');
const HEADERS = {
  'content-type': 'text/plain',
  /** So that a collector knows what comes from one run of a shipper. */
  'user-agent': `escapement-spool (pid ${process.pid})`,
};

/** Posts lines to a collector, over connections that `fetch` keeps. */
export class CollectorClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Never rejects: what goes wrong is an answer. */
  async post(lines: readonly Uint8Array[]): Promise<Answer> {
    const body = Buffer.concat(lines.flatMap((line) => [line, NEWLINE]));
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const init = { method: 'POST', headers: HEADERS, body, redirect: 'manual', signal } as const;
    try {
      const response = await fetch(this.#url, init);
      await response.arrayBuffer(); // only then is the connection free for the next request
      return answerOf(response);
    } catch (error) {
      return { kind: 'trouble', reason: reasonOf(error), retryAfterMs: 0 };
    }
  }
}

function answerOf({ ok, status, headers }: Response): Answer {
  if (ok) return { kind: 'accepted' };
  if (REFUSALS.has(status)) return { kind: 'refused', status };
  const retryAfterMs = Number(headers.get('retry-after')) * 1_000 || 0; // it may also be a date
  return {
    kind: 'trouble',
    reason: `status ${status}`,
    retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
  };
}

/** `fetch` says no more than that it has failed; the reason is underneath. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  if (!(cause instanceof Error)) return message;
  return cause.message || String((cause as NodeJS.ErrnoException).code); // of several addresses: none
}
