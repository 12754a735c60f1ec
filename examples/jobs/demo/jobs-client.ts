import type { JobView } from '../service/job-view.ts';

/** Tasks of a queue, as the administration shows them. */
export interface QueueCounts {
  readonly queue: string;
  readonly active: number;
  readonly pending: number;
  readonly scheduled: number;
  readonly retry: number;
  readonly aggregating: number;
  readonly archived: number;
  readonly completed: number;
}

/** Tasks that are still to be done. */
export function unfinished({ active, pending, scheduled, retry, aggregating }: QueueCounts): number {
  return active + pending + scheduled + retry + aggregating;
}

/** The service as a program elsewhere uses it: with nothing but HTTP. */
export class JobsClient {
  readonly #url: string;
  readonly #signal: AbortSignal;

  constructor(url: string, signal: AbortSignal) {
    this.#url = url;
    this.#signal = signal;
  }

  /** @returns the id of the job. */
  async send(image: Uint8Array<ArrayBuffer>, widths: readonly number[], notify: string): Promise<string> {
    const query = new URLSearchParams({ notify });
    for (const width of widths) query.append('width', String(width));
    const response = await this.#fetch(`/images?${query.toString()}`, { method: 'POST', body: image });
    const { id } = (await response.json()) as { id: string };
    return id;
  }

  async wait(id: string): Promise<JobView> {
    const response = await this.#fetch(`/jobs/${id}/wait`);
    return (await response.json()) as JobView;
  }

  async image(url: string): Promise<Uint8Array> {
    return new Uint8Array(await (await this.#fetch(url)).arrayBuffer());
  }

  async queues(): Promise<readonly QueueCounts[]> {
    const response = await this.#fetch('/admin/api/queues');
    const { queues } = (await response.json()) as { queues: readonly QueueCounts[] };
    return queues;
  }

  async #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(`${this.#url}${path}`, { ...init, signal: this.#signal });
    if (response.ok) return response;
    throw new Error(`${path} was answered with ${response.status}: ${await response.text()}`);
  }
}
