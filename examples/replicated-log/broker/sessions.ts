import type { DelayedOperationPurgatory } from 'escapement';
import { DelayedHeartbeat, type Session } from './delayed-heartbeat.ts';

type HeartbeatPurgatory = DelayedOperationPurgatory<string, DelayedHeartbeat>;

/** The followers that are alive, as far as their heartbeats tell. */
export class Sessions {
  readonly #purgatory: HeartbeatPurgatory;
  readonly #timeoutMs: number;
  readonly #ended: (member: string) => void;
  readonly #sessions = new Map<string, Session>();

  /** @param ended - called when a member was not heard of for `timeoutMs`, or has left. */
  constructor(purgatory: HeartbeatPurgatory, timeoutMs: number, ended: (member: string) => void) {
    this.#purgatory = purgatory;
    this.#timeoutMs = timeoutMs;
    this.#ended = ended;
  }

  get members(): string[] {
    return [...this.#sessions.keys()];
  }

  has(member: string): boolean {
    return this.#sessions.has(member);
  }

  /** A member is alive. One that is not known gets a session. */
  heartbeat(member: string): void {
    const session = this.#sessions.get(member) ?? { member, beats: 0 };
    this.#sessions.set(member, session);
    session.beats++;
    this.#purgatory.checkAndComplete(member);
    this.#purgatory.tryCompleteElseWatch(new DelayedHeartbeat(session, this.#timeoutMs, this.#expire), [
      member,
    ]);
  }

  /** A member says goodbye: nobody waits for it any longer, and nothing expires. */
  leave(member: string): void {
    this.#purgatory.cancelForKey(member);
    this.#end(member);
  }

  readonly #expire = (session: Session): void => {
    this.#end(session.member);
  };

  #end(member: string): void {
    if (this.#sessions.delete(member)) this.#ended(member);
  }
}
