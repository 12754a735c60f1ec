import { once } from 'node:events';
import { Agent, get, request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WARM_UP_PATH, type LoadResult } from './load-protocol.ts';
import { ascending, quantile } from '../quantile.ts';

/** Connections opened at a time: a listen backlog is 128 on some systems, and an overrun one costs a second. */
const OPENED_AT_ONCE = 100;

/**
 * Clients with a connection each, kept alive. Node's own agent does it: one request at a time on a connection, the
 * one that rested longest first.
 */
export class HttpClients {
  readonly #agent: Agent;
  readonly #target: { readonly host: string; readonly port: number; readonly agent: Agent };
  readonly #connections: number;
  readonly #timeoutsSeenMs: number[] = [];
  #onIdle: (() => void) | undefined;
  #sent = 0;
  #answered = 0;
  #inFlight = 0;
  #backlog = 0;

  constructor(options: { port: number; connections: number }) {
    const { port, connections } = options;
    this.#connections = connections;
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: connections,
      maxFreeSockets: connections,
      scheduling: 'fifo',
    });
    this.#target = { host: '127.0.0.1', port, agent: this.#agent };
  }

  /**
   * Opens every connection, and warms up both ends with one request on each. The requests are held back until all
   * connections stand, or the first ones would be free again and be used for the rest.
   */
  async open(): Promise<void> {
    const warmUps: ClientRequest[] = [];
    while (warmUps.length < this.#connections) {
      const count = Math.min(OPENED_AT_ONCE, this.#connections - warmUps.length);
      const opening = Array.from({ length: count }, () => this.#warmUp());
      warmUps.push(...opening);
      await Promise.all(opening.map(connected));
    }
    await Promise.all(warmUps.map(completed));
  }

  /** Sends a request, or notes that one has to be sent as soon as a connection is free. */
  readonly send = (): void => {
    if (this.#inFlight === this.#connections) {
      this.#backlog++;
      return;
    }
    this.#sent++;
    this.#inFlight++;
    const sentMs = performance.now();
    const call = get(this.#target, (response) => {
      response.resume();
      response.once('end', () => {
        this.#record(response, performance.now() - sentMs);
      });
    });
    // One event for every way a request can end.
    call.once('close', this.#next);
    call.once('error', () => undefined);
  };

  /** Resolves when no request is under way; what is still to be sent is given up. */
  async drain(): Promise<void> {
    if (this.#inFlight === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** Closes every connection, whatever is under way on it. */
  destroy(): void {
    this.#agent.destroy();
  }

  result(): LoadResult {
    const seen = ascending(this.#timeoutsSeenMs);
    return {
      sent: this.#sent,
      answered: this.#answered,
      timedOut: seen.length,
      failed: this.#sent - this.#answered - seen.length,
      unsent: this.#backlog,
      timeoutSeenMs: { p50: quantile(seen, 0.5), p99: quantile(seen, 0.99) },
    };
  }

  #warmUp(): ClientRequest {
    // What goes wrong is seen by whoever waits for the request; one that was given up has nobody waiting.
    return request({ ...this.#target, path: WARM_UP_PATH }).on('error', () => undefined);
  }

  #record(response: IncomingMessage, tookMs: number): void {
    if (response.statusCode === 504) this.#timeoutsSeenMs.push(tookMs);
    else this.#answered++;
  }

  readonly #next = (): void => {
    this.#inFlight--;
    if (this.#onIdle !== undefined) {
      if (this.#inFlight === 0) this.#onIdle();
    } else if (this.#backlog > 0) {
      this.#backlog--;
      this.send();
    }
  };
}

async function connected(call: ClientRequest): Promise<void> {
  const [socket] = (await once(call, 'socket')) as [Socket];
  if (socket.connecting) await once(socket, 'connect');
}

async function completed(call: ClientRequest): Promise<void> {
  call.end();
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
}
