import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Clock, SystemTimer, TimerId } from 'escapement';
import { WARM_UP_PATH } from '../load/load-protocol.ts';
import { sampleLognormal, type Lognormal } from './lognormal.ts';

const MAX_CLOSING_TURNS = 100;

/** A request that waits for its work or its deadline, whichever comes first. */
interface Exchange {
  readonly response: ServerResponse;
  readonly arrivedMs: number;
  deadline: TimerId;
  work: TimerId;
  isSettled: boolean;
}

/**
 * An HTTP server in which every request has a deadline.
 *
 * Both moments of a request hang in one timer: its deadline, and the end of its simulated work. One wheel for both
 * is not only less to wake: when the process stalls, both are late alike and still run in the order in which they
 * expire, so a stall never turns an answer that was ready in time into a timeout.
 */
export class DeadlineServer {
  readonly #timer: SystemTimer;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #serviceTime: Lognormal;
  readonly #http: Server;
  #requests = 0;
  #answered = 0;
  #abandoned = 0;
  #connections = 0;
  #peakInFlight = 0;
  readonly #latenessMs: number[] = [];

  constructor(options: { timer: SystemTimer; clock: Clock; timeoutMs: number; serviceTime: Lognormal }) {
    this.#timer = options.timer;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs;
    this.#serviceTime = options.serviceTime;
    this.#http = createServer(this.#route);
    // Node's own timeouts are off: they would wake the host for what the shared timer is here to do.
    this.#http.keepAliveTimeout = 0;
    this.#http.headersTimeout = 0;
    this.#http.requestTimeout = 0;
    this.#http.on('connection', () => this.#connections++);
  }

  /** Requests that came, warm-up excluded. */
  get requests(): number {
    return this.#requests;
  }

  /** Requests whose work was done in time. */
  get answered(): number {
    return this.#answered;
  }

  /** Requests that were answered 504. */
  get timedOut(): number {
    return this.#latenessMs.length;
  }

  /** Requests whose client hung up first. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Requests that wait now. */
  get inFlight(): number {
    return this.#requests - this.#answered - this.timedOut - this.#abandoned;
  }

  get peakInFlight(): number {
    return this.#peakInFlight;
  }

  /** Connections that were opened. */
  get connections(): number {
    return this.#connections;
  }

  /** How long after its deadline each timed-out request was answered, in milliseconds; negative would be early. */
  get latenessMs(): readonly number[] {
    return this.#latenessMs;
  }

  /** Listens on loopback. @returns the port. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(0, '127.0.0.1', resolve);
    });
    return (this.#http.address() as AddressInfo).port;
  }

  /** Hangs up on everybody. Afterwards the counts are final. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#http.close(() => {
        resolve();
      });
      this.#http.closeAllConnections();
    });
    // The server counts as closed a turn or two before its sockets, and so its requests, hear of it.
    for (let turn = 0; turn < MAX_CLOSING_TURNS && this.inFlight > 0; turn++) await setImmediate();
  }

  readonly #route: RequestListener = (request, response) => {
    if (request.url === WARM_UP_PATH) response.writeHead(204).end();
    else this.#accept(response);
  };

  #accept(response: ServerResponse): void {
    // Read before the timer reads it: lateness may come out a few microseconds too long, never too short.
    const arrivedMs = this.#clock.now();
    const exchange: Exchange = { response, arrivedMs, deadline: NOT_YET, work: NOT_YET, isSettled: false };
    exchange.deadline = this.#timer.schedule(this.#timeoutMs, this.#expire, exchange);
    exchange.work = this.#timer.schedule(sampleLognormal(this.#serviceTime), this.#finish, exchange);
    response.once('close', () => {
      this.#abandon(exchange);
    });
    this.#requests++;
    this.#peakInFlight = Math.max(this.#peakInFlight, this.inFlight);
  }

  /** The work is done: the deadline is no longer needed. This is what happens to nearly every deadline. */
  readonly #finish = (exchange: Exchange): void => {
    this.#timer.cancel(exchange.deadline);
    this.#answered++;
    respond(exchange, 200, 'done\n');
  };

  readonly #expire = (exchange: Exchange): void => {
    this.#latenessMs.push(this.#clock.now() - exchange.arrivedMs - this.#timeoutMs);
    this.#timer.cancel(exchange.work);
    respond(exchange, 504, 'deadline exceeded\n');
  };

  /** `close` follows every response; it matters only when it comes before one. */
  #abandon(exchange: Exchange): void {
    if (exchange.isSettled) return;
    exchange.isSettled = true;
    this.#timer.cancel(exchange.deadline);
    this.#timer.cancel(exchange.work);
    this.#abandoned++;
  }
}

/** No timer hands this id out. */
const NOT_YET = 0 as TimerId;

function respond(exchange: Exchange, status: 200 | 504, body: string): void {
  exchange.isSettled = true;
  exchange.response.writeHead(status, { 'content-length': body.length }).end(body);
}
