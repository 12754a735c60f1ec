import { inOwnTurn } from '../core/own-turn.ts';
import { Serial } from '../core/serial.ts';
import type { MessageLog } from './message-log.ts';

/**
 * Writes acknowledgements down, one save at a time: those of one turn of the event loop together. They are with the
 * host soon, so that they survive the process; on the disk they are when somebody asks for it.
 */
export class AckSaver {
  readonly #log: MessageLog;
  readonly #onError: (error: unknown) => void;
  readonly #saves = new Serial();
  #isAsked = false;
  #isStopped = false;

  constructor(log: MessageLog, onError: (error: unknown) => void) {
    this.#log = log;
    this.#onError = onError;
  }

  /** Something was acknowledged. */
  request(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    inOwnTurn(() => {
      void this.run(() => this.#save()).catch(this.#onError);
    });
  }

  /** What was not saved yet is not saved by itself any more. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Does something behind the saves that were begun, while none is. */
  run(action: () => Promise<void>): Promise<void> {
    return this.#saves.run(action);
  }

  async #save(): Promise<void> {
    this.#isAsked = false;
    if (!this.#isStopped && this.#log.hasUnsavedAcks) await this.#log.saveAcks(false);
  }
}
