import { DelayedOperation } from 'escapement';

/** A follower that is known, and how often it was heard of. */
export interface Session {
  readonly member: string;
  beats: number;
}

/**
 * Waits for the next heartbeat of a member, under the member's name. The other way round than most operations: its
 * condition holds nearly always, and what matters is the one time that it does not.
 */
export class DelayedHeartbeat extends DelayedOperation {
  readonly #session: Session;
  readonly #beatsSoFar: number;
  readonly #expired: (session: Session) => void;

  constructor(session: Session, timeoutMs: number, expired: (session: Session) => void) {
    super(timeoutMs);
    this.#session = session;
    this.#beatsSoFar = session.beats;
    this.#expired = expired;
  }

  override tryComplete(): boolean {
    return this.#session.beats > this.#beatsSoFar && this.forceComplete();
  }

  override onComplete(): void {
    // Heard of in time: the next operation waits already, or is about to.
  }

  override onExpiration(): void {
    this.#expired(this.#session);
  }
}
